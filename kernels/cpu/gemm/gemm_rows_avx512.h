/* What one row of A and 9 to 16 rows have in common, by FMA (gemm_rows_avx512.c) and by dot products of pairs
 * (gemm_avx512_bf16.c): bf16 weights are not packed; 16 rows of them are read side by side from where they stand, while
 * the lines that come next are asked for. For one row they are transposed in registers and multiplied at once.
 *
 * The including file defines ADD_PAIRS(sum, pairs, a, at, n), which adds to 16 sums the products of n elements of K:
 * the first is element `at` of the packed row a, and pairs[0..15] are the weights (the last may be half a pair). It
 * defines DISTANCE too: how many bytes ahead of the products of one row a row of weights is asked for.
 *
 *   B panel: where 16 rows of weights stand
 *   A panel of one row: the row
 *   micro-tile of one row: [16 columns], of 9 to 16: [16 columns][16 rows] */
#pragma once

#include <immintrin.h>

#include "kernels/cpu/gemm/gemm_kernel.h"
#include "kernels/cpu/attention/transpose_avx512.h"

#define N_STANDING 16
#define STEP       32 /* elements of K: a line of each row */

struct standing {
    const char *first;
    int64_t stride, rows, k; /* bytes between rows; rows and elements of K that there are */
};

static void pack_standing(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    (void)dtype;
    *(struct standing *)panel = (struct standing){src, ld * 2, rows, k};
}

/* Missing rows are the last one: their sums are not stored. */
static inline void rows_of(const struct standing *w, const char *row[N_STANDING]) {
    for (int64_t r = 0; r < N_STANDING; r++) row[r] = w->first + (r < w->rows ? r : w->rows - 1) * w->stride;
}

/* Asks for the next panel's lines that are `beyond` bytes into its rows. Always inline: a compiler may take a function
 * that does nothing else for one without effect, and leave its calls out. */
static inline __attribute__((always_inline)) void ask_for_next(const struct lk_gemm_ahead *next, int64_t beyond) {
    if (beyond < 0 || beyond >= next->row_end - next->row) return;
    for (int64_t r = 0; r < next->rows; r++) _mm_prefetch(next->row + r * next->stride + beyond, _MM_HINT_T0);
}

static void multiply_row(const void *a, const void *b, float *c, int64_t rows, int64_t a_stride, int64_t cols,
                         int64_t padded_k, bool first, const struct lk_gemm_ahead ahead[2]) {
    const struct standing *w = b;
    const int64_t k = w->k;
    __m512 sum = first ? _mm512_setzero_ps() : _mm512_load_ps(c);
    __m512i t[N_STANDING];
    const char *row[N_STANDING];
    (void)rows, (void)a_stride, (void)cols, (void)padded_k;
    rows_of(w, row);
    int64_t i = 0;
    for (; i + STEP <= k; i += STEP) {
        const int64_t beyond = 2 * (i - k) + DISTANCE;
        LK_UNROLL16 for (int r = 0; r < N_STANDING; r++) t[r] = _mm512_loadu_si512(row[r] + 2 * i);
        if (beyond < 0)
            LK_UNROLL16 for (int r = 0; r < N_STANDING; r++) _mm_prefetch(row[r] + 2 * i + DISTANCE, _MM_HINT_T0);
        ask_for_next(&ahead[1], beyond);
        lk_transpose16(t);
        sum = ADD_PAIRS(sum, t, a, i, STEP);
    }
    if (i < k) {
        const __mmask32 valid = (1u << (k - i)) - 1;
        LK_UNROLL16 for (int r = 0; r < N_STANDING; r++) t[r] = _mm512_maskz_loadu_epi16(valid, row[r] + 2 * i);
        lk_transpose16(t);
        sum = ADD_PAIRS(sum, t, a, i, k - i);
    }
    _mm512_store_ps(c, sum);
}

static void unpack_rows(const float *tile, float *out) {
    __m512i t[16];
    LK_UNROLL16 for (int j = 0; j < 16; j++) t[j] = _mm512_load_si512(tile + j * 16);
    lk_transpose16(t);
    LK_UNROLL16 for (int r = 0; r < 16; r++) _mm512_store_si512(out + r * 16, t[r]);
}
