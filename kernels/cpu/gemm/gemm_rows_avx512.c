/* f32 products with AVX-512 FMA for 9 to 16 rows of A, which lie in the lanes of one vector, so that weights need no
 * transposition: bf16 weights are widened where they stand, even and odd elements apart, and each is broadcast from L1.
 * The sums are the chains of gemm_avx512.c.
 *
 *   A panel: [k][16 rows]
 *   B panel: [k / 32][32 columns][2][16]: even elements of K, then odd ones
 *   micro-tile: [32 columns][16 rows] */
#include <immintrin.h>

#include "kernels/cpu/gemm/gemm_kernel.h"
#include "kernels/cpu/attention/transpose_avx512.h"

#define MR     16
#define NR     32
#define KC     128
#define K_STEP 32

/* K is filled up with -0, whose products with the 0 in B change no sum. */
static void pack_a(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    float *to = panel;
    for (int64_t i = 0; i < (k + K_STEP - 1) / K_STEP * K_STEP; i += 16) {
        const int64_t n = k - i < 0 ? 0 : k - i < 16 ? k - i : 16;
        const __mmask16 valid = (__mmask16)((1u << n) - 1);
        __m512i t[16];
        LK_UNROLL16 for (int64_t r = 0; r < 16; r++) {
            const int64_t at = r < rows ? r * ld + i : 0;
            const __mmask16 there = r < rows ? valid : 0;
            if (dtype == LK_F32)
                t[r] = _mm512_maskz_loadu_epi32(there, (const float *)src + at);
            else
                t[r] = _mm512_slli_epi32(
                    _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, (const uint16_t *)src + at)), 16);
        }
        lk_transpose16(t);
        LK_UNROLL16 for (int64_t j = 0; j < 16; j++)
            _mm512_store_si512(to + (i + j) * MR, j < n ? t[j] : _mm512_set1_epi32((int)0x80000000));
    }
}

static void pack_b(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    (void)dtype;
    for (int64_t r = 0; r < rows; r++) {
        const uint16_t *from = (const uint16_t *)src + r * ld;
        float *to = (float *)panel + r * K_STEP;
        for (int64_t i = 0; i < k; i += K_STEP, to += NR * K_STEP) {
            const __mmask32 valid = k - i < K_STEP ? (1u << (k - i)) - 1 : 0xffffffffu;
            __m512i pairs = _mm512_maskz_loadu_epi16(valid, from + i);
            _mm512_store_si512(to, _mm512_slli_epi32(pairs, 16));
            _mm512_store_si512(to + 16, _mm512_and_si512(pairs, upper));
        }
    }
}

static inline void multiply_add(__m512 sum[16], const float *x, const float *w) {
    const __m512 rows = _mm512_load_ps(x);
    LK_UNROLL16 for (int j = 0; j < 16; j++) sum[j] = _mm512_fmadd_ps(rows, _mm512_set1_ps(w[j * K_STEP]), sum[j]);
}

/* 16 columns. */
static void columns_16(const float *a, const float *b, float *c, int64_t k, bool first, struct lk_gemm_ahead *ahead,
                       int64_t lines) {
    __m512 sum[16];
    LK_UNROLL16 for (int j = 0; j < 16; j++) sum[j] = first ? _mm512_setzero_ps() : _mm512_load_ps(c + j * MR);
    for (int64_t i = 0; i < k; i += 2, a += 2 * MR) {
        const float *even = b + i / K_STEP * NR * K_STEP + i % K_STEP / 2;
        lk_gemm_ahead_go(ahead, lines);
        multiply_add(sum, a, even);
        multiply_add(sum, a + MR, even + 16);
    }
    LK_UNROLL16 for (int j = 0; j < 16; j++) _mm512_store_ps(c + j * MR, sum[j]);
}

static void multiply(const void *a, const void *b, float *c, int64_t rows, int64_t a_stride, int64_t cols, int64_t k,
                     bool first, const struct lk_gemm_ahead ahead[2]) {
    struct lk_gemm_ahead next = ahead[1];
    const int64_t steps = k / 2 * (cols > 16 ? 2 : 1), lines = (lk_gemm_ahead_lines(&next) + steps - 1) / steps;
    const char *panel = a;
    for (; rows > 0; rows -= MR, panel += a_stride, c += MR * NR) {
        columns_16((const float *)panel, b, c, k, first, &next, lines);
        if (cols > 16)
            columns_16((const float *)panel, (const float *)b + 16 * K_STEP, c + 16 * MR, k, first, &next, lines);
    }
}

static void unpack(const float *tile, float *out) {
    for (int half = 0; half < 2; half++) {
        __m512i t[16];
        LK_UNROLL16 for (int j = 0; j < 16; j++) t[j] = _mm512_load_si512(tile + (16 * half + j) * MR);
        lk_transpose16(t);
        LK_UNROLL16 for (int r = 0; r < 16; r++) _mm512_store_si512(out + r * NR + 16 * half, t[r]);
    }
}

const struct lk_gemm_kernel lk_gemm_avx512_rows = {
    .mr = MR,
    .nr = NR,
    .kr = K_STEP,
    .kc = 128,
    .mc = 32 * MR,
    .nc = 12 * NR,
    .a_bytes = 4,
    .b_bytes = 4,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .multiply = multiply,
    .unpack = unpack,
};
