/* The arguments of kernels, one struct each, as both sides see them: C here, CUDA C++ in the .cu files. Sizes and
 * distances (ld) are in elements. `vector` says that every row of every tensor may be accessed 16 bytes at a time. A
 * weight's dtype may differ from the activations': w_bf16 says. */
#pragma once

#include "engine/ops.h"
#include "kernels/cuda/tiles.h"

/* A quantised matrix of n elements (engine/quantized.h) to bf16. */
struct lk_cuda_dequantize {
    void *out; /* 16-byte aligned */
    const void *data, *scales;
    int64_t n;
    int32_t block; /* elements that share a scale; 0: all */
    int32_t scales_bf16;
    int32_t vector; /* data may be read 8 bytes at a time */
    float levels[16];
};

/* y = f(x, ...) element by element over `rows` rows of n. */
struct lk_cuda_elementwise {
    void *y;
    const void *a, *b;
    int64_t rows, n, ld_y, ld_a, ld_b;
    int32_t vector;
    int32_t act; /* enum lk_act */
    float factor;
};

/* struct lk_weighted_sum, dense. */
struct lk_cuda_weighted_sum {
    void *y;
    const void *x[LK_SUM_TERMS];
    int64_t n;
    int32_t n_terms, vector;
    float scale[LK_SUM_TERMS];
};

/* struct lk_blend, dense. */
struct lk_cuda_blend {
    void *y;
    const void *source, *noise, *keep;
    int64_t n;
    int32_t vector;
    float sigma, rest;
};

/* Norms over the last dimension: n_rows groups of `per_row` rows of n; group i begins at i * ld. */
struct lk_cuda_row_norm {
    void *y;
    const void *x, *w, *bias; /* w, bias [n] or NULL */
    const void *shift, *scale;
    int64_t n_rows, per_row, n, ld_y, ld_x;
    int32_t vector; /* rows are whole vectors, as is what is read beside them */
    int32_t w_bf16, bias_bf16;
    int32_t round_before_weight;
    int32_t act;
    float eps, gain;
};

/* struct lk_norm_rope. Per head: pairs = head_dim / 2. */
struct lk_cuda_norm_rope {
    void *x;
    const void *norm_w;
    const float *cos, *sin; /* [S, pairs], or NULL */
    int64_t n_rows, n_heads, ld_x, ld_table;
    int32_t pairs;
    int32_t vector; /* of x and the tables */
    int32_t w_bf16;
    int32_t interleaved, round_before_weight, round_products;
    float eps;
};

/* What lk_group_sums hold: mean and sum of squared deviations of each slab's values in a group. */
struct lk_cuda_group_slabs {
    float *to; /* [n_groups, n_slabs, 2], or NULL */
    int32_t n_slabs;
    int32_t per_group;           /* 4, 8, 16 or 32 channels */
    float inverse, last_inverse; /* of the number of values in a group of a slab, in the last slab */
};

/* Those of a picture [n_pixels, channels] in memory. */
struct lk_cuda_group_sums {
    struct lk_cuda_group_slabs slabs;
    const void *y;
    int32_t n_pixels, channels, vector;
};

/* struct lk_group_norm. Tiles of whole groups by blocks of pixels; the scratch behind it: sums and sums of squares,
 * then the coefficients of n = (x - mean) a + b. With slabs no tiles. */
struct lk_cuda_group_norm {
    void *y;
    const void *x, *w, *b;
    const float *slabs;    /* struct lk_cuda_group_slabs, or NULL */
    double *partial;       /* [n_blocks, n_groups, 2] */
    float *mean, *a, *add; /* [channels] each */
    int64_t n_pixels, block_pixels;
    int32_t n_blocks, channels, n_groups, per_group, tile_groups;
    int32_t vector, w_bf16, b_bf16;
    int32_t act;
    float eps;
};

/* struct lk_channel_affine: rows of n channels. */
struct lk_cuda_channel_affine {
    void *y;
    const void *x, *mean, *std;
    int64_t rows, n, ld_y, ld_x;
    int32_t vector, stat_bf16, normalize, inverse_std;
};

/* struct lk_depthwise. */
struct lk_cuda_depthwise {
    void *y;
    const void *x, *w, *bias;
    int64_t height, width, channels;
    int32_t w_bf16, replicate;
};

/* struct lk_response_norm: rows of n channels. */
struct lk_cuda_response_norm {
    void *y;
    const void *x, *gamma, *beta;
    float *factors; /* [n] */
    int64_t rows, n, ld_y, ld_x;
    int32_t w_bf16;
    float eps;
};

/* struct lk_distance. */
struct lk_cuda_distance {
    float *y;
    const void *a, *b;
    int64_t n_rows, n, ld_y, ld_a, ld_b;
    int32_t vector;
};

struct lk_cuda_mean_rows {
    void *y;
    const void *x;
    int64_t rows, n, ld_x;
};

/* struct lk_guidance, dense rows of n. */
struct lk_cuda_guidance {
    void *y;
    const void *cond, *uncond;
    int64_t n_rows, n;
    int32_t vector, rescale;
    float scale, power;
};

/* struct lk_pack_latents. */
struct lk_cuda_pack_latents {
    void *tokens, *latents;
    int64_t tokens_high, tokens_wide, channels;
    int32_t vector; /* 16 bytes of a token and 4 of a pixel may be accessed at a time */
    int32_t inverse;
};

/* y = residual + r(gate * r(act(r(product + bias)))) of linear and conv2d; what is NULL is left out. */
struct lk_cuda_epilogue {
    void *y;
    const void *bias, *gate, *residual;
    int64_t ld_y, ld_residual;
    int32_t act; /* enum lk_act */
    int32_t round_before_bias;
    int32_t bias_bf16;      /* gate and residual have y's dtype */
    int32_t vector_columns; /* bias and gate may be read 16 bytes at a time */
    int32_t vector_rows;    /* y and residual may be accessed 16 bytes at a time */
};

/* An epilogue by itself, on product [rows, n], already rounded. */
struct lk_cuda_after {
    struct lk_cuda_epilogue out;
    const void *product;
    int64_t rows, n, ld;
    int32_t vector; /* of product */
};

/* struct lk_linear and struct lk_conv2d: y = epilogue(A wT + low upT), A [M, K], w [N, K]. A row of A is a row of x, or
 * the patch under an output pixel: K runs over (ky, kx, channel), a tap outside the picture is 0. A linear layer is the
 * convolution of one picture row of M pixels with a 1x1 kernel, so that one gathering kernel serves both. */
struct lk_cuda_gemm {
    struct lk_cuda_epilogue out;
    struct lk_cuda_group_slabs slabs; /* of y; not from gemm_f32.cu and tiles of less than 64 x 32 a warp */
    const void *x, *w;
    const void *low, *up; /* of a linear layer: K goes on over their rank columns; NULL: it does not */
    int64_t ld_x, ld_w;   /* from a row of x (pixel) to the next, from a row of w to the next */
    int64_t ld_low, ld_up;
    int32_t m, n, k, rank;
    int32_t row_tiles, column_tiles;
    int32_t group; /* row tiles that stay while the columns pass, so that both come from L2 */
    int32_t w_bf16;
    /* the picture, its sides after enlargement by 1 << shift */
    int32_t height, width, width_in, channels, width_out, kernel_width, stride, shift, pad_top, pad_left;
};

/* From the checkpoint's [n, channels, kt, taps] to [n, ld]: (tap, channel) of the last kt, then zeros. */
struct lk_cuda_conv2d_weights {
    void *packed;
    const void *w;
    int64_t ld;
    int32_t n, channels, kt, taps;
};

/* struct lk_attention. All query heads that read one key/value head are rows of one problem: row r is query r / group
 * of query head kv_head * group + r % group. */
struct lk_cuda_attention {
    void *out;
    const void *q, *k, *v;
    int64_t ld_out, ld_q, ld_k, ld_v;
    int32_t n_rows; /* S_q * group */
    int32_t n_keys;
    int32_t group; /* n_heads / n_kv_heads */
    int32_t head_dim;
    int32_t past; /* causal: query i sees keys 0 .. past + i; not causal: n_keys, so that it sees all */
    int32_t vector;
    float scale;
};
