#include "eval/scores/long_table.h"

#include <string.h>

#include "engine/base/text.h"
#include "eval/scores/csv.h"
#include "engine/base/names.h"
#include "eval/scores/level.h"
#include "eval/scores/words.h"
#include "eval/study/prompts.h"

enum { COLUMN_ROLE = LK_N_AXES, COLUMN_PREFERENCE };
static const char *const role_words[] = {"male", "female", "unclear", NULL};
static const char *const preference_words[] = {"edited", "preserved", "tie", NULL};
static const char *const slots[LK_N_JUDGES + 1] = {"primary", "secondary", NULL};

struct reader {
    struct lk_dataset *data;
    struct lk_csv csv;
    int item_id, kind, who, axis, score;
    struct {
        enum lk_factor factor;
        int column;
    } labels[5];
    int prompt;
    struct lk_key_index ratings; /* by rater and item */
    struct lk_long_report *report;
};

static enum lk_code find_columns(struct reader *r) {
    const struct lk_csv *csv = &r->csv;
    const struct {
        const char *name;
        enum lk_factor factor;
    } labels[] = {{"race", LK_FACTOR_RACE},
                  {"gender", LK_FACTOR_GENDER},
                  {"age", LK_FACTOR_AGE},
                  {"model", LK_FACTOR_MODEL},
                  {"arm", LK_FACTOR_ARM}};
    LK_TRY(lk_csv_require(csv, "item_id", &r->item_id));
    LK_TRY(lk_csv_require(csv, "kind", &r->kind));
    LK_TRY(lk_csv_require(csv, "who", &r->who));
    LK_TRY(lk_csv_require(csv, "axis", &r->axis));
    LK_TRY(lk_csv_require(csv, "score", &r->score));
    for (int i = 0; i < 5; i++) {
        r->labels[i].factor = labels[i].factor;
        r->labels[i].column = lk_csv_column(csv, labels[i].name);
    }
    r->prompt = lk_csv_column(csv, "prompt");
    return LK_OK;
}

static enum lk_code check_labels(const struct reader *r, const struct lk_item *item) {
    const int levels[] = {item->race, item->gender, item->age, item->model, item->arm};
    for (int i = 0; i < 5; i++) {
        const char *text = lk_csv_cell(&r->csv, r->labels[i].column);
        if (*text && lk_factor_parse(r->labels[i].factor, text, strlen(text)) != levels[i])
            return lk_csv_fail(&r->csv, r->labels[i].column, "\"%.40s\" is not what item_id says", text);
    }
    const char *prompt = lk_csv_cell(&r->csv, r->prompt);
    if (*prompt && lk_prompt_parse(prompt, strlen(prompt)) != item->prompt)
        return lk_csv_fail(&r->csv, r->prompt, "\"%.40s\" is not what item_id says", prompt);
    return LK_OK;
}

/* The question and the value given: a level, a role or a preference; -1 for an empty cell. */
static enum lk_code take_score(const struct reader *r, const struct lk_item *item, int *question, int *value) {
    const char *axis = lk_csv_cell(&r->csv, r->axis), *text = lk_csv_cell(&r->csv, r->score);
    *question = lk_factor_parse(LK_FACTOR_AXIS, axis, strlen(axis));
    if (lk_same_name(axis, "age_accuracy") && item->prompt == LK_PROMPT_V03) *question = LK_AXIS_AGE_DRIFT;
    if (lk_same_name(axis, "role")) *question = COLUMN_ROLE;
    if (lk_same_name(axis, "preference")) *question = COLUMN_PREFERENCE;
    if (*question < 0) return lk_csv_fail(&r->csv, r->axis, "\"%.40s\" is no axis", axis);
    *value = -1;
    if (lk_is_missing(text, strlen(text))) return LK_OK;
    if (*question < LK_N_AXES) {
        *value = lk_level_of_number(text, strlen(text));
        return *value ? LK_OK : lk_csv_fail(&r->csv, r->score, "expected 1 to 5, got \"%.40s\"", text);
    }
    bool is_role = *question == COLUMN_ROLE;
    *value = lk_word_of(is_role ? role_words : preference_words, text, strlen(text));
    if (*value >= 0) return LK_OK;
    return lk_csv_fail(&r->csv, r->score, "expected %s, got \"%.40s\"",
                       is_role ? "male, female or unclear" : "edited, preserved or tie", text);
}

/* Puts a value where nothing or the same is. */
static enum lk_code put(const struct reader *r, int value, int empty, int known) {
    if (known == empty || known == value) return LK_OK;
    return lk_csv_fail(&r->csv, r->score, "another line gives this score as well, but differently");
}

static enum lk_code put_judge(struct reader *r, struct lk_item *item, int question, int value) {
    const char *who = lk_csv_cell(&r->csv, r->who);
    int slot = lk_word_of(slots, who, strlen(who));
    if (slot < 0) return lk_csv_fail(&r->csv, r->who, "expected primary or secondary, got \"%.40s\"", who);
    if (question == COLUMN_PREFERENCE) return lk_csv_fail(&r->csv, r->axis, "a judge gives no preference");
    r->report->n_judge++;
    if (value < 0) return LK_OK;
    if (question == COLUMN_ROLE) {
        LK_TRY(put(r, value, LK_ROLE_NONE, item->judge_role[slot]));
        item->judge_role[slot] = (int8_t)value;
        return LK_OK;
    }
    LK_TRY(put(r, value, 0, item->judge[slot][question]));
    item->judge[slot][question] = (uint8_t)value;
    return LK_OK;
}

static enum lk_code rating_of(struct reader *r, int32_t item, int32_t rater, struct lk_rating **out) {
    uint64_t key = (uint64_t)rater << 32 | (uint64_t)item;
    int32_t at = lk_key_index_find(&r->ratings, key);
    if (at >= 0) {
        *out = &r->data->ratings[at];
        return LK_OK;
    }
    LK_TRY(lk_key_index_reserve(&r->ratings));
    LK_TRY(lk_dataset_rating(r->data, out));
    (*out)->item = item;
    (*out)->rater = rater;
    lk_key_index_put(&r->ratings, key, (int32_t)r->data->n_ratings - 1);
    return LK_OK;
}

static enum lk_code put_rater(struct reader *r, int32_t item, int question, int value) {
    const char *who = lk_csv_cell(&r->csv, r->who);
    int32_t rater;
    struct lk_rating *rating;
    if (!*who || strlen(who) > 200) return lk_csv_fail(&r->csv, r->who, "expected a rater's id");
    LK_TRY(lk_dataset_rater(r->data, who, strlen(who), &rater));
    LK_TRY(rating_of(r, item, rater, &rating));
    r->report->n_rater++;
    if (rating->n_asked < UINT8_MAX) rating->n_asked++;
    rating->n_skipped = (uint8_t)(rating->n_skipped + (value < 0 && rating->n_skipped < UINT8_MAX));
    if (value < 0) {
        int open = question == COLUMN_ROLE         ? LK_OPEN_ROLE
                   : question == COLUMN_PREFERENCE ? LK_OPEN_PREFERENCE
                                                   : 1 << question;
        rating->open_questions |= (uint8_t)open;
        return LK_OK;
    }
    if (question < LK_N_AXES) {
        LK_TRY(put(r, value, 0, rating->score[question]));
        rating->score[question] = (uint8_t)value;
        return LK_OK;
    }
    int8_t *to = question == COLUMN_ROLE ? &rating->role : &rating->preference;
    LK_TRY(put(r, value, -1, *to));
    *to = (int8_t)value;
    return LK_OK;
}

static enum lk_code read_row(struct reader *r) {
    const char *id = lk_csv_cell(&r->csv, r->item_id), *kind = lk_csv_cell(&r->csv, r->kind);
    struct lk_item parts;
    int32_t item;
    int question = -1, value = -1;
    if (lk_dataset_parts(r->data, id, strlen(id), &parts))
        return lk_csv_fail(&r->csv, r->item_id, "%s", lk_error_text());
    if (parts.job < 0) LK_TRY(check_labels(r, &parts));
    LK_TRY(take_score(r, &parts, &question, &value));
    LK_TRY(lk_dataset_item(r->data, id, strlen(id), &item));
    r->report->n_rows++;
    r->report->n_skipped += value < 0;
    if (lk_same_name(kind, "judge")) return put_judge(r, &r->data->items[item], question, value);
    if (lk_same_name(kind, "rater")) return put_rater(r, item, question, value);
    return lk_csv_fail(&r->csv, r->kind, "expected judge or rater, got \"%.40s\"", kind);
}

/* The ratings that the dataset holds already, so that a second table adds to them. */
static enum lk_code index_ratings(struct reader *r) {
    for (size_t i = 0; i < r->data->n_ratings; i++) {
        const struct lk_rating *rating = &r->data->ratings[i];
        if (rating->item < 0 || rating->rater < 0 || rating->is_gold) continue;
        LK_TRY(lk_key_index_reserve(&r->ratings));
        lk_key_index_put(&r->ratings, (uint64_t)rating->rater << 32 | (uint64_t)rating->item, (int32_t)i);
    }
    return LK_OK;
}

enum lk_code lk_long_table_read(struct lk_dataset *data, const char *text, size_t n, const char *name,
                                struct lk_long_report *report) {
    struct reader r = {.data = data, .report = report};
    *report = (struct lk_long_report){0};
    LK_TRY(lk_csv_open(&r.csv, text, n, name));
    enum lk_code rc = find_columns(&r);
    if (!rc) rc = index_ratings(&r);
    for (bool more = true; !rc && more;) {
        rc = lk_csv_next(&r.csv, &more);
        if (!rc && more) rc = read_row(&r);
    }
    lk_key_index_free(&r.ratings);
    lk_csv_close(&r.csv);
    return rc;
}

struct writer {
    struct lk_text text;
    const char *job;
};

/* A cell, quoted where it must be, and what follows it. */
static void add_cell(struct writer *w, const char *text, char then) {
    if (!strpbrk(text, ",\"\n\r")) {
        lk_text_bytes(&w->text, text, strlen(text));
    } else {
        lk_text_bytes(&w->text, "\"", 1);
        for (const char *c = text; *c; c++) lk_text_bytes(&w->text, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1);
        lk_text_bytes(&w->text, "\"", 1);
    }
    lk_text_bytes(&w->text, &then, 1);
}

static void add_row(struct writer *w, const struct lk_item *item, const char *kind, const char *who, const char *axis,
                    const char *score) {
    add_cell(w, item->id, ',');
    add_cell(w, kind, ',');
    add_cell(w, who, ',');
    add_cell(w, axis, ',');
    add_cell(w, score, ',');
    add_cell(w, lk_factor_key(LK_FACTOR_RACE, item->race), ',');
    add_cell(w, item->gender < 0 ? "" : lk_factor_key(LK_FACTOR_GENDER, item->gender), ',');
    add_cell(w, lk_factor_key(LK_FACTOR_AGE, item->age), ',');
    add_cell(w, lk_factor_key(LK_FACTOR_MODEL, item->model), ',');
    add_cell(w, lk_prompt_id(item->prompt), ',');
    add_cell(w, lk_factor_key(LK_FACTOR_ARM, item->arm), ',');
    add_cell(w, w->job, '\n');
}

static void add_scores(struct writer *w, const struct lk_item *item, const char *kind, const char *who,
                       const uint8_t score[LK_N_AXES]) {
    for (int a = 0; a < LK_N_AXES; a++) {
        const char digit[] = {(char)('0' + score[a]), 0};
        if (score[a]) add_row(w, item, kind, who, lk_factor_key(LK_FACTOR_AXIS, a), digit);
    }
}

enum lk_code lk_long_table_write(const struct lk_dataset *data, const char *job, char **out, size_t *n) {
    static const char header[] = "item_id,kind,who,axis,score,race,gender,age,model,prompt,arm,job\n";
    struct writer w = {.job = job};
    lk_text_bytes(&w.text, header, sizeof header - 1);
    for (size_t i = 0; i < data->n_items; i++)
        for (int slot = 0; slot < LK_N_JUDGES; slot++) {
            const struct lk_item *item = &data->items[i];
            add_scores(&w, item, "judge", slots[slot], item->judge[slot]);
            if (item->judge_role[slot] != LK_ROLE_NONE)
                add_row(&w, item, "judge", slots[slot], "role", role_words[item->judge_role[slot]]);
        }
    for (size_t i = 0; i < data->n_ratings; i++) {
        const struct lk_rating *rating = &data->ratings[i];
        if (rating->item < 0 || rating->rater < 0 || rating->is_gold) continue;
        const struct lk_item *item = &data->items[rating->item];
        const char *who = data->raters[rating->rater].id;
        add_scores(&w, item, "rater", who, rating->score);
        if (rating->role != LK_ROLE_NONE) add_row(&w, item, "rater", who, "role", role_words[rating->role]);
        if (rating->preference >= 0)
            add_row(&w, item, "rater", who, "preference", preference_words[rating->preference]);
    }
    *out = w.text.bytes;
    *n = w.text.n;
    if (!w.text.rc) return LK_OK;
    enum lk_code rc = w.text.rc;
    lk_text_free(&w.text);
    return rc;
}
