#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/document/figure_draw.h"

#define LEGEND_HEIGHT 46.0
#define LEGEND_STEPS  40

enum { MOST_NARROW = 9 }; /* columns on a telephone */

struct grid {
    double x, y, cell_w, cell_h;
    bool turned; /* column names run upwards */
    double low, high;
};

static uint32_t colour(const struct lk_figure_heat *heat, const struct grid *grid, double value) {
    double t = (value - grid->low) / (grid->high - grid->low);
    if (!heat->diverging) return lk_scale_sequential(t);
    double below = heat->middle - grid->low, above = grid->high - heat->middle, reach = below > above ? below : above;
    return lk_scale_diverging((value - heat->middle) / reach);
}

/* The names' longest word decides whether they fit their columns lying down. */
static bool must_turn(const struct lk_draw *d, const struct lk_figure_heat *heat, double width) {
    for (int c = 0; c < heat->n_columns; c++) {
        const char *at = heat->columns[c];
        int words = 0;
        for (; *at; words++) {
            char word[64];
            size_t n = strcspn(at, " ");
            snprintf(word, sizeof word, "%.*s", (int)(n < 60 ? n : 60), at);
            if (lk_draw_text_width(word, d->size) > width - 4) return true;
            at += n + strspn(at + n, " ");
        }
        if (words > 3) return true;
    }
    return false;
}

static struct grid layout(const struct lk_draw *d, const struct lk_figure_heat *heat) {
    struct grid grid = {.low = heat->low, .high = heat->high};
    double label = 0, header = 0, most = d->narrow ? 110 : 260;
    for (int r = 0; r < heat->n_rows; r++) label = fmax(label, lk_draw_text_width(heat->rows[r], d->size));
    grid.x = (label < most ? label : most) + 8;
    grid.cell_w = (d->width - grid.x) / heat->n_columns;
    if (grid.cell_w > 92) grid.cell_w = 92;
    grid.cell_h = d->narrow ? 25 : 27;
    grid.turned = must_turn(d, heat, grid.cell_w);
    for (int c = 0; c < heat->n_columns; c++) {
        double width = lk_draw_text_width(heat->columns[c], d->size);
        int lines = lk_draw_paragraph(NULL, 0, 0, 'm', NULL, heat->columns[c], grid.cell_w - 4, d->size, 3);
        header = fmax(header, grid.turned ? (width < 130 ? width : 130) : lines * 1.15 * d->size);
    }
    grid.y = header + 10;
    if (heat->low == 0 && heat->high == 0) {
        grid.low = 0, grid.high = 1;
        for (int i = 0, first = 1; i < heat->n_rows * heat->n_columns; i++) {
            if (heat->values[i].none) continue;
            if (first || heat->values[i].value < grid.low) grid.low = heat->values[i].value;
            if (first || heat->values[i].value > grid.high) grid.high = heat->values[i].value;
            first = 0;
        }
    }
    if (heat->diverging) {
        grid.low = fmin(grid.low, heat->middle);
        grid.high = fmax(grid.high, heat->middle);
    }
    if (!(grid.high > grid.low)) grid.high = grid.low + 1;
    return grid;
}

static void cells(struct lk_draw *d, const struct lk_figure_heat *heat, const struct grid *grid) {
    double size = d->size;
    char text[LK_NUMBER_MAX + 8];
    for (int i = 0; i < heat->n_rows * heat->n_columns; i++) { /* one size for all, at which the widest fits */
        lk_figure_print(text, &heat->values[i], heat->unit, heat->decimals);
        while (size > (d->narrow ? 8 : 9) && lk_draw_text_width(text, size) > grid->cell_w - 1) size -= 0.5;
    }
    for (int r = 0; r < heat->n_rows; r++) {
        double y = grid->y + r * grid->cell_h;
        lk_draw_paragraph(d, grid->x - 8, y + grid->cell_h / 2 + 0.36 * d->size, 'e', NULL, heat->rows[r], grid->x - 7,
                          d->size, 1);
        for (int c = 0; c < heat->n_columns; c++) {
            const struct lk_figure_value *v = &heat->values[r * heat->n_columns + c];
            double x = grid->x + c * grid->cell_w;
            uint32_t rgb = v->none ? 0 : colour(heat, grid, v->value);
            lk_figure_print(text, v, heat->unit, heat->decimals);
            lk_draw_group(d, heat->rows[r], heat->columns[c], text, v, NULL);
            if (v->none)
                lk_draw_rect(d, x, y, grid->cell_w - 1, grid->cell_h - 1, "none");
            else
                lk_draw_fill_rect(d, x, y, grid->cell_w - 1, grid->cell_h - 1, rgb);
            lk_text_add(d->out, "<g font-size=\"%.1f\">", size);
            lk_draw_text(d, x + (grid->cell_w - 1) / 2, y + grid->cell_h / 2 + 0.34 * size, 'm',
                         v->none            ? "tick"
                         : lk_black_on(rgb) ? "on-light"
                                            : "on-dark",
                         text);
            lk_text_add(d->out, "</g>");
            lk_draw_group_end(d);
        }
    }
}

static void column_names(struct lk_draw *d, const struct lk_figure_heat *heat, const struct grid *grid) {
    for (int c = 0; c < heat->n_columns; c++) {
        double x = grid->x + (c + 0.5) * grid->cell_w - 0.5;
        if (!grid->turned) {
            int lines = lk_draw_paragraph(NULL, 0, 0, 'm', NULL, heat->columns[c], grid->cell_w - 4, d->size, 3);
            lk_draw_paragraph(d, x, grid->y - 8 - (lines - 1) * 1.15 * d->size, 'm', NULL, heat->columns[c],
                              grid->cell_w - 4, d->size, 3);
            continue;
        }
        lk_text_add(d->out, "<g transform=\"translate(%.1f %.1f) rotate(-90)\">", x + 0.35 * d->size, grid->y - 6);
        lk_draw_paragraph(d, 0, 0, 's', NULL, heat->columns[c], 131, d->size, 1);
        lk_text_add(d->out, "</g>\n");
    }
}

static void legend(struct lk_draw *d, const struct lk_figure_heat *heat, const struct grid *grid, double y) {
    double width = d->narrow ? 200 : 240, x = grid->x, step = width / LEGEND_STEPS;
    char text[LK_NUMBER_MAX + 8];
    if (x + width > d->width) x = d->width - width;
    for (int i = 0; i < LEGEND_STEPS; i++) {
        double value = grid->low + (grid->high - grid->low) * (i + 0.5) / LEGEND_STEPS;
        lk_draw_fill_rect(d, x + i * step, y, step, 10, colour(heat, grid, value));
    }
    struct lk_figure_value end = {.value = grid->low};
    lk_figure_print(text, &end, heat->unit, heat->decimals);
    lk_draw_text(d, x, y + 10 + 1.15 * d->size, 's', "tick", text);
    end.value = grid->high;
    lk_figure_print(text, &end, heat->unit, heat->decimals);
    lk_draw_text(d, x + width, y + 10 + 1.15 * d->size, 'e', "tick", text);
    lk_draw_paragraph(d, x + width / 2, y + 10 + 1.15 * d->size, 'm', "axis", heat->value_name, width - 76, d->size, 1);
}

static void draw(struct lk_figure *out, const struct lk_figure_heat *heat, bool narrow) {
    struct lk_draw d = lk_draw_begin(out, narrow);
    struct grid grid = layout(&d, heat);
    double bottom = grid.y + heat->n_rows * grid.cell_h;
    lk_draw_open(&d, &heat->head, bottom + LEGEND_HEIGHT);
    column_names(&d, heat, &grid);
    cells(&d, heat, &grid);
    legend(&d, heat, &grid, bottom + 12);
    lk_draw_close(&d);
}

/* Columns whose values would run into each other on a telephone become rows. */
static enum lk_code draw_narrow(struct lk_figure *out, const struct lk_figure_heat *heat) {
    struct lk_figure_heat turned = *heat;
    if (heat->n_columns <= MOST_NARROW || heat->n_columns <= heat->n_rows) {
        draw(out, heat, true);
        return LK_OK;
    }
    struct lk_figure_value *values = lk_malloc((size_t)(heat->n_rows * heat->n_columns) * sizeof *values);
    if (!values) return lk_fail(LK_E_NOMEM, "figure %s: no memory for its values", heat->head.id);
    for (int r = 0; r < heat->n_rows; r++)
        for (int c = 0; c < heat->n_columns; c++) values[c * heat->n_rows + r] = heat->values[r * heat->n_columns + c];
    turned.rows = heat->columns, turned.n_rows = heat->n_columns;
    turned.columns = heat->rows, turned.n_columns = heat->n_rows;
    turned.values = values;
    draw(out, &turned, true);
    lk_free(values);
    return LK_OK;
}

enum lk_code lk_figure_heat(const struct lk_figure_heat *heat, struct lk_figure *out) {
    *out = (struct lk_figure){0};
    if (!lk_figure_drawable(heat->low) || !lk_figure_drawable(heat->high) || !lk_figure_drawable(heat->middle))
        return lk_fail(LK_E_INTERNAL, "figure %s: expected a scale within 1e12 of zero", heat->head.id);
    if (heat->n_rows < 1 || heat->n_columns < 1)
        return lk_fail(LK_E_INTERNAL, "figure %s: expected rows and columns, got %d and %d", heat->head.id,
                       heat->n_rows, heat->n_columns);
    LK_TRY(lk_figure_check(&heat->head, heat->values, heat->n_rows * heat->n_columns));
    LK_TRY(lk_figure_begin(out, &heat->head));
    lk_table_column(out->data, heat->row_name, LK_ALIGN_LEFT);
    for (int c = 0; c < heat->n_columns; c++) lk_table_column(out->data, heat->columns[c], LK_ALIGN_RIGHT);
    for (int r = 0; r < heat->n_rows; r++) {
        lk_table_row(out->data);
        lk_table_text(out->data, "%s", heat->rows[r]);
        for (int c = 0; c < heat->n_columns; c++)
            lk_figure_cell(out->data, &heat->values[r * heat->n_columns + c], heat->unit, heat->decimals);
    }
    draw(out, heat, false);
    enum lk_code rc = draw_narrow(out, heat);
    if (!rc) return lk_figure_end(out);
    lk_figure_free(out);
    return rc;
}
