/* f32 products with AVX2 and FMA; bf16 operands are widened when packed. */
#include <immintrin.h>

#define V       __m256
#define V_LANES 8
#define V_ZERO  _mm256_setzero_ps
#define V_LOAD  _mm256_load_ps
#define V_STORE _mm256_store_ps
#define V_SET1  _mm256_set1_ps
#define V_FMA   _mm256_fmadd_ps
#define MR      6
#include "kernels/cpu/gemm_fma.h"
#include "kernels/cpu/gemm_pack.h"

#define CASE(r)                                                                                                        \
    case r:                                                                                                            \
        tile(r, a, b, c, k, first);                                                                                    \
        break;

static void last_tile(int rows, const float *a, const float *b, float *c, int64_t k, bool first) {
    switch (rows) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) }
}

static void pack_a(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    pack_rows(src, dtype, ld, rows, k, MR, panel);
}
static void pack_b(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    pack_rows(src, dtype, ld, rows, k, NR, panel);
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
