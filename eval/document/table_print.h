/* How numbers are printed: half up, the sign a hyphen-minus as in the published tables, the
 * en dash for what does not exist. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eval/document/table.h"

#define LK_EN_DASH    "\xe2\x80\x93"

#define LK_NUMBER_MAX 352 /* bytes for any double with up to 9 decimals */

/* Half away from zero in the last decimal (0 to 9), where 1e-9 of it counts as a tie: 1.005 prints 1.01 although its
 * double lies below. `sign`: + before what is above zero. A result of zero has no sign. value is finite. */
void lk_print_fixed(char out[LK_NUMBER_MAX], double value, int decimals, bool sign);
/* 5,040 */
void lk_print_count(char out[LK_NUMBER_MAX], int64_t count);
void lk_print_p(char out[LK_NUMBER_MAX], double p);
/* The cell's interval in the unit and decimals of its text: "[5.1, 7.5]". False when it has none. */
bool lk_print_interval(char out[2 * LK_NUMBER_MAX + 8], const struct lk_cell *cell);
/* A drill-down key as an HTML id and fragment: letters, digits, "-" and "_" stay, all else is .XX. */
void lk_print_fragment(struct lk_text *out, const char *key);
/* A cell of CSV and the suffix, quoted together where they must be. */
void lk_print_csv_field(struct lk_text *out, const char *text, const char *suffix);
/* The same; a text that a spreadsheet would compute gets an apostrophe. */
void lk_print_csv_text(struct lk_text *out, const char *text, const char *suffix);
/* Whether some cell of a column is a rate, has an interval. */
struct lk_column_kind {
    bool rate, interval;
};
/* [n_columns], lk_free; NULL when memory is out. */
struct lk_column_kind *lk_table_column_kinds(const struct lk_table *table);
/* The remarks of a table's cells, each text once, in order of first appearance. */
struct lk_table_notes {
    const char **list;
    int n;
    size_t capacity;
};
/* LK_E_NOMEM; free with lk_table_notes_free in any case. */
enum lk_code lk_table_notes(const struct lk_table *table, struct lk_table_notes *out);
int lk_table_notes_index(const struct lk_table_notes *notes, const char *note); /* -1 for NULL */
/* The mark of a remark: a, b, ..., z, aa, ab, ... */
void lk_print_note_mark(char out[8], int index);
void lk_table_notes_free(struct lk_table_notes *notes);
