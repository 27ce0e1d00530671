#include "models/tokenizer/bpe.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "models/tokenizer/unicode.h"

/* Symbols are a list linked by index; a merged-away symbol has id -1. */
struct bpe_symbol {
    int32_t id;
    uint32_t previous, next;
};

#define NONE UINT32_MAX

uint32_t lk_byte_alphabet(unsigned char byte) {
    /* Printable Latin-1 stands for itself; the 68 others follow from U+0100 in their order. */
    if ((byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae) return byte;
    if (byte <= 0x20) return 0x100u + byte;
    if (byte <= 0xa0) return 0x100u + 0x21 + (byte - 0x7fu);
    return 0x100u + 67;
}

void lk_bpe_scratch_free(struct bpe_scratch *scratch) {
    lk_free(scratch->symbols);
    lk_free(scratch->heap);
    lk_free(scratch->text);
    *scratch = (struct bpe_scratch){0};
}

enum lk_code lk_id_list_add(struct id_list *list, int32_t id) {
    enum lk_code rc = lk_grow(&list->ids, &list->capacity, list->n + 1, sizeof *list->ids);
    if (!rc) list->ids[list->n++] = id;
    return rc;
}

/* The id of the whole piece as a token, -1 if it is none. */
static enum lk_code whole_piece(const struct bpe *bpe, struct bpe_scratch *scratch, const char *piece, size_t length,
                                bool space_first, int32_t *id) {
    *id = -1;
    if (length > bpe->vocab.longest) return LK_OK;
    enum lk_code rc = lk_grow(&scratch->text, &scratch->text_capacity, 2 * length + 2, 1);
    if (rc) return rc;
    char *at = scratch->text;
    if (space_first) at += lk_utf8_encode(lk_byte_alphabet(' '), at);
    for (size_t i = 0; i < length; i++) at += lk_utf8_encode(lk_byte_alphabet((unsigned char)piece[i]), at);
    *id = lk_token_table_find(&bpe->vocab, scratch->text, (size_t)(at - scratch->text));
    return LK_OK;
}

/* A heap entry is rank << 32 | position of the left symbol: its order as a number is the order of merging. */
static void heap_push(uint64_t *heap, size_t n, uint64_t entry) {
    size_t i = n;
    while (i && heap[(i - 1) / 2] > entry) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = entry;
}

/* Puts `entry` at the top, whose old value is dropped, and restores the order of n entries. */
static void heap_replace_top(uint64_t *heap, size_t n, uint64_t entry) {
    size_t i = 0, child;
    while ((child = 2 * i + 1) < n) {
        if (child + 1 < n && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= entry) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = entry;
}

/* The merge of the symbol at `left` with the one after it, NULL if there is none. */
static const uint64_t *merge_at(const struct bpe *bpe, const struct bpe_symbol *symbols, uint32_t left) {
    uint32_t right = symbols[left].next;
    if (right == NONE) return NULL;
    return pair_map_find(&bpe->merges, (uint32_t)symbols[left].id, (uint32_t)symbols[right].id);
}

static void push_merge(const struct bpe *bpe, struct bpe_scratch *scratch, uint32_t left, size_t *n_heap) {
    const uint64_t *merge = merge_at(bpe, scratch->symbols, left);
    if (merge) heap_push(scratch->heap, (*n_heap)++, (*merge & 0xffffffff00000000u) | left);
}

static void merge_all(const struct bpe *bpe, struct bpe_scratch *scratch, uint32_t n) {
    struct bpe_symbol *symbols = scratch->symbols;
    size_t n_heap = 0;
    for (uint32_t i = 0; i + 1 < n; i++) push_merge(bpe, scratch, i, &n_heap);
    while (n_heap) {
        uint64_t top = scratch->heap[0];
        if (--n_heap) heap_replace_top(scratch->heap, n_heap, scratch->heap[n_heap]);
        uint32_t left = (uint32_t)top;
        if (symbols[left].id < 0) continue;
        const uint64_t *merge = merge_at(bpe, symbols, left);
        if (!merge || *merge >> 32 != top >> 32) continue; /* one of the two has been merged since */
        uint32_t right = symbols[left].next, after = symbols[right].next;
        symbols[left].id = (int32_t)(uint32_t)*merge;
        symbols[left].next = after;
        symbols[right].id = -1;
        if (after != NONE) symbols[after].previous = left;
        if (symbols[left].previous != NONE) push_merge(bpe, scratch, symbols[left].previous, &n_heap);
        push_merge(bpe, scratch, left, &n_heap);
    }
}

enum lk_code lk_bpe_encode(const struct bpe *bpe, struct bpe_scratch *scratch, const char *piece, size_t length,
                           bool space_first, struct id_list *out) {
    enum lk_code rc;
    if (bpe->ignore_merges) {
        int32_t id;
        if ((rc = whole_piece(bpe, scratch, piece, length, space_first, &id))) return rc;
        if (id >= 0) return lk_id_list_add(out, id);
    }
    uint32_t n = (uint32_t)length + space_first;
    /* Each merge takes one entry out and puts at most two in, and there are at most n - 1 merges. */
    if ((rc = lk_grow(&scratch->symbols, &scratch->symbols_capacity, n, sizeof *scratch->symbols)) ||
        (rc = lk_grow(&scratch->heap, &scratch->heap_capacity, 2 * (size_t)n, sizeof *scratch->heap)))
        return rc;
    struct bpe_symbol *symbols = scratch->symbols;
    for (uint32_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)(i < (uint32_t)space_first ? ' ' : piece[i - space_first]);
        const bool last = i + 1 == n;
        symbols[i] =
            (struct bpe_symbol){(last ? bpe->last_ids : bpe->byte_ids)[byte], i ? i - 1 : NONE, last ? NONE : i + 1};
    }
    merge_all(bpe, scratch, n);
    for (uint32_t i = 0; i != NONE; i = symbols[i].next) {
        if ((rc = lk_id_list_add(out, symbols[i].id))) return rc;
    }
    return LK_OK;
}
