/* One result as lines "label  value" and small tables, or as one JSON object whose numbers have 17 digits. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/text.h"

enum stats_kind { STATS_NONE, STATS_TEXT, STATS_NUMBER, STATS_COUNT };

struct stats_cell {
    enum stats_kind kind;
    const char *text;
    double number; /* of NUMBER and COUNT */
};

static inline struct stats_cell stats_text(const char *text) {
    return (struct stats_cell){text ? STATS_TEXT : STATS_NONE, text, 0};
}
static inline struct stats_cell stats_number(double number) { return (struct stats_cell){STATS_NUMBER, NULL, number}; }
static inline struct stats_cell stats_count(size_t n) { return (struct stats_cell){STATS_COUNT, NULL, (double)n}; }
static inline struct stats_cell stats_none(void) { return (struct stats_cell){STATS_NONE, NULL, 0}; }

struct stats_out {
    bool json;
    int n_fields;
    struct lk_text text; /* of JSON, printed whole by stats_close */
};

/* Opens the object; the title is the first line of the text. */
void stats_open(struct stats_out *out, const char *test, const char *title, const char *of);
/* A field without a value is null in JSON and no line in text. */
void stats_field(struct stats_out *out, const char *key, const char *label, struct stats_cell cell);
enum { STATS_MAX_COLUMNS = 16 };
/* cells [n_rows, n_columns]; keys name the members in JSON and head the columns in text. */
void stats_print_table(struct stats_out *out, const char *key, const char *const *keys, int n_columns,
                       const struct stats_cell *cells, size_t n_rows);
/* Prints the object unless rc is an error, and gives rc or LK_E_NOMEM. */
enum lk_code stats_close(struct stats_out *out, enum lk_code rc);
