#include <math.h>
#include <stdio.h>
#include <string.h>

#include "eval/document/figure_draw.h"

#define LIKERT_PITCH 28.0
#define BAR          20.0

static int64_t total(const int64_t counts[5]) { return counts[0] + counts[1] + counts[2] + counts[3] + counts[4]; }

/* What lies left and right of the line, as shares. */
static void sides(const int64_t counts[5], double *left, double *right) {
    double n = (double)total(counts);
    *left = n > 0 ? ((double)(counts[0] + counts[1]) + 0.5 * (double)counts[2]) / n : 0;
    *right = n > 0 ? ((double)(counts[3] + counts[4]) + 0.5 * (double)counts[2]) / n : 0;
}

static void likert_row(struct lk_draw *d, const struct lk_figure_likert *likert, const struct lk_axis *axis, int r,
                       double top) {
    const int64_t *counts = likert->counts[r];
    double n = (double)total(counts), left, right, at;
    sides(counts, &left, &right);
    at = -left;
    for (int i = 0; i < 5 && n > 0; i++) {
        char text[LK_NUMBER_MAX + 8], class_name[16];
        struct lk_figure_value share = {.k = counts[i], .n = total(counts)};
        if (!counts[i]) continue;
        double x = lk_axis_x(axis, at), end = lk_axis_x(axis, at += (double)counts[i] / n);
        lk_figure_print(text, &share, LK_UNIT_PERCENT, 1);
        snprintf(class_name, sizeof class_name, "l%d", i + 1);
        lk_draw_group(d, likert->rows[r], likert->levels[i], text, &share, NULL);
        lk_draw_rect(d, x, top + (LIKERT_PITCH - BAR) / 2, end - x - 0.5, BAR, class_name);
        snprintf(class_name, sizeof class_name, "on-l%d", i + 1);
        if (end - x > lk_draw_text_width(text, 11) + 4)
            lk_draw_text(d, (x + end) / 2, top + LIKERT_PITCH / 2 + 4, 'm', class_name, text);
        lk_draw_group_end(d);
    }
}

/* Shares are read outward from the line, so both sides count up from 0%. */
static void axis_outward(struct lk_draw *d, const struct lk_axis *axis, double top, double bottom) {
    int n = (int)((axis->high - axis->low) / axis->step + 0.5);
    for (int i = 0; i <= n; i++) {
        double value = axis->low + i * axis->step, x = lk_axis_x(axis, value);
        char text[LK_NUMBER_MAX + 4];
        lk_draw_line(d, x, top, x, bottom, "grid");
        lk_print_fixed(text, fabs(100 * value), 0, false);
        strcat(text, "%");
        lk_axis_tick(d, x, bottom, text);
    }
}

static void draw_likert(struct lk_figure *out, const struct lk_figure_likert *likert, bool narrow) {
    struct lk_draw d = lk_draw_begin(out, narrow);
    struct lk_row_layout rows = lk_rows_layout(&d, likert->rows, likert->n_rows, narrow ? 20 : 84);
    double low = 0, high = 0, left, right, legend = lk_legend(&d, likert->levels, 5, "l", 0, false) + 4;
    for (int r = 0; r < likert->n_rows; r++) {
        sides(likert->counts[r], &left, &right);
        low = -left < low ? -left : low;
        high = right > high ? right : high;
    }
    struct lk_axis axis = {.x0 = rows.x0, .x1 = rows.x1};
    lk_axis_make(&axis, low, high, narrow ? 4 : 6, LK_UNIT_PERCENT);
    double pitch = LIKERT_PITCH + rows.label_line, bottom = legend + likert->n_rows * pitch;
    lk_draw_open(&d, &likert->head, bottom + 1.25 * d.size + 10);
    lk_legend(&d, likert->levels, 5, "l", 0, true);
    axis_outward(&d, &axis, legend, bottom);
    lk_draw_line(&d, lk_axis_x(&axis, 0), legend, lk_axis_x(&axis, 0), bottom, "base");
    for (int r = 0; r < likert->n_rows; r++) {
        double top = legend + r * pitch + rows.label_line;
        char number[LK_NUMBER_MAX], text[LK_NUMBER_MAX + 8];
        lk_rows_label(&d, &rows, top, LIKERT_PITCH, likert->rows[r], NULL);
        likert_row(&d, likert, &axis, r, top);
        lk_print_count(number, total(likert->counts[r]));
        snprintf(text, sizeof text, "n = %s", number);
        lk_draw_text(&d, d.width, narrow ? top - 0.4 * d.size : top + LIKERT_PITCH / 2 + 4, 'e', "tick", text);
    }
    lk_draw_close(&d);
}

static void likert_data(struct lk_table *table, const struct lk_figure_likert *likert) {
    lk_table_column(table, likert->row_name, LK_ALIGN_LEFT);
    for (int i = 0; i < 5; i++) lk_table_column(table, likert->levels[i], LK_ALIGN_RIGHT);
    lk_table_column(table, "n", LK_ALIGN_RIGHT);
    for (int r = 0; r < likert->n_rows; r++) {
        int64_t n = total(likert->counts[r]);
        lk_table_row(table);
        lk_table_text(table, "%s", likert->rows[r]);
        for (int i = 0; i < 5; i++) lk_table_percent(table, likert->counts[r][i], n);
        lk_table_count(table, n);
    }
}

enum lk_code lk_figure_likert(const struct lk_figure_likert *likert, struct lk_figure *out) {
    *out = (struct lk_figure){0};
    if (likert->n_rows < 1) return lk_fail(LK_E_INTERNAL, "figure %s: expected rows", likert->head.id);
    for (int r = 0; r < likert->n_rows; r++)
        for (int i = 0; i < 5; i++)
            if (likert->counts[r][i] < 0 || likert->counts[r][i] > INT64_MAX / 8)
                return lk_fail(LK_E_INTERNAL, "figure %s: row %d: expected counts of answers", likert->head.id, r);
    LK_TRY(lk_figure_begin(out, &likert->head));
    likert_data(out->data, likert);
    draw_likert(out, likert, false);
    draw_likert(out, likert, true);
    return lk_figure_end(out);
}

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
