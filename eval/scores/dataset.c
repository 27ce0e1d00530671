#include "eval/scores/dataset.h"

#include <math.h>
#include <string.h>

#include "engine/alloc.h"
#include "eval/study/prompts.h"
#include "eval/study/texts.h"

/* Open addressing, linear probing; slots hold the position + 1, 0 is free. Items are found by the key of their parts,
 * so that every spelling of an id names one item; raters by their id. */
struct table {
    uint32_t *slots;
    size_t capacity; /* a power of two */
};

struct dataset_index {
    struct table items, raters;
    uint64_t *item_keys; /* [items_capacity] */
};

static uint64_t mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t text_hash(const char *text, size_t n) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return mix(hash);
}

static uint64_t item_key(const struct lk_item *item) {
    uint64_t key = (uint64_t)item->prompt;
    key = key * 4 + (uint64_t)item->arm;
    key = key * 4 + (uint64_t)item->model;
    key = key * 8 + (uint64_t)item->race;
    key = key * 8 + (uint64_t)item->age;
    return key * 4 + (uint64_t)(item->gender + 1); /* -1: a composite of both */
}

void lk_dataset_init(struct lk_dataset *data) { memset(data, 0, sizeof *data); }

void lk_dataset_free(struct lk_dataset *data) {
    struct dataset_index *index = data->index;
    if (index) {
        lk_free(index->items.slots);
        lk_free(index->raters.slots);
        lk_free(index->item_keys);
        lk_free(index);
    }
    if (data->texts) lk_texts_free(data->texts);
    lk_free(data->texts);
    lk_free(data->items);
    lk_free(data->ratings);
    lk_free(data->raters);
    memset(data, 0, sizeof *data);
}

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "out of memory for the scores"); }

static enum lk_code grow(void **array, size_t *capacity, size_t n, size_t size) {
    if (n < *capacity) return LK_OK;
    if (n >= INT32_MAX / 2) return lk_fail(LK_E_INPUT, "more than %d records", INT32_MAX / 2);
    size_t wanted = *capacity ? *capacity * 2 : 64;
    void *grown = lk_realloc(*array, wanted * size);
    if (!grown) return out_of_memory();
    *array = grown;
    *capacity = wanted;
    return LK_OK;
}

static struct dataset_index *index_of(struct lk_dataset *data) {
    if (!data->index) data->index = lk_calloc(1, sizeof(struct dataset_index));
    return data->index;
}

const char *lk_dataset_text(struct lk_dataset *data, const char *text, size_t n) {
    if (!data->texts) data->texts = lk_calloc(1, sizeof(struct lk_texts));
    return data->texts ? lk_texts_copy(data->texts, text, n) : NULL;
}

static void insert(struct table *table, uint64_t hash, size_t position) {
    size_t slot = (size_t)hash & (table->capacity - 1);
    while (table->slots[slot]) slot = (slot + 1) & (table->capacity - 1);
    table->slots[slot] = (uint32_t)position + 1;
}

/* Room for one more than n, at most half full. */
static enum lk_code make_room(struct table *table, size_t n, uint64_t (*hash_at)(const struct lk_dataset *, size_t),
                              const struct lk_dataset *data) {
    if ((n + 1) * 2 <= table->capacity) return LK_OK;
    struct table grown = {.capacity = table->capacity ? table->capacity * 2 : 128};
    grown.slots = lk_calloc(grown.capacity, sizeof *grown.slots);
    if (!grown.slots) return out_of_memory();
    for (size_t i = 0; i < n; i++) insert(&grown, hash_at(data, i), i);
    lk_free(table->slots);
    *table = grown;
    return LK_OK;
}

static uint64_t item_hash(const struct lk_dataset *data, size_t i) {
    return mix(((const struct dataset_index *)data->index)->item_keys[i]);
}

static uint64_t rater_hash(const struct lk_dataset *data, size_t i) {
    return text_hash(data->raters[i].id, strlen(data->raters[i].id));
}

static int32_t find_item(const struct lk_dataset *data, uint64_t key) {
    const struct dataset_index *index = data->index;
    if (!index || !index->items.capacity) return -1;
    size_t slot = (size_t)mix(key) & (index->items.capacity - 1);
    for (uint32_t at; (at = index->items.slots[slot]); slot = (slot + 1) & (index->items.capacity - 1))
        if (index->item_keys[at - 1] == key) return (int32_t)at - 1;
    return -1;
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
    if (!n || n > 200) return lk_fail(LK_E_INPUT, "item id: expected 1 to 200 bytes, got %zu", n);
    struct span rest = {id, n};
    item->source = -1;
    LK_TRY(take_arm(id, n, &rest, &item->arm));
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
    LK_TRY(part(id, n, LK_FACTOR_AGE, take_first(&rest), &item->age));
    LK_TRY(part(id, n, LK_FACTOR_GENDER, take_first(&rest), &item->gender));
    LK_TRY(part(id, n, LK_FACTOR_RACE, rest, &item->race));
    item->source = (int16_t)lk_source(item->race, item->gender, item->age);
    return LK_OK;
}

enum lk_code lk_dataset_item(struct lk_dataset *data, const char *id, size_t n, int32_t *out) {
    struct lk_item item = {.partner = -1, .role = LK_ROLE_NONE, .evidence = ""};
    *out = -1;
    LK_TRY(parse_id(id, n, &item));
    uint64_t key = item_key(&item);
    *out = find_item(data, key);
    if (*out >= 0) return LK_OK;

    struct dataset_index *index = index_of(data);
    if (!index) return out_of_memory();
    size_t capacity = data->items_capacity;
    if (data->n_items == capacity) {
        uint64_t *keys = lk_realloc(index->item_keys, (capacity ? capacity * 2 : 64) * sizeof *keys);
        if (!keys) return out_of_memory();
        index->item_keys = keys;
    }
    LK_TRY(grow((void **)&data->items, &data->items_capacity, data->n_items, sizeof *data->items));
    LK_TRY(make_room(&index->items, data->n_items, item_hash, data));
    item.id = lk_dataset_text(data, id, n);
    if (!item.id) return out_of_memory();
    for (int a = 0; a < LK_N_AXES; a++) item.human_mean[a] = NAN;
    index->item_keys[data->n_items] = key;
    data->items[data->n_items] = item;
    insert(&index->items, mix(key), data->n_items);
    *out = (int32_t)data->n_items++;
    return LK_OK;
}

enum lk_code lk_dataset_rater(struct lk_dataset *data, const char *id, size_t n, int32_t *out) {
    *out = -1;
    if (!n || n > 200) return lk_fail(LK_E_INPUT, "rater id: expected 1 to 200 bytes, got %zu", n);
    struct dataset_index *index = index_of(data);
    if (!index) return out_of_memory();
    uint64_t hash = text_hash(id, n);
    LK_TRY(make_room(&index->raters, data->n_raters, rater_hash, data));
    size_t slot = (size_t)hash & (index->raters.capacity - 1);
    for (uint32_t at; (at = index->raters.slots[slot]); slot = (slot + 1) & (index->raters.capacity - 1)) {
        const char *known = data->raters[at - 1].id;
        if (!strncmp(known, id, n) && !known[n]) {
            *out = (int32_t)at - 1;
            return LK_OK;
        }
    }
    LK_TRY(grow((void **)&data->raters, &data->raters_capacity, data->n_raters, sizeof *data->raters));
    struct lk_rater rater = {.id = lk_dataset_text(data, id, n), .submitted = true, .code_valid = true};
    if (!rater.id) return out_of_memory();
    data->raters[data->n_raters] = rater;
    index->raters.slots[slot] = (uint32_t)data->n_raters + 1;
    *out = (int32_t)data->n_raters++;
    return LK_OK;
}

enum lk_code lk_dataset_rating(struct lk_dataset *data, struct lk_rating **out) {
    *out = NULL;
    LK_TRY(grow((void **)&data->ratings, &data->ratings_capacity, data->n_ratings, sizeof *data->ratings));
    struct lk_rating *rating = &data->ratings[data->n_ratings++];
    *rating = (struct lk_rating){
        .item = -1, .rater = -1, .duration_ms = -1, .task = -1, .position = -1, .preference = -1, .role = LK_ROLE_NONE};
    for (int a = 0; a < LK_N_AXES; a++) rating->question_ms[a] = -1;
    *out = rating;
    return LK_OK;
}

void lk_dataset_pair(struct lk_dataset *data) {
    for (size_t i = 0; i < data->n_items; i++) {
        struct lk_item other = data->items[i];
        other.arm = other.arm == LK_ARM_EDITED ? LK_ARM_PRESERVED : LK_ARM_EDITED;
        data->items[i].partner = find_item(data, item_key(&other));
    }
}
