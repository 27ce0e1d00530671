#include <math.h>
#include <stdio.h>

#include "eval/document/figure_draw.h"

#define PITCH 26.0

static void print_change(char out[LK_NUMBER_MAX + 8], const struct lk_figure_shift *shift, int r) {
    double change = shift->to[r].value - shift->from[r].value, scale = shift->unit == LK_UNIT_NUMBER ? 1 : 100;
    char number[LK_NUMBER_MAX];
    if (shift->from[r].none || shift->to[r].none) {
        snprintf(out, LK_NUMBER_MAX + 8, LK_EN_DASH);
        return;
    }
    lk_print_fixed(number, change * scale, scale == 1 ? shift->decimals : 1, true);
    snprintf(out, LK_NUMBER_MAX + 8, "%s%s", number, scale == 1 ? "" : " pp");
}

static void row(struct lk_draw *d, const struct lk_figure_shift *shift, const struct lk_axis *axis, int r, double y) {
    char from[LK_NUMBER_MAX + 8], to[LK_NUMBER_MAX + 8], change[LK_NUMBER_MAX + 8], text[3 * LK_NUMBER_MAX + 40];
    lk_figure_print(from, &shift->from[r], shift->unit, shift->decimals);
    lk_figure_print(to, &shift->to[r], shift->unit, shift->decimals);
    print_change(change, shift, r);
    snprintf(text, sizeof text, "%s \xe2\x86\x92 %s (%s)", from, to, change);
    lk_draw_group(d, shift->rows[r], NULL, text, &shift->from[r], &shift->to[r]);
    bool a = !shift->from[r].none, b = !shift->to[r].none;
    double x1 = a ? lk_axis_x(axis, shift->from[r].value) : 0, x2 = b ? lk_axis_x(axis, shift->to[r].value) : 0;
    for (int end = 0; end < 2; end++) {
        const struct lk_figure_value *v = end ? &shift->to[r] : &shift->from[r];
        double offset = end ? 7 : -7;
        if (lk_figure_has_interval(v))
            lk_draw_line(d, lk_axis_x(axis, v->low), y + offset, lk_axis_x(axis, v->high), y + offset,
                         end ? "range-to" : "range-from");
    }
    if (a && b && fabs(x2 - x1) > 11) lk_draw_line(d, x1 + (x2 > x1 ? 5 : -5), y, x2 - (x2 > x1 ? 5 : -5), y, "way");
    if (a) lk_draw_circle(d, x1, y, 4.5, "from");
    if (b) lk_draw_circle(d, x2, y, 4.5, "to");
    lk_draw_text(d, d->width, d->narrow ? y - PITCH / 2 - 0.4 * d->size : y + 0.36 * d->size, 'e', "value", change);
    lk_draw_group_end(d);
}

static double legend(struct lk_draw *d, const struct lk_figure_shift *shift, bool paint) {
    const char *const names[] = {shift->from_name, shift->to_name};
    double x = 0, y = 0.8 * d->size;
    for (int i = 0; i < 2; i++) {
        double width = 16 + lk_draw_text_width(names[i], d->size) + 16;
        if (i && x + width > d->width - 60) {
            x = 0;
            y += 1.6 * d->size;
        }
        if (paint) {
            lk_draw_circle(d, x + 5, y, 4.5, i ? "to" : "from");
            lk_draw_text(d, x + 16, y + 0.36 * d->size, 's', NULL, names[i]);
        }
        x += width;
    }
    if (paint) lk_draw_text(d, d->width, 1.16 * d->size, 'e', "axis", "change");
    return y + 0.8 * d->size + 8;
}

static void draw(struct lk_figure *out, const struct lk_figure_shift *shift, bool narrow) {
    struct lk_draw d = lk_draw_begin(out, narrow);
    struct lk_row_layout rows = lk_rows_layout(&d, shift->rows, shift->n_rows, narrow ? 20 : 76);
    double low = 0, high = 1, low2, high2;
    double top = legend(&d, shift, false) + lk_axis_reference_line(&d, shift->has_reference, shift->reference_name);
    bool any = lk_figure_range(shift->from, shift->n_rows, &low, &high);
    if (lk_figure_range(shift->to, shift->n_rows, &low2, &high2)) {
        low = any ? fmin(low, low2) : low2;
        high = any ? fmax(high, high2) : high2;
    }
    if (shift->has_reference) {
        low = fmin(low, shift->reference);
        high = fmax(high, shift->reference);
    }
    struct lk_axis axis = {.x0 = rows.x0, .x1 = rows.x1};
    lk_axis_make(&axis, low, high, narrow ? 4 : 6, shift->unit);
    double pitch = PITCH + rows.label_line, bottom = top + shift->n_rows * pitch;
    lk_draw_open(&d, &shift->head, bottom + LK_AXIS_HEIGHT);
    legend(&d, shift, true);
    lk_axis_draw(&d, &axis, top, bottom, shift->value_name);
    if (shift->has_reference) lk_axis_reference(&d, &axis, top, bottom, shift->reference, shift->reference_name);
    for (int r = 0; r < shift->n_rows; r++) {
        double at = top + r * pitch + rows.label_line;
        lk_rows_label(&d, &rows, at, PITCH, shift->rows[r], NULL);
        row(&d, shift, &axis, r, at + PITCH / 2);
    }
    lk_draw_close(&d);
}

static void data(struct lk_table *table, const struct lk_figure_shift *shift) {
    lk_table_column(table, shift->row_name, LK_ALIGN_LEFT);
    lk_table_column(table, shift->from_name, LK_ALIGN_RIGHT);
    lk_table_column(table, shift->to_name, LK_ALIGN_RIGHT);
    lk_table_column(table, "Change", LK_ALIGN_RIGHT);
    for (int r = 0; r < shift->n_rows; r++) {
        double change = shift->to[r].value - shift->from[r].value;
        lk_table_row(table);
        lk_table_text(table, "%s", shift->rows[r]);
        lk_figure_cell(table, &shift->from[r], shift->unit, shift->decimals);
        lk_figure_cell(table, &shift->to[r], shift->unit, shift->decimals);
        if (shift->from[r].none || shift->to[r].none)
            lk_table_none(table, NULL);
        else if (shift->unit == LK_UNIT_NUMBER)
            lk_table_signed(table, change, shift->decimals);
        else
            lk_table_points(table, change);
    }
}

enum lk_code lk_figure_shift(const struct lk_figure_shift *shift, struct lk_figure *out) {
    *out = (struct lk_figure){0};
    LK_TRY(lk_figure_check(&shift->head, shift->from, shift->n_rows));
    LK_TRY(lk_figure_check(&shift->head, shift->to, shift->n_rows));
    if (shift->has_reference && !lk_figure_drawable(shift->reference))
        return lk_fail(LK_E_INTERNAL, "figure %s: expected a finite reference", shift->head.id);
    LK_TRY(lk_figure_begin(out, &shift->head));
    data(out->data, shift);
    draw(out, shift, false);
    draw(out, shift, true);
    return lk_figure_end(out);
}
