/* f32 products with AVX-512 FMA; bf16 operands are widened when packed. */
#include <immintrin.h>

#define V       __m512
#define V_LANES 16
#define V_ZERO  _mm512_setzero_ps
#define V_LOAD  _mm512_load_ps
#define V_STORE _mm512_store_ps
#define V_SET1  _mm512_set1_ps
#define V_FMA   _mm512_fmadd_ps
#define MR      14
#include "kernels/cpu/gemm_fma.h"
#include "kernels/cpu/gemm_pack.h"

#define CASE(r)                                                                                                        \
    case r:                                                                                                            \
        tile(r, a, b, c, k, first);                                                                                    \
        break;

static void last_tile(int rows, const float *a, const float *b, float *c, int64_t k, bool first) {
    switch (rows) {
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13)
    }
}

static void pack_a(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    pack_rows(src, dtype, ld, rows, k, MR, panel);
}
static void pack_b(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    pack_rows(src, dtype, ld, rows, k, NR, panel);
}

const struct lk_gemm_kernel lk_gemm_avx512 = {
    .mr = MR,
    .nr = NR,
    .kr = 1,
    .kc = 256,
    .mc = 64 * MR,
    .nc = 6 * NR,
    .a_bytes = 4,
    .b_bytes = 4,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .multiply = multiply,
};
