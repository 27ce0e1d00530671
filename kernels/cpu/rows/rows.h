/* Vector loops over consecutive elements in f32, one set per instruction level: what the memory-bound ops are made of.
 *
 * An op walks its rows in chunks that stay in the L1 cache: lk_cpu_view gives a chunk as f32 (without a copy when the
 * tensor is f32), a loop of the set computes, lk_cpu_store writes it back. Elementwise loops give the same bits at
 * every level. Sums are taken in double, in LK_LANES interleaved lanes: element i goes to lane i % LK_LANES, so that
 * the order depends on the length only. */
#pragma once

#include "kernels/cpu/cpu.h"

#define LK_LANES 32
#define LK_CHUNK 1024 /* elements; a multiple of LK_LANES */

struct lk_rows {
    void (*from_bf16)(int64_t n, const uint16_t *x, float *y);
    void (*to_bf16)(int64_t n, const float *x, uint16_t *y);
    void (*round)(int64_t n, float *x); /* to the nearest bf16 value */
    void (*act)(enum lk_act act, int64_t n, const float *x, float *y);
    void (*add)(int64_t n, const float *a, const float *b, float *y);
    void (*sub)(int64_t n, const float *a, const float *b, float *y);
    void (*mul)(int64_t n, const float *a, const float *b, float *y);
    void (*div)(int64_t n, const float *a, const float *b, float *y);
    void (*scale)(int64_t n, const float *x, float factor, float *y);
    void (*divide)(int64_t n, const float *x, float divisor, float *y);
    void (*center)(int64_t n, const float *x, float mean, float factor, float *y);       /* (x - mean) factor */
    void (*affine)(int64_t n, const float *x, const float *a, const float *b, float *y); /* x a + b */
    void (*normalize)(int64_t n, const float *x, const float *mean, const float *a, const float *b, float *y);
    void (*standardize)(int64_t n, const float *x, const float *mean, const float *std, bool bf16, float *y);
    void (*deviation)(int64_t n, const float *logvar, bool bf16, float *y); /* of ops.h's posterior_sample */
    void (*modulate)(int64_t n, const float *x, const float *scale, const float *shift, bool bf16, float *y);
    /* n pairs (a[i], b[i]) -> (a cos - b sin, b cos + a sin) in place; `stride` 2: a and b interleaved, b = a + 1 */
    void (*rotate)(int64_t n, float *a, float *b, int stride, const float *cos, const float *sin, bool round_products);
    void (*sum)(int64_t n, const float *x, double lanes[LK_LANES]);
    void (*sum_squares)(int64_t n, const float *x, double mean, double lanes[LK_LANES]); /* of x - mean */
    void (*accumulate)(int64_t n, const float *x, double *sums);                         /* sums[i] += x[i] */
    /* Per channel c: sum[c] += x - shift[c], squares[c] += (x - shift[c])^2 over n_rows rows of n. */
    void (*channel_sums)(int64_t n_rows, int64_t n, const float *x, int64_t ld, const double *shift, double *sum,
                         double *squares);
    int64_t (*nonfinite)(int64_t n, const float *x);
    int64_t (*nonfinite_bf16)(int64_t n, const uint16_t *x);
};

extern const struct lk_rows lk_rows_portable, lk_rows_avx2, lk_rows_avx512;

/* The set for lk_cpu_isa(). */
const struct lk_rows *lk_cpu_rows(void);

/* The lanes added as a balanced tree. */
double lk_cpu_lanes_total(const double lanes[LK_LANES]);

/* n elements of t from position `first` as f32: inside t when t is f32, otherwise converted into buffer[n]. */
const float *lk_cpu_view(const struct lk_tensor *t, int64_t first, int64_t n, float *buffer);

/* Sum of (x - mean)^2 over n elements from position `first`, in double in the lanes' order. */
double lk_cpu_sum_squares(const struct lk_tensor *x, int64_t first, int64_t n, double mean);

/* Where results for those elements go before lk_cpu_put: inside t when t is f32, otherwise `buffer`. */
float *lk_cpu_target(const struct lk_tensor *t, int64_t first, float *buffer);
/* Completes lk_cpu_target: rounds buffer to bf16 into t; nothing to do in f32. */
void lk_cpu_put(const struct lk_tensor *t, int64_t first, int64_t n, const float *target);

/* All elements of up to LK_CHUNK_TENSORS tensors with the rows of tensors[0] (later ones may be wider: their leading
 * columns), chunk by chunk and in parallel: body(op, first, n) works on n <= LK_CHUNK elements, which begin at position
 * first[i] of tensors[i]. */
#define LK_CHUNK_TENSORS 7
typedef void lk_chunk_fn(const void *op, const int64_t *first, int64_t n);
void lk_cpu_chunks(struct lk_device *dev, const struct lk_tensor *const *tensors, int n_tensors, const void *op,
                   lk_chunk_fn *body);
