#include <math.h>
#include <stdio.h>
#include <string.h>

#include "eval/document/figure_draw.h"

#define PITCH 28.0
#define BAR   20.0

static int64_t total(const int64_t counts[5]) { return counts[0] + counts[1] + counts[2] + counts[3] + counts[4]; }

/* What lies left and right of the line, as shares. */
static void sides(const int64_t counts[5], double *left, double *right) {
    double n = (double)total(counts);
    *left = n > 0 ? ((double)(counts[0] + counts[1]) + 0.5 * (double)counts[2]) / n : 0;
    *right = n > 0 ? ((double)(counts[3] + counts[4]) + 0.5 * (double)counts[2]) / n : 0;
}

static void row(struct lk_draw *d, const struct lk_figure_likert *likert, const struct lk_axis *axis, int r,
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
        lk_draw_rect(d, x, top + (PITCH - BAR) / 2, end - x - 0.5, BAR, class_name);
        snprintf(class_name, sizeof class_name, "on-l%d", i + 1);
        if (end - x > lk_draw_text_width(text, 11) + 4)
            lk_draw_text(d, (x + end) / 2, top + PITCH / 2 + 4, 'm', class_name, text);
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

static void draw(struct lk_figure *out, const struct lk_figure_likert *likert, bool narrow) {
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
    double pitch = PITCH + rows.label_line, bottom = legend + likert->n_rows * pitch;
    lk_draw_open(&d, &likert->head, bottom + 1.25 * d.size + 10);
    lk_legend(&d, likert->levels, 5, "l", 0, true);
    axis_outward(&d, &axis, legend, bottom);
    lk_draw_line(&d, lk_axis_x(&axis, 0), legend, lk_axis_x(&axis, 0), bottom, "base");
    for (int r = 0; r < likert->n_rows; r++) {
        double top = legend + r * pitch + rows.label_line;
        char number[LK_NUMBER_MAX], text[LK_NUMBER_MAX + 8];
        lk_rows_label(&d, &rows, top, PITCH, likert->rows[r], NULL);
        row(&d, likert, &axis, r, top);
        lk_print_count(number, total(likert->counts[r]));
        snprintf(text, sizeof text, "n = %s", number);
        lk_draw_text(&d, d.width, narrow ? top - 0.4 * d.size : top + PITCH / 2 + 4, 'e', "tick", text);
    }
    lk_draw_close(&d);
}

static void data(struct lk_table *table, const struct lk_figure_likert *likert) {
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
    data(out->data, likert);
    draw(out, likert, false);
    draw(out, likert, true);
    return lk_figure_end(out);
}
