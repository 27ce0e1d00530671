/* Grouped bars lie on their sides, so that group names need no turning and any number of groups fits a telephone. */
#include <stdio.h>

#include "eval/document/figure_draw.h"

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

static void draw(struct lk_figure *out, const struct lk_figure_bars *bars, bool narrow) {
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

static void data(struct lk_table *table, const struct lk_figure_bars *bars) {
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
    data(out->data, bars);
    draw(out, bars, false);
    draw(out, bars, true);
    return lk_figure_end(out);
}
