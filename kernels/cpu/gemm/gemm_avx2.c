/* f32 products with AVX2 and FMA; bf16 operands are widened when packed. */
#include <immintrin.h>

#define V       __m256
#define V_LANES 8
#define V_ZERO  _mm256_setzero_ps
#define V_LOAD  _mm256_load_ps
#define V_STORE _mm256_store_ps
#define V_SET1  _mm256_set1_ps
#define V_FMA   _mm256_fmadd_ps
#define V_K     1
#define MR      6
#include "kernels/cpu/gemm/gemm_fma.h"
#include "kernels/cpu/gemm/gemm_pack.h"

static void pack_a(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    pack_rows(src, dtype, ld, rows, k, MR, panel);
}

/* 8 elements as f32. */
static inline __m256 load_8(const void *src, enum lk_dtype dtype, int64_t at) {
    if (dtype == LK_F32) return _mm256_loadu_ps((const float *)src + at);
    __m128i half = _mm_loadu_si128((const __m128i *)((const uint16_t *)src + at));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

/* 8 x 8 elements of `src` to 8 rows of the panel. */
static inline __attribute__((always_inline)) void transpose_8(const void *src, enum lk_dtype dtype, int64_t at,
                                                              int64_t ld, float *panel) {
    __m256 r[8], t[8];
    UNROLL for (int i = 0; i < 8; i++) r[i] = load_8(src, dtype, at + i * ld);
    UNROLL for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    UNROLL for (int i = 0; i < 8; i += 4) UNROLL for (int j = 0; j < 2; j++) {
        r[i + 2 * j] = _mm256_shuffle_ps(t[i + j], t[i + 2 + j], 0x44);
        r[i + 2 * j + 1] = _mm256_shuffle_ps(t[i + j], t[i + 2 + j], 0xee);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        _mm256_store_ps(panel + i * NR, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_store_ps(panel + (i + 4) * NR, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}

/* A panel of weights is used by few rows in text generation, where packing is all the work. */
static inline __attribute__((always_inline)) void pack_full(const void *src, enum lk_dtype dtype, int64_t ld, int64_t k,
                                                            float *panel) {
    for (int64_t i = 0; i + 8 <= k; i += 8)
        for (int64_t r = 0; r < NR; r += 8) transpose_8(src, dtype, r * ld + i, ld, panel + i * NR + r);
    const int64_t done = k / 8 * 8;
    pack_rows((const char *)src + (size_t)done * lk_dtype_size(dtype), dtype, ld, NR, k - done, NR, panel + done * NR);
}

static void pack_b(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    if (rows < NR)
        pack_rows(src, dtype, ld, rows, k, NR, panel);
    else if (dtype == LK_F32)
        pack_full(src, LK_F32, ld, k, panel);
    else
        pack_full(src, LK_BF16, ld, k, panel);
}

const struct lk_gemm_kernel lk_gemm_avx2 = {
    .mr = MR,
    .nr = NR,
    .kr = 1,
    .kc = 256,
    .mc = 128 * MR,
    .nc = 12 * NR,
    .a_bytes = 4,
    .b_bytes = 4,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .multiply = multiply,
};
