#include <math.h>
#include <string.h>

#include "eval/document/figure_draw.h"

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
