/* Scales, ticks and the common layout of rows. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "eval/document/figure_draw.h"

/* Two colour scales with even steps of lightness (interpolated in OKLab, kept here in steps small enough for linear
 * interpolation). Ordered by lightness alone, they read the same to colour-blind eyes and in grey; their ends differ in
 * blue against orange, which all common kinds tell apart. */

static const uint32_t sequential[] = {0xf4f7e1, 0xdfedd4, 0xcae3c8, 0xb5d9bc, 0xa0cfaf, 0x8bc3af,
                                      0x76b8af, 0x5facae, 0x46a0ac, 0x3d92a9, 0x3484a5, 0x2c77a1,
                                      0x25699c, 0x265b91, 0x264e85, 0x25417a, 0x24346f};
static const uint32_t diverging[] = {0x204f9d, 0x3564a9, 0x4b78b6, 0x628dc2, 0x79a2ce, 0x97b6d7,
                                     0xb5c9df, 0xd3dde7, 0xf2f1ee, 0xe9d8ca, 0xe0c0a7, 0xd6a884,
                                     0xcb8f60, 0xbc784b, 0xac6035, 0x9c491e, 0x8c3000};

static uint32_t between(const uint32_t *stops, int n, double t) {
    t = t > 0 ? (t < 1 ? t : 1) : 0; /* NaN too */
    double at = t * (n - 1);
    int i = (int)at;
    if (i > n - 2) i = n - 2;
    double f = at - i;
    uint32_t rgb = 0;
    for (int shift = 16; shift >= 0; shift -= 8) {
        double a = stops[i] >> shift & 255, b = stops[i + 1] >> shift & 255;
        rgb |= (uint32_t)(a + (b - a) * f + 0.5) << shift;
    }
    return rgb;
}

uint32_t lk_scale_sequential(double t) { return between(sequential, sizeof sequential / sizeof *sequential, t); }
uint32_t lk_scale_diverging(double t) { return between(diverging, sizeof diverging / sizeof *diverging, (t + 1) / 2); }

/* The sRGB curve as a cubic, whose error is too small to move the choice. */
static double linear(uint32_t channel) {
    double c = channel / 255.0;
    return c * (c * (c * 0.305306011 + 0.682171111) + 0.012522878);
}

bool lk_black_on(uint32_t rgb) {
    double y = 0.2126 * linear(rgb >> 16 & 255) + 0.7152 * linear(rgb >> 8 & 255) + 0.0722 * linear(rgb & 255);
    return (y + 0.05) * (y + 0.05) > 1.05 * 0.05; /* (y + 0.05) / 0.05 against 1.05 / (y + 0.05) */
}

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
