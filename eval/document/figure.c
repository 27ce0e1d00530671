/* Scales, ticks and the common layout of rows. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/document/figure.h"
#include "eval/document/figure_draw.h"

/* What all figures have in common: the head, the table of their numbers, how values print. */

void lk_figure_free(struct lk_figure *figure) {
    lk_text_free(&figure->wide);
    lk_text_free(&figure->narrow);
    lk_table_free(figure->data);
    lk_free((void *)figure->id);
    lk_free((void *)figure->description);
    *figure = (struct lk_figure){0};
}

enum lk_code lk_figure_begin(struct lk_figure *out, const struct lk_figure_head *head) {
    char id[256];
    *out = (struct lk_figure){0};
    if (!head->id || !head->id[0] || strlen(head->id) > 200)
        return lk_fail(LK_E_INTERNAL, "figure: expected an id of 1 to 200 bytes, got \"%.40s\"",
                       head->id ? head->id : "");
    snprintf(id, sizeof id, "%s_data", head->id);
    LK_TRY(lk_table_new(&out->data, id, head->title ? head->title : "", NULL));
    out->id = lk_strdup(head->id);
    out->description = lk_strdup(head->description ? head->description : "");
    if (!out->id || !out->description) {
        lk_figure_free(out);
        return lk_fail(LK_E_NOMEM, "figure %s: no memory; free memory and try again", head->id);
    }
    if (head->note) lk_table_note(out->data, "%s", head->note);
    return LK_OK;
}

enum lk_code lk_figure_end(struct lk_figure *out) {
    enum lk_code rc = lk_table_finish(out->data);
    if (!rc) rc = out->wide.rc ? out->wide.rc : out->narrow.rc;
    if (rc) {
        lk_figure_free(out);
        return rc;
    }
    out->title = out->data->caption;
    out->note = out->data->note;
    return LK_OK;
}

bool lk_figure_drawable(double number) { return number >= -1e12 && number <= 1e12; }

enum lk_code lk_figure_check(const struct lk_figure_head *head, const struct lk_figure_value *values, int n) {
    if (n < 1) return lk_fail(LK_E_INTERNAL, "figure %s: expected at least one value, got %d", head->id, n);
    for (int i = 0; i < n; i++)
        if (!values[i].none && (values[i].k < 0 || values[i].k > values[i].n))
            return lk_fail(LK_E_INTERNAL, "figure %s: value %d: expected a count within 0 and n", head->id, i);
        else if (!values[i].none && !(lk_figure_drawable(values[i].value) && lk_figure_drawable(values[i].low) &&
                                      lk_figure_drawable(values[i].high)))
            return lk_fail(LK_E_INTERNAL, "figure %s: value %d: expected numbers within 1e12 of zero", head->id, i);
    return LK_OK;
}

bool lk_figure_has_interval(const struct lk_figure_value *value) {
    return !value->none && (value->low != 0 || value->high != 0);
}

void lk_figure_cell(struct lk_table *table, const struct lk_figure_value *value, enum lk_unit unit, int decimals) {
    if (value->none)
        lk_table_none(table, NULL);
    else if (unit == LK_UNIT_PERCENT && value->n)
        lk_table_percent(table, value->k, value->n);
    else if (unit == LK_UNIT_PERCENT)
        lk_table_rate(table, value->value);
    else if (unit == LK_UNIT_POINTS)
        lk_table_points(table, value->value);
    else
        lk_table_fixed(table, value->value, decimals);
    if (lk_figure_has_interval(value)) lk_table_interval(table, value->low, value->high);
}

void lk_figure_print(char out[LK_NUMBER_MAX + 8], const struct lk_figure_value *value, enum lk_unit unit,
                     int decimals) {
    if (value->none) {
        strcpy(out, LK_EN_DASH);
        return;
    }
    if (unit == LK_UNIT_NUMBER) {
        lk_print_fixed(out, value->value, decimals, false);
        return;
    }
    if (unit == LK_UNIT_PERCENT && value->n > 0) {
        int64_t tenths = lk_percent_tenths(value->k, value->n);
        snprintf(out, LK_NUMBER_MAX, "%lld.%lld", (long long)(tenths / 10), (long long)(tenths % 10));
    } else
        lk_print_fixed(out, 100 * value->value, 1, false);
    strcat(out, unit == LK_UNIT_PERCENT ? "%" : " pp");
}

bool lk_figure_range(const struct lk_figure_value *values, int n, double *low, double *high) {
    bool any = false;
    for (int i = 0; i < n; i++) {
        if (values[i].none) continue;
        double least = values[i].value, most = values[i].value;
        if (lk_figure_has_interval(&values[i])) {
            if (values[i].low < least) least = values[i].low;
            if (values[i].high > most) most = values[i].high;
        }
        if (!any || least < *low) *low = least;
        if (!any || most > *high) *high = most;
        any = true;
    }
    return any;
}

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
