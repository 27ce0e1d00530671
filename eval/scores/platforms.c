#include "eval/scores/platforms.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "engine/base/json.h"
#include "eval/scores/words.h"

enum platform { PLAIN, MTURK, QUALTRICS };
enum { NAME_MAX_BYTES = 256 };

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "out of memory for a record"); }

/* Input.prompt stays so beside Answer.prompt: the answer is what was asked. */
static const char *short_name(const struct lk_csv *csv, const char *name) {
    static const char answer[] = "Answer.", input[] = "Input.";
    char full[NAME_MAX_BYTES];
    if (!strncasecmp(name, answer, sizeof answer - 1)) return name + sizeof answer - 1;
    if (strncasecmp(name, input, sizeof input - 1) != 0) return name;
    snprintf(full, sizeof full, "%s%s", answer, name + sizeof input - 1);
    return lk_csv_column(csv, full) < 0 ? name + sizeof input - 1 : name;
}

enum lk_code lk_platform_open(struct lk_records *records) {
    const struct lk_csv *csv = &records->csv;
    if (!records->is_csv) return LK_OK;
    if (lk_csv_column(csv, "HITId") >= 0 && lk_csv_column(csv, "AssignmentId") >= 0) records->platform = MTURK;
    if (lk_csv_column(csv, "ResponseId") >= 0 && lk_csv_column(csv, "Finished") >= 0) records->platform = QUALTRICS;
    if (records->platform != MTURK) return LK_OK;
    records->names = lk_calloc(csv->n_columns, sizeof *records->names);
    if (!records->names) return out_of_memory();
    for (size_t i = 0; i < csv->n_columns; i++) records->names[i] = short_name(csv, csv->columns[i]);
    return LK_OK;
}

bool lk_platform_is_head(const struct lk_records *records) {
    static const char import_id[] = "{\"ImportId\":";
    if (records->platform != QUALTRICS) return false;
    for (size_t i = 0; i < records->fields.n; i++) {
        const struct lk_field *field = &records->fields.list[i];
        if (!strncmp(field->text, import_id, sizeof import_id - 1)) return true;
        if (!strcasecmp(field->name, "ResponseId") && lk_same_name(field->text, "ResponseId")) return true;
    }
    return false;
}

/* One scalar in an array is that scalar; *kind stays '[' for more, or none. */
static enum lk_code only_element(struct lk_store *texts, const char **text, size_t *n, char *kind) {
    struct lk_json j;
    const char *found = NULL, *from;
    char first = '[';
    int n_elements = 0;
    size_t length = 0;
    lk_json_init(&j, *text, *n, "answers");
    lk_json_enter(&j, '[');
    for (; lk_json_next(&j); n_elements++) {
        first = lk_json_peek(&j);
        from = (const char *)j.at;
        if (!lk_json_skip(&j)) break;
        length = first == '"' ? strlen(j.string) : (size_t)((const char *)j.at - from);
        if (n_elements) continue;
        found = lk_store_copy(texts, first == '"' ? j.string : from, length);
        if (!found) lk_json_fail(&j, LK_E_NOMEM, "out of memory");
    }
    LK_TRY(lk_json_finish(&j));
    if (n_elements != 1 || first == '{' || first == '[') return LK_OK;
    *kind = first;
    *text = found;
    *n = length;
    return LK_OK;
}

/* NAME.choices = ["4"], as Label Studio writes what could have been several, is NAME = 4. */
static enum lk_code unwrap_choices(struct lk_fields *fields) {
    static const char end[] = ".choices";
    const size_t n_end = sizeof end - 1;
    for (size_t i = 0; i < fields->n; i++) {
        struct lk_field *field = &fields->list[i];
        const size_t n_name = strlen(field->name);
        if (field->kind != '[' || n_name <= n_end || strcmp(field->name + n_name - n_end, end) != 0) continue;
        LK_TRY(only_element(&fields->texts, &field->text, &field->n, &field->kind));
        field->shown = field->name;
        field->name = lk_store_copy(&fields->texts, field->name, n_name - n_end);
        if (!field->name) return out_of_memory();
    }
    return LK_OK;
}

static size_t base_of(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot && dot[1] ? (size_t)(dot - name) : 0;
}

/* 1 pressed, 0 not, -1 no button. */
static int button(const struct lk_field *field) {
    static const char *const words[] = {"false", "true", NULL};
    if (field->kind == 't' || field->kind == 'f') return field->kind == 't';
    return lk_field_word(field, words);
}

/* Of NAME.1 to NAME.5, a button each, the one that is true is the answer; of several the record says so. */
static enum lk_code join_buttons(struct lk_fields *fields) {
    const size_t n = fields->n;
    for (size_t i = 0; i < n; i++) {
        const size_t base = base_of(fields->list[i].name);
        int n_buttons = 0, n_true = 0;
        size_t chosen = i;
        if (!base || fields->list[i].read) continue;
        for (size_t k = i; k < n; k++) {
            struct lk_field *field = &fields->list[k];
            if (base_of(field->name) != base || strncmp(field->name, fields->list[i].name, base) != 0) continue;
            const int is_true = button(field);
            if (is_true < 0) continue;
            n_buttons++;
            n_true += is_true;
            if (is_true) chosen = k;
        }
        if (!n_buttons) continue;
        char name[NAME_MAX_BYTES];
        snprintf(name, sizeof name, "%.*s", (int)base, fields->list[i].name);
        for (size_t k = i; k < n; k++)
            if (base_of(fields->list[k].name) == base && !strncmp(fields->list[k].name, name, base))
                fields->list[k].read = true;
        const char *text = n_true == 1 ? fields->list[chosen].name + base + 1 : n_true ? "several" : "";
        LK_TRY(lk_fields_add(fields, name, n_true > 1 ? '[' : 'c', text, strlen(text)));
    }
    return LK_OK;
}

/* [{"NAME": {"4": true, "5": false}}], all answers of a form in one cell. */
static enum lk_code add_task_answers(struct lk_fields *fields) {
    static const char *const names[] = {"taskAnswers", NULL};
    const struct lk_field *field = lk_fields_find_any(fields, names);
    struct lk_json j;
    if (!field) return LK_OK;
    lk_json_init(&j, field->text, field->n, "Answer.taskAnswers");
    lk_json_enter(&j, '[');
    while (lk_json_next(&j))
        if (!lk_fields_add_object(fields, &j, "")) break;
    lk_json_end(&j);
    return lk_json_finish(&j);
}

static enum lk_code mturk_state(struct lk_records *records) {
    static const char *const words[] = {"Submitted", "Approved", "Rejected", NULL};
    const struct lk_field *status = lk_fields_find(&records->fields, "AssignmentStatus");
    const int word = status ? lk_field_word(status, words) : 0;
    if (word < 0)
        return lk_fail(LK_E_INPUT, "AssignmentStatus: expected Submitted, Approved or Rejected, got \"%.40s\"",
                       status->text);
    if (word == 2) records->state = LK_RECORD_REJECTED;
    return LK_OK;
}

/* Numbers or words, as the export was asked for. */
static enum lk_code qualtrics_state(struct lk_records *records) {
    static const char *const words[] = {"IP Address",
                                        "0",
                                        "Imported",
                                        "4",
                                        "Offline Survey Response",
                                        "16",
                                        "Survey Preview",
                                        "1",
                                        "Survey Test",
                                        "2",
                                        "Survey Preview/Spam",
                                        "12",
                                        "Offline Survey Preview",
                                        "17",
                                        "Spam",
                                        "8",
                                        NULL};
    enum { FIRST_PREVIEW = 6, FIRST_SPAM = 14 };
    const struct lk_fields *fields = &records->fields;
    const struct lk_field *finished = lk_fields_find(fields, "Finished"), *status = lk_fields_find(fields, "Status"),
                          *channel = lk_fields_find(fields, "DistributionChannel");
    const int is_finished = finished ? lk_field_bool(finished) : 0, word = status ? lk_field_word(status, words) : 0;
    if (is_finished < 0) return lk_fail(LK_E_INPUT, "Finished: expected true or false, got \"%.40s\"", finished->text);
    if (word < 0) return lk_fail(LK_E_INPUT, "Status: unknown: \"%.40s\"", status->text);
    if (!is_finished) records->state = LK_RECORD_UNFINISHED;
    if (word >= FIRST_PREVIEW || (channel && lk_same_name(channel->text, "preview")))
        records->state = LK_RECORD_PREVIEW;
    if (word >= FIRST_SPAM) records->state = LK_RECORD_REJECTED;
    return LK_OK;
}

static enum lk_code read_row(struct lk_records *records) {
    struct lk_fields *fields = &records->fields;
    records->state = LK_RECORD_ANSWERS;
    if (records->platform == QUALTRICS) return qualtrics_state(records);
    if (records->platform != MTURK) return LK_OK;
    for (size_t i = 0; i < fields->n; i++) {
        fields->list[i].shown = fields->list[i].name;
        fields->list[i].name = records->names[i];
    }
    LK_TRY(add_task_answers(fields));
    LK_TRY(join_buttons(fields));
    return mturk_state(records);
}

static enum lk_code bad_or_fatal(enum lk_code rc, bool *bad) {
    *bad = rc && rc != LK_E_NOMEM;
    return *bad ? LK_OK : rc;
}

enum lk_code lk_platform_row(struct lk_records *records, bool *bad) { return bad_or_fatal(read_row(records), bad); }

bool lk_records_knows_state(const struct lk_records *records) { return records->platform == QUALTRICS; }

static bool take_part(struct lk_json *j, struct lk_record_part *out) {
    lk_json_peek(j); /* passes over white space */
    const char *from = (const char *)j->at;
    if (!lk_json_skip(j)) return false;
    *out = (struct lk_record_part){from, (size_t)((const char *)j->at - from)};
    return true;
}

static enum lk_code read_task(struct lk_records *records, const char *text, size_t n) {
    struct lk_json j;
    const char *key;
    lk_json_init(&j, text, n, "task");
    j.nan_is_null = true;
    lk_json_enter(&j, '{');
    while (lk_json_next(&j) && lk_json_key(&j, &key)) {
        if (!strcmp(key, "data"))
            take_part(&j, &records->data);
        else if (strcmp(key, "annotations") != 0 || lk_json_peek(&j) != '[')
            lk_json_skip(&j);
        else
            for (lk_json_enter(&j, '['); lk_json_next(&j); records->n_parts++)
                if (lk_grow(&records->parts, &records->parts_capacity, records->n_parts + 1, sizeof *records->parts))
                    lk_json_fail(&j, LK_E_NOMEM, "out of memory");
                else if (!take_part(&j, &records->parts[records->n_parts]))
                    break;
    }
    return lk_json_finish(&j);
}

enum lk_code lk_platform_object(struct lk_records *records, const char *text, size_t n) {
    const struct lk_field *annotations = lk_fields_find_exactly(&records->fields, "annotations");
    bool has_data = false, bad = false;
    records->state = LK_RECORD_ANSWERS;
    records->n_parts = records->next_part = 0;
    for (size_t i = 0; i < records->fields.n; i++) has_data |= !strncmp(records->fields.list[i].name, "data.", 5);
    if (!annotations || annotations->kind != '[' || !has_data) return unwrap_choices(&records->fields);
    LK_TRY(read_task(records, text, n));
    if (records->n_parts) {
        LK_TRY(lk_platform_next(records, &bad));
        return bad ? LK_E_JSON : LK_OK;
    }
    records->state = LK_RECORD_UNFINISHED; /* a task that nobody has annotated */
    return LK_OK;
}

bool lk_platform_more(const struct lk_records *records) { return records->next_part < records->n_parts; }

/* One answer of an annotation: {"from_name": "editQuality", "value": {"choices": ["4"]}, ...}. */
static void add_result(struct lk_fields *fields, struct lk_json *j) {
    static const char *const kinds[] = {"choices", "rating", "number", "text", NULL};
    const char *key, *text, *name = NULL, *value = NULL;
    size_t n = 0;
    char kind = '[';
    lk_json_enter(j, '{');
    while (lk_json_next(j) && lk_json_key(j, &key)) {
        if (!strcmp(key, "from_name")) {
            if (lk_json_string(j, &text) && !(name = lk_store_copy(&fields->texts, text, strlen(text))))
                lk_json_fail(j, LK_E_NOMEM, "out of memory");
        } else if (strcmp(key, "value") != 0 || lk_json_peek(j) != '{') {
            lk_json_skip(j);
        } else {
            for (lk_json_enter(j, '{'); lk_json_next(j) && lk_json_key(j, &key);) {
                bool known = lk_word_of(kinds, key, strlen(key)) >= 0;
                struct lk_record_part part;
                if (!take_part(j, &part) || !known) continue;
                kind = *part.text == '-' || (*part.text >= '0' && *part.text <= '9') ? '0' : *part.text;
                n = kind == '"' ? strlen(j->string) : part.n;
                value = lk_store_copy(&fields->texts, kind == '"' ? j->string : part.text, n);
                if (!value) lk_json_fail(j, LK_E_NOMEM, "out of memory");
            }
        }
    }
    if (j->rc || !name || !value) return;
    enum lk_code rc = kind == '[' ? only_element(&fields->texts, &value, &n, &kind) : LK_OK;
    for (size_t i = 0; i < fields->n; i++) /* the same question a second time: no answer */
        if (!strcmp(fields->list[i].name, name)) kind = fields->list[i].kind = '[';
    if (!rc) rc = lk_fields_add(fields, name, kind, value, n);
    if (rc) lk_json_fail(j, rc, "%s: not understood", name);
}

/* Who annotated: a number, or an object with e-mail or number. */
static void add_annotator(struct lk_fields *fields, struct lk_json *j) {
    static const char *const names[] = {"completed_by.email", "completed_by.id", "completed_by.username"};
    if (lk_json_peek(j) == '{') {
        lk_fields_add_object(fields, j, "completed_by");
        for (size_t i = 0; i < 3 && !j->rc; i++) {
            const struct lk_field *field = lk_fields_find_exactly(fields, names[i]);
            if (!field) continue;
            if (lk_fields_add(fields, "annotator", '"', field->text, field->n))
                lk_json_fail(j, LK_E_NOMEM, "out of memory");
            return;
        }
        return;
    }
    struct lk_record_part part;
    char kind = lk_json_peek(j);
    if (!take_part(j, &part)) return;
    if (lk_fields_add(fields, "annotator", kind, kind == '"' ? j->string : part.text,
                      kind == '"' ? strlen(j->string) : part.n))
        lk_json_fail(j, LK_E_NOMEM, "out of memory");
}

static enum lk_code read_annotation(struct lk_records *records, const struct lk_record_part *part) {
    struct lk_fields *fields = &records->fields;
    struct lk_json j;
    const char *key;
    lk_json_init(&j, part->text, part->n, "annotation");
    j.nan_is_null = true;
    lk_json_enter(&j, '{');
    while (lk_json_next(&j) && lk_json_key(&j, &key)) {
        if (!strcmp(key, "completed_by")) {
            add_annotator(fields, &j);
        } else if (!strcmp(key, "was_cancelled")) {
            if (lk_json_peek(&j) == 't') records->state = LK_RECORD_UNFINISHED;
            lk_json_skip(&j);
        } else if (!strcmp(key, "result") && lk_json_peek(&j) == '[') {
            for (lk_json_enter(&j, '['); lk_json_next(&j);) add_result(fields, &j);
        } else {
            lk_json_skip(&j);
        }
    }
    return lk_json_finish(&j);
}

static enum lk_code read_part(struct lk_records *records) {
    struct lk_json j;
    lk_fields_reset(&records->fields);
    records->state = LK_RECORD_ANSWERS;
    lk_json_init(&j, records->data.text, records->data.n, "data");
    j.nan_is_null = true;
    lk_fields_add_object(&records->fields, &j, "");
    LK_TRY(lk_json_finish(&j));
    return read_annotation(records, &records->parts[records->next_part++]);
}

enum lk_code lk_platform_next(struct lk_records *records, bool *bad) { return bad_or_fatal(read_part(records), bad); }
