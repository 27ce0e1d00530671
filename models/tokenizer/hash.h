/* The two hash tables of the tokenizer: token text to number, and a pair of 32-bit numbers to another. Open addressing,
 * linear probing, at most half full. The seed is random in each process, so that no file can be made to collide. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

/* Texts numbered 0 .. n-1, in any order of insertion. */
struct token_table {
    uint64_t seed;
    char *text;
    size_t text_bytes, text_capacity;
    struct token_text {
        uint32_t at, length; /* length 0: this number has no text yet */
    } * tokens;
    uint32_t n;
    struct token_slot {
        uint32_t tag; /* upper half of the hash */
        int32_t number;
    } * slots;
    size_t mask;
    size_t longest;
};

/* For at most n texts of together at most text_capacity bytes. LK_E_NOMEM. */
enum lk_code lk_token_table_init(struct token_table *table, uint32_t n, size_t text_capacity);
void lk_token_table_free(struct token_table *table);
/* Where the caller may write the next text of up to (text_capacity - text_bytes) bytes before lk_token_table_add. */
char *lk_token_table_room(struct token_table *table);
/* Adds the `length` bytes at lk_token_table_room under `number`. Returns the number that already has this text, else
 * -1.
 */
int32_t lk_token_table_add(struct token_table *table, int32_t number, size_t length);
/* -1 when absent. */
int32_t lk_token_table_find(const struct token_table *table, const char *text, size_t length);

/* (a, b) to a 64-bit value. */
struct pair_map {
    uint64_t seed;
    struct pair_slot {
        uint64_t key; /* a << 32 | b; UINT64_MAX when empty */
        uint64_t value;
    } * slots;
    size_t mask, n;
};

enum lk_code lk_pair_map_init(struct pair_map *map, size_t n);
void lk_pair_map_free(struct pair_map *map);
/* The value's place, made when absent (new ones hold UINT64_MAX). (UINT32_MAX, UINT32_MAX) is not a key. */
uint64_t *lk_pair_map_put(struct pair_map *map, uint32_t a, uint32_t b);

static inline size_t pair_hash(uint64_t seed, uint64_t key) {
    uint64_t z = (key ^ seed) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 32)) * (seed | 1);
    return (size_t)(z ^ (z >> 29));
}

/* NULL when absent. */
static inline const uint64_t *pair_map_find(const struct pair_map *map, uint32_t a, uint32_t b) {
    uint64_t key = (uint64_t)a << 32 | b;
    for (size_t i = pair_hash(map->seed, key) & map->mask;; i = (i + 1) & map->mask) {
        if (map->slots[i].key == key) return &map->slots[i].value;
        if (map->slots[i].key == UINT64_MAX) return NULL;
    }
}
