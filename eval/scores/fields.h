/* One record of a table as names and values, whether it was a line of CSV or a JSON object; a member of an inner object
 * is named "outer.inner". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"
#include "eval/scores/csv.h"
#include "eval/scores/json_lines.h"
#include "engine/base/json.h"
#include "engine/base/names.h"
#include "engine/base/store.h"

struct lk_field {
    const char *name;
    const char *text; /* a string without its escapes, a number or array as written, a cell without the white space
                         around it; "" for the rest */
    size_t n;
    char kind;         /* '"' string, '0' number, 't', 'f', 'n' null, '[' array, 'c' a cell of CSV */
    bool read;         /* somebody asked for it */
    const char *shown; /* its name in the file where `name` is another; NULL: the same */
};

struct lk_fields {
    struct lk_field *list;
    size_t n, capacity;
    struct lk_store texts;
};

/* Each replaces what was there. A JSON text must be one object (LK_E_JSON and the like, "NAME: byte ..."). */
enum lk_code lk_fields_json(struct lk_fields *fields, const char *text, size_t n, const char *name);
void lk_fields_free(struct lk_fields *fields);

/* NULL when there is no such field (by its name, else by lk_same_name), or it is null or missing (lk_is_missing). */
const struct lk_field *lk_fields_find(const struct lk_fields *fields, const char *name);
const struct lk_field *lk_fields_find_exactly(const struct lk_fields *fields, const char *name);
/* The first of several names, a list that ends with NULL. */
const struct lk_field *lk_fields_find_any(const struct lk_fields *fields, const char *const *names);
/* The same for a field that is there but null or missing: a question that was asked and left open. */
const struct lk_field *lk_fields_find_open(const struct lk_fields *fields, const char *name);
bool lk_field_is_open(const struct lk_field *field);
int lk_field_level(const struct lk_field *field);            /* 1..5, 0 when it is none */
long lk_field_count(const struct lk_field *field, long max); /* 0..max, -1 when it is none */
int lk_field_bool(const struct lk_field *field);             /* 0 or 1, -1 when it is none */
const char *lk_field_shown(const struct lk_field *field);    /* the value as a message names it; NULL is "nothing" */
/* LK_E_INPUT: `field` of this record is not as expected, or, with NULL, not there at all. */
enum lk_code lk_field_wrong(const char *file, size_t line, const char *name, const char *expected,
                            const struct lk_field *field);
/* The index of the word (lk_same_name) in a list that ends with NULL; -1 when it is none. */
int lk_field_word(const struct lk_field *field, const char *const *words);

/* What a survey platform says of a record. */
enum lk_record_state { LK_RECORD_ANSWERS, LK_RECORD_REJECTED, LK_RECORD_UNFINISHED, LK_RECORD_PREVIEW };

/* The records of a file that is CSV, JSON lines or a JSON array (told by its first character), or what a survey
 * platform exports (eval/scores/platforms.h). Records without any value are passed over. */
struct lk_records {
    const char *name;
    bool is_csv;
    struct lk_csv csv;
    struct lk_json_lines lines;
    struct lk_fields fields; /* of the record */
    size_t line;
    enum lk_record_state state;
    struct lk_names columns; /* all names of fields that were met, and whether one was asked for */
    bool *read;
    size_t n_read, read_capacity;
    /* of platforms.c */
    int platform;
    const char **names; /* of a table's columns, without what the platform puts before them */
    struct lk_record_part {
        const char *text;
        size_t n;
    } data, *parts; /* annotations of a task that are still to come */
    size_t n_parts, next_part, parts_capacity;
};
enum lk_code lk_records_open(struct lk_records *records, const char *text, size_t n, const char *name);
/* *bad: the record is no strict JSON, or a fault of CSV; its reason is lk_error_text() and reading can go on. */
enum lk_code lk_records_next(struct lk_records *records, bool *more, bool *bad);
/* For files of which every record must be understood: a bad one fails, LK_E_JSON or LK_E_INPUT with its line. */
enum lk_code lk_records_next_strict(struct lk_records *records, bool *more);
/* The platform has said whether the record counts: its own column of states is nothing else. */
bool lk_records_knows_state(const struct lk_records *records);
/* The last record was refused or left out: what it holds is not named as not read. */
void lk_records_leave(struct lk_records *records);
/* Adds the names of fields and columns that nobody asked for in any record until now. LK_E_NOMEM. */
enum lk_code lk_records_unread(struct lk_records *records, struct lk_names *out);
void lk_records_close(struct lk_records *records);
