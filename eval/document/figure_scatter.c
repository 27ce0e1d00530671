#include <math.h>
#include <stdio.h>

#include "engine/base/alloc.h"
#include "eval/document/figure_draw.h"

#define PITCH 24.0

/* "-0.14 [-0.20, -0.08]" as in the table. */
static void print_estimate(char out[4 * LK_NUMBER_MAX], const struct lk_figure_forest *forest,
                           const struct lk_figure_value *value) {
    char text[LK_NUMBER_MAX + 8], interval[2 * LK_NUMBER_MAX + 8];
    lk_figure_print(text, value, forest->unit, forest->decimals);
    struct lk_cell cell = {.kind = LK_CELL_NUMBER, .text = text, .low = value->low, .high = value->high};
    bool has = lk_figure_has_interval(value) && lk_print_interval(interval, &cell);
    snprintf(out, 4 * LK_NUMBER_MAX, "%s%s%s", text, has ? " " : "", has ? interval : "");
}

static void range(const struct lk_figure_forest *forest, double *low, double *high) {
    *low = *high = forest->zero;
    for (int r = 0; r < forest->n_rows; r++) {
        double a, b;
        if (forest->rows[r].heading || !lk_figure_range(&forest->rows[r].value, 1, &a, &b)) continue;
        *low = fmin(*low, a);
        *high = fmax(*high, b);
    }
}

static void row(struct lk_draw *d, const struct lk_figure_forest *forest, const struct lk_axis *axis,
                const struct lk_row_layout *rows, const struct lk_figure_forest_row *row, double top) {
    char text[4 * LK_NUMBER_MAX];
    double y = top + PITCH / 2;
    if (row->heading) {
        lk_draw_text(d, 0, y + 0.36 * d->size, 's', "strong", row->label);
        return;
    }
    lk_rows_label(d, rows, top, PITCH, row->label, NULL);
    print_estimate(text, forest, &row->value);
    lk_draw_group(d, row->label, NULL, text, &row->value, NULL);
    if (lk_figure_has_interval(&row->value)) {
        double low = lk_axis_x(axis, row->value.low), high = lk_axis_x(axis, row->value.high);
        lk_draw_line(d, low, y, high, y, "interval-line");
        lk_draw_line(d, low, y - 4, low, y + 4, "interval-line");
        lk_draw_line(d, high, y - 4, high, y + 4, "interval-line");
    }
    if (!row->value.none) lk_draw_rect(d, lk_axis_x(axis, row->value.value) - 4, y - 4, 8, 8, "point");
    if (d->narrow) { /* no line of the plot runs through the number */
        double width = lk_draw_text_width(text, d->size) + 4;
        lk_draw_rect(d, d->width - width, top - 1.4 * d->size, width, 1.35 * d->size, "clear");
        lk_draw_text(d, d->width, top - 0.4 * d->size, 'e', "value", text);
    } else
        lk_draw_text(d, d->width, y + 0.36 * d->size, 'e', "value", text);
    lk_draw_group_end(d);
}

static double row_height(const struct lk_row_layout *rows, const struct lk_figure_forest_row *row) {
    return PITCH + (row->heading ? 0 : rows->label_line);
}

static void draw_forest(struct lk_figure *out, const struct lk_figure_forest *forest, const char *const *labels,
                        bool narrow) {
    struct lk_draw d = lk_draw_begin(out, narrow);
    char text[4 * LK_NUMBER_MAX];
    double right = 0, low, high, bottom = forest->below || forest->above ? 1.6 * d.size : 4;
    for (int r = 0; r < forest->n_rows && !narrow; r++) {
        if (forest->rows[r].heading) continue;
        print_estimate(text, forest, &forest->rows[r].value);
        right = fmax(right, lk_draw_text_width(text, d.size) + 16);
    }
    struct lk_row_layout rows = lk_rows_layout(&d, labels, forest->n_rows, right);
    struct lk_axis axis = {.x0 = rows.x0, .x1 = rows.x1};
    double top = bottom;
    range(forest, &low, &high);
    lk_axis_make(&axis, low, high, narrow ? 4 : 6, forest->unit);
    for (int r = 0; r < forest->n_rows; r++) bottom += row_height(&rows, &forest->rows[r]);
    lk_draw_open(&d, &forest->head, bottom + LK_AXIS_HEIGHT);
    lk_axis_draw(&d, &axis, top, bottom, forest->value_name);
    double zero = lk_axis_x(&axis, forest->zero);
    lk_draw_line(&d, zero, top, zero, bottom, "base");
    if (forest->below && lk_draw_text_width(forest->below, d.size) <= zero - 8)
        lk_draw_paragraph(&d, zero - 8, d.size, 'e', "tick", forest->below, zero - 8, d.size, 1);
    if (forest->above)
        lk_draw_paragraph(&d, zero + 8, d.size, 's', "tick", forest->above, d.width - zero - 8, d.size, 1);
    for (int r = 0; r < forest->n_rows; r++) {
        row(&d, forest, &axis, &rows, &forest->rows[r], top + (forest->rows[r].heading ? 0 : rows.label_line));
        top += row_height(&rows, &forest->rows[r]);
    }
    lk_draw_close(&d);
}

static void data(struct lk_table *table, const struct lk_figure_forest *forest) {
    lk_table_column(table, forest->row_name, LK_ALIGN_LEFT);
    lk_table_column(table, forest->value_name, LK_ALIGN_RIGHT);
    for (int r = 0; r < forest->n_rows; r++) {
        if (forest->rows[r].heading) {
            lk_table_heading(table, forest->rows[r].label);
            continue;
        }
        lk_table_row(table);
        lk_table_text(table, "%s", forest->rows[r].label);
        lk_figure_cell(table, &forest->rows[r].value, forest->unit, forest->decimals);
    }
}

enum lk_code lk_figure_forest(const struct lk_figure_forest *forest, struct lk_figure *out) {
    *out = (struct lk_figure){0};
    if (forest->n_rows < 1 || !lk_figure_drawable(forest->zero))
        return lk_fail(LK_E_INTERNAL, "figure %s: expected rows and a finite zero", forest->head.id);
    for (int r = 0; r < forest->n_rows; r++)
        if (!forest->rows[r].heading) LK_TRY(lk_figure_check(&forest->head, &forest->rows[r].value, 1));
    const char **labels = lk_malloc((size_t)forest->n_rows * sizeof *labels);
    if (!labels) return lk_fail(LK_E_NOMEM, "figure %s: no memory; free memory and try again", forest->head.id);
    for (int r = 0; r < forest->n_rows; r++) labels[r] = forest->rows[r].label;
    enum lk_code rc = lk_figure_begin(out, &forest->head);
    if (!rc) {
        data(out->data, forest);
        draw_forest(out, forest, labels, false);
        draw_forest(out, forest, labels, true);
        rc = lk_figure_end(out);
    }
    lk_free(labels);
    return rc;
}

enum { COLOURS = 6 };

/* A group's mark: a disc, and where the colours begin again a square. */
static void mark(struct lk_draw *d, double x, double y, int group) {
    char class_name[16];
    snprintf(class_name, sizeof class_name, "s%d", group % COLOURS + 1);
    if (group < COLOURS)
        lk_draw_circle(d, x, y, 3, class_name);
    else
        lk_draw_rect(d, x - 2.7, y - 2.7, 5.4, 5.4, class_name);
}

/* Gives the height. */
static double legend(struct lk_draw *d, const struct lk_figure_scatter *s, bool paint) {
    double x = 0, y = 0.8 * d->size;
    for (int g = 0; g < s->n_groups; g++) {
        const double width = 14 + lk_draw_text_width(s->groups[g], d->size) + 16;
        if (x > 0 && x + width > d->width) {
            x = 0;
            y += 1.6 * d->size;
        }
        if (paint) {
            mark(d, x + 5, y, g);
            lk_draw_text(d, x + 14, y + 0.36 * d->size, 's', NULL, s->groups[g]);
        }
        x += width;
    }
    return y + 0.8 * d->size + 8;
}

static void draw(struct lk_figure *out, const struct lk_figure_scatter *s, bool narrow) {
    struct lk_draw d = lk_draw_begin(out, narrow);
    const double top = legend(&d, s, false), edge = 12, height = 0.7 * d.width;
    const int lines = lk_draw_paragraph(NULL, 0, 0, 's', NULL, s->caption, d.width, d.size, 3);
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int i = 0; i < s->n; i++)
        for (int c = 0; c < 2; c++) {
            low[c] = fmin(low[c], s->points[2 * i + c]);
            high[c] = fmax(high[c], s->points[2 * i + c]);
        }
    /* One scale for both axes: distances are what is looked at. */
    const double scale =
        fmin((d.width - 2 * edge) / fmax(high[0] - low[0], 1e-9), (height - 2 * edge) / fmax(high[1] - low[1], 1e-9));
    lk_draw_open(&d, &s->head, top + height + (1.2 * lines + 0.5) * d.size);
    legend(&d, s, true);
    lk_draw_rect(&d, 0.5, top, d.width - 1, height - 1, "none");
    for (int i = 0; i < s->n; i++)
        mark(&d, d.width / 2 + scale * (s->points[2 * i] - (low[0] + high[0]) / 2),
             top + height / 2 - scale * (s->points[2 * i + 1] - (low[1] + high[1]) / 2), s->of[i]);
    lk_draw_paragraph(&d, 0, top + height + 1.3 * d.size, 's', "axis", s->caption, d.width, d.size, 3);
    lk_draw_close(&d);
}

enum lk_code lk_figure_scatter(const struct lk_figure_scatter *s, struct lk_figure *out) {
    *out = (struct lk_figure){0};
    bool drawable = s->n > 0 && s->n_groups > 0 && s->n_groups <= LK_FIGURE_MARKS;
    for (int i = 0; i < 2 * s->n && drawable; i++) drawable = lk_figure_drawable(s->points[i]);
    if (!drawable)
        return lk_fail(LK_E_INTERNAL, "figure %s: expected points that can be drawn, in 1 to %d groups", s->head.id,
                       LK_FIGURE_MARKS);
    LK_TRY(lk_figure_begin(out, &s->head));
    lk_table_column(out->data, s->group_name, LK_ALIGN_LEFT);
    lk_table_column(out->data, "x", LK_ALIGN_RIGHT);
    lk_table_column(out->data, "y", LK_ALIGN_RIGHT);
    for (int i = 0; i < s->n; i++) {
        lk_table_row(out->data);
        lk_table_text(out->data, "%s", s->groups[s->of[i]]);
        for (int c = 0; c < 2; c++) lk_table_signed(out->data, s->points[2 * i + c], 3);
    }
    draw(out, s, false);
    draw(out, s, true);
    return lk_figure_end(out);
}
