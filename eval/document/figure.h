/* Figures of the report: each is drawn as SVG in two widths (a wide one, and one whose texts stay legible on a
 * telephone) and carries the numbers it shows as a table.
 *
 *     struct lk_figure figure;
 *     LK_TRY(lk_figure_bars(&(struct lk_figure_bars){.head = {.id = "f_rate", .title = "Race change by race and
 * model"}, .groups = races, .n_groups = 7, ...}, &figure)); lk_page_figure(page, &figure); lk_figure_free(&figure);
 *
 * The bytes depend on the numbers only. A value that does not exist leaves its place empty and an en dash in the table.
 * All functions: LK_E_NOMEM, LK_E_INTERNAL for counts below 1 or numbers that are not finite. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "eval/document/table.h"

struct lk_figure {
    struct lk_text wide, narrow;                 /* <svg>; colours and texts by the page's style sheet */
    struct lk_table *data;                       /* id "ID_data", caption the figure's title */
    const char *id, *title, *description, *note; /* note NULL without one */
};
void lk_figure_free(struct lk_figure *figure);

/* What all figures begin with. */
struct lk_figure_head {
    const char *id, *title;
    const char *description; /* for those who cannot see it: what is shown, and what stands out */
    const char *note;        /* below: how intervals were made, n, ...; NULL */
};

enum lk_unit {
    LK_UNIT_NUMBER,
    LK_UNIT_PERCENT, /* values are fractions and print as 13.4% */
    LK_UNIT_POINTS,  /* differences of fractions, which print as 17.2 pp */
};

struct lk_figure_value {
    double value;
    double low, high; /* interval; both 0 without one */
    int64_t k, n;     /* of a rate, so that it is rounded from the integers; n 0 otherwise */
    bool none;        /* no value */
};

/* Grouped horizontal bars from zero, with whiskers. */
struct lk_figure_bars {
    struct lk_figure_head head;
    enum lk_unit unit;
    int decimals;           /* of LK_UNIT_NUMBER; the others print one */
    const char *value_name; /* at the axis: "Race change" */
    const char *group_name; /* "Race" */
    const char *const *groups;
    int n_groups;
    const char *const *series; /* "FLUX.2-dev", ...: at most LK_FIGURE_SERIES */
    int n_series;
    const struct lk_figure_value *values; /* [n_groups][n_series], none below 0 */
};
#define LK_FIGURE_SERIES 6
enum lk_code lk_figure_bars(const struct lk_figure_bars *bars, struct lk_figure *out);

/* Cells coloured by value, with the value in each. */
struct lk_figure_heat {
    struct lk_figure_head head;
    enum lk_unit unit;
    int decimals;
    const char *value_name, *row_name;
    const char *const *rows;
    int n_rows;
    const char *const *columns;
    int n_columns;
    const struct lk_figure_value *values; /* [n_rows][n_columns] */
    double low, high;                     /* values at the ends of the scale; both 0: those that occur */
    bool diverging;                       /* two colours around `middle`; one from light to dark otherwise */
    double middle;
};
enum lk_code lk_figure_heat(const struct lk_figure_heat *heat, struct lk_figure *out);

/* Estimates with intervals beside a line of no effect. */
struct lk_figure_forest_row {
    const char *label;
    struct lk_figure_value value;
    bool heading; /* only the label, in bold */
};
struct lk_figure_forest {
    struct lk_figure_head head;
    enum lk_unit unit;
    int decimals;
    const char *value_name, *row_name;
    const struct lk_figure_forest_row *rows;
    int n_rows;
    double zero;               /* where the line stands */
    const char *below, *above; /* what lies left and right of it: "favours feature prompt"; NULL */
};
enum lk_code lk_figure_forest(const struct lk_figure_forest *forest, struct lk_figure *out);

/* A small plot per panel on one scale, rows of all named once: estimates with intervals, from 0. */
struct lk_figure_panels {
    struct lk_figure_head head;
    enum lk_unit unit;
    const char *value_name, *row_name;
    const char *const *panels;
    int n_panels;
    const char *const *rows;
    int n_rows;
    const struct lk_figure_value *values; /* [n_panels, n_rows] */
    const bool *strong;                   /* the same: a filled marker, hollow otherwise */
};
enum lk_code lk_figure_panels(const struct lk_figure_panels *panels, struct lk_figure *out);

/* Shares of five ordered answers, stacked so that half of the middle one lies on each side of the line. */
struct lk_figure_likert {
    struct lk_figure_head head;
    const char *row_name;
    const char *const *rows;
    int n_rows;
    const char *levels[5];
    const int64_t (*counts)[5]; /* [n_rows] */
};
enum lk_code lk_figure_likert(const struct lk_figure_likert *likert, struct lk_figure *out);

/* Two values per row and the way from one to the other: before and after, source and output. */
struct lk_figure_shift {
    struct lk_figure_head head;
    enum lk_unit unit;
    int decimals;
    const char *value_name, *row_name, *from_name, *to_name;
    const char *const *rows;
    int n_rows;
    const struct lk_figure_value *from, *to; /* [n_rows] */
    bool has_reference;
    double reference; /* a line: no drift, same skin tone */
    const char *reference_name;
};
enum lk_code lk_figure_shift(const struct lk_figure_shift *shift, struct lk_figure *out);

/* Points in a plane whose axes mean nothing by themselves, a mark for each group. */
#define LK_FIGURE_MARKS 12
struct lk_figure_scatter {
    struct lk_figure_head head;
    const char *caption; /* in the drawing itself */
    const char *group_name;
    const char *const *groups;
    int n_groups;         /* 1 to LK_FIGURE_MARKS */
    const double *points; /* [n, 2] */
    const int32_t *of;    /* [n]: the group */
    int n;
};
enum lk_code lk_figure_scatter(const struct lk_figure_scatter *scatter, struct lk_figure *out);
