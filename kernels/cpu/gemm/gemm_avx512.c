/* f32 products with AVX-512 FMA; bf16 operands are widened when packed. */
#include <immintrin.h>

#define V       __m512
#define V_LANES 16
#define V_ZERO  _mm512_setzero_ps
#define V_LOAD  _mm512_load_ps
#define V_STORE _mm512_store_ps
#define V_SET1  _mm512_set1_ps
#define V_FMA   _mm512_fmadd_ps
#define V_K     1
#define MR      14
#include "kernels/cpu/gemm/gemm_fma.h"
#include "kernels/cpu/attention/transpose_avx512.h"

/* Up to 16 elements as f32 bits, zero from `valid` on. */
static inline __m512i load_16(const void *src, enum lk_dtype dtype, int64_t at, __mmask16 valid) {
    if (dtype == LK_F32) return _mm512_maskz_loadu_epi32(valid, (const float *)src + at);
    __m256i half = _mm256_maskz_loadu_epi16(valid, (const uint16_t *)src + at);
    return _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
}

/* Rows into a panel [k][width], 16 x 16 elements at a time through registers. */
static inline __attribute__((always_inline)) void pack_panel(const void *src, enum lk_dtype dtype, int64_t ld,
                                                             int64_t rows, int64_t k, const int64_t width,
                                                             float *panel) {
    for (int64_t first = 0; first < width; first += 16) {
        const int64_t lanes = width - first < 16 ? width - first : 16;
        for (int64_t i = 0; i < k; i += 16) {
            const int64_t n = k - i < 16 ? k - i : 16;
            __m512i t[16];
            LK_UNROLL16 for (int64_t r = 0; r < 16; r++) {
                __mmask16 valid = first + r < rows ? (__mmask16)((1u << n) - 1) : 0;
                t[r] = load_16(src, dtype, valid ? (first + r) * ld + i : 0, valid);
            }
            lk_transpose16(t);
            LK_UNROLL16 for (int64_t j = 0; j < 16; j++) if (j < n)
                _mm512_mask_storeu_epi32(panel + (i + j) * width + first, (__mmask16)((1u << lanes) - 1), t[j]);
        }
    }
}

static void pack_a(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    if (dtype == LK_F32)
        pack_panel(src, LK_F32, ld, rows, k, MR, panel);
    else
        pack_panel(src, LK_BF16, ld, rows, k, MR, panel);
}
static void pack_b(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    if (dtype == LK_F32)
        pack_panel(src, LK_F32, ld, rows, k, NR, panel);
    else
        pack_panel(src, LK_BF16, ld, rows, k, NR, panel);
}

const struct lk_gemm_kernel lk_gemm_avx512 = {
    .mr = MR,
    .nr = NR,
    .kr = 1,
    .kc = 128,
    .mc = 32 * MR,
    .nc = 12 * NR,
    .a_bytes = 4,
    .b_bytes = 4,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .multiply = multiply,
};
