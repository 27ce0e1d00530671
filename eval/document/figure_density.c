/* Outlines of histograms over common bins, one above the other; each has the same area, so that groups of different
 * size compare. */
#include <math.h>
#include <stdio.h>

#include "eval/document/figure_draw.h"

#define PITCH 44.0

static int64_t row_total(const struct lk_figure_density *density, int r) {
    int64_t n = 0;
    for (int b = 0; b < density->n_bins; b++) n += density->counts[r * density->n_bins + b];
    return n;
}

/* The largest share that a bin has in any row. */
static double largest_share(const struct lk_figure_density *density) {
    double most = 0;
    for (int r = 0; r < density->n_rows; r++) {
        double n = (double)row_total(density, r);
        for (int b = 0; b < density->n_bins && n > 0; b++)
            most = fmax(most, (double)density->counts[r * density->n_bins + b] / n);
    }
    return most > 0 ? most : 1;
}

static double edge(const struct lk_figure_density *density, int b) {
    return density->low + (density->high - density->low) * b / density->n_bins;
}

static void outline(struct lk_draw *d, const struct lk_figure_density *density, const struct lk_axis *axis, int r,
                    double base, double scale) {
    double n = (double)row_total(density, r);
    lk_text_add(d->out, "<path class=\"hill\" d=\"M%.1f %.1f", lk_axis_x(axis, density->low), base);
    for (int b = 0; b < density->n_bins; b++) {
        double y = base - scale * (double)density->counts[r * density->n_bins + b] / n;
        lk_text_add(d->out, "L%.1f %.1fL%.1f %.1f", lk_axis_x(axis, edge(density, b)), y,
                    lk_axis_x(axis, edge(density, b + 1)), y);
    }
    lk_text_add(d->out, "L%.1f %.1fZ\"/>\n", lk_axis_x(axis, density->high), base);
}

static void draw(struct lk_figure *out, const struct lk_figure_density *density, bool narrow) {
    struct lk_draw d = lk_draw_begin(out, narrow);
    struct lk_row_layout rows = lk_rows_layout(&d, density->rows, density->n_rows, narrow ? 14 : 110);
    struct lk_axis axis = {.x0 = rows.x0, .x1 = rows.x1};
    lk_axis_make(&axis, density->low, density->high, narrow ? 4 : 6, LK_UNIT_NUMBER);
    double top = 6 + lk_axis_reference_line(&d, density->has_reference, density->reference_name),
           pitch = PITCH + rows.label_line, bottom = top + density->n_rows * pitch;
    double scale = (PITCH - 8) / largest_share(density);
    lk_draw_open(&d, &density->head, bottom + LK_AXIS_HEIGHT);
    lk_axis_draw(&d, &axis, top, bottom, density->value_name);
    for (int r = 0; r < density->n_rows; r++) {
        double at = top + r * pitch + rows.label_line, base = at + PITCH - 2;
        char number[LK_NUMBER_MAX + 8], text[2 * LK_NUMBER_MAX + 40];
        const struct lk_figure_value *median = &density->medians[r];
        lk_figure_print(number, median, LK_UNIT_NUMBER, density->decimals);
        snprintf(text, sizeof text, "median %s", number);
        lk_rows_label(&d, &rows, at, PITCH, density->rows[r], NULL);
        lk_draw_group(&d, density->rows[r], NULL, text);
        if (row_total(density, r) > 0) outline(&d, density, &axis, r, base, scale);
        if (!median->none) {
            double x = lk_axis_x(&axis, median->value);
            lk_draw_line(&d, x, base, x, base - PITCH + 12, "median");
        }
        lk_draw_text(&d, d.width, narrow ? at - 0.4 * d.size : base - 4, 'e', "value", text);
        lk_draw_group_end(&d);
        lk_draw_line(&d, axis.x0, base, axis.x1, base, "grid");
    }
    if (density->has_reference) lk_axis_reference(&d, &axis, top, bottom, density->reference, density->reference_name);
    lk_draw_close(&d);
}

static void data(struct lk_table *table, const struct lk_figure_density *density) {
    char low[LK_NUMBER_MAX], high[LK_NUMBER_MAX], name[2 * LK_NUMBER_MAX + 8];
    lk_table_column(table, density->row_name, LK_ALIGN_LEFT);
    lk_table_column(table, "n", LK_ALIGN_RIGHT);
    lk_table_column(table, "Median", LK_ALIGN_RIGHT);
    for (int b = 0; b < density->n_bins; b++) {
        lk_print_fixed(low, edge(density, b), density->decimals, false);
        lk_print_fixed(high, edge(density, b + 1), density->decimals, false);
        snprintf(name, sizeof name, "%s to %s", low, high);
        lk_table_column(table, name, LK_ALIGN_RIGHT);
    }
    for (int r = 0; r < density->n_rows; r++) {
        lk_table_row(table);
        lk_table_text(table, "%s", density->rows[r]);
        lk_table_count(table, row_total(density, r));
        lk_figure_cell(table, &density->medians[r], LK_UNIT_NUMBER, density->decimals);
        for (int b = 0; b < density->n_bins; b++) lk_table_count(table, density->counts[r * density->n_bins + b]);
    }
}

enum lk_code lk_figure_density(const struct lk_figure_density *density, struct lk_figure *out) {
    *out = (struct lk_figure){0};
    LK_TRY(lk_figure_check(&density->head, density->medians, density->n_rows));
    if (density->n_bins < 1 || !lk_figure_drawable(density->low) || !lk_figure_drawable(density->high) ||
        !(density->low < density->high) || (density->has_reference && !lk_figure_drawable(density->reference)))
        return lk_fail(LK_E_INTERNAL, "figure %s: expected bins between two finite edges", density->head.id);
    for (int i = 0; i < density->n_rows * density->n_bins; i++)
        if (density->counts[i] < 0 || density->counts[i] > INT64_MAX / 8 / density->n_bins)
            return lk_fail(LK_E_INTERNAL, "figure %s: bin %d: expected a count", density->head.id, i);
    LK_TRY(lk_figure_begin(out, &density->head));
    data(out->data, density);
    draw(out, density, false);
    draw(out, density, true);
    return lk_figure_end(out);
}
