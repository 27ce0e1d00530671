/* What the figures are drawn with: numbers in tenths of a pixel, texts measured by a table-free estimate, so that the
 * same numbers give the same bytes everywhere. Shared by figure_*.c only. */
#pragma once

#include "eval/document/figure.h"
#include "eval/document/table_print.h"

#define LK_DRAW_WIDE   760.0
#define LK_DRAW_NARROW 340.0

struct lk_draw {
    struct lk_text *out;
    double width, height;
    double size; /* of normal text */
    bool narrow; /* labels stand above their rows instead of beside them */
};

/* A horizontal scale from data to pixels. */
struct lk_axis {
    double low, high, step; /* of the data; multiples of step get a tick */
    double x0, x1;          /* pixels */
    enum lk_unit unit;
};

/* The part of a wide figure that rows share: labels on the left, the plot, a number on the right. */
struct lk_row_layout {
    double label_width; /* 0 when labels stand above */
    double label_line;  /* height of the line above a row, 0 when beside it */
    double x0, x1;      /* of the plot */
};

/* Makes the table and copies the head. */
enum lk_code lk_figure_begin(struct lk_figure *out, const struct lk_figure_head *head);
/* The first failure of the table and both drawings; frees the figure on failure. */
enum lk_code lk_figure_end(struct lk_figure *out);
/* Finite and within 1e12 of zero: beyond that no axis of a report makes sense. */
bool lk_figure_drawable(double number);
/* LK_E_INTERNAL unless all values can be drawn and there is at least one. */
enum lk_code lk_figure_check(const struct lk_figure_head *head, const struct lk_figure_value *values, int n);
/* A cell of the data table. */
void lk_figure_cell(struct lk_table *table, const struct lk_figure_value *value, enum lk_unit unit, int decimals);
bool lk_figure_has_interval(const struct lk_figure_value *value);
/* The value as printed in the figure: the same text as in the table. */
void lk_figure_print(char out[LK_NUMBER_MAX + 8], const struct lk_figure_value *value, enum lk_unit unit, int decimals);
/* Low and high over values and intervals; false when none exists. */
bool lk_figure_range(const struct lk_figure_value *values, int n, double *low, double *high);

struct lk_draw lk_draw_begin(struct lk_figure *figure, bool narrow);
void lk_draw_open(struct lk_draw *d, const struct lk_figure_head *head, double height);
void lk_draw_close(struct lk_draw *d);
double lk_draw_text_width(const char *utf8, double size);
void lk_draw_rect(struct lk_draw *d, double x, double y, double w, double h, const char *class_name);
void lk_draw_fill_rect(struct lk_draw *d, double x, double y, double w, double h, uint32_t rgb);
void lk_draw_line(struct lk_draw *d, double x1, double y1, double x2, double y2, const char *class_name);
void lk_draw_circle(struct lk_draw *d, double x, double y, double r, const char *class_name);
/* anchor: 's', 'm' or 'e'. y is the baseline. */
void lk_draw_text(struct lk_draw *d, double x, double y, char anchor, const char *class_name, const char *text);
/* In at most `lines` lines of `width`, broken at spaces, the rest cut off with an ellipsis; y is the first baseline.
 * Gives the number of lines. draw NULL only counts. */
int lk_draw_paragraph(struct lk_draw *d, double x, double y, char anchor, const char *class_name, const char *text,
                      double width, double size, int lines);
/* Starts a group whose title a pointer shows: "Indian, FLUX: 18.5%". It carries the value, as the table's CSV has it,
 * in data-value, data-low, data-high, a second one (NULL: none) in data-to and so on. Ends with lk_draw_group_end. */
void lk_draw_group(struct lk_draw *d, const char *a, const char *b, const char *text,
                   const struct lk_figure_value *value, const struct lk_figure_value *to);
void lk_draw_group_end(struct lk_draw *d);

/* Rounds the range outward to multiples of a step of 1, 2 or 5 times a power of ten, about `ticks` of them. */
void lk_axis_make(struct lk_axis *axis, double low, double high, int ticks, enum lk_unit unit);
double lk_axis_x(const struct lk_axis *axis, double value); /* kept within the axis */
/* A tick's label under the plot, moved in where it would leave the picture. */
void lk_axis_tick(struct lk_draw *d, double x, double bottom, const char *text);
/* Grid lines from top to bottom, tick labels below, the name below those. */
void lk_axis_draw(struct lk_draw *d, const struct lk_axis *axis, double top, double bottom, const char *name);
#define LK_AXIS_HEIGHT 40.0
/* A line across the plot at a value that means something, with its name above. */
void lk_axis_reference(struct lk_draw *d, const struct lk_axis *axis, double top, double bottom, double value,
                       const char *name);
/* The height that the name takes above the plot. */
double lk_axis_reference_line(const struct lk_draw *d, bool has_reference, const char *name);

/* Widths for rows with these labels and with room for right_width pixels right of the plot. */
struct lk_row_layout lk_rows_layout(const struct lk_draw *d, const char *const *labels, int n, double right_width);
/* The label of a row whose plot has this top and height. */
void lk_rows_label(struct lk_draw *d, const struct lk_row_layout *rows, double top, double height, const char *label,
                   const char *class_name);

/* Names with swatches of class "NAME1", "NAME2", ... from y on; gives the height. draw = false only measures. */
double lk_legend(struct lk_draw *d, const char *const *names, int n, const char *swatch, double y, bool draw);

/* Colours: t from 0 (light) to 1 (dark); from -1 to 1 with 0 in the middle. */
uint32_t lk_scale_sequential(double t);
uint32_t lk_scale_diverging(double t);
/* Whether black text reads better on it than white. */
bool lk_black_on(uint32_t rgb);
