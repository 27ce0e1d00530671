/* What an instruction level brings to the matrix product: packing into panels and the product of panels.
 *
 * A is packed into panels of mr rows, B into panels of nr rows, K blocked by kc. A micro-tile of C (mr x nr floats, in
 * whatever order the level likes) holds the partial sums of one pair of panels between K blocks. */
#pragma once

#include "kernels/cpu/gemm/gemm.h"

/* Packs `rows` <= mr (nr) rows of k elements, row stride ld, into one panel; missing rows and K up to a multiple of kr
 * are zero. */
typedef void lk_gemm_pack_fn(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel);

/* Memory that later multiplications will read, to be brought into L2 meanwhile: lines of rows of row_bytes bytes. A
 * demand load waits for memory or L3; a line asked for early does not. */
struct lk_gemm_ahead {
    const char *row, *line, *row_end;
    int64_t rows, stride; /* rows left, this one included; bytes between rows */
};

static inline struct lk_gemm_ahead lk_gemm_ahead(const void *data, int64_t rows, int64_t stride, int64_t row_bytes) {
    const char *row = data;
    return (struct lk_gemm_ahead){row, row, row + row_bytes, rows, stride};
}

static inline int64_t lk_gemm_ahead_lines(const struct lk_gemm_ahead *w) {
    return w->rows * ((w->row_end - w->row + 63) / 64);
}

static inline void lk_gemm_ahead_go(struct lk_gemm_ahead *w, int64_t lines) {
    for (; lines > 0 && w->rows > 0; lines--) {
        __builtin_prefetch(w->line, 0, 2);
        w->line += 64;
        if (w->line < w->row_end) continue;
        w->rows--;
        w->row += w->stride;
        w->row_end += w->stride;
        w->line = w->row;
    }
}

struct lk_gemm_kernel {
    int mr, nr;  /* rows and columns of a micro-tile; at most LK_GEMM_BLOCK_MAX */
    int kr;      /* a panel holds a multiple of kr of K */
    int kc;      /* K block for large M */
    int mc, nc;  /* rows and columns of the block of C that stays in L2 */
    int a_bytes; /* bytes of a packed element */
    int b_bytes;
    lk_gemm_pack_fn *pack_a, *pack_b;
    /* c (+)= a b^T for A panels, a_stride bytes apart, that hold `rows` rows, with one B panel of `cols` columns; c:
     * one micro-tile per A panel. first: c is not read. k is a multiple of kr. */
    void (*multiply)(const void *a, const void *b, float *c, int64_t rows, int64_t a_stride, int64_t cols, int64_t k,
                     bool first, const struct lk_gemm_ahead ahead[2]);
    /* A micro-tile as [rows, nr] row-major floats. NULL: it already is. */
    void (*unpack)(const float *tile, float *out);
    /* Per-thread state around a run (AMX tile configuration); NULL: none. */
    void (*begin)(void);
    void (*end)(void);
};

extern const struct lk_gemm_kernel lk_gemm_portable, lk_gemm_avx2, lk_gemm_avx512;
extern const struct lk_gemm_kernel lk_gemm_avx512_bf16; /* bf16 A, bf16 B */
/* One row of A, 9 to 16 rows; bf16 B that is not whole: the bits of lk_gemm_avx512 and of lk_gemm_avx512_bf16. */
extern const struct lk_gemm_kernel lk_gemm_avx512_row, lk_gemm_avx512_rows;
extern const struct lk_gemm_kernel lk_gemm_avx512_bf16_row, lk_gemm_avx512_bf16_rows;
extern const struct lk_gemm_kernel lk_gemm_amx;       /* bf16 A, bf16 B */
extern const struct lk_gemm_kernel lk_gemm_amx_split; /* f32 A as three bf16 parts, bf16 B */
