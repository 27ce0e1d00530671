/* The matrix product in plain C: products and sums rounded one by one, as the language says. */
#include "kernels/cpu/gemm/gemm_kernel.h"
#include "kernels/cpu/gemm/gemm_pack.h"

#define MR 4
#define NR 8

static void tile(const float *a, const float *b, float *c, int64_t k, bool first) {
    float sum[MR][NR];
    for (int i = 0; i < MR; i++)
        for (int j = 0; j < NR; j++) sum[i][j] = first ? 0 : c[i * NR + j];
    for (; k > 0; k--, a += MR, b += NR)
        for (int i = 0; i < MR; i++) {
#pragma omp simd
            for (int j = 0; j < NR; j++) sum[i][j] += a[i] * b[j];
        }
    for (int i = 0; i < MR; i++)
        for (int j = 0; j < NR; j++) c[i * NR + j] = sum[i][j];
}

static void multiply(const void *a, const void *b, float *c, int64_t rows, int64_t a_stride, int64_t cols, int64_t k,
                     bool first, const struct lk_gemm_ahead ahead[2]) {
    (void)cols;
    (void)ahead;
    const char *panel = a;
    for (; rows > 0; rows -= MR, panel += a_stride, c += MR * NR) tile((const float *)panel, b, c, k, first);
}

static void pack_a(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    pack_rows(src, dtype, ld, rows, k, MR, panel);
}
static void pack_b(const void *src, enum lk_dtype dtype, int64_t ld, int64_t rows, int64_t k, void *panel) {
    pack_rows(src, dtype, ld, rows, k, NR, panel);
}

const struct lk_gemm_kernel lk_gemm_portable = {
    .mr = MR,
    .nr = NR,
    .kr = 1,
    .kc = 256,
    .mc = 64 * MR,
    .nc = 24 * NR,
    .a_bytes = 4,
    .b_bytes = 4,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .multiply = multiply,
};
