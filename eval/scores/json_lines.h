/* The records of a JSON lines file, or of one JSON array of objects: each as its text, for a strict reader of its own,
 * so that one bad record is one rejected record. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"

struct lk_json_lines {
    const char *name;
    const char *at, *end;
    size_t line; /* of `at`, from 1 */
    bool is_array, started;
};

struct lk_json_record {
    const char *text;
    size_t n;
    size_t line; /* where it begins */
};

/* text is borrowed. A byte order mark is passed over. */
void lk_json_lines_open(struct lk_json_lines *lines, const void *text, size_t n, const char *name);
/* Empty lines are passed over; *more is false at the end. Fails only where an array is not one (LK_E_JSON). A line is
 * given as it is, JSON or not. */
enum lk_code lk_json_lines_next(struct lk_json_lines *lines, struct lk_json_record *out, bool *more);
/* Bytes from the '{' at text to the brace that closes it, strings passed over; 0 when it is not closed. */
size_t lk_json_balanced(const char *text, size_t n);
/* True when the first character that is no white space (or byte order mark) opens an object or an array. */
bool lk_is_json(const char *text, size_t n);
