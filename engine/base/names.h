/* Names and their numbers, in the order in which they were first met, and the table below them, from 64-bit keys to
 * positions. Both find one of a hundred thousand in constant time whatever the names are: hashes begin with a seed that
 * is random in each process, so that no file can be made to collide. Nothing that can be seen depends on the seed. */
#pragma once

#include <stdint.h>

#include "engine/base/store.h"
#include "engine/base/status.h"

uint64_t lk_hash_seed(void); /* a new one for each table */
uint64_t lk_hash_bytes(uint64_t seed, const char *text, size_t n);

struct lk_key_slot {
    uint64_t key;
    int32_t position; /* -1: free */
};
struct lk_key_index {
    struct lk_key_slot *slots;
    size_t n, capacity; /* capacity: a power of two */
    uint64_t seed;
};

/* The position put under the key, -1 when there is none. */
int32_t lk_key_index_find(const struct lk_key_index *index, uint64_t key);
/* Room for one more key: LK_E_NOMEM. lk_key_index_put after it cannot fail. */
enum lk_code lk_key_index_reserve(struct lk_key_index *index);
/* Puts a key that is not there, or replaces its position. */
void lk_key_index_put(struct lk_key_index *index, uint64_t key, int32_t position);
void lk_key_index_free(struct lk_key_index *index);

struct lk_names {
    const char **list;
    size_t n, capacity;
    struct lk_key_index index;
    struct lk_store texts;
};

/* The number of the name, given to it when it is new. LK_E_NOMEM. */
enum lk_code lk_names_number(struct lk_names *names, const char *text, size_t n, int32_t *out);
int32_t lk_names_find(const struct lk_names *names, const char *text, size_t n); /* -1 when it is not there */
void lk_names_free(struct lk_names *names);
