#include "models/tokenizer/hash.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/names.h"

static size_t slots_for(size_t n) {
    size_t slots = 16;
    while (slots < 2 * n) slots *= 2;
    return slots;
}

enum lk_code lk_token_table_init(struct token_table *table, uint32_t n, size_t text_capacity) {
    size_t slots = slots_for(n);
    *table = (struct token_table){.seed = lk_hash_seed(), .mask = slots - 1, .n = n, .text_capacity = text_capacity};
    table->text = lk_malloc(text_capacity + 1);
    table->tokens = lk_calloc((size_t)n + 1, sizeof *table->tokens);
    table->slots = lk_malloc(slots * sizeof *table->slots);
    if (!table->text || !table->tokens || !table->slots) {
        lk_token_table_free(table);
        return lk_fail(LK_E_NOMEM, "tokenizer: no memory for a table of %u tokens", n);
    }
    memset(table->slots, 0xff, slots * sizeof *table->slots);
    return LK_OK;
}

void lk_token_table_free(struct token_table *table) {
    lk_free(table->text);
    lk_free(table->tokens);
    lk_free(table->slots);
    *table = (struct token_table){0};
}

char *lk_token_table_room(struct token_table *table) { return table->text + table->text_bytes; }

/* The slot that holds the text, or the empty one where it belongs. */
static struct token_slot *probe(const struct token_table *table, const char *text, size_t length, uint32_t *tag) {
    uint64_t h = lk_hash_bytes(table->seed, text, length);
    *tag = (uint32_t)(h >> 32);
    for (size_t i = h & table->mask;; i = (i + 1) & table->mask) {
        struct token_slot *slot = &table->slots[i];
        if (slot->number < 0) return slot;
        if (slot->tag != *tag) continue;
        const struct token_text *t = &table->tokens[slot->number];
        if (t->length == length && !memcmp(table->text + t->at, text, length)) return slot;
    }
}

int32_t lk_token_table_add(struct token_table *table, int32_t number, size_t length) {
    uint32_t tag;
    struct token_slot *slot = probe(table, lk_token_table_room(table), length, &tag);
    if (slot->number >= 0) return slot->number;
    *slot = (struct token_slot){tag, number};
    table->tokens[number] = (struct token_text){(uint32_t)table->text_bytes, (uint32_t)length};
    table->text_bytes += length;
    if (length > table->longest) table->longest = length;
    return -1;
}

int32_t lk_token_table_find(const struct token_table *table, const char *text, size_t length) {
    uint32_t tag;
    if (!length || length > table->longest) return -1;
    return probe(table, text, length, &tag)->number;
}

enum lk_code lk_pair_map_init(struct pair_map *map, size_t n) {
    size_t slots = slots_for(n);
    *map = (struct pair_map){.seed = lk_hash_seed(), .mask = slots - 1};
    map->slots = lk_malloc(slots * sizeof *map->slots);
    if (!map->slots) return lk_fail(LK_E_NOMEM, "tokenizer: no memory for a table of %zu pairs", n);
    memset(map->slots, 0xff, slots * sizeof *map->slots);
    return LK_OK;
}

void lk_pair_map_free(struct pair_map *map) {
    lk_free(map->slots);
    *map = (struct pair_map){0};
}

uint64_t *lk_pair_map_put(struct pair_map *map, uint32_t a, uint32_t b) {
    uint64_t key = (uint64_t)a << 32 | b;
    size_t i = pair_hash(map->seed, key) & map->mask;
    while (map->slots[i].key != key && map->slots[i].key != UINT64_MAX) i = (i + 1) & map->mask;
    if (map->slots[i].key != key) {
        map->slots[i].key = key;
        map->n++;
    }
    return &map->slots[i].value;
}
