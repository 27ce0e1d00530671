#include "eval/scores/key_index.h"

#include <string.h>

#include "engine/base/alloc.h"

static uint64_t mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t lk_key_of_text(const char *text, size_t n) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return hash;
}

/* The slot that holds the key, or the free one where it belongs. */
static struct lk_key_slot *slot_of(const struct lk_key_index *index, uint64_t key) {
    size_t at = (size_t)mix(key) & (index->capacity - 1);
    while (index->slots[at].position >= 0 && index->slots[at].key != key) at = (at + 1) & (index->capacity - 1);
    return &index->slots[at];
}

int32_t lk_key_index_find(const struct lk_key_index *index, uint64_t key) {
    return index->capacity ? slot_of(index, key)->position : -1;
}

enum lk_code lk_key_index_reserve(struct lk_key_index *index) {
    if ((index->n + 1) * 2 <= index->capacity) return LK_OK;
    struct lk_key_index grown = {.capacity = index->capacity ? index->capacity * 2 : 128};
    grown.slots = lk_malloc(grown.capacity * sizeof *grown.slots);
    if (!grown.slots) return lk_fail(LK_E_NOMEM, "out of memory for the scores");
    for (size_t i = 0; i < grown.capacity; i++) grown.slots[i].position = -1;
    for (size_t i = 0; i < index->capacity; i++)
        if (index->slots[i].position >= 0) lk_key_index_put(&grown, index->slots[i].key, index->slots[i].position);
    lk_free(index->slots);
    *index = grown;
    return LK_OK;
}

void lk_key_index_put(struct lk_key_index *index, uint64_t key, int32_t position) {
    struct lk_key_slot *slot = slot_of(index, key);
    index->n += slot->position < 0;
    *slot = (struct lk_key_slot){key, position};
}

void lk_key_index_free(struct lk_key_index *index) {
    lk_free(index->slots);
    memset(index, 0, sizeof *index);
}
