/* f32 products with AVX-512 FMA for one row of A and for 9 to 16 (gemm_rows_avx512.h). The sums are the chains of
 * gemm_avx512.c.
 *
 * 9 to 16 rows of A lie in the lanes of one vector, so that weights need no transposition: even and odd elements apart,
 * they are widened into a buffer in L1, a step ahead, and each is broadcast from there.
 *   A panel: [k][16 rows] */
#include <immintrin.h>

#include "kernels/cpu/attention/transpose_avx512.h"

#define MR     16
#define NR     16
#define NEARER 384 /* bytes: how far ahead of the products of 9 to 16 rows a row of weights is asked for */

static inline __attribute__((always_inline)) __m512 add_pairs(__m512 sum, const __m512i pairs[16], const void *a,
                                                              int64_t at, int64_t n) {
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    const float *x = (const float *)a + at;
    LK_UNROLL16 for (int64_t j = 0; j < 16; j++) {
        __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(pairs[j], 16));
        __m512 odd = _mm512_castsi512_ps(_mm512_and_si512(pairs[j], upper));
        if (2 * j < n) sum = _mm512_fmadd_ps(_mm512_set1_ps(x[2 * j]), even, sum);
        if (2 * j + 1 < n) sum = _mm512_fmadd_ps(_mm512_set1_ps(x[2 * j + 1]), odd, sum);
    }
    return sum;
}
#define ADD_PAIRS add_pairs
#define DISTANCE  512
#include "kernels/cpu/gemm/gemm_rows_avx512.h"

/* 16 elements of K of a row of A, n of which there are. */
static inline __m512i load_a(const void *src, enum lk_dtype dtype, int64_t at, int64_t n) {
    const __mmask16 valid = (__mmask16)(n < 16 ? (1u << n) - 1 : 0xffff);
    if (dtype == LK_F32) return _mm512_maskz_loadu_epi32(valid, (const float *)src + at);
    return _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(valid, (const uint16_t *)src + at)), 16);
}

static void pack_row(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    (void)ld, (void)rows;
    for (int64_t i = 0; i < k; i += 16)
        _mm512_mask_storeu_epi32((float *)panel + i, (__mmask16)(k - i < 16 ? (1u << (k - i)) - 1 : 0xffff),
                                 load_a(src, dtype, i, k - i));
}

/* K is filled up with -0, whose products with the 0 in B change no sum. */
static void pack_rows(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    float *to = panel;
    for (int64_t i = 0; i < (k + STEP - 1) / STEP * STEP; i += 16) {
        const int64_t n = k - i < 0 ? 0 : k - i < 16 ? k - i : 16;
        __m512i t[16];
        LK_UNROLL16 for (int64_t r = 0; r < 16; r++) t[r] =
            r < rows ? load_a(src, dtype, r * ld + i, n) : _mm512_setzero_si512();
        lk_transpose16(t);
        LK_UNROLL16 for (int64_t j = 0; j < 16; j++)
            _mm512_store_si512(to + (i + j) * MR, j < n ? t[j] : _mm512_set1_epi32((int)0x80000000));
    }
}

/* STEP elements of a row of weights, n of which there are: [2][16], even ones first. */
static inline __attribute__((always_inline)) void widen(const char *from, int64_t n, float *to) {
    const __mmask32 valid = n < STEP ? (1u << n) - 1 : 0xffffffffu;
    const __m512i pairs = _mm512_maskz_loadu_epi16(valid, from);
    _mm512_store_si512(to, _mm512_slli_epi32(pairs, 16));
    _mm512_store_si512(to + STEP / 2, _mm512_and_si512(pairs, _mm512_set1_epi32((int)0xffff0000)));
}

static inline __attribute__((always_inline)) void multiply_add(__m512 sum[NR], const float *x, const float *w) {
    const __m512 rows = _mm512_load_ps(x);
    LK_UNROLL16 for (int j = 0; j < NR; j++) sum[j] = _mm512_fmadd_ps(rows, _mm512_set1_ps(w[j * STEP]), sum[j]);
}

static void multiply_rows(const void *a, const void *b, float *c, int64_t rows, int64_t a_stride, int64_t cols,
                          int64_t k, bool first, const struct lk_gemm_ahead ahead[2]) {
    const struct standing *w = b;
    const float *x = a;
    float wide[2][NR * STEP] __attribute__((aligned(64)));
    __m512 sum[NR];
    const char *row[NR];
    (void)rows, (void)a_stride, (void)cols;
    rows_of(w, row);
    for (int64_t r = 0; r < NR; r++) widen(row[r], w->k, wide[0] + r * STEP);
    LK_UNROLL16 for (int j = 0; j < NR; j++) sum[j] = first ? _mm512_setzero_ps() : _mm512_load_ps(c + j * MR);
    for (int64_t i = 0; i < k; i += STEP) {
        const int64_t beyond = 2 * (i - k) + NEARER, left = w->k - i - STEP;
        const char *from = w->first + 2 * i;
        const float *now = wide[i / STEP % 2];
        float *next = wide[1 - i / STEP % 2];
        ask_for_next(&ahead[1], beyond);
        for (int64_t j = 1; j <= NR; j++, x += 2 * MR, now++, next += STEP) { /* two of K, and a row of the next step */
            if (left > 0) widen(from + 2 * STEP, left, next);
            if (beyond < 0) _mm_prefetch(from + NEARER, _MM_HINT_T0);
            from += j < w->rows ? w->stride : 0;
            multiply_add(sum, x, now);
            multiply_add(sum, x + MR, now + STEP / 2);
        }
    }
    LK_UNROLL16 for (int j = 0; j < NR; j++) _mm512_store_ps(c + j * MR, sum[j]);
}

const struct lk_gemm_kernel lk_gemm_avx512_row = {
    .mr = 1,
    .nr = NR,
    .kr = 1,
    .kc = 512,
    .mc = 1,
    .nc = 12 * NR,
    .a_bytes = 4,
    .b_bytes = 2,
    .pack_a = pack_row,
    .pack_b = pack_standing,
    .multiply = multiply_row,
};

const struct lk_gemm_kernel lk_gemm_avx512_rows = {
    .mr = MR,
    .nr = NR,
    .kr = STEP,
    .kc = 2048,
    .mc = MR,
    .nc = 12 * NR,
    .a_bytes = 4,
    .b_bytes = 2,
    .pack_a = pack_rows,
    .pack_b = pack_standing,
    .multiply = multiply_rows,
    .unpack = unpack_rows,
};
