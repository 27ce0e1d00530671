#include "eval/scores/fields.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/json.h"
#include "eval/scores/level.h"
#include "eval/scores/platforms.h"
#include "eval/scores/rejects.h"
#include "eval/scores/words.h"

enum lk_code lk_rejects_add(struct lk_rejects *rejects, size_t line, const char *item, const char *reason) {
    struct lk_reject reject = {line, lk_store_copy(&rejects->texts, item, strlen(item)), NULL};
    if (reject.item) reject.reason = lk_store_copy(&rejects->texts, reason, strlen(reason));
    if (!reject.reason) return lk_fail(LK_E_NOMEM, "out of memory for the list of rejected records");
    LK_TRY(lk_grow(&rejects->list, &rejects->capacity, rejects->n + 1, sizeof *rejects->list));
    rejects->list[rejects->n++] = reject;
    return LK_OK;
}

void lk_rejects_free(struct lk_rejects *rejects) {
    lk_free(rejects->list);
    lk_store_free(&rejects->texts);
    memset(rejects, 0, sizeof *rejects);
}

enum { NAME_MAX_BYTES = 256 };

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "out of memory for a record"); }

enum lk_code lk_fields_add(struct lk_fields *fields, const char *name, char kind, const char *text, size_t n) {
    LK_TRY(lk_grow(&fields->list, &fields->capacity, fields->n + 1, sizeof *fields->list));
    struct lk_field field = {.n = n, .kind = kind, .name = lk_store_copy(&fields->texts, name, strlen(name))};
    if (field.name) field.text = lk_store_copy(&fields->texts, text, n);
    if (!field.text) return out_of_memory();
    fields->list[fields->n++] = field;
    return LK_OK;
}

static bool add_json(struct lk_fields *fields, struct lk_json *j, const char *name) {
    char kind = lk_json_peek(j);
    const char *from = (const char *)j->at, *text = "";
    if (!lk_json_skip(j)) return false;
    size_t n = 0;
    if (kind == '"') {
        text = j->string;
        n = strlen(text);
    } else if (kind == '0' || kind == '[') {
        text = from;
        n = (size_t)((const char *)j->at - from);
    }
    return !lk_fields_add(fields, name, kind, text, n) || lk_json_fail(j, LK_E_NOMEM, "out of memory for a record");
}

/* The members of an object, their names behind the prefix. */
bool lk_fields_add_object(struct lk_fields *fields, struct lk_json *j, const char *prefix) {
    if (!lk_json_enter(j, '{')) return false;
    while (lk_json_next(j)) {
        const char *key;
        char name[NAME_MAX_BYTES];
        if (!lk_json_key(j, &key)) return false;
        int n = snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "." : "", key);
        if (n >= NAME_MAX_BYTES)
            return lk_json_fail(j, LK_E_JSON_LIMIT, "a key is longer than %d bytes", NAME_MAX_BYTES);
        bool ok = lk_json_peek(j) == '{' ? lk_fields_add_object(fields, j, name) : add_json(fields, j, name);
        if (!ok) return false;
    }
    return !j->rc;
}

void lk_fields_reset(struct lk_fields *fields) {
    fields->n = 0;
    lk_store_reset(&fields->texts);
}

enum lk_code lk_fields_json(struct lk_fields *fields, const char *text, size_t n, const char *name) {
    struct lk_json j;
    lk_fields_reset(fields);
    lk_json_init(&j, text, n, name);
    j.nan_is_null = true;
    lk_fields_add_object(fields, &j, "");
    lk_json_end(&j);
    return lk_json_finish(&j);
}

static enum lk_code fields_csv(struct lk_fields *fields, const struct lk_csv *csv) {
    lk_fields_reset(fields);
    for (size_t i = 0; i < csv->n_columns; i++) {
        size_t n = csv->cells[i].n;
        const char *text = lk_trim(lk_csv_cell(csv, (int)i), &n);
        LK_TRY(lk_fields_add(fields, csv->columns[i], 'c', text, n));
    }
    return LK_OK;
}

void lk_fields_free(struct lk_fields *fields) {
    lk_free(fields->list);
    lk_store_free(&fields->texts);
    memset(fields, 0, sizeof *fields);
}

bool lk_field_is_open(const struct lk_field *field) {
    return field->kind == 'n' || ((field->kind == 'c' || field->kind == '"') && lk_is_missing(field->text, field->n));
}

/* The field of exactly that name, else the first one whose name is the same for people. What is given, or empty, has
 * been read. */
static const struct lk_field *find(const struct lk_fields *fields, const char *name, bool open, bool exactly) {
    struct lk_field *found = NULL;
    for (size_t i = 0; i < fields->n; i++) {
        struct lk_field *field = &fields->list[i];
        bool exact = !strcmp(field->name, name);
        if (!exact && (found || exactly || !lk_same_name(field->name, name))) continue;
        if (lk_field_is_open(field) != open) {
            field->read = field->read || !open; /* asked for, and found empty */
            continue;
        }
        found = field;
        if (exact) break;
    }
    if (found) found->read = true;
    return found;
}

const struct lk_field *lk_fields_find(const struct lk_fields *fields, const char *name) {
    return find(fields, name, false, false);
}

const struct lk_field *lk_fields_find_exactly(const struct lk_fields *fields, const char *name) {
    return find(fields, name, false, true);
}

const struct lk_field *lk_fields_find_open(const struct lk_fields *fields, const char *name) {
    return find(fields, name, true, false);
}

const struct lk_field *lk_fields_find_any(const struct lk_fields *fields, const char *const *names) {
    const struct lk_field *field = NULL;
    for (; !field && *names; names++) field = lk_fields_find(fields, *names);
    return field;
}

int lk_field_level(const struct lk_field *field) {
    size_t n = field->n;
    const char *text = lk_trim(field->text, &n);
    if (field->kind == '"') return lk_level_of_string(text, n);
    return field->kind == '0' || field->kind == 'c' ? lk_level_of_number(text, n) : 0;
}

long lk_field_count(const struct lk_field *field, long max) {
    size_t n = field->n;
    const char *text = lk_trim(field->text, &n);
    return lk_count_of_text(text, n, max);
}

int lk_field_word(const struct lk_field *field, const char *const *words) {
    return field->kind == '"' || field->kind == 'c' ? lk_word_of(words, field->text, field->n) : -1;
}

int lk_field_bool(const struct lk_field *field) {
    static const char *const words[] = {"false", "true", "no", "yes", "f", "t", "n", "y", NULL};
    if (field->kind == 't' || field->kind == 'f') return field->kind == 't';
    long number = lk_field_count(field, 1);
    if (field->kind == '0' || number >= 0) return (int)number;
    int word = lk_field_word(field, words);
    return word < 0 ? -1 : word % 2;
}

/* Models put JSON between lines of three backticks, and people save it so. */
static void without_fence(const char **text, size_t *n) {
    const char *end = *text + *n, *line = *n > 3 && !memcmp(*text, "```", 3) ? memchr(*text, '\n', *n) : NULL;
    if (!line) return;
    while (end > line + 1 && memchr(" \t\r\n`", end[-1], 5)) end--;
    *text = line + 1;
    *n = (size_t)(end - *text);
}

enum lk_code lk_records_open(struct lk_records *records, const char *text, size_t n, const char *name) {
    memset(records, 0, sizeof *records);
    records->name = name;
    without_fence(&text, &n);
    records->is_csv = n && !lk_is_json(text, n);
    if (records->is_csv) LK_TRY(lk_csv_open(&records->csv, text, n, name));
    if (!records->is_csv) lk_json_lines_open(&records->lines, text, n, name);
    enum lk_code rc = lk_platform_open(records);
    if (rc) lk_records_close(records);
    return rc;
}

/* Which of the last record's fields were asked for. */
static enum lk_code note_read(struct lk_records *records) {
    const struct lk_fields *fields = &records->fields;
    for (size_t i = 0; i < fields->n; i++) {
        const char *name = fields->list[i].shown ? fields->list[i].shown : fields->list[i].name;
        int32_t at;
        LK_TRY(lk_names_number(&records->columns, name, strlen(name), &at));
        if ((size_t)at >= records->n_read) {
            LK_TRY(lk_grow(&records->read, &records->read_capacity, records->n_read + 1, sizeof *records->read));
            records->read[records->n_read++] = false;
        }
        records->read[at] |= fields->list[i].read;
    }
    lk_fields_reset(&records->fields);
    return LK_OK;
}

static bool is_blank(const struct lk_fields *fields) {
    for (size_t i = 0; i < fields->n; i++)
        if (fields->list[i].n) return false;
    return true;
}

static enum lk_code next_row(struct lk_records *records, bool *more, bool *bad) {
    do {
        LK_TRY(lk_csv_next_or_bad(&records->csv, more, bad));
        records->line = records->csv.line;
        if (!*more || *bad) return LK_OK;
        LK_TRY(fields_csv(&records->fields, &records->csv));
    } while (is_blank(&records->fields) || lk_platform_is_head(records));
    return lk_platform_row(records, bad);
}

enum lk_code lk_records_next(struct lk_records *records, bool *more, bool *bad) {
    *bad = false;
    LK_TRY(note_read(records));
    if (records->is_csv) return next_row(records, more, bad);
    if (lk_platform_more(records)) {
        *more = true;
        return lk_platform_next(records, bad);
    }
    struct lk_json_record record;
    LK_TRY(lk_json_lines_next(&records->lines, &record, more));
    records->line = record.line;
    if (!*more) return LK_OK;
    enum lk_code rc = lk_fields_json(&records->fields, record.text, record.n, "record");
    if (!rc) rc = lk_platform_object(records, record.text, record.n);
    *bad = rc == LK_E_JSON || rc == LK_E_JSON_DUPLICATE || rc == LK_E_JSON_LIMIT;
    if (*bad) lk_fields_reset(&records->fields);
    return *bad ? LK_OK : rc;
}

void lk_records_leave(struct lk_records *records) { lk_fields_reset(&records->fields); }

enum lk_code lk_records_unread(struct lk_records *records, struct lk_names *out) {
    LK_TRY(note_read(records));
    for (size_t i = 0; i < records->n_read; i++) {
        const char *name = records->columns.list[i];
        int32_t number;
        if (!records->read[i] && *name) LK_TRY(lk_names_number(out, name, strlen(name), &number));
    }
    return LK_OK;
}

enum lk_code lk_records_next_strict(struct lk_records *records, bool *more) {
    bool bad;
    LK_TRY(lk_records_next(records, more, &bad));
    if (!bad) return LK_OK;
    if (records->is_csv) return LK_E_INPUT; /* the message names the place */
    char reason[256];
    snprintf(reason, sizeof reason, "%s", lk_error_text());
    return lk_fail(LK_E_JSON, "%s: line %zu: expected a JSON object: %s", records->name, records->line, reason);
}

const char *lk_field_shown(const struct lk_field *field) {
    if (!field) return "nothing";
    return field->kind == '[' ? "an array" : field->kind == 't' ? "true" : field->kind == 'f' ? "false" : field->text;
}

enum lk_code lk_field_wrong(const char *file, size_t line, const char *name, const char *expected,
                            const struct lk_field *field) {
    if (!field)
        return lk_fail(
            LK_E_INPUT,
            "%s: line %zu: expected a column or field \"%s\" with %s, got none of this name or an empty cell", file,
            line, name, expected);
    return lk_fail(LK_E_INPUT, "%s: line %zu: field \"%s\": expected %s, got \"%.60s\"", file, line, name, expected,
                   lk_field_shown(field));
}

void lk_records_close(struct lk_records *records) {
    if (records->is_csv) lk_csv_close(&records->csv);
    lk_fields_free(&records->fields);
    lk_names_free(&records->columns);
    lk_free(records->read);
    lk_free(records->parts);
    lk_free(records->names);
    memset(records, 0, sizeof *records);
}
