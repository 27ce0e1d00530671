/* A table of a report: columns, rows of cells, and what is said about it. One table is written as CSV and JSON (full
 * precision) and rendered as Markdown, HTML and LaTeX (as printed).
 *
 *     struct lk_table *table;
 *     LK_TRY(lk_table_new(&table, "table_12", "Experiment 1 by model", "Model|>Soft Eras."));
 *     lk_table_row(table);
 *     lk_table_text(table, "FLUX.2-dev");
 *     lk_table_percent(table, 104, 1680);     // prints 6.2%, CSV gets 0.0619...
 *     rc = lk_table_finish(table);            // the first failure of all of the above
 *
 * Calls after a failure do nothing, so that a table may be built to its end without looking at each result. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/text.h"
#include "engine/base/status.h"

enum lk_align { LK_ALIGN_LEFT, LK_ALIGN_RIGHT };

enum lk_cell_kind { LK_CELL_TEXT, LK_CELL_NUMBER, LK_CELL_NONE /* prints an en dash */ };

struct lk_cell {
    enum lk_cell_kind kind;
    const char *text; /* as printed, UTF-8 */
    double value;     /* of a number: full precision; a rate is a fraction, a difference of rates in fractions too */
    double low, high; /* an interval, both 0 without one */
    int64_t count, n; /* of a rate: k of n; n 0 otherwise */
    const char *note; /* why there is none, or a remark shown on demand; NULL */
    const char *link; /* drill-down: key of an image list in the report (page.h); NULL */
    bool bold;
    int span; /* columns that the cell covers, 1 mostly */
};

struct lk_table_row {
    struct lk_cell *cells;
    int n_cells;
    bool heading; /* a row that names a group */
};

/* The run that a table is of; its files name it. */
struct lk_run {
    const char *name, *configuration; /* the latter a SHA-256 in hex */
    int64_t n_nominal, n_valid;       /* outputs that the design asks for (0: nobody said); that have a valid score */
};

struct lk_table {
    const char *id, *caption;
    const char *note; /* below the table: definitions, n, thresholds; NULL */
    const char **columns;
    enum lk_align *align;
    int n_columns;
    struct lk_table_row *rows;
    int n_rows;
    bool no_data;             /* header only, and "no data" */
    const struct lk_run *run; /* not owned; NULL: the files name none */
    enum lk_code rc;
    void *storage;
};

/* columns: names of at most 127 bytes with "|" between them, ">" before those that are right-aligned; NULL adds none.
 */
enum lk_code lk_table_new(struct lk_table **out, const char *id, const char *caption, const char *columns);
void lk_table_free(struct lk_table *table);
void lk_table_caption(struct lk_table *table, const char *caption); /* in place of the first */
void lk_table_id(struct lk_table *table, const char *id);           /* the same */
void lk_table_column(struct lk_table *table, const char *name, enum lk_align align);
void lk_table_columns(struct lk_table *table, const char *names); /* as lk_table_new has them */
void lk_table_row(struct lk_table *table);
/* Whole rows of n_columns cells, the cells of all ending in NULL. */
void lk_table_text_rows(struct lk_table *table, const char *const *cells, int n_columns);
void lk_table_heading(struct lk_table *table, const char *text); /* a row of one cell over all columns */
void lk_table_note(struct lk_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Cells, appended to the last row. Texts are copied. */
void lk_table_text(struct lk_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lk_table_none(struct lk_table *table, const char *why); /* "–" */
void lk_table_count(struct lk_table *table, int64_t count);  /* 5,040 */
/* k of n, half up in tenths of a percent, from the integers: 3 of 240 prints 1.3%. n = 0: none. */
void lk_table_percent(struct lk_table *table, int64_t k, int64_t n);
void lk_table_rate(struct lk_table *table, double rate); /* a fraction whose counts are not known: 0.134 prints 13.4% */
/* A fraction that is not k / n but estimated from them; k may be no whole number. */
void lk_table_rate_of(struct lk_table *table, double rate, double k, double n);
void lk_table_points(struct lk_table *table, double difference); /* 0.172 prints "17.2 pp" */
void lk_table_fixed(struct lk_table *table, double value, int decimals);
void lk_table_signed(struct lk_table *table, double value, int decimals); /* with + or -; -0.00 prints 0.00 */
void lk_table_p(struct lk_table *table, double p);                        /* 0.023, "< 0.001" */
/* About the last cell. */
void lk_table_bold(struct lk_table *table);
void lk_table_interval(struct lk_table *table, double low, double high);
void lk_table_link(struct lk_table *table, const char *key);
void lk_table_remark(struct lk_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The last row names columns anew, one cell each, as in the second half of the published Table 11. */
void lk_table_subheading(struct lk_table *table);
/* The first failure: LK_E_NOMEM, or LK_E_INTERNAL when a row has not as many cells as there are columns. A table
 * without rows is `no_data`. */
enum lk_code lk_table_finish(struct lk_table *table);

/* Half up from the integers, in tenths of a percent: 225 of 1680 is 134. n > 0. */
int64_t lk_percent_tenths(int64_t k, int64_t n);

void lk_text_escaped(struct lk_text *text, const char *utf8); /* for HTML and SVG text and attributes */
/* As lk_text_add, but what %s stands for is escaped; beside it %d, %c, %zu, %lld and %% may stand. */
void lk_text_html(struct lk_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same with another way to escape, and with {name}, which stands for a text that is escaped too. */
struct lk_html {
    void (*escape)(struct lk_text *text, const char *utf8);
    const char *(*text_of)(const void *context, const char *name); /* NULL: { is a character as others */
    const void *context;
};
void lk_text_html_by(struct lk_text *text, const struct lk_html *how, const char *format, va_list args);

/* RFC 4180, numbers in 17 significant digits without separators, rates as fractions; a column with rates is followed by
 * "NAME k" and "NAME n", one with intervals by "NAME low" and "NAME high"; rows under a heading name it in a first
 * column "group". Texts that begin with = + - @, a tab or a carriage return get an apostrophe before them, so that no
 * spreadsheet computes them. The run stands in four last columns, the same in each row: a comment would break readers
 * of CSV. */
void lk_table_csv(const struct lk_table *table, struct lk_text *out);
/* {"id", "caption", "note", "run": {"name", "configuration", "nominal", "valid"}, "columns": [{"name", "align"}],
 * "no_data", "rows": [[cell]]}; a cell is a string, {"value",
 * "low", "high", "k", "n", "note"} with the keys that apply, and a heading row {"heading": [string]}. */
void lk_table_json(const struct lk_table *table, struct lk_text *out);
void lk_table_markdown(const struct lk_table *table, struct lk_text *out);
/* <table>, for a page (page.h): a linked cell leads to the fragment of its image list. */
void lk_table_html(const struct lk_table *table, struct lk_text *out);
/* booktabs, in longtable beyond 40 rows; texts for pdflatex with T1 fonts and for newer engines. */
void lk_table_latex(const struct lk_table *table, struct lk_text *out);
