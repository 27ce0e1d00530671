#include "engine/base/names.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "engine/base/alloc.h"

uint64_t lk_hash_seed(void) {
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == sizeof seed) return seed;
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15u ^ (uint64_t)(uintptr_t)&seed;
}

uint64_t lk_hash_bytes(uint64_t seed, const char *text, size_t n) {
    uint64_t h = seed ^ n * 0x9e3779b97f4a7c15u;
    while (n) {
        uint64_t word = 0;
        size_t taken = n < sizeof word ? n : sizeof word;
        memcpy(&word, text, taken);
        h = (h ^ word) * (seed | 1);
        h ^= h >> 32;
        h *= 0xd6e8feb86659fd93u;
        h ^= h >> 29;
        text += taken;
        n -= taken;
    }
    return h ^ h >> 31;
}

/* The slot that holds the key, or the free one where it belongs. */
static struct lk_key_slot *slot_of(const struct lk_key_index *index, uint64_t key) {
    size_t at = (size_t)lk_hash_bytes(index->seed, (const char *)&key, sizeof key) & (index->capacity - 1);
    while (index->slots[at].position >= 0 && index->slots[at].key != key) at = (at + 1) & (index->capacity - 1);
    return &index->slots[at];
}

int32_t lk_key_index_find(const struct lk_key_index *index, uint64_t key) {
    return index->capacity ? slot_of(index, key)->position : -1;
}

enum lk_code lk_key_index_reserve(struct lk_key_index *index) {
    if ((index->n + 1) * 2 <= index->capacity) return LK_OK;
    struct lk_key_index grown = {.capacity = index->capacity ? index->capacity * 2 : 128,
                                 .seed = index->capacity ? index->seed : lk_hash_seed()};
    grown.slots = lk_malloc(grown.capacity * sizeof *grown.slots);
    if (!grown.slots) return lk_fail(LK_E_NOMEM, "no memory for an index of %zu; free memory and try again", index->n);
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

/* The name's number, or -1 and the key to put it under: two names may share a hash. */
static int32_t look_up(const struct lk_names *names, const char *text, size_t n, uint64_t *key) {
    *key = lk_hash_bytes(names->index.seed, text, n);
    for (int32_t at; (at = lk_key_index_find(&names->index, *key)) >= 0; ++*key)
        if (strlen(names->list[at]) == n && !memcmp(names->list[at], text, n)) return at;
    return -1;
}

int32_t lk_names_find(const struct lk_names *names, const char *text, size_t n) {
    uint64_t key;
    return look_up(names, text, n, &key);
}

enum lk_code lk_names_number(struct lk_names *names, const char *text, size_t n, int32_t *out) {
    uint64_t key;
    LK_TRY(lk_key_index_reserve(&names->index)); /* before the key: an empty index has no seed */
    *out = look_up(names, text, n, &key);
    if (*out >= 0) return LK_OK;
    LK_TRY(lk_grow(&names->list, &names->capacity, names->n + 1, sizeof *names->list));
    names->list[names->n] = lk_store_copy(&names->texts, text, n);
    if (!names->list[names->n]) return lk_fail(LK_E_NOMEM, "no memory for names; free memory and try again");
    *out = (int32_t)names->n++;
    lk_key_index_put(&names->index, key, *out);
    return LK_OK;
}

void lk_names_free(struct lk_names *names) {
    lk_free(names->list);
    lk_key_index_free(&names->index);
    lk_store_free(&names->texts);
    memset(names, 0, sizeof *names);
}
