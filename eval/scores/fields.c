#include "eval/scores/fields.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "eval/scores/level.h"
#include "engine/base/json.h"

enum { NAME_MAX_BYTES = 256 };

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "out of memory for a record"); }

static enum lk_code add(struct lk_fields *fields, const char *name, char kind, const char *text, size_t n) {
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
    } else if (kind == '0') {
        text = from;
        n = (size_t)((const char *)j->at - from);
    }
    return !add(fields, name, kind, text, n) || lk_json_fail(j, LK_E_NOMEM, "out of memory for a record");
}

/* The members of an object, their names behind the prefix. */
static bool add_object(struct lk_fields *fields, struct lk_json *j, const char *prefix) {
    if (!lk_json_enter(j, '{')) return false;
    while (lk_json_next(j)) {
        const char *key;
        char name[NAME_MAX_BYTES];
        if (!lk_json_key(j, &key)) return false;
        int n = snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "." : "", key);
        if (n >= NAME_MAX_BYTES)
            return lk_json_fail(j, LK_E_JSON_LIMIT, "a key is longer than %d bytes", NAME_MAX_BYTES);
        bool ok = lk_json_peek(j) == '{' ? add_object(fields, j, name) : add_json(fields, j, name);
        if (!ok) return false;
    }
    return !j->rc;
}

static void reset(struct lk_fields *fields) {
    fields->n = 0;
    lk_store_reset(&fields->texts);
}

enum lk_code lk_fields_json(struct lk_fields *fields, const char *text, size_t n, const char *name) {
    struct lk_json j;
    reset(fields);
    lk_json_init(&j, text, n, name);
    add_object(fields, &j, "");
    lk_json_end(&j);
    return lk_json_finish(&j);
}

enum lk_code lk_fields_csv(struct lk_fields *fields, const struct lk_csv *csv) {
    reset(fields);
    for (size_t i = 0; i < csv->n_columns; i++)
        LK_TRY(add(fields, csv->columns[i], 'c', lk_csv_cell(csv, (int)i), csv->cells[i].n));
    return LK_OK;
}

void lk_fields_free(struct lk_fields *fields) {
    lk_free(fields->list);
    lk_store_free(&fields->texts);
    memset(fields, 0, sizeof *fields);
}

static const struct lk_field *find(const struct lk_fields *fields, const char *name, bool open) {
    for (size_t i = 0; i < fields->n; i++) {
        const struct lk_field *field = &fields->list[i];
        bool is_open = field->kind == 'n' || ((field->kind == 'c' || field->kind == '"') && !field->n);
        if (is_open == open && !strcmp(field->name, name)) return field;
    }
    return NULL;
}

const struct lk_field *lk_fields_find(const struct lk_fields *fields, const char *name) {
    return find(fields, name, false);
}

const struct lk_field *lk_fields_find_open(const struct lk_fields *fields, const char *name) {
    return find(fields, name, true);
}

int lk_field_level(const struct lk_field *field) {
    if (field->kind == '"') return lk_level_of_string(field->text, field->n);
    return field->kind == '0' || field->kind == 'c' ? lk_level_of_number(field->text, field->n) : 0;
}

long lk_field_count(const struct lk_field *field, long max) { return lk_count_of_text(field->text, field->n, max); }

int lk_field_word(const struct lk_field *field, const char *const *words) {
    if (field->kind != '"' && field->kind != 'c') return -1;
    for (int i = 0; words[i]; i++)
        if (!strcasecmp(words[i], field->text)) return i;
    return -1;
}

int lk_field_bool(const struct lk_field *field) {
    static const char *const words[] = {"false", "true", "no", "yes", "0", "1", NULL};
    if (field->kind == 't' || field->kind == 'f') return field->kind == 't';
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
    if (records->is_csv) return lk_csv_open(&records->csv, text, n, name);
    lk_json_lines_open(&records->lines, text, n, name);
    return LK_OK;
}

enum lk_code lk_records_next(struct lk_records *records, bool *more, bool *bad) {
    *bad = false;
    if (records->is_csv) {
        LK_TRY(lk_csv_next(&records->csv, more));
        records->line = records->csv.line;
        return *more ? lk_fields_csv(&records->fields, &records->csv) : LK_OK;
    }
    struct lk_json_record record;
    LK_TRY(lk_json_lines_next(&records->lines, &record, more));
    records->line = record.line;
    if (!*more) return LK_OK;
    enum lk_code rc = lk_fields_json(&records->fields, record.text, record.n, "record");
    *bad = rc == LK_E_JSON || rc == LK_E_JSON_DUPLICATE || rc == LK_E_JSON_LIMIT;
    return *bad ? LK_OK : rc;
}

enum lk_code lk_records_next_strict(struct lk_records *records, bool *more) {
    bool bad;
    LK_TRY(lk_records_next(records, more, &bad));
    if (!bad) return LK_OK;
    char reason[256];
    snprintf(reason, sizeof reason, "%s", lk_error_text());
    return lk_fail(LK_E_JSON, "%s: line %zu: expected a JSON object: %s", records->name, records->line, reason);
}

const char *lk_field_shown(const struct lk_field *field) {
    if (!field) return "nothing";
    return field->kind == '[' ? "an array" : field->kind == 't' ? "true" : field->kind == 'f' ? "false" : field->text;
}

void lk_records_close(struct lk_records *records) {
    if (records->is_csv) lk_csv_close(&records->csv);
    lk_fields_free(&records->fields);
}
