/* The CPU matrix product: C[M, N] = A[M, K] B[N, K]^T with f32 accumulation, used by linear and conv2d.
 *
 * One K order per (dtype pair, instruction level): the bits of a row of C do not depend on M, on the row's position, on
 * N's neighbours or on the number of threads. */
#pragma once

#include "engine/device.h"

/* Fills rows of A on the fly: elements [k, k + n) of row m as dtype of the product (conv2d gathers pixels; NULL in
 * struct lk_gemm means that A is a plain matrix). */
typedef void lk_gemm_row_fn(const void *context, int64_t m, int64_t k, int64_t n, void *out);

/* Receives a finished block of C in f32: rows [m, m + n_m), columns [n, n + n_n), row stride ldc. Called once per
 * element, from several threads for different blocks. */
typedef void lk_gemm_store_fn(const void *context, int64_t m, int64_t n_m, int64_t n, int64_t n_n, const float *c,
                              int64_t ldc);

struct lk_gemm {
    int64_t m, n, k;
    enum lk_dtype a_dtype; /* f32 or bf16 */
    const void *a;         /* row stride lda; NULL when a_row is given */
    int64_t lda;
    lk_gemm_row_fn *a_row;
    const void *a_context;
    enum lk_dtype b_dtype; /* f32 or bf16; bf16 when a is bf16 */
    const void *b;         /* [N, K], row stride ldb */
    int64_t ldb;
    lk_gemm_store_fn *store;
    const void *store_context;
};

size_t lk_gemm_scratch(const struct lk_gemm *g, int n_threads);
void lk_gemm_run(const struct lk_gemm *g, int n_threads, void *scratch);
