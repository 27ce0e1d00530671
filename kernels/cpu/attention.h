/* How the attention kernels share their work: attention.c cuts it into (head, tile of query rows), a kernel per
 * instruction level computes one tile against all keys. Nothing about the cut may change a row's bits. */
#pragma once

#include "kernels/cpu/cpu.h"

struct lk_attention_kernel {
    int64_t granule;   /* query rows that the kernel handles together */
    int64_t most_rows; /* rows of a tile for head_dim 128 that keep its state in the L2 cache */
    size_t (*scratch)(int64_t head_dim, int64_t tile_rows); /* bytes for one thread, a multiple of 64 */
    /* Query rows [first, first + n) of one head; n <= tile_rows. */
    void (*run)(const struct lk_attention *op, int64_t head, int64_t first, int64_t n, int64_t tile_rows,
                void *scratch);
};

extern const struct lk_attention_kernel lk_attention_portable, lk_attention_avx2, lk_attention_avx512, lk_attention_amx;

/* Keys that query row i sees. */
static inline int64_t lk_attention_keys(const struct lk_attention *op, int64_t i) {
    int64_t n_k = op->k->shape[0];
    return op->causal ? n_k - op->q->shape[0] + i + 1 : n_k;
}

/* Position of the key/value head that query head `head` reads, within a row of k or v. */
static inline int64_t lk_attention_kv_column(const struct lk_attention *op, int64_t head) {
    return head / (op->q->shape[1] / op->k->shape[1]) * op->q->shape[2];
}
