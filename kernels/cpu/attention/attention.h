/* How the attention kernels share their work: attention.c cuts it into (key/value head, tile of rows), a kernel per
 * instruction level computes one tile against all keys. The rows of a key/value head are those of all query heads that
 * read it: row r is query r / group of head kv_head * group + r % group, so that keys are prepared once for all of
 * them. Nothing about the cut may change a row's bits. */
#pragma once

#include "kernels/cpu/cpu.h"

struct lk_attention_kernel {
    int64_t granule;   /* rows that the kernel handles together */
    int64_t most_rows; /* rows of a tile for head_dim 128 that keep its state in the L2 cache */
    size_t (*scratch)(const struct lk_attention *op, int64_t tile_rows); /* bytes for one thread, a multiple of 64 */
    /* Rows [first, first + n) of one key/value head; n <= tile_rows. */
    void (*run)(const struct lk_attention *op, int64_t kv_head, int64_t first, int64_t n, int64_t tile_rows,
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

/* Query heads that read one key/value head. */
static inline int64_t lk_attention_group(const struct lk_attention *op) { return op->q->shape[1] / op->k->shape[1]; }

/* Keys that a row sees. */
static inline int64_t lk_attention_keys(const struct lk_attention *op, int64_t row) {
    int64_t n_k = op->k->shape[0];
    return op->causal ? n_k - op->q->shape[0] + row / lk_attention_group(op) + 1 : n_k;
}

/* Position of a row in op->q or op->out, both of which are given as t. */
static inline int64_t lk_attention_place(const struct lk_attention *op, const struct lk_tensor *t, int64_t kv_head,
                                         int64_t row) {
    int64_t group = lk_attention_group(op);
    return row / group * t->ld + (kv_head * group + row % group) * op->q->shape[2];
}
