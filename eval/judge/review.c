#include "eval/judge/review.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/utf8.h"
#include "eval/scores/fields.h"
#include "eval/scores/level.h"
#include "eval/scores/words.h"
#include "eval/study/prompts.h"

enum { NAME_MAX_BYTES = 200, REASON_MAX_BYTES = 4000 };

static const char *const roles[] = {"male", "female", "unclear"};

int lk_review_axis(const char *name, int prompt) {
    if (lk_same_name(name, "role") || lk_same_name(name, "assigned"))
        return prompt >= LK_N_EDIT_PROMPTS ? LK_REVIEW_ROLE : -1;
    if (lk_same_name(name, "age_accuracy")) return prompt == LK_PROMPT_V03 ? LK_AXIS_AGE_DRIFT : -1;
    return lk_factor_parse(LK_FACTOR_AXIS, name, strlen(name));
}

const char *lk_review_axis_key(int axis) {
    return axis == LK_REVIEW_ROLE ? "role" : lk_factor_key(LK_FACTOR_AXIS, axis);
}

const char *lk_review_score_text(int axis, int score) {
    static const char *const levels[] = {"1", "2", "3", "4", "5"};
    if (axis == LK_REVIEW_ROLE) return score >= 0 && score < 3 ? roles[score] : "";
    return score >= 1 && score <= 5 ? levels[score - 1] : "";
}

int lk_review_score_parse(int axis, const char *text) {
    if (lk_same_name(text, "none")) return LK_REVIEW_WITHDRAWN;
    if (axis != LK_REVIEW_ROLE) {
        int level = lk_level_of_number(text, strlen(text));
        return level ? level : -1;
    }
    for (int i = 0; i < 3; i++)
        if (lk_same_name(text, roles[i])) return i;
    return -1;
}

/* 2026-01-17 or 2026-01-17T10:00:00Z. */
static bool is_time(const char *text) {
    static const char pattern[] = "0000-00-00T00:00:00Z";
    size_t n = strlen(text);
    if (n != 10 && n != sizeof pattern - 1) return false;
    for (size_t i = 0; i < n; i++)
        if (pattern[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != pattern[i]) return false;
    int month = (text[5] - '0') * 10 + text[6] - '0', day = (text[8] - '0') * 10 + text[9] - '0';
    return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

static bool is_line(const char *text, size_t max) {
    size_t n = strlen(text);
    if (n > max || !lk_utf8_valid(text, n)) return false;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) return false;
    return true;
}

enum lk_code lk_review_check(const struct lk_decision *d) {
    if (!*d->reviewer || !is_line(d->reviewer, NAME_MAX_BYTES))
        return lk_fail(LK_E_INPUT, "reviewer: expected a name of 1 to %d bytes, in one line of UTF-8", NAME_MAX_BYTES);
    if (*d->time && !is_time(d->time))
        return lk_fail(LK_E_INPUT, "time: expected 2026-01-17 or 2026-01-17T10:00:00Z, got \"%.40s\"", d->time);
    if (!is_line(d->reason, REASON_MAX_BYTES))
        return lk_fail(LK_E_INPUT, "reason: expected at most %d bytes, in one line of UTF-8", REASON_MAX_BYTES);
    return LK_OK;
}

/* A text of the record, "" without it. */
static enum lk_code text_of(struct lk_review *review, const struct lk_fields *fields, const char *name,
                            const char **out) {
    const struct lk_field *field = lk_fields_find(fields, name);
    if (field && field->kind != '"' && field->kind != 'c') return lk_fail(LK_E_INPUT, "%s: expected a string", name);
    if (field && memchr(field->text, 0, field->n)) return lk_fail(LK_E_INPUT, "%s: expected text without NUL", name);
    *out = lk_store_copy(&review->texts, field ? field->text : "", field ? field->n : 0);
    return *out ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory for the review");
}

static enum lk_code read_score(const struct lk_fields *fields, int axis, int *out) {
    const struct lk_field *field = lk_fields_find(fields, "score"), *null = lk_fields_find_open(fields, "score");
    if (!field && null && (null->kind == 'n' || lk_same_name(null->text, "none"))) {
        *out = LK_REVIEW_WITHDRAWN;
        return LK_OK;
    }
    bool plain = field && (field->kind == '"' || field->kind == 'c' || field->kind == '0');
    *out = plain ? lk_review_score_parse(axis, field->text) : -1;
    if (*out != -1) return LK_OK;
    return lk_fail(LK_E_INPUT, "score: expected %s, or none, got \"%.40s\"",
                   axis == LK_REVIEW_ROLE ? "male, female or unclear" : "an integer from 1 to 5",
                   plain ? field->text : "nothing");
}

static enum lk_code read_decision(struct lk_review *review, const struct lk_fields *fields, struct lk_decision *d) {
    const char *axis;
    int prompt;
    LK_TRY(text_of(review, fields, "item_id", &d->item_id));
    if (!*d->item_id) return lk_fail(LK_E_INPUT, "expected a string \"item_id\"");
    LK_TRY(lk_dataset_id_prompt(review->data, d->item_id, strlen(d->item_id), &prompt));
    LK_TRY(text_of(review, fields, "axis", &axis));
    d->axis = lk_review_axis(axis, prompt);
    if (d->axis < 0) return lk_fail(LK_E_INPUT, "axis: \"%.40s\" is no axis of this item", axis);
    LK_TRY(read_score(fields, d->axis, &d->score));
    LK_TRY(text_of(review, fields, "reviewer", &d->reviewer));
    LK_TRY(text_of(review, fields, "time", &d->time));
    if (!*d->reviewer && review->by) d->reviewer = review->by;
    if (!*d->time && review->when) d->time = review->when;
    LK_TRY(text_of(review, fields, "reason", &d->reason));
    return lk_review_check(d);
}

static enum lk_code add(struct lk_review *review, const struct lk_decision *d) {
    LK_TRY(lk_grow(&review->list, &review->capacity, review->n + 1, sizeof *review->list));
    review->list[review->n++] = *d;
    return LK_OK;
}

static enum lk_code next_record(struct lk_review *review, const struct lk_records *records, bool bad) {
    const struct lk_fields *fields = &records->fields;
    struct lk_decision decision = {.line = records->line};
    review->n_records++;
    const struct lk_field *open = records->is_csv ? lk_fields_find_open(fields, "score") : NULL;
    if (open && !lk_same_name(open->text, "none")) {
        review->n_open++;
        return LK_OK;
    }
    enum lk_code rc = bad ? LK_E_INPUT : read_decision(review, fields, &decision);
    if (!rc) return add(review, &decision);
    if (rc != LK_E_INPUT) return rc;
    const struct lk_field *id = bad ? NULL : lk_fields_find(fields, "item_id");
    char reason[1024];
    snprintf(reason, sizeof reason, "%s", lk_error_text());
    review->n_invalid++;
    return lk_rejects_add(&review->rejects, records->line, id ? id->text : "", reason);
}

static enum lk_code require_columns(const struct lk_records *records) {
    static const char *const names[] = {"item_id", "axis", "score"};
    int column;
    for (int i = 0; i < 3 && records->is_csv; i++) LK_TRY(lk_csv_require(&records->csv, names[i], &column));
    return LK_OK;
}

enum lk_code lk_review_read(struct lk_review *review, const char *text, size_t n, const char *name) {
    struct lk_records records;
    LK_TRY(lk_records_open(&records, text, n, name));
    enum lk_code rc = require_columns(&records);
    for (bool more = true, bad; !rc && more;) {
        rc = lk_records_next(&records, &more, &bad);
        if (rc || !more) break;
        rc = next_record(review, &records, bad);
        if (rc) rc = lk_fail_prefix(rc, "%s: line %zu", name, records.line);
    }
    lk_records_close(&records);
    return rc;
}

enum lk_code lk_review_file(struct lk_review *review, const char *path) {
    char *text;
    size_t n;
    LK_TRY(lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n));
    enum lk_code rc = lk_review_read(review, text, n, path);
    lk_free(text);
    return rc;
}

void lk_review_free(struct lk_review *review) {
    lk_free(review->list);
    lk_rejects_free(&review->rejects);
    lk_store_free(&review->texts);
    memset(review, 0, sizeof *review);
}

void lk_review_standing(const struct lk_dataset *data, const struct lk_review *review, int32_t *out,
                        struct lk_review_counts *counts) {
    struct lk_review_counts c = {0};
    for (size_t i = 0; i < data->n_items * LK_N_REVIEW_AXES; i++) out[i] = -1;
    for (size_t k = 0; k < review->n; k++) {
        const struct lk_decision *d = &review->list[k];
        int32_t at;
        if (lk_dataset_find(data, d->item_id, strlen(d->item_id), &at) || at < 0) {
            c.n_unknown++;
            continue;
        }
        int32_t *standing = &out[(size_t)at * LK_N_REVIEW_AXES + (size_t)d->axis];
        bool known = *standing >= 0, withdrawn = d->score == LK_REVIEW_WITHDRAWN;
        c.n_replaced += known;
        c.n_standing += !withdrawn;
        c.n_standing -= known;
        *standing = withdrawn ? -1 : (int32_t)k;
    }
    if (counts) *counts = c;
}

enum lk_code lk_review_apply(struct lk_dataset *data, const struct lk_review *review, struct lk_review_counts *counts) {
    int32_t *standing = lk_malloc((data->n_items + 1) * LK_N_REVIEW_AXES * sizeof *standing);
    if (!standing) return lk_fail(LK_E_NOMEM, "out of memory for the review");
    lk_review_standing(data, review, standing, counts);
    for (size_t i = 0; i < data->n_items; i++) {
        struct lk_item *item = &data->items[i];
        const int32_t *of = &standing[i * LK_N_REVIEW_AXES];
        item->reviewed_axes = 0;
        for (int a = 0; a < LK_N_REVIEW_AXES; a++) {
            if (of[a] < 0) continue;
            item->reviewed_axes |= (uint8_t)(1u << a);
            if (a == LK_REVIEW_ROLE)
                item->reviewed_role = (int8_t)review->list[of[a]].score;
            else
                item->reviewed[a] = (uint8_t)review->list[of[a]].score;
        }
    }
    lk_free(standing);
    return LK_OK;
}

void lk_review_swap(struct lk_dataset *data) {
    for (size_t i = 0; i < data->n_items; i++) {
        struct lk_item *item = &data->items[i];
        for (int a = 0; a < LK_N_AXES; a++) {
            uint8_t score = item->score[a];
            if (!(item->reviewed_axes >> a & 1)) continue;
            item->score[a] = item->reviewed[a];
            item->reviewed[a] = score;
        }
        if (item->reviewed_axes >> LK_REVIEW_ROLE & 1) {
            int8_t role = item->role;
            item->role = item->reviewed_role;
            item->reviewed_role = role;
        }
    }
}
