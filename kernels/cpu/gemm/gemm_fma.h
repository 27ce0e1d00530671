/* The kernel of AVX2 and AVX-512, written once. The including file defines
 *   V, V_LANES, V_ZERO(), V_LOAD(p), V_STORE(p, v), V_SET1(x), V_FMA(a, b, c)   the vector
 *   V_K                                                                        elements of K in a float: 1, or a pair
 *                                                                              of bf16, which V_FMA multiplies and adds
 *   MR                                                                         rows of a micro-tile; columns are
 *                                                                              2 V_LANES
 * A panel: [k / V_K][MR] floats. B panel: [k / V_K][NR] floats. Micro-tile: [MR][NR] floats. The 2 MR sums, two vectors
 * of B and one broadcast of A fill the registers. */
#pragma once

#include "kernels/cpu/gemm/gemm_kernel.h"

#define NR (2 * V_LANES)

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* rows is a constant at each call, so that the sums live in registers. `lines` of ahead are asked for at each step. */
static inline __attribute__((always_inline)) void tile(const int rows, const float *a, const float *b, float *c,
                                                       int64_t k, bool first, struct lk_gemm_ahead *ahead,
                                                       int64_t lines) {
    V sum[MR][2];
    UNROLL for (int i = 0; i < rows; i++) {
        sum[i][0] = first ? V_ZERO() : V_LOAD(c + i * NR);
        sum[i][1] = first ? V_ZERO() : V_LOAD(c + i * NR + V_LANES);
    }
    for (; k > 0; k -= V_K, a += MR, b += NR) {
        V b0 = V_LOAD(b), b1 = V_LOAD(b + V_LANES);
        if (lines) lk_gemm_ahead_go(ahead, lines);
        UNROLL for (int i = 0; i < rows; i++) {
            V x = V_SET1(a[i]);
            sum[i][0] = V_FMA(x, b0, sum[i][0]);
            sum[i][1] = V_FMA(x, b1, sum[i][1]);
        }
    }
    UNROLL for (int i = 0; i < rows; i++) {
        V_STORE(c + i * NR, sum[i][0]);
        V_STORE(c + i * NR + V_LANES, sum[i][1]);
    }
}

#define CASE(r)                                                                                                        \
    case r:                                                                                                            \
        tile(r, a, b, c, k, first, ahead, lines);                                                                      \
        break;

/* Fewer rows than MR. */
static void last_tile(int rows, const float *a, const float *b, float *c, int64_t k, bool first,
                      struct lk_gemm_ahead *ahead, int64_t lines) {
    switch (rows) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
#if MR > 6
        CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13)
#endif
    }
}

static void multiply(const void *a, const void *b, float *c, int64_t rows, int64_t a_stride, int64_t cols, int64_t k,
                     bool first, const struct lk_gemm_ahead ahead[2]) {
    (void)cols;
    const char *panel = a;
    struct lk_gemm_ahead ahead_a = ahead[0], ahead_b = ahead[1];
    int64_t tiles = (rows + MR - 1) / MR;
    int64_t a_lines = (lk_gemm_ahead_lines(&ahead_a) + tiles - 1) / tiles;
    int64_t b_lines = (lk_gemm_ahead_lines(&ahead_b) + tiles - 1) / tiles;
    for (; rows >= MR; rows -= MR, panel += a_stride, c += MR * NR) {
        lk_gemm_ahead_go(&ahead_a, a_lines);
        lk_gemm_ahead_go(&ahead_b, b_lines);
        tile(MR, (const float *)panel, b, c, k, first, &ahead_b, 0);
    }
    if (rows == 0) return;
    const int64_t steps = (k + V_K - 1) / V_K;
    last_tile((int)rows, (const float *)panel, b, c, k, first, &ahead_b,
              (lk_gemm_ahead_lines(&ahead_b) + steps - 1) / steps);
}
