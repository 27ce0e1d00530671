/* f32 products with AVX-512 FMA for one row of A: a stream of bf16 weights. 16 rows of weights are read side by side
 * from where they stand, transposed and widened in registers, and multiplied at once. The sums are the chains of
 * gemm_avx512.c.
 *
 *   A panel: one row
 *   B panel: where 16 rows of weights stand
 *   micro-tile: [16 columns] */
#include <immintrin.h>

#include "kernels/cpu/gemm/gemm_kernel.h"
#include "kernels/cpu/attention/transpose_avx512.h"

#define NR       16
#define STEP     32  /* elements of K: a line of each row */
#define DISTANCE 512 /* bytes: how far ahead of the loads a row is asked for */

struct standing {
    const char *first;
    int64_t stride, rows; /* bytes; rows that there are */
};

static void pack_a(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    (void)ld, (void)rows;
    for (int64_t i = 0; i < k; i += 16) {
        const __mmask16 valid = (__mmask16)(k - i < 16 ? (1u << (k - i)) - 1 : 0xffff);
        __m512i x = dtype == LK_F32
                        ? _mm512_maskz_loadu_epi32(valid, (const float *)src + i)
                        : _mm512_slli_epi32(
                              _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(valid, (const uint16_t *)src + i)), 16);
        _mm512_mask_storeu_epi32((float *)panel + i, valid, x);
    }
}

static void pack_b(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    (void)dtype, (void)k;
    *(struct standing *)panel = (struct standing){src, ld * 2, rows};
}

/* Pairs of elements to sum, 2 n of K (the last pair may be half). */
static inline __attribute__((always_inline)) __m512 add_pairs(__m512 sum, const __m512i pairs[16], const float *x,
                                                              int64_t n) {
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    LK_UNROLL16 for (int64_t j = 0; j < 16; j++) {
        __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(pairs[j], 16));
        __m512 odd = _mm512_castsi512_ps(_mm512_and_si512(pairs[j], upper));
        if (2 * j < n) sum = _mm512_fmadd_ps(_mm512_set1_ps(x[2 * j]), even, sum);
        if (2 * j + 1 < n) sum = _mm512_fmadd_ps(_mm512_set1_ps(x[2 * j + 1]), odd, sum);
    }
    return sum;
}

static void multiply(const void *a, const void *b, float *c, int64_t rows, int64_t a_stride, int64_t cols, int64_t k,
                     bool first, const struct lk_gemm_ahead ahead[2]) {
    const struct standing *w = b;
    const float *x = a;
    __m512 sum = first ? _mm512_setzero_ps() : _mm512_load_ps(c);
    __m512i t[NR];
    const char *row[NR]; /* missing ones are the last: their sums are not stored */
    (void)rows, (void)a_stride, (void)cols;
    for (int64_t r = 0; r < NR; r++) row[r] = w->first + (r < w->rows ? r : w->rows - 1) * w->stride;
    int64_t i = 0;
    for (; i + STEP <= k; i += STEP) {
        const int64_t beyond = 2 * (i - k) + DISTANCE; /* the next panel's part of what is asked for */
        LK_UNROLL16 for (int r = 0; r < NR; r++) t[r] = _mm512_loadu_si512(row[r] + 2 * i);
        if (beyond < 0)
            LK_UNROLL16 for (int r = 0; r < NR; r++) _mm_prefetch(row[r] + 2 * i + DISTANCE, _MM_HINT_T0);
        else if (beyond < ahead[1].row_end - ahead[1].row)
            for (int64_t r = 0; r < ahead[1].rows; r++)
                _mm_prefetch(ahead[1].row + r * ahead[1].stride + beyond, _MM_HINT_T0);
        lk_transpose16(t);
        sum = add_pairs(sum, t, x + i, STEP);
    }
    if (i < k) {
        LK_UNROLL16 for (int r = 0; r < NR; r++) t[r] = _mm512_maskz_loadu_epi16((1u << (k - i)) - 1, row[r] + 2 * i);
        lk_transpose16(t);
        sum = add_pairs(sum, t, x + i, k - i);
    }
    _mm512_store_ps(c, sum);
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
    .pack_a = pack_a,
    .pack_b = pack_b,
    .multiply = multiply,
};
