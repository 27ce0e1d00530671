#include "eval/scores/dataset.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "engine/base/names.h"
#include "eval/study/prompts.h"
#include "engine/base/store.h"
#include "eval/scores/words.h"

/* Items are found by the key of their parts, so that every spelling of an id names one item; raters by their id. */
struct dataset_index {
    struct lk_key_index items;
    struct lk_names jobs; /* ids of items that were added as such, the first items of the dataset */
    struct lk_names raters;
};

static uint64_t item_key(const struct lk_item *item) {
    uint64_t key = (uint64_t)item->prompt;
    key = key * 4 + (uint64_t)item->arm;
    key = key * 4 + (uint64_t)item->model;
    key = key * 8 + (uint64_t)item->race;
    key = key * 8 + (uint64_t)item->age;
    key = key * 2 + (uint64_t)item->swapped;
    return key * 4 + (uint64_t)(item->gender + 1); /* -1: a composite of both */
}

void lk_dataset_init(struct lk_dataset *data) { memset(data, 0, sizeof *data); }

void lk_dataset_free(struct lk_dataset *data) {
    struct dataset_index *index = data->index;
    if (index) {
        lk_key_index_free(&index->items);
        lk_names_free(&index->jobs);
        lk_names_free(&index->raters);
        lk_free(index);
    }
    if (data->texts) lk_store_free(data->texts);
    lk_free(data->texts);
    lk_free(data->items);
    lk_free(data->ratings);
    lk_free(data->raters);
    memset(data, 0, sizeof *data);
}

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "out of memory for the scores"); }

static enum lk_code grow(void *array, size_t *capacity, size_t n, size_t size) {
    if (n >= INT32_MAX / 2) return lk_fail(LK_E_INPUT, "more than %d records", INT32_MAX / 2);
    return lk_grow(array, capacity, n + 1, size);
}

static struct dataset_index *index_of(struct lk_dataset *data) {
    if (!data->index) data->index = lk_calloc(1, sizeof(struct dataset_index));
    return data->index;
}

const char *lk_dataset_text(struct lk_dataset *data, const char *text, size_t n) {
    if (!data->texts) data->texts = lk_calloc(1, sizeof(struct lk_store));
    return data->texts ? lk_store_copy(data->texts, text, n) : NULL;
}

static int32_t find_item(const struct lk_dataset *data, uint64_t key) {
    const struct dataset_index *index = data->index;
    return index ? lk_key_index_find(&index->items, key) : -1;
}

/* A piece of an id, for the parser below. */
struct span {
    const char *at;
    size_t n;
};

static struct span take_first(struct span *rest) {
    const char *bar = rest->n ? memchr(rest->at, '_', rest->n) : NULL;
    struct span first = {rest->at, bar ? (size_t)(bar - rest->at) : rest->n};
    size_t used = bar ? first.n + 1 : first.n;
    rest->at += used;
    rest->n -= used;
    return first;
}

static struct span take_last(struct span *rest) {
    size_t from = rest->n;
    while (from && rest->at[from - 1] != '_') from--;
    struct span last = {rest->at + from, rest->n - from};
    rest->n = from ? from - 1 : 0;
    return last;
}

static enum lk_code part(const char *id, size_t n, enum lk_factor factor, struct span text, int8_t *out) {
    int level = lk_factor_parse(factor, text.at, text.n);
    *out = (int8_t)level;
    if (level >= 0) return LK_OK;
    return lk_fail(LK_E_INPUT, "item id \"%.*s\": \"%.*s\" is no %s; expected <model>_<age>_<gender>_<race>_<prompt>",
                   (int)n, id, (int)text.n, text.at, lk_factor_name(factor));
}

static enum lk_code take_prompt(const char *id, size_t n, struct span *rest, int16_t *out) {
    struct span whole = *rest, last = take_last(rest);
    if (last.n == 3) { /* the digits of catB_001 */
        struct span cat = take_last(rest);
        last.n += (size_t)(last.at - cat.at);
        last.at = cat.at;
    }
    *out = (int16_t)lk_prompt_parse(last.at, last.n);
    if (*out >= 0) return LK_OK;
    return lk_fail(LK_E_INPUT, "item id \"%.*s\": \"%.*s\" is no prompt; expected O-01 .. W-50 or catB_001 .. catD_010",
                   (int)n, id, (int)(last.n ? last.n : whole.n), last.n ? last.at : whole.at);
}

static enum lk_code take_arm(const char *id, size_t n, struct span *rest, int8_t *out) {
    *out = LK_ARM_EDITED;
    for (size_t i = rest->n; i-- > 0;)
        if (rest->at[i] == '.') {
            struct span arm = {rest->at + i + 1, rest->n - i - 1};
            rest->n = i;
            return part(id, n, LK_FACTOR_ARM, arm, out);
        }
    return LK_OK;
}

static enum lk_code parse_id(const char *id, size_t n, struct lk_item *item) {
    static const char swapped[] = "_swapped";
    if (!n || n > 200) return lk_fail(LK_E_INPUT, "item id: expected 1 to 200 bytes, got %zu", n);
    struct span rest = {id, n};
    item->source = -1;
    LK_TRY(take_arm(id, n, &rest, &item->arm));
    item->swapped =
        rest.n > sizeof swapped && !memcmp(rest.at + rest.n - (sizeof swapped - 1), swapped, sizeof swapped - 1);
    if (item->swapped) rest.n -= sizeof swapped - 1;
    LK_TRY(take_prompt(id, n, &rest, &item->prompt));
    LK_TRY(part(id, n, LK_FACTOR_MODEL, take_first(&rest), &item->model));
    if (rest.n > 5 && !memcmp(rest.at, "pair_", 5)) {
        take_first(&rest);
        item->gender = -1;
        LK_TRY(part(id, n, LK_FACTOR_AGE, take_last(&rest), &item->age));
        if (item->prompt < LK_N_EDIT_PROMPTS)
            return lk_fail(LK_E_INPUT, "item id \"%.*s\": a pair of sources takes a W prompt", (int)n, id);
        return part(id, n, LK_FACTOR_RACE, rest, &item->race);
    }
    if (item->swapped)
        return lk_fail(LK_E_INPUT, "item id \"%.*s\": only the order of a pair of sources can be swapped", (int)n, id);
    LK_TRY(part(id, n, LK_FACTOR_AGE, take_first(&rest), &item->age));
    LK_TRY(part(id, n, LK_FACTOR_GENDER, take_first(&rest), &item->gender));
    LK_TRY(part(id, n, LK_FACTOR_RACE, rest, &item->race));
    item->source = (int16_t)lk_source(item->race, item->gender, item->age);
    return LK_OK;
}

static void clear(struct lk_item *out) {
    *out = (struct lk_item){.job = -1,
                            .partner = -1,
                            .role = LK_ROLE_NONE,
                            .legacy = {-1, -1, -1},
                            .legacy_preference = -1,
                            .evidence = ""};
    for (int j = 0; j < LK_N_JUDGES; j++) out->judge_role[j] = LK_ROLE_NONE;
    for (int a = 0; a < LK_N_AXES; a++) out->human_mean[a] = NAN;
}

enum lk_code lk_dataset_id_parts(const char *id, size_t n, struct lk_item *out) {
    clear(out);
    return parse_id(id, n, out);
}

static int32_t find_job(const struct lk_dataset *data, const char *id, size_t n) {
    const struct dataset_index *index = data ? data->index : NULL;
    return index ? lk_names_find(&index->jobs, id, n) : -1;
}

static enum lk_code unknown(const char *id, size_t n) {
    return lk_fail(LK_E_INPUT, "item id \"%.*s\": expected an output of this study, got another",
                   n > 200 ? 200 : (int)n, id);
}

enum lk_code lk_dataset_add(struct lk_dataset *data, const char *id, int32_t job, enum lk_arm arm, int32_t *out) {
    struct lk_item item;
    struct dataset_index *index = index_of(data);
    const size_t n = strlen(id);
    *out = -1;
    if (!index) return out_of_memory();
    if (data->n_items != index->jobs.n) return lk_fail(LK_E_INTERNAL, "%s: added behind other items", id);
    if (find_job(data, id, n) >= 0) return lk_fail(LK_E_INPUT, "item id \"%.200s\": expected each item once", id);
    LK_TRY(grow(&data->items, &data->items_capacity, data->n_items, sizeof *data->items));
    LK_TRY(lk_names_number(&index->jobs, id, n, out));
    clear(&item);
    item.id = index->jobs.list[*out];
    item.job = job;
    item.arm = (int8_t)arm;
    item.model = item.race = item.gender = item.age = -1;
    item.prompt = item.source = -1;
    data->items[data->n_items++] = item;
    data->is_closed = true;
    return LK_OK;
}

enum lk_code lk_dataset_item(struct lk_dataset *data, const char *id, size_t n, int32_t *out) {
    struct lk_item item;
    *out = find_job(data, id, n);
    if (*out >= 0) return LK_OK;
    if (data->is_closed) return unknown(id, n);
    LK_TRY(lk_dataset_id_parts(id, n, &item));
    uint64_t key = item_key(&item);
    *out = find_item(data, key);
    if (*out >= 0) return LK_OK;

    struct dataset_index *index = index_of(data);
    if (!index) return out_of_memory();
    LK_TRY(grow(&data->items, &data->items_capacity, data->n_items, sizeof *data->items));
    LK_TRY(lk_key_index_reserve(&index->items));
    item.id = lk_dataset_text(data, id, n);
    if (!item.id) return out_of_memory();
    data->items[data->n_items] = item;
    *out = (int32_t)data->n_items++;
    lk_key_index_put(&index->items, key, *out);
    return LK_OK;
}

enum lk_code lk_dataset_find(const struct lk_dataset *data, const char *id, size_t n, int32_t *out) {
    struct lk_item item = {0};
    *out = find_job(data, id, n);
    if (*out >= 0 || data->is_closed) return LK_OK;
    LK_TRY(parse_id(id, n, &item));
    *out = find_item(data, item_key(&item));
    return LK_OK;
}

enum lk_code lk_dataset_parts(const struct lk_dataset *data, const char *id, size_t n, struct lk_item *out) {
    const int32_t job = find_job(data, id, n);
    if (job < 0 && data && data->is_closed) return unknown(id, n);
    if (job < 0) return lk_dataset_id_parts(id, n, out);
    *out = data->items[job];
    return LK_OK;
}

enum lk_code lk_dataset_id_prompt(const struct lk_dataset *data, const char *id, size_t n, int *out) {
    struct lk_item item;
    *out = -1;
    LK_TRY(lk_dataset_parts(data, id, n, &item));
    *out = item.prompt;
    return LK_OK;
}

enum lk_code lk_rater_id(const char *typed, size_t n, char out[LK_RATER_ID_MAX + 1]) {
    static const char host[] = "@email.prolific.com";
    const size_t n_host = sizeof host - 1;
    const char *id = lk_trim(typed, &n);
    if (lk_is_damaged_id(id, n))
        return lk_fail(LK_E_INPUT,
                       "rater id: \"%.*s\" is damaged: a spreadsheet took it for a number and rounded it; export again "
                       "and do not save it from the spreadsheet",
                       (int)n, id);
    if (n > n_host && !strncasecmp(id + n - n_host, host, n_host)) n -= n_host;
    if (!n || n > LK_RATER_ID_MAX)
        return lk_fail(LK_E_INPUT, "rater id: expected 1 to %d bytes, got %zu", LK_RATER_ID_MAX, n);
    for (size_t i = 0; i < n; i++) out[i] = id[i] >= 'A' && id[i] <= 'Z' ? (char)(id[i] + ('a' - 'A')) : id[i];
    out[n] = 0;
    return LK_OK;
}

enum lk_code lk_dataset_rater(struct lk_dataset *data, const char *typed, size_t n_typed, int32_t *out) {
    char id[LK_RATER_ID_MAX + 1];
    *out = -1;
    LK_TRY(lk_rater_id(typed, n_typed, id));
    struct dataset_index *index = index_of(data);
    if (!index) return out_of_memory();
    LK_TRY(grow(&data->raters, &data->raters_capacity, data->n_raters, sizeof *data->raters));
    LK_TRY(lk_names_number(&index->raters, id, strlen(id), out));
    if ((size_t)*out == data->n_raters)
        data->raters[data->n_raters++] =
            (struct lk_rater){.id = index->raters.list[*out], .submitted = true, .code_valid = true, .n_sessions = 1};
    return LK_OK;
}

void lk_rating_clear(struct lk_rating *rating) {
    *rating = (struct lk_rating){.item = -1,
                                 .rater = -1,
                                 .gold = -1,
                                 .duration_ms = -1,
                                 .task = -1,
                                 .position = -1,
                                 .preference = -1,
                                 .role = LK_ROLE_NONE};
    for (int a = 0; a < LK_N_AXES; a++) rating->question_ms[a] = rating->answer_class[a] = -1;
}

enum lk_code lk_dataset_rating(struct lk_dataset *data, struct lk_rating **out) {
    *out = NULL;
    LK_TRY(grow(&data->ratings, &data->ratings_capacity, data->n_ratings, sizeof *data->ratings));
    *out = &data->ratings[data->n_ratings++];
    lk_rating_clear(*out);
    return LK_OK;
}

/* flux_S1_K-01 or flux_S1_K-01.edited, and flux_S1_K-01.preserved. */
static int32_t partner_of_job(const struct lk_dataset *data, const struct lk_item *item) {
    char id[300];
    const int n = (int)strcspn(item->id, ".");
    const bool preserved = item->arm == LK_ARM_PRESERVED;
    int length = snprintf(id, sizeof id, "%.*s.%s", n, item->id, preserved ? "edited" : "preserved");
    int32_t other = find_job(data, id, (size_t)length);
    return other < 0 && preserved ? find_job(data, item->id, (size_t)n) : other;
}

void lk_dataset_pair(struct lk_dataset *data) {
    for (size_t i = 0; i < data->n_items; i++) {
        struct lk_item other = data->items[i];
        if (other.job >= 0) {
            data->items[i].partner = partner_of_job(data, &other);
            continue;
        }
        other.arm = other.arm == LK_ARM_EDITED ? LK_ARM_PRESERVED : LK_ARM_EDITED;
        data->items[i].partner = find_item(data, item_key(&other));
    }
}
