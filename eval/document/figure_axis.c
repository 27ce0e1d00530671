/* Scales, ticks and the common layout of rows. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "eval/document/figure_draw.h"

void lk_axis_make(struct lk_axis *axis, double low, double high, int ticks, enum lk_unit unit) {
    static const double steps[] = {1, 2, 5};
    double span = high - low, reach = fmax(fabs(low), fabs(high));
    if (!(span > 1e-9 * reach)) { /* one value, or values that no axis tells apart: half of it on each side */
        double half = reach > 1e-9 ? reach / 2 : 0.5;
        low -= half;
        high += half;
        span = high - low;
    }
    double power = 1, wanted = span / ticks;
    while (power * 10 <= wanted) power *= 10;
    while (power > wanted) power /= 10;
    double step = 10 * power;
    for (int i = 0; i < 3; i++)
        if (steps[i] * power >= wanted * (1 - 1e-9)) {
            step = steps[i] * power;
            break;
        }
    axis->step = step;
    axis->low = step * floor(low / step + 1e-9);
    axis->high = step * ceil(high / step - 1e-9);
    axis->unit = unit;
}

double lk_axis_x(const struct lk_axis *axis, double value) {
    double t = (value - axis->low) / (axis->high - axis->low);
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return axis->x0 + t * (axis->x1 - axis->x0);
}

static void tick_label(char out[LK_NUMBER_MAX + 4], const struct lk_axis *axis, double value) {
    double scale = axis->unit == LK_UNIT_NUMBER ? 1 : 100, step = axis->step * scale;
    int decimals = 0;
    for (double unit = 1; unit > step * (1 + 1e-9) && decimals < 6; unit /= 10) decimals++;
    lk_print_fixed(out, value * scale, decimals, false);
    if (axis->unit == LK_UNIT_PERCENT) strcat(out, "%");
}

void lk_axis_tick(struct lk_draw *d, double x, double bottom, const char *text) {
    double half = lk_draw_text_width(text, d->size) / 2;
    x = x < half ? half : x > d->width - half ? d->width - half : x;
    lk_draw_text(d, x, bottom + 1.25 * d->size, 'm', "tick", text);
}

void lk_axis_draw(struct lk_draw *d, const struct lk_axis *axis, double top, double bottom, const char *name) {
    int n = (int)((axis->high - axis->low) / axis->step + 0.5);
    for (int i = 0; i <= n; i++) {
        double value = axis->low + i * axis->step, x = lk_axis_x(axis, value);
        char text[LK_NUMBER_MAX + 4];
        lk_draw_line(d, x, top, x, bottom, "grid");
        tick_label(text, axis, value);
        lk_axis_tick(d, x, bottom, text);
    }
    double middle = (axis->x0 + axis->x1) / 2, half = middle < d->width - middle ? middle : d->width - middle;
    char text[200];
    snprintf(text, sizeof text, "%s%s", name, axis->unit == LK_UNIT_POINTS && *name ? ", pp" : "");
    lk_draw_paragraph(d, middle, bottom + 2.6 * d->size, 'm', "axis", text, 2 * half, d->size, 1);
}

double lk_axis_reference_line(const struct lk_draw *d, bool has_reference, const char *name) {
    return has_reference && name ? 1.5 * d->size : 0;
}

void lk_axis_reference(struct lk_draw *d, const struct lk_axis *axis, double top, double bottom, double value,
                       const char *name) {
    double x = lk_axis_x(axis, value), half = name ? lk_draw_text_width(name, d->size) / 2 : 0;
    lk_draw_line(d, x, top, x, bottom, "base");
    if (!name) return;
    char anchor = x - half < 0 ? 's' : x + half > d->width ? 'e' : 'm';
    lk_draw_text(d, x, top - 0.4 * d->size, anchor, "tick", name);
}

struct lk_row_layout lk_rows_layout(const struct lk_draw *d, const char *const *labels, int n, double right_width) {
    struct lk_row_layout rows = {0};
    if (d->narrow) {
        rows.label_line = 1.7 * d->size;
        rows.x0 = 14;
        rows.x1 = d->width - (right_width > 14 ? right_width : 14);
        return rows;
    }
    for (int i = 0; i < n; i++) {
        double width = lk_draw_text_width(labels[i], d->size);
        if (width > rows.label_width) rows.label_width = width;
    }
    if (rows.label_width > 0.32 * d->width) rows.label_width = 0.32 * d->width;
    rows.x0 = rows.label_width + 14;
    rows.x1 = d->width - (right_width > 14 ? right_width : 14);
    return rows;
}

void lk_rows_label(struct lk_draw *d, const struct lk_row_layout *rows, double top, double height, const char *label,
                   const char *class_name) {
    if (rows->label_line > 0) {
        double width = lk_draw_text_width(label, d->size) + 4; /* no line of the grid runs through the label */
        lk_draw_rect(d, 0, top - 1.4 * d->size, width < d->width - 90 ? width : d->width - 90, 1.35 * d->size, "clear");
        lk_draw_paragraph(d, 0, top - 0.4 * d->size, 's', class_name, label, d->width - 90, d->size, 1);
        return;
    }
    int room = height >= 2.3 * d->size ? 2 : 1;
    int lines = lk_draw_paragraph(NULL, 0, 0, 'e', NULL, label, rows->label_width + 1, d->size, room);
    double y = top + height / 2 + 0.36 * d->size - 0.575 * d->size * (lines - 1);
    lk_draw_paragraph(d, rows->label_width, y, 'e', class_name, label, rows->label_width + 1, d->size, room);
}
