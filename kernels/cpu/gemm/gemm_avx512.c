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

/* Stores 16 lanes; `lanes` is a constant, 16 or what is left of a panel. */
static inline __attribute__((always_inline)) void store_lanes(float *to, const int64_t lanes, __m512i v) {
    if (lanes == 16)
        _mm512_store_si512(to, v);
    else
        _mm512_mask_storeu_epi32(to, (__mmask16)((1u << lanes) - 1), v);
}

/* `rows` <= 16 rows of f32 into `lanes` lanes of a panel, n <= 16 elements of K, through registers. */
static inline __attribute__((always_inline)) void pack_f32(const float *src, int64_t ld, int64_t rows, int64_t n,
                                                           const int64_t width, const int64_t lanes, float *panel) {
    const __mmask16 valid = (__mmask16)((1u << n) - 1);
    __m512i t[16];
    LK_UNROLL16 for (int64_t r = 0; r < 16; r++) t[r] =
        r < rows ? _mm512_maskz_loadu_epi32(valid, src + r * ld) : _mm512_setzero_si512();
    lk_transpose16(t);
    LK_UNROLL16 for (int64_t j = 0; j < 16; j++) if (j < n) store_lanes(panel + j * width, lanes, t[j]);
}

/* The same of bf16, n <= 32: pairs of elements are transposed together and widened afterwards, which takes half the
 * shuffles. */
static inline __attribute__((always_inline)) void pack_bf16(const uint16_t *src, int64_t ld, int64_t rows, int64_t n,
                                                            const int64_t width, const int64_t lanes, float *panel) {
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    const __mmask32 valid = 0xffffffffu >> (32 - n);
    __m512i t[16];
    LK_UNROLL16 for (int64_t r = 0; r < 16; r++) t[r] =
        r < rows ? _mm512_maskz_loadu_epi16(valid, src + r * ld) : _mm512_setzero_si512();
    lk_transpose16(t);
    LK_UNROLL16 for (int64_t j = 0; j < 16; j++) {
        if (2 * j < n) store_lanes(panel + 2 * j * width, lanes, _mm512_slli_epi32(t[j], 16));
        if (2 * j + 1 < n) store_lanes(panel + (2 * j + 1) * width, lanes, _mm512_and_si512(t[j], upper));
    }
}

/* 16 lanes of a panel, all of K. The usual case, all rows there, has no conditions inside. */
static inline __attribute__((always_inline)) void pack_lanes(const void *src, enum lk_dtype dtype, int64_t ld,
                                                             int64_t rows, int64_t k, const int64_t width,
                                                             const int64_t lanes, float *panel) {
    if (dtype == LK_F32) {
        for (; k >= 16 && rows >= 16; k -= 16, src = (const float *)src + 16, panel += 16 * width)
            pack_f32(src, ld, 16, 16, width, lanes, panel);
        for (; k > 0; k -= 16, src = (const float *)src + 16, panel += 16 * width)
            pack_f32(src, ld, rows, k < 16 ? k : 16, width, lanes, panel);
    } else {
        for (; k >= 32 && rows >= 16; k -= 32, src = (const uint16_t *)src + 32, panel += 32 * width)
            pack_bf16(src, ld, 16, 32, width, lanes, panel);
        for (; k > 0; k -= 32, src = (const uint16_t *)src + 32, panel += 32 * width)
            pack_bf16(src, ld, rows, k < 32 ? k : 32, width, lanes, panel);
    }
}

/* Rows into a panel [k][width]. */
static inline __attribute__((always_inline)) void pack_panel(const void *src, enum lk_dtype dtype, int64_t ld,
                                                             int64_t rows, int64_t k, const int64_t width,
                                                             float *panel) {
    const int64_t size = dtype == LK_F32 ? 4 : 2;
    pack_lanes(src, dtype, ld, rows, k, width, width < 16 ? width : 16, panel);
    if (width > 16) /* at most 32 */
        pack_lanes(rows > 16 ? (const char *)src + 16 * ld * size : src, dtype, ld, rows - 16, k, width, width - 16,
                   panel + 16);
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
