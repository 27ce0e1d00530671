/* From 64-bit keys to positions: open addressing, so that a hundred thousand records are found in constant time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

struct lk_key_slot {
    uint64_t key;
    int32_t position; /* -1: free */
};
struct lk_key_index {
    struct lk_key_slot *slots;
    size_t n, capacity; /* capacity: a power of two */
};

/* The position put under the key, -1 when there is none. */
int32_t lk_key_index_find(const struct lk_key_index *index, uint64_t key);
/* Room for one more key: LK_E_NOMEM. lk_key_index_put after it cannot fail. */
enum lk_code lk_key_index_reserve(struct lk_key_index *index);
/* Puts a key that is not there, or replaces its position. */
void lk_key_index_put(struct lk_key_index *index, uint64_t key, int32_t position);
void lk_key_index_free(struct lk_key_index *index);
/* A key for n bytes; two texts may share one. */
uint64_t lk_key_of_text(const char *text, size_t n);
