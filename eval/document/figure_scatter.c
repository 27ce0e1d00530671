#include <math.h>
#include <stdio.h>

#include "eval/document/figure_draw.h"

enum { COLOURS = 6 };

/* A group's mark: a disc, and where the colours begin again a square. */
static void mark(struct lk_draw *d, double x, double y, int group) {
    char class_name[16];
    snprintf(class_name, sizeof class_name, "s%d", group % COLOURS + 1);
    if (group < COLOURS)
        lk_draw_circle(d, x, y, 3, class_name);
    else
        lk_draw_rect(d, x - 2.7, y - 2.7, 5.4, 5.4, class_name);
}

/* Gives the height. */
static double legend(struct lk_draw *d, const struct lk_figure_scatter *s, bool paint) {
    double x = 0, y = 0.8 * d->size;
    for (int g = 0; g < s->n_groups; g++) {
        const double width = 14 + lk_draw_text_width(s->groups[g], d->size) + 16;
        if (x > 0 && x + width > d->width) {
            x = 0;
            y += 1.6 * d->size;
        }
        if (paint) {
            mark(d, x + 5, y, g);
            lk_draw_text(d, x + 14, y + 0.36 * d->size, 's', NULL, s->groups[g]);
        }
        x += width;
    }
    return y + 0.8 * d->size + 8;
}

static void draw(struct lk_figure *out, const struct lk_figure_scatter *s, bool narrow) {
    struct lk_draw d = lk_draw_begin(out, narrow);
    const double top = legend(&d, s, false), edge = 12, height = 0.7 * d.width;
    const int lines = lk_draw_paragraph(NULL, 0, 0, 's', NULL, s->caption, d.width, d.size, 3);
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int i = 0; i < s->n; i++)
        for (int c = 0; c < 2; c++) {
            low[c] = fmin(low[c], s->points[2 * i + c]);
            high[c] = fmax(high[c], s->points[2 * i + c]);
        }
    /* One scale for both axes: distances are what is looked at. */
    const double scale =
        fmin((d.width - 2 * edge) / fmax(high[0] - low[0], 1e-9), (height - 2 * edge) / fmax(high[1] - low[1], 1e-9));
    lk_draw_open(&d, &s->head, top + height + (1.2 * lines + 0.5) * d.size);
    legend(&d, s, true);
    lk_draw_rect(&d, 0.5, top, d.width - 1, height - 1, "none");
    for (int i = 0; i < s->n; i++)
        mark(&d, d.width / 2 + scale * (s->points[2 * i] - (low[0] + high[0]) / 2),
             top + height / 2 - scale * (s->points[2 * i + 1] - (low[1] + high[1]) / 2), s->of[i]);
    lk_draw_paragraph(&d, 0, top + height + 1.3 * d.size, 's', "axis", s->caption, d.width, d.size, 3);
    lk_draw_close(&d);
}

enum lk_code lk_figure_scatter(const struct lk_figure_scatter *s, struct lk_figure *out) {
    *out = (struct lk_figure){0};
    bool drawable = s->n > 0 && s->n_groups > 0 && s->n_groups <= LK_FIGURE_MARKS;
    for (int i = 0; i < 2 * s->n && drawable; i++) drawable = lk_figure_drawable(s->points[i]);
    if (!drawable)
        return lk_fail(LK_E_INTERNAL, "figure %s: expected points that can be drawn, in 1 to %d groups", s->head.id,
                       LK_FIGURE_MARKS);
    LK_TRY(lk_figure_begin(out, &s->head));
    lk_table_column(out->data, s->group_name, LK_ALIGN_LEFT);
    lk_table_column(out->data, "x", LK_ALIGN_RIGHT);
    lk_table_column(out->data, "y", LK_ALIGN_RIGHT);
    for (int i = 0; i < s->n; i++) {
        lk_table_row(out->data);
        lk_table_text(out->data, "%s", s->groups[s->of[i]]);
        for (int c = 0; c < 2; c++) lk_table_signed(out->data, s->points[2 * i + c], 3);
    }
    draw(out, s, false);
    draw(out, s, true);
    return lk_figure_end(out);
}
