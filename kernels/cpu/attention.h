/* How the attention kernels share their work: attention.c cuts it into (head, tile of query rows), a kernel per
 * instruction level computes one tile against all keys. Nothing about the cut may change a row's bits. */
#pragma once

#include "kernels/cpu/cpu.h"

struct lk_attention_kernel {
    int64_t granule;   /* query rows that the kernel handles together */
    int64_t most_rows; /* rows of a tile for head_dim 128 that keep its state in the L2 cache */
    size_t (*scratch)(const struct lk_attention *op, int64_t tile_rows); /* bytes for one thread, a multiple of 64 */
    /* Query rows [first, first + n) of one head; n <= tile_rows. */
    void (*run)(const struct lk_attention *op, int64_t head, int64_t first, int64_t n, int64_t tile_rows,
                void *scratch);
};

extern const struct lk_attention_kernel lk_attention_portable, lk_attention_avx2, lk_attention_avx512, lk_attention_amx;

/* bf16: probabilities are relative to the running maximum over whole chunks of this many keys (ops.h). */
#define LK_ATTENTION_CHUNK 512

/* Constants of the exponential that bf16 probabilities are taken with: e^x = 2^i 2^f with a polynomial of degree 3 for
 * 2^f, put together in the bits of a float; relative error 1.1e-4. A. C. I. Malossi et al., "Fast Exponential
 * Computation on SIMD Architectures", 2015. Below LK_FAST_EXP_LEAST the result is 0. */
#define LK_FAST_EXP_C0    0.00010703434948458272f
#define LK_FAST_EXP_C1    0.30354260500649682f
#define LK_FAST_EXP_C2    -0.22433836478672356f
#define LK_FAST_EXP_C3    -0.079204240219773236f
#define LK_FAST_EXP_LOG2E 1.44269502f
#define LK_FAST_EXP_LEAST -87.3365479f

/* Keys that query row i sees. */
static inline int64_t lk_attention_keys(const struct lk_attention *op, int64_t i) {
    int64_t n_k = op->k->shape[0];
    return op->causal ? n_k - op->q->shape[0] + i + 1 : n_k;
}

/* Position of the key/value head that query head `head` reads, within a row of k or v. */
static inline int64_t lk_attention_kv_column(const struct lk_attention *op, int64_t head) {
    return head / (op->q->shape[1] / op->k->shape[1]) * op->q->shape[2];
}
