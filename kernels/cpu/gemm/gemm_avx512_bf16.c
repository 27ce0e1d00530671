/* bf16 products with AVX-512's dot products of pairs (VDPBF16PS), where there are no AMX tiles: twice the products of
 * an FMA. A sum takes the later element of a pair first, each product with one rounding; subnormal numbers count as
 * zero. */
#include <immintrin.h>
#include <string.h>

#define V              __m512
#define V_LANES        16
#define V_ZERO         _mm512_setzero_ps
#define V_LOAD         _mm512_load_ps
#define V_STORE        _mm512_store_ps
#define V_SET1         _mm512_set1_ps
#define V_FMA(a, b, c) _mm512_dpbf16_ps(c, (__m512bh)(a), (__m512bh)(b))
#define V_K            2
#define MR             14
#include "kernels/cpu/gemm/gemm_fma.h"
#include "kernels/cpu/attention/transpose_avx512.h"

static inline __attribute__((always_inline)) __m512 add_pairs(__m512 sum, const __m512i pairs[16], const void *a,
                                                              int64_t at, int64_t n) {
    const uint16_t *x = (const uint16_t *)a + at;
    LK_UNROLL16 for (int64_t j = 0; j < 16; j++) {
        int32_t pair;
        if (2 * j >= n) break;
        memcpy(&pair, x + 2 * j, sizeof pair);
        sum = _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32(pair), (__m512bh)pairs[j]);
    }
    return sum;
}
#define ADD_PAIRS add_pairs
#define DISTANCE  768
#include "kernels/cpu/gemm/gemm_rows_avx512.h"

static void pack_row(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    (void)dtype, (void)ld, (void)rows;
    memcpy(panel, src, (size_t)k * sizeof(uint16_t));
    if (k % 2) ((uint16_t *)panel)[k] = 0;
}

/* Rows into a panel [k / 2][width] of pairs, 16 x 16 pairs at a time through registers; K is filled up with zero. */
static inline __attribute__((always_inline)) void pack_panel(const uint16_t *src, int64_t ld, int64_t rows, int64_t k,
                                                             const int64_t width, float *panel) {
    for (int64_t first = 0; first < width; first += 16) {
        const int64_t lanes = width - first < 16 ? width - first : 16;
        for (int64_t i = 0; i < k; i += 32) {
            const int64_t n = k - i < 32 ? k - i : 32;
            __m512i t[16];
            LK_UNROLL16 for (int64_t r = 0; r < 16; r++) {
                __mmask32 valid = first + r < rows ? 0xffffffffu >> (32 - n) : 0;
                t[r] = _mm512_maskz_loadu_epi16(valid, src + (valid ? (first + r) * ld + i : 0));
            }
            lk_transpose16(t);
            LK_UNROLL16 for (int64_t j = 0; j < 16; j++) if (2 * j < n)
                _mm512_mask_storeu_epi32(panel + (i / 2 + j) * width + first, (__mmask16)((1u << lanes) - 1), t[j]);
        }
    }
}

static void pack_a(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    (void)dtype;
    pack_panel(src, ld, rows, k, MR, panel);
}
static void pack_b(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    (void)dtype;
    pack_panel(src, ld, rows, k, NR, panel);
}

/* 9 to 16 rows of A lie in the lanes of one vector, and each pair of weights is broadcast from where it stands.
 * A panel: [k / 2][16 rows] of pairs. */
static void pack_rows(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    (void)dtype;
    pack_panel(src, ld, rows, k, 16, panel);
}

/* n elements of K, at most two. */
static inline __attribute__((always_inline)) void multiply_add(__m512 sum[16], const float *x, const char *row[16],
                                                               int64_t at, size_t n) {
    const __m512bh rows = (__m512bh)_mm512_load_ps(x);
    LK_UNROLL16 for (int j = 0; j < 16; j++) {
        int32_t pair = 0;
        memcpy(&pair, row[j] + 2 * at, n * sizeof(uint16_t));
        sum[j] = _mm512_dpbf16_ps(sum[j], rows, (__m512bh)_mm512_set1_epi32(pair));
    }
}

static void multiply_rows(const void *a, const void *b, float *c, int64_t rows, int64_t a_stride, int64_t cols,
                          int64_t padded_k, bool first, const struct lk_gemm_ahead ahead[2]) {
    const int64_t k = ((const struct standing *)b)->k;
    const float *x = a;
    __m512 sum[16];
    const char *row[16];
    (void)rows, (void)a_stride, (void)cols, (void)padded_k;
    rows_of(b, row);
    LK_UNROLL16 for (int j = 0; j < 16; j++) sum[j] = first ? _mm512_setzero_ps() : _mm512_load_ps(c + j * 16);
    for (int64_t i = 0; i < k; i += STEP) {
        const int64_t beyond = 2 * (i - k) + DISTANCE, to = k - i < STEP ? k : i + STEP;
        if (beyond < 0) LK_UNROLL16 for (int r = 0; r < 16; r++) _mm_prefetch(row[r] + 2 * i + DISTANCE, _MM_HINT_T0);
        ask_for_next(&ahead[1], beyond);
        int64_t at = i;
        for (; at + 2 <= to; at += 2, x += 16) multiply_add(sum, x, row, at, 2);
        if (at < to) multiply_add(sum, x, row, at, 1);
    }
    LK_UNROLL16 for (int j = 0; j < 16; j++) _mm512_store_ps(c + j * 16, sum[j]);
}

const struct lk_gemm_kernel lk_gemm_avx512_bf16 = {
    .mr = MR,
    .nr = NR,
    .kr = 2,
    .kc = 256,
    .mc = 32 * MR,
    .nc = 12 * NR,
    .a_bytes = 2,
    .b_bytes = 2,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .multiply = multiply,
};

const struct lk_gemm_kernel lk_gemm_avx512_bf16_row = {
    .mr = 1,
    .nr = N_STANDING,
    .kr = 2,
    .kc = 8192,
    .mc = 1,
    .nc = 12 * N_STANDING,
    .a_bytes = 2,
    .b_bytes = 2,
    .pack_a = pack_row,
    .pack_b = pack_standing,
    .multiply = multiply_row,
};

const struct lk_gemm_kernel lk_gemm_avx512_bf16_rows = {
    .mr = 16,
    .nr = N_STANDING,
    .kr = 2,
    .kc = 4096,
    .mc = 16,
    .nc = 12 * N_STANDING,
    .a_bytes = 2,
    .b_bytes = 2,
    .pack_a = pack_rows,
    .pack_b = pack_standing,
    .multiply = multiply_rows,
    .unpack = unpack_rows,
};
