/* Byte-pair encoding: bytes of a piece become the symbols of single bytes, then adjacent symbols are merged, the pair
 * of lowest rank first, the leftmost of equal rank first. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "models/tokenizer/hash.h"

#define BPE_END_OF_WORD "</w>"

struct bpe {
    struct token_table vocab;             /* text in the byte alphabet to id */
    struct pair_map merges;               /* (left id, right id) to rank << 32 | id of the merged token */
    int32_t byte_ids[256], last_ids[256]; /* of a byte, and of the last one of a piece */
    bool end_of_word;                     /* the latter ends in BPE_END_OF_WORD */
    bool ignore_merges;                   /* a piece that is a token as a whole is that token, whatever merges say */
};

/* Grows as needed and is reused from piece to piece. */
struct bpe_scratch {
    struct bpe_symbol *symbols;
    uint64_t *heap;
    char *text;
    size_t symbols_capacity, heap_capacity, text_capacity;
};

/* Where ids go. */
struct id_list {
    int32_t *ids;
    size_t n, capacity;
};

void lk_bpe_scratch_free(struct bpe_scratch *scratch);
enum lk_code lk_id_list_add(struct id_list *list, int32_t id);

/* Appends the ids of one piece; space_first puts a space before it. Time O(length log length). LK_E_NOMEM. */
enum lk_code lk_bpe_encode(const struct bpe *bpe, struct bpe_scratch *scratch, const char *piece, size_t length,
                           bool space_first, struct id_list *out);

/* The byte alphabet: the printable character that stands for each byte in a byte-level vocabulary. */
uint32_t lk_byte_alphabet(unsigned char byte);
