#include "eval/judge/legacy.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "eval/judge/answer_text.h"
#include "eval/scores/fields.h"
#include "eval/scores/level.h"
#include "eval/study/prompts.h"

static const char *const edit_words[] = {"no", "partial", "yes", NULL};
static const char *const change_words[] = {"no", "yes", NULL};
static const char *const role_words[] = {"male", "female", "unclear", NULL};
static const char *const pair_words[] = {"a", "b", "same", NULL};
static const char *const *const words[LK_N_LEGACY] = {edit_words, change_words, change_words, role_words};
static const char *const keys[LK_N_LEGACY] = {"edit_success", "gender_drift", "race_drift", "assigned"};

enum { N_ASKED_OF_EDIT = LK_LEGACY_RACE + 1 };

const char *lk_legacy_key(enum lk_legacy_question question) { return keys[question]; }

const char *lk_legacy_word(enum lk_legacy_question question, int answer) {
    return answer < 0 ? "" : words[question][answer];
}

int lk_legacy_preference(const struct lk_legacy_answer *answer) {
    if (answer->order[0] < 0 || answer->order[1] < 0) return -1;
    return answer->order[0] == answer->order[1] ? answer->order[0] : 2;
}

/* What one record is about, and where its answers are: among its own fields, or in the judge's words. */
struct reader {
    bool pairwise, composite;
    const struct lk_fields *fields;
    struct lk_fields inner; /* of an answer in JSON */
    const char *at;         /* the rest of an answer in words, NULL without one */
};

static enum lk_code not_one_of(const char *key, const char *const *list, const char *got) {
    char expected[64] = "";
    for (int i = 0; list[i]; i++)
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s%s", i ? ", " : "", list[i]);
    return lk_fail(LK_E_INPUT, "%s: expected one of %s, got \"%.40s\"", key, expected, got);
}

/* The first word of the next line that has one, past a number and marks as in "2. **Yes**, it did"; and "Image". */
static enum lk_code next_word(struct reader *r, const char *key, const char *const *list, int *out) {
    const char *at = r->at;
    while (*at && !isalpha((unsigned char)*at)) at++;
    if (!strncasecmp(at, "image ", 6)) at += 6;
    size_t n = 0;
    while (isalpha((unsigned char)at[n])) n++;
    r->at = at + strcspn(at, "\n");
    for (int i = 0; list[i]; i++)
        if (strlen(list[i]) == n && !strncasecmp(at, list[i], n)) {
            *out = i;
            return LK_OK;
        }
    return not_one_of(key, list, n ? at : "nothing");
}

static enum lk_code take_answer(struct reader *r, const char *key, const char *const *list, int *out) {
    if (r->at) return next_word(r, key, list, out);
    const struct lk_field *field = lk_fields_find(r->fields, key);
    if (!field) return lk_fail(LK_E_INPUT, "%s: missing", key);
    *out = lk_field_word(field, list);
    return *out < 0 ? not_one_of(key, list, field->kind == '[' ? "[...]" : field->text) : LK_OK;
}

static enum lk_code take_confidence(const struct lk_fields *fields, const char *key, double *out) {
    char name[64];
    snprintf(name, sizeof name, "confidence.%s", key);
    const struct lk_field *field = lk_fields_find(fields, name);
    if (!field) field = lk_fields_find(fields, "confidence");
    *out = NAN;
    if (!field) return LK_OK;
    bool number = (field->kind == '0' || field->kind == 'c') && lk_decimal_of_text(field->text, field->n, out);
    if (number && *out >= 0 && *out <= 1) return LK_OK;
    return lk_fail(LK_E_INPUT, "%s: expected a number from 0 to 1, got \"%.40s\"", field->name, field->text);
}

static enum lk_code read_pair(struct reader *r, struct lk_legacy_answer *out) {
    static const char *const orders[] = {"edited_first", "preserved_first", NULL};
    static const char *const arms[] = {"edited", "preserved", "same", NULL};
    const struct lk_field *preference = lk_fields_find(r->fields, "preference");
    if (lk_fields_find_open(r->fields, "preference")) return LK_OK; /* asked in one order only */
    if (preference) {
        int arm = lk_field_word(preference, arms);
        out->order[0] = out->order[1] = (int8_t)arm;
        return arm < 0 ? not_one_of("preference", arms, preference->text) : LK_OK;
    }
    const struct lk_field *field = lk_fields_find(r->fields, "order");
    int order = field ? lk_field_word(field, orders) : -1, word;
    if (order < 0) return not_one_of("order", orders, field ? field->text : "nothing");
    LK_TRY(take_confidence(r->fields, "preferred", &out->order_confidence[order]));
    if (r->inner.n) r->fields = &r->inner;
    LK_TRY(take_answer(r, "preferred", pair_words, &word));
    out->order[order] = (int8_t)(word == 2 ? 2 : word ^ order);
    return LK_OK;
}

static enum lk_code read_questions(struct reader *r, struct lk_legacy_answer *out) {
    int first = r->composite ? LK_LEGACY_ROLE : 0, last = r->composite ? LK_N_LEGACY : N_ASKED_OF_EDIT, word;
    for (int q = first; q < last; q++) LK_TRY(take_confidence(r->fields, keys[q], &out->confidence[q]));
    if (r->inner.n) r->fields = &r->inner;
    for (int q = first; q < last; q++) {
        LK_TRY(take_answer(r, keys[q], words[q], &word));
        out->classes[q] = (int8_t)word;
    }
    return LK_OK;
}

/* An object with any field; two are the same byte by byte alone. */
static enum lk_code read_candidate(void *context, const char *object, size_t n, char meaning[LK_ANSWER_MEANING]) {
    struct lk_fields fields = {0};
    (void)context;
    enum lk_code rc = lk_fields_json(&fields, object, n, "answer");
    bool empty = !rc && !fields.n;
    lk_fields_free(&fields);
    if (rc == LK_E_NOMEM) return rc;
    if (rc) return lk_fail_prefix(LK_E_NOT_FOUND, "not strict JSON");
    if (empty) return lk_fail(LK_E_NOT_FOUND, "an empty object");
    lk_sha256(object, n, meaning);
    return LK_OK;
}

/* "answer" as words or as JSON, perhaps in a code fence; without it the record's own fields count. */
static enum lk_code open_answer(struct reader *r) {
    const struct lk_field *answer = lk_fields_find(r->fields, "answer");
    if (!answer) return LK_OK;
    if (answer->kind != '"' && answer->kind != 'c') return lk_fail(LK_E_INPUT, "answer: expected a string");
    const char *text = answer->text;
    size_t n = answer->n;
    struct lk_answer_object found;
    LK_TRY(lk_answer_behind_thoughts(&text, &n));
    if (!memchr(text, '{', n)) {
        r->at = text;
        return LK_OK;
    }
    enum lk_code rc = lk_answer_find(text, n, read_candidate, NULL, &found);
    if (!rc) rc = lk_fields_json(&r->inner, found.json, found.n, "answer");
    lk_free(found.json);
    return rc && rc != LK_E_NOMEM ? lk_fail_prefix(LK_E_INPUT, "answer") : rc;
}

static const struct lk_legacy_answer nothing = {
    .classes = {-1, -1, -1, -1}, .confidence = {NAN, NAN, NAN, NAN}, .order = {-1, -1}, .order_confidence = {NAN, NAN}};

static enum lk_code find_slot(struct lk_legacy *legacy, const char *id, size_t n, int32_t *at) {
    size_t before = legacy->items.n_items;
    LK_TRY(lk_dataset_item(&legacy->items, id, n, at));
    LK_TRY(lk_grow(&legacy->list, &legacy->capacity, legacy->items.n_items, sizeof *legacy->list));
    if (legacy->items.n_items > before) legacy->list[before] = nothing;
    return LK_OK;
}

static bool same_double(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* False when something is there that differs; *repeated when all of it was there already. */
static bool merge(struct lk_legacy_answer *slot, const struct lk_legacy_answer *answer, bool *repeated) {
    struct lk_legacy_answer merged = *slot;
    *repeated = true;
    for (int q = 0; q < LK_N_LEGACY + 2; q++) {
        bool is_order = q >= LK_N_LEGACY;
        int8_t given = is_order ? answer->order[q - LK_N_LEGACY] : answer->classes[q];
        int8_t *known = is_order ? &merged.order[q - LK_N_LEGACY] : &merged.classes[q];
        double confidence = is_order ? answer->order_confidence[q - LK_N_LEGACY] : answer->confidence[q];
        double *known_confidence = is_order ? &merged.order_confidence[q - LK_N_LEGACY] : &merged.confidence[q];
        if (given < 0) continue;
        if (*known >= 0 && (*known != given || !same_double(*known_confidence, confidence))) return false;
        *repeated = *repeated && *known >= 0;
        *known = given;
        *known_confidence = confidence;
    }
    *slot = merged;
    return true;
}

static enum lk_code read_record(struct lk_legacy *legacy, const struct lk_fields *fields) {
    const struct lk_field *id = lk_fields_find(fields, "item_id");
    struct reader r = {.pairwise = legacy->pairwise, .fields = fields};
    struct lk_legacy_answer answer = nothing;
    struct lk_item item;
    if (!id || (id->kind != '"' && id->kind != 'c')) return lk_fail(LK_E_INPUT, "expected a string \"item_id\"");
    LK_TRY(lk_dataset_id_parts(id->text, id->n, &item));
    if (legacy->mixed)
        r.pairwise = lk_fields_find(fields, "order") || lk_fields_find(fields, "preference") ||
                     lk_fields_find_open(fields, "preference");
    r.composite = item.gender < 0;
    if (r.pairwise && item.prompt >= LK_N_EDIT_PROMPTS)
        return lk_fail(LK_E_INPUT, "%s: arms are compared of O and V prompts", id->text);
    enum lk_code rc = open_answer(&r);
    if (!rc) rc = r.pairwise ? read_pair(&r, &answer) : read_questions(&r, &answer);
    lk_fields_free(&r.inner);
    LK_TRY(rc);
    const char *dot = r.pairwise ? memchr(id->text, '.', id->n) : NULL;
    int32_t at;
    bool repeated;
    LK_TRY(find_slot(legacy, id->text, dot ? (size_t)(dot - id->text) : id->n, &at));
    if (!merge(&legacy->list[at], &answer, &repeated))
        return lk_fail(LK_E_INPUT, "a second answer that differs from the first, which counts");
    legacy->n_repeated += repeated;
    return LK_OK;
}

enum lk_code lk_legacy_read(struct lk_legacy *legacy, const char *text, size_t n, const char *name) {
    struct lk_records records;
    LK_TRY(lk_records_open(&records, text, n, name));
    int column;
    enum lk_code rc = records.is_csv ? lk_csv_require(&records.csv, "item_id", &column) : LK_OK;
    for (bool more = true, bad; !rc && more;) {
        rc = lk_records_next(&records, &more, &bad);
        if (rc || !more) break;
        legacy->n_records++;
        rc = bad ? LK_E_INPUT : read_record(legacy, &records.fields);
        if (rc == LK_E_INPUT) {
            const struct lk_field *id = bad ? NULL : lk_fields_find(&records.fields, "item_id");
            char reason[1024];
            snprintf(reason, sizeof reason, "%s", lk_error_text());
            legacy->n_invalid++;
            rc = lk_rejects_add(&legacy->rejects, records.line, id ? id->text : "", reason);
        }
        if (rc) rc = lk_fail_prefix(rc, "%s: line %zu", name, records.line);
    }
    lk_records_close(&records);
    return rc;
}

enum lk_code lk_legacy_store(const struct lk_legacy *legacy, int slot, struct lk_dataset *data) {
    for (size_t i = 0; i < legacy->items.n_items; i++) {
        const struct lk_legacy_answer *answer = &legacy->list[i];
        const char *id = legacy->items.items[i].id;
        int32_t at;
        LK_TRY(lk_dataset_item(data, id, strlen(id), &at));
        struct lk_item *item = &data->items[at];
        memcpy(item->legacy, answer->classes, sizeof item->legacy);
        item->legacy_preference = (int8_t)lk_legacy_preference(answer);
        if (answer->classes[LK_LEGACY_ROLE] >= 0) item->judge_role[slot] = answer->classes[LK_LEGACY_ROLE];
    }
    return LK_OK;
}

void lk_legacy_free(struct lk_legacy *legacy) {
    lk_dataset_free(&legacy->items);
    lk_rejects_free(&legacy->rejects);
    lk_free(legacy->list);
    *legacy = (struct lk_legacy){.pairwise = false};
}
