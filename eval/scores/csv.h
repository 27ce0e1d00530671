/* A strict reader of CSV (RFC 4180) for tables that nobody has checked: the first record names the columns, every other
 * has as many cells, lines end with LF or CRLF, a quote stands only around a whole cell (doubled within), all is UTF-8
 * without NUL. Cells have commas between them, or, where the header has none, semicolons or tabs. A byte order mark
 * before the first name is passed over, and so are empty lines at the end.
 *
 *     struct lk_csv csv;
 *     LK_TRY(lk_csv_open(&csv, text, n, "scores.csv"));
 *     int score = lk_csv_column(&csv, "score");
 *     for (bool more; !(rc = lk_csv_next(&csv, &more)) && more;) use(lk_csv_cell(&csv, score));
 *     lk_csv_close(&csv);
 *
 * Messages name file, line and column. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"
#include "engine/base/store.h"

enum { LK_CSV_MAX_COLUMNS = 1000, LK_CSV_MAX_CELL = 1 << 20 };

struct lk_csv {
    const char *name;
    const char *at, *end;
    char delimiter;
    size_t line;      /* where the last record begins, from 1 */
    size_t next_line; /* where `at` is */
    const char **columns;
    size_t n_columns;
    struct lk_csv_span {
        size_t offset, n;
    } * cells; /* in bytes; of the last record */
    size_t n_cells, cells_capacity;
    char *bytes; /* every cell NUL-terminated */
    size_t n_bytes, bytes_capacity;
    struct lk_store texts;
};

/* Reads the header; text is borrowed until lk_csv_close. LK_E_INPUT, LK_E_NOMEM; nothing is held after a failure. */
enum lk_code lk_csv_open(struct lk_csv *csv, const void *text, size_t n, const char *name);
/* *more is false when there is no other record. */
enum lk_code lk_csv_next(struct lk_csv *csv, bool *more);
void lk_csv_close(struct lk_csv *csv);

/* The column of that name (any letter case), -1 when there is none. */
int lk_csv_column(const struct lk_csv *csv, const char *name);
/* LK_E_INPUT names the columns that there are. */
enum lk_code lk_csv_require(const struct lk_csv *csv, const char *name, int *out);
/* NUL-terminated, valid until the next record; "" for column -1. */
const char *lk_csv_cell(const struct lk_csv *csv, int column);
/* LK_E_INPUT with "FILE: line 7, column 2 ("score"): ..." before the text. */
enum lk_code lk_csv_fail(const struct lk_csv *csv, int column, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
