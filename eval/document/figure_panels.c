#include <math.h>
#include <stdio.h>

#include "eval/document/figure_draw.h"

/* Grouped bars lie on their sides, so that group names need no turning and any number of groups fits a telephone. */

#define BAR       14.0
#define GROUP_GAP 12.0

static void whisker(struct lk_draw *d, const struct lk_axis *axis, const struct lk_figure_value *v, double y) {
    double low = lk_axis_x(axis, v->low), high = lk_axis_x(axis, v->high);
    lk_draw_line(d, low, y, high, y, "halo");
    lk_draw_line(d, low, y, high, y, "whisker");
    lk_draw_line(d, low, y - 3, low, y + 3, "whisker");
    lk_draw_line(d, high, y - 3, high, y + 3, "whisker");
}

static void group(struct lk_draw *d, const struct lk_figure_bars *bars, const struct lk_axis *axis, int g, double top) {
    for (int s = 0; s < bars->n_series; s++) {
        const struct lk_figure_value *v = &bars->values[g * bars->n_series + s];
        char text[LK_NUMBER_MAX + 8], class_name[16];
        double y = top + s * BAR, end = axis->x0;
        lk_figure_print(text, v, bars->unit, bars->decimals);
        lk_draw_group(d, bars->groups[g], bars->series[s], text, v, NULL);
        if (!v->none) {
            snprintf(class_name, sizeof class_name, "s%d", s + 1);
            end = lk_axis_x(axis, v->value);
            lk_draw_rect(d, axis->x0, y + 1, end - axis->x0, BAR - 2, class_name);
        }
        if (lk_figure_has_interval(v)) {
            whisker(d, axis, v, y + BAR / 2);
            double high = lk_axis_x(axis, v->high);
            if (high > end) end = high;
        }
        lk_draw_text(d, end + 5, y + BAR / 2 + 4, 's', "value", text);
        lk_draw_group_end(d);
    }
}

static void draw_bars(struct lk_figure *out, const struct lk_figure_bars *bars, bool narrow) {
    struct lk_draw d = lk_draw_begin(out, narrow);
    struct lk_row_layout rows = lk_rows_layout(&d, bars->groups, bars->n_groups, narrow ? 46 : 52);
    double low = 0, high = 0, legend = lk_legend(&d, bars->series, bars->n_series, "s", 0, false) + 4;
    if (!lk_figure_range(bars->values, bars->n_groups * bars->n_series, &low, &high) || high <= 0) high = 1;
    struct lk_axis axis = {.x0 = rows.x0, .x1 = rows.x1};
    lk_axis_make(&axis, 0, high, narrow ? 4 : 6, bars->unit);
    double block = bars->n_series * BAR, pitch = rows.label_line + block + GROUP_GAP;
    double bottom = legend + bars->n_groups * pitch;
    lk_draw_open(&d, &bars->head, bottom + LK_AXIS_HEIGHT);
    lk_legend(&d, bars->series, bars->n_series, "s", 0, true);
    lk_axis_draw(&d, &axis, legend, bottom, bars->value_name);
    for (int g = 0; g < bars->n_groups; g++) {
        double top = legend + g * pitch + rows.label_line + GROUP_GAP / 2;
        lk_rows_label(&d, &rows, top, block, bars->groups[g], NULL);
        group(&d, bars, &axis, g, top);
    }
    lk_draw_line(&d, axis.x0, legend, axis.x0, bottom, "base");
    lk_draw_close(&d);
}

static void bars_data(struct lk_table *table, const struct lk_figure_bars *bars) {
    lk_table_column(table, bars->group_name, LK_ALIGN_LEFT);
    for (int s = 0; s < bars->n_series; s++) lk_table_column(table, bars->series[s], LK_ALIGN_RIGHT);
    for (int g = 0; g < bars->n_groups; g++) {
        lk_table_row(table);
        lk_table_text(table, "%s", bars->groups[g]);
        for (int s = 0; s < bars->n_series; s++)
            lk_figure_cell(table, &bars->values[g * bars->n_series + s], bars->unit, bars->decimals);
    }
}

enum lk_code lk_figure_bars(const struct lk_figure_bars *bars, struct lk_figure *out) {
    *out = (struct lk_figure){0};
    if (bars->n_series < 1 || bars->n_series > LK_FIGURE_SERIES || bars->n_groups < 1)
        return lk_fail(LK_E_INTERNAL, "figure %s: expected 1 to %d series and a group, got %d and %d", bars->head.id,
                       LK_FIGURE_SERIES, bars->n_series, bars->n_groups);
    LK_TRY(lk_figure_check(&bars->head, bars->values, bars->n_groups * bars->n_series));
    for (int i = 0; i < bars->n_groups * bars->n_series; i++)
        if (!bars->values[i].none && bars->values[i].value < 0)
            return lk_fail(LK_E_INTERNAL, "figure %s: bars begin at zero; value %d is below", bars->head.id, i);
    LK_TRY(lk_figure_begin(out, &bars->head));
    bars_data(out->data, bars);
    draw_bars(out, bars, false);
    draw_bars(out, bars, true);
    return lk_figure_end(out);
}

#define PITCH 24.0
#define GAP   30.0

/* One estimate: whisker, marker, and the value at the right end of its panel. */
static void estimate(struct lk_draw *d, const struct lk_figure_panels *panels, const struct lk_axis *axis, int panel,
                     int row, double y) {
    const struct lk_figure_value *value = &panels->values[panel * panels->n_rows + row];
    if (value->none) return;
    char text[LK_NUMBER_MAX + 8];
    lk_figure_print(text, value, panels->unit, 1);
    lk_draw_group(d, panels->panels[panel], panels->rows[row], text, value, NULL);
    double x = lk_axis_x(axis, value->value);
    if (lk_figure_has_interval(value))
        lk_draw_line(d, lk_axis_x(axis, value->low), y, lk_axis_x(axis, value->high), y, "interval-line");
    lk_draw_circle(d, x, y, 4.5, panels->strong[panel * panels->n_rows + row] ? "to" : "from");
    lk_draw_group_end(d);
}

static void panel(struct lk_draw *d, const struct lk_figure_panels *panels, struct lk_axis *axis, int at, double top) {
    double bottom = top + panels->n_rows * PITCH;
    lk_draw_text(d, axis->x0, top - 0.5 * d->size, 's', "strong", panels->panels[at]);
    lk_axis_draw(d, axis, top, bottom, panels->value_name);
    lk_draw_line(d, axis->x0, top, axis->x0, bottom, "base");
    for (int r = 0; r < panels->n_rows; r++) estimate(d, panels, axis, at, r, top + (r + 0.5) * PITCH);
}

/* Panels side by side, in the narrow drawing below each other. */
static void draw(struct lk_figure *out, const struct lk_figure_panels *panels, bool narrow) {
    struct lk_draw d = lk_draw_begin(out, narrow);
    double low, high, labels = 0, head = 1.6 * d.size, height = head + panels->n_rows * PITCH + LK_AXIS_HEIGHT;
    struct lk_axis axis;
    if (!narrow) d.width = 980;
    for (int r = 0; r < panels->n_rows; r++) labels = fmax(labels, lk_draw_text_width(panels->rows[r], d.size) + 10);
    int columns = narrow ? 1 : panels->n_panels;
    double width = (d.width - labels - (columns - 1) * GAP) / columns;
    if (!lk_figure_range(panels->values, panels->n_panels * panels->n_rows, &low, &high)) low = high = 0;
    lk_axis_make(&axis, fmin(low, 0), fmax(high, 0.01), narrow ? 4 : 3, panels->unit);
    lk_draw_open(&d, &panels->head, height * (narrow ? panels->n_panels : 1));
    for (int p = 0; p < panels->n_panels; p++) {
        double top = head + (narrow ? p * height : 0);
        axis.x0 = labels + (narrow ? 0 : p * (width + GAP));
        axis.x1 = axis.x0 + width;
        for (int r = 0; r < panels->n_rows && (narrow || !p); r++)
            lk_draw_text(&d, 0, top + (r + 0.5) * PITCH + 0.36 * d.size, 's', NULL, panels->rows[r]);
        panel(&d, panels, &axis, p, top);
    }
    lk_draw_close(&d);
}

static void data(struct lk_table *table, const struct lk_figure_panels *panels) {
    lk_table_column(table, panels->row_name, LK_ALIGN_LEFT);
    for (int p = 0; p < panels->n_panels; p++) lk_table_column(table, panels->panels[p], LK_ALIGN_RIGHT);
    for (int r = 0; r < panels->n_rows; r++) {
        lk_table_row(table);
        lk_table_text(table, "%s", panels->rows[r]);
        for (int p = 0; p < panels->n_panels; p++)
            lk_figure_cell(table, &panels->values[p * panels->n_rows + r], panels->unit, 1);
    }
}

enum lk_code lk_figure_panels(const struct lk_figure_panels *panels, struct lk_figure *out) {
    *out = (struct lk_figure){0};
    if (panels->n_panels < 1 || panels->n_rows < 1)
        return lk_fail(LK_E_INTERNAL, "figure %s: expected panels and rows", panels->head.id);
    LK_TRY(lk_figure_check(&panels->head, panels->values, panels->n_panels * panels->n_rows));
    LK_TRY(lk_figure_begin(out, &panels->head));
    data(out->data, panels);
    draw(out, panels, false);
    draw(out, panels, true);
    return lk_figure_end(out);
}
