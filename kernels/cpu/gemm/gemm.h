/* The CPU matrix product: C[M, N] = A[M, K] B[N, K]^T with f32 accumulation, used by linear and conv2d.
 *
 * An element of C is one chain of accumulations in the order of K, per (dtype pair, instruction level). Partial sums of
 * a K block are kept in f32 and continued, so that blocking changes nothing: the bits of a row of C do not depend on M,
 * on the row's position, on N's neighbours or on the number of threads. */
#pragma once

#include "engine/device.h"

/* Fills a row of A or B on the fly: elements [k, k + n) of row `row`, in the operand's dtype. Called from several
 * threads. */
typedef void lk_gemm_row_fn(const void *context, int64_t row, int64_t k, int64_t n, void *out);

/* Receives a finished block of C in f32: rows [m, m + n_m), columns [n, n + n_n), row stride ldc. At most
 * LK_GEMM_BLOCK_MAX rows and columns. Called once per element, from several threads for different blocks. */
typedef void lk_gemm_store_fn(const void *context, int64_t m, int64_t n_m, int64_t n, int64_t n_n, const float *c,
                              int64_t ldc);
#define LK_GEMM_BLOCK_MAX 64

/* A matrix of rows of length K: plain memory with a row stride, or (row not NULL) filled on the fly. */
struct lk_gemm_operand {
    enum lk_dtype dtype; /* f32 or bf16 */
    const void *data;    /* when row is given: what it reads, row_bytes a row, if that should be fetched ahead */
    int64_t ld;          /* elements */
    lk_gemm_row_fn *row;
    int64_t row_bytes; /* 0: nothing is fetched ahead */
    const void *context;
};

/* C is a bT, or with more_k a bT + more_a more_bT: the chain goes on over the second pair, plain memory. */
struct lk_gemm {
    int64_t m, n, k;                       /* each at least 1 */
    struct lk_gemm_operand a;              /* [M, K] */
    struct lk_gemm_operand b;              /* [N, K]; bf16 when a is bf16 */
    int64_t more_k;                        /* 0: none */
    struct lk_gemm_operand more_a, more_b; /* [M, more_k] and [N, more_k], both in a's dtype */
    lk_gemm_store_fn *store;
    const void *store_context;
};

/* Bytes that lk_gemm_run needs: depends on shapes, dtypes, n_threads and the instruction level only. */
size_t lk_gemm_scratch(const struct lk_gemm *g, int n_threads);
/* scratch: 64-byte aligned. */
void lk_gemm_run(const struct lk_gemm *g, int n_threads, void *scratch);
