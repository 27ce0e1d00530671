/* One record of a table as names and values, whether it was a line of CSV or a JSON object; a member of an inner object
 * is named "outer.inner". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"
#include "eval/scores/csv.h"
#include "eval/scores/json_lines.h"
#include "engine/base/store.h"

struct lk_field {
    const char *name;
    const char *text; /* a string without its escapes, a number as written, a cell; "" for the rest */
    size_t n;
    char kind; /* '"' string, '0' number, 't', 'f', 'n' null, '[' array, 'c' a cell of CSV */
};

struct lk_fields {
    struct lk_field *list;
    size_t n, capacity;
    struct lk_store texts;
};

/* Each replaces what was there. A JSON text must be one object (LK_E_JSON and the like, "NAME: byte ..."). */
enum lk_code lk_fields_json(struct lk_fields *fields, const char *text, size_t n, const char *name);
enum lk_code lk_fields_csv(struct lk_fields *fields, const struct lk_csv *csv);
void lk_fields_free(struct lk_fields *fields);

/* NULL when there is no such field, or it is null or empty. */
const struct lk_field *lk_fields_find(const struct lk_fields *fields, const char *name);
/* The same for a field that is there but null or empty: a question that was asked and left open. */
const struct lk_field *lk_fields_find_open(const struct lk_fields *fields, const char *name);
int lk_field_level(const struct lk_field *field);            /* 1..5, 0 when it is none */
long lk_field_count(const struct lk_field *field, long max); /* 0..max, -1 when it is none */
int lk_field_bool(const struct lk_field *field);             /* 0 or 1, -1 when it is none */
const char *lk_field_shown(const struct lk_field *field);    /* the value as a message names it; NULL is "nothing" */
/* The index of the word (any letter case) in a list that ends with NULL; -1 when it is none. */
int lk_field_word(const struct lk_field *field, const char *const *words);

/* The records of a file that is CSV, JSON lines or a JSON array (told by its first character). */
struct lk_records {
    const char *name;
    bool is_csv;
    struct lk_csv csv;
    struct lk_json_lines lines;
    struct lk_fields fields; /* of the record */
    size_t line;
};
enum lk_code lk_records_open(struct lk_records *records, const char *text, size_t n, const char *name);
/* *bad: the record is no strict JSON; its reason is lk_error_text() and reading can go on. Faults of CSV fail.
 */
enum lk_code lk_records_next(struct lk_records *records, bool *more, bool *bad);
/* For files of which every record must be understood: a record that is no strict JSON fails, LK_E_JSON with its line.
 */
enum lk_code lk_records_next_strict(struct lk_records *records, bool *more);
void lk_records_close(struct lk_records *records);
