#include "tools/cli/stats/stats.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "eval/scores/csv.h"
#include "eval/scores/level.h"
#include "eval/scores/words.h"

enum { MAX_FILE_BYTES = 1 << 30, MAX_MATRIX = 100000000, SHOWN_REFUSED = 10 };

struct stats_block {
    struct stats_block *next;
    void *memory;
};

void *stats_alloc(struct stats *s, size_t count, size_t size) {
    struct stats_block *block = lk_malloc(sizeof *block);
    void *memory = block ? lk_calloc(count ? count : 1, size) : NULL;
    if (!memory) {
        lk_free(block);
        lk_fail(LK_E_NOMEM, "%s: out of memory", s->test);
        return NULL;
    }
    *block = (struct stats_block){s->blocks, memory};
    s->blocks = block;
    return memory;
}

void stats_free(struct stats *s) {
    for (struct stats_block *block = s->blocks, *next; block; block = next) {
        next = block->next;
        lk_free(block->memory);
        lk_free(block);
    }
    lk_store_free(&s->texts);
}

enum lk_code stats_fail(const struct stats *s, const struct stats_column *column, size_t row, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return lk_fail(LK_E_INPUT, "%s: line %zu, column %d (\"%.80s\"): %s", s->file, s->lines[row], column->index + 1,
                   column->name, text);
}

enum lk_code stats_misused(const struct stats *s, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return lk_fail(LK_E_USAGE, "%s%s%s: %s", s->file ? s->file : "", s->file ? ": " : "", s->test, text);
}

enum lk_code stats_join(struct stats *s, const char **out, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    *out = lk_store_copy(&s->texts, text, n < 0 ? 0 : n < (int)sizeof text ? (size_t)n : sizeof text - 1);
    return *out ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", s->test);
}

bool stats_is_missing(const char *cell) { return lk_is_missing(cell, strlen(cell)); }

/* All columns asked for, as one list of pointers. */
static int asked(struct stats *s, struct stats_column **list) {
    struct stats_column *const named[] = {&s->value, &s->by, &s->x, &s->y, &s->item, &s->rater, &s->cluster};
    int n = 0;
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (named[i]->name) list[n++] = named[i];
    for (int i = 0; i < s->n_columns; i++) list[n++] = &s->columns[i];
    return n;
}

/* A record more, in arrays that double. */
static enum lk_code grow(struct stats *s, struct stats_column **list, int n) {
    if (s->n_rows < s->n_allocated) return LK_OK;
    size_t wanted = s->n_allocated ? s->n_allocated * 2 : 1024;
    size_t *lines = stats_alloc(s, wanted, sizeof *lines);
    if (!lines) return LK_E_NOMEM;
    if (s->n_rows) memcpy(lines, s->lines, s->n_rows * sizeof *lines);
    s->lines = lines;
    for (int i = 0; i < n; i++) {
        const char **cells = stats_alloc(s, wanted, sizeof *cells);
        if (!cells) return LK_E_NOMEM;
        if (s->n_rows) memcpy(cells, list[i]->cells, s->n_rows * sizeof *cells);
        list[i]->cells = cells;
    }
    s->n_allocated = wanted;
    return LK_OK;
}

static enum lk_code read_rows(struct stats *s, struct lk_csv *csv, struct stats_column **list, int n) {
    for (int i = 0; i < n; i++) {
        LK_TRY(lk_csv_require(csv, list[i]->name, &list[i]->index));
        for (int k = n - s->n_columns; k < i; k++)
            if (list[k]->index == list[i]->index)
                return stats_misused(s, "--columns: \"%.64s\" stands there twice", list[i]->name);
    }
    bool more, bad;
    enum lk_code rc;
    while (!(rc = lk_csv_next_or_bad(csv, &more, &bad)) && more) {
        if (bad) {
            if (s->n_refused++ < SHOWN_REFUSED) lk_log(LK_LOG_WARNING, "%s", lk_error_text());
            continue;
        }
        LK_TRY(grow(s, list, n));
        s->lines[s->n_rows] = csv->line;
        for (int i = 0; i < n; i++) {
            size_t n_cell = csv->cells[list[i]->index].n;
            const char *cell = lk_trim(lk_csv_cell(csv, list[i]->index), &n_cell);
            list[i]->cells[s->n_rows] = lk_store_copy(&s->texts, cell, n_cell);
            if (!list[i]->cells[s->n_rows]) return lk_fail(LK_E_NOMEM, "%s: out of memory while reading", s->file);
        }
        s->n_rows++;
    }
    return rc;
}

/* "a,b,c" of --columns. */
static enum lk_code split_columns(struct stats *s) {
    const char *text = s->o->columns;
    if (!text) return LK_OK;
    int n = 1;
    for (const char *c = text; *c; c++) n += *c == ',';
    s->columns = stats_alloc(s, (size_t)n, sizeof *s->columns);
    if (!s->columns) return LK_E_NOMEM;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        const char *name = lk_store_copy(&s->texts, at, length);
        if (!name) return lk_fail(LK_E_NOMEM, "%s: out of memory", s->test);
        s->columns[s->n_columns++].name = name;
        at += length;
        if (!*at) return LK_OK;
    }
}

enum lk_code stats_read(struct stats *s) {
    s->value.name = s->o->value, s->by.name = s->o->by, s->x.name = s->o->x, s->y.name = s->o->y;
    s->item.name = s->o->item, s->rater.name = s->o->rater, s->cluster.name = s->o->cluster;
    LK_TRY(split_columns(s));
    struct stats_column **list = stats_alloc(s, 7 + (size_t)s->n_columns, sizeof *list);
    if (!list) return LK_E_NOMEM;
    int n = asked(s, list);
    char *text;
    size_t n_bytes;
    LK_TRY(lk_read_file(s->file, MAX_FILE_BYTES, &text, &n_bytes));
    struct lk_csv csv;
    enum lk_code rc = lk_csv_open(&csv, text, n_bytes, s->file);
    if (!rc) {
        rc = read_rows(s, &csv, list, n);
        lk_csv_close(&csv);
    }
    lk_free(text);
    return rc;
}

enum lk_code stats_numbers(struct stats *s, const struct stats_column *column, double **out) {
    double *values = *out = stats_alloc(s, s->n_rows, sizeof *values);
    if (!values) return LK_E_NOMEM;
    for (size_t i = 0; i < s->n_rows; i++) {
        const char *cell = column->cells[i];
        if (stats_is_missing(cell))
            values[i] = NAN;
        else if (!lk_decimal_of_text(cell, strlen(cell), &values[i]))
            return stats_fail(s, column, i, "expected a number, or an empty cell or NA, got \"%.64s\"", cell);
    }
    return LK_OK;
}

struct entry {
    const char *text;
    double value;
    size_t at; /* in codes */
};

static int by_text(const void *a, const void *b) {
    return strcmp(((const struct entry *)a)->text, ((const struct entry *)b)->text);
}
static int by_value(const void *a, const void *b) {
    double x = ((const struct entry *)a)->value, y = ((const struct entry *)b)->value;
    return (x > y) - (x < y);
}

enum lk_code stats_levels(struct stats *s, const struct stats_column *columns, int n_columns,
                          struct stats_levels *out) {
    size_t size = s->n_rows * (size_t)n_columns, n = 0;
    struct entry *entries = stats_alloc(s, size, sizeof *entries);
    *out = (struct stats_levels){.numeric = true};
    out->codes = entries ? stats_alloc(s, size, sizeof *out->codes) : NULL;
    out->names = out->codes ? stats_alloc(s, size, sizeof *out->names) : NULL;
    out->values = out->names ? stats_alloc(s, size, sizeof *out->values) : NULL;
    if (!out->values) return LK_E_NOMEM;
    for (size_t i = 0; i < size; i++) {
        const char *cell = columns[i / s->n_rows].cells[i % s->n_rows];
        out->codes[i] = -1;
        if (stats_is_missing(cell)) continue;
        entries[n] = (struct entry){cell, 0, i};
        if (!lk_decimal_of_text(cell, strlen(cell), &entries[n++].value)) out->numeric = false;
    }
    if (n > INT_MAX) return lk_fail(LK_E_INPUT, "%s: more than %d cells", s->file, INT_MAX);
    int (*order)(const void *, const void *) = out->numeric ? by_value : by_text;
    qsort(entries, n, sizeof *entries, order);
    for (size_t i = 0; i < n; i++) {
        if (!i || order(&entries[i - 1], &entries[i])) {
            out->names[out->n] = entries[i].text;
            out->values[out->n++] = entries[i].value;
        }
        out->codes[entries[i].at] = out->n - 1;
    }
    if (!out->numeric) out->values = NULL;
    return LK_OK;
}

enum lk_code stats_print_labels(struct stats *s, const char *key, const char *label,
                                const struct stats_levels *levels) {
    enum { SHOWN = 12 };
    struct lk_text text = {0};
    const char *kept = NULL;
    for (int i = 0; i < levels->n && i < SHOWN; i++) lk_text_add(&text, "%s\"%.40s\"", i ? " " : "", levels->names[i]);
    if (levels->n > SHOWN) lk_text_add(&text, " and %d more", levels->n - SHOWN);
    if (!text.rc && levels->n) kept = lk_store_copy(&s->texts, text.bytes, text.n);
    lk_text_free(&text);
    if (levels->n && !kept) return lk_fail(LK_E_NOMEM, "%s: out of memory", s->test);
    stats_field(&s->out, key, label, stats_text(kept));
    for (int i = 1; i < levels->n && levels->n <= 1000; i++)
        for (int k = 0; k < i; k++)
            if (!levels->numeric && lk_same_name(levels->names[i], levels->names[k]))
                lk_log(LK_LOG_WARNING, "%s: the labels \"%.40s\" and \"%.40s\" count as two", s->file, levels->names[k],
                       levels->names[i]);
    return LK_OK;
}

/* One number per cell of a column: its own, or its label's. */
static enum lk_code cell_values(struct stats *s, const struct stats_column *column, const int32_t *codes,
                                double **out) {
    if (!codes) return stats_numbers(s, column, out);
    *out = stats_alloc(s, s->n_rows, sizeof **out);
    for (size_t i = 0; *out && i < s->n_rows; i++) (*out)[i] = codes[i] < 0 ? NAN : codes[i];
    return *out ? LK_OK : LK_E_NOMEM;
}

static enum lk_code wide_matrix(struct stats *s, bool as_labels, struct stats_matrix *out,
                                struct stats_levels *labels) {
    out->n_units = s->n_rows;
    out->n_raters = s->n_columns;
    out->raters.n = s->n_columns;
    out->raters.names = stats_alloc(s, (size_t)s->n_columns, sizeof *out->raters.names);
    out->values = out->raters.names ? stats_alloc(s, s->n_rows * (size_t)s->n_columns, sizeof(double)) : NULL;
    if (!out->values) return LK_E_NOMEM;
    if (as_labels) LK_TRY(stats_levels(s, s->columns, s->n_columns, labels));
    for (int c = 0; c < s->n_columns; c++) {
        double *values;
        const int32_t *codes = as_labels ? labels->codes + (size_t)c * s->n_rows : NULL;
        LK_TRY(cell_values(s, &s->columns[c], codes, &values));
        out->raters.names[c] = s->columns[c].name;
        for (size_t i = 0; i < s->n_rows; i++) {
            out->values[i * (size_t)s->n_columns + (size_t)c] = values[i];
            s->missing += isnan(values[i]);
        }
    }
    return LK_OK;
}

enum lk_code stats_matrix(struct stats *s, const struct stats_column *rater, bool as_labels, struct stats_matrix *out,
                          struct stats_levels *labels) {
    *out = (struct stats_matrix){0};
    if (s->n_columns) return wide_matrix(s, as_labels, out, labels);
    struct stats_levels items;
    LK_TRY(stats_levels(s, &s->item, 1, &items));
    LK_TRY(stats_levels(s, rater, 1, &out->raters));
    if (as_labels) LK_TRY(stats_levels(s, &s->value, 1, labels));
    double *values;
    LK_TRY(cell_values(s, &s->value, as_labels ? labels->codes : NULL, &values));
    out->n_units = (size_t)items.n;
    out->n_raters = out->raters.n;
    size_t size = out->n_units * (size_t)out->n_raters;
    if (!size) return lk_fail(LK_E_INPUT, "%s: %s: expected lines with an item, got none", s->file, s->test);
    if (size > MAX_MATRIX)
        return lk_fail(LK_E_INPUT, "%s: %zu items by %d raters are more than 1e8 cells", s->file, out->n_units,
                       out->n_raters);
    out->values = stats_alloc(s, size, sizeof *out->values);
    size_t *first = out->values ? stats_alloc(s, size, sizeof *first) : NULL;
    if (!first) return LK_E_NOMEM;
    for (size_t i = 0; i < size; i++) out->values[i] = NAN;
    for (size_t i = 0; i < s->n_rows; i++) {
        s->missing += items.codes[i] < 0 || out->raters.codes[i] < 0 || isnan(values[i]);
        if (items.codes[i] < 0 || out->raters.codes[i] < 0) continue;
        size_t at = (size_t)items.codes[i] * (size_t)out->n_raters + (size_t)out->raters.codes[i];
        if (first[at])
            return stats_fail(s, rater, i, "\"%.64s\" a second time for \"%.64s\", after line %zu", rater->cells[i],
                              s->item.cells[i], first[at]);
        first[at] = s->lines[i];
        out->values[at] = values[i];
    }
    return LK_OK;
}

enum lk_code stats_groups(struct stats *s, struct stats_groups *out) {
    *out = (struct stats_groups){0};
    double *values;
    LK_TRY(stats_numbers(s, &s->value, &values));
    LK_TRY(stats_levels(s, &s->by, 1, &out->levels));
    out->values = stats_alloc(s, s->n_rows, sizeof *out->values);
    out->n = out->values ? stats_alloc(s, (size_t)out->levels.n, sizeof *out->n) : NULL;
    size_t *at = out->n ? stats_alloc(s, (size_t)out->levels.n, sizeof *at) : NULL;
    if (!at) return LK_E_NOMEM;
    for (size_t i = 0; i < s->n_rows; i++) {
        bool used = out->levels.codes[i] >= 0 && !isnan(values[i]);
        if (used) out->n[out->levels.codes[i]]++;
        s->missing += !used;
    }
    for (int g = 0; g < out->levels.n; g++) {
        at[g] = out->total;
        out->total += out->n[g];
    }
    for (size_t i = 0; i < s->n_rows; i++)
        if (out->levels.codes[i] >= 0 && !isnan(values[i])) out->values[at[out->levels.codes[i]]++] = values[i];
    return LK_OK;
}
