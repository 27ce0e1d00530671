/* A reader of CSV (RFC 4180) for tables that nobody has checked, as spreadsheets, survey platforms and people make
 * them: the first record names the columns, every other has as many cells; lines end with LF, CRLF or CR; a quote
 * around a cell is one only where the cell begins with it (doubled within); text is UTF-8, or UTF-16 behind a byte
 * order mark. Cells have commas between them, or, where the header has none, semicolons, tabs or bars, or what a first
 * line sep=; says. Empty lines, and empty cells behind the last named column, are passed over; under semicolons 1,5
 * is 1.5.
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

enum { LK_CSV_MAX_COLUMNS = 1000, LK_CSV_MAX_CELL = 1 << 20, LK_CSV_MAX_BROKEN = 100 };

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
    char *owned;       /* the text in UTF-8 when the file's is not */
    const char *fault; /* what is wrong with the record, and where; NULL: nothing */
    int fault_column;
    bool broken; /* its quotes do not match */
    int n_broken;
};

/* Reads the header; text is borrowed until lk_csv_close. LK_E_INPUT, LK_E_NOMEM; nothing is held after a failure. */
enum lk_code lk_csv_open(struct lk_csv *csv, const void *text, size_t n, const char *name);
/* *more is false when there is no other record. A record with a fault fails: LK_E_INPUT. */
enum lk_code lk_csv_next(struct lk_csv *csv, bool *more);
/* The same, but a record with a fault costs that record: *bad, the reason is lk_error_text(), and reading can go on.
 * The record fails all the same after LK_CSV_MAX_BROKEN whose quotes do not match. */
enum lk_code lk_csv_next_or_bad(struct lk_csv *csv, bool *more, bool *bad);
void lk_csv_close(struct lk_csv *csv);

/* The column of that name (any letter case, else by lk_same_name), -1 when there is none. */
int lk_csv_column(const struct lk_csv *csv, const char *name);
/* LK_E_INPUT names the columns that there are. */
enum lk_code lk_csv_require(const struct lk_csv *csv, const char *name, int *out);
/* NUL-terminated, valid until the next record; "" for column -1. */
const char *lk_csv_cell(const struct lk_csv *csv, int column);
/* LK_E_INPUT with "FILE: line 7, column 2 ("score"): ..." before the text. */
enum lk_code lk_csv_fail(const struct lk_csv *csv, int column, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
