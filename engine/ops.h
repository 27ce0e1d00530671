/* THE op interface: what a model's forward pass may ask of a device.
 *
 * Each op is a struct of arguments and one function, lk_NAME(dev, &(struct lk_NAME){...}). The function checks shapes
 * and dtypes, adds FLOPs and bytes to dev->cost, takes the scratch that the device's kernel asks for from the arena,
 * and calls the kernel through the device's table. Checks and costs are written once, in ops_check.c, for all devices.
 *
 * Dtypes: activations are f32 or bf16, all activations of one call alike. Arithmetic is f32; with bf16 activations a
 * value is rounded to bf16 (nearest even) exactly where the comment has r(.), and nowhere else; with f32 activations r
 * is the identity. Weights are bf16 or f32 when activations are f32, bf16 when activations are bf16. Tensors are dense
 * unless said "window", which means that ld may exceed the row.
 *
 * Reproducibility: the bits of an output row do not depend on the number of rows, on threads, or on what else ran. */
#pragma once

#include "engine/device.h"

enum lk_act { LK_ACT_NONE, LK_ACT_SILU, LK_ACT_GELU_TANH, LK_ACT_GELU_ERF, LK_ACT_QUICK_GELU };

/* y = residual + r(gate * r(act(r(x wT + low upT + bias)))), each part optional, each r as written, one more r at the
 * end if there is a residual. y may be residual. A quantised w stands for the bf16 matrix that engine/quantized.h makes
 * of it: the bits of y are those with that matrix. low and up are a low-rank adapter's: an output is one chain of sums,
 * the products with w first, then those with up. Without them the bits are those of the product alone. */
struct lk_linear {
    const struct lk_tensor *y;    /* [M, N] window */
    const struct lk_tensor *x;    /* [M, K] window */
    const struct lk_tensor *w;    /* [N, K] window (a row slice of a fused weight is fine), or dense and quantised */
    const struct lk_tensor *bias; /* [N] or NULL */
    const struct lk_tensor *gate; /* [N] or NULL */
    const struct lk_tensor *residual; /* [M, N] window or NULL */
    const struct lk_tensor *low;      /* [M, R] window or NULL: r(x downT) */
    const struct lk_tensor *up;       /* [N, R] window, dtype of x; present when low is */
    enum lk_act act;
    bool round_before_bias; /* r(r(x wT + low upT) + bias), as torch does when x is a transposed view */
};

/* out = r(softmax(scale * q kT) v), softmax in f32. Query head h reads key/value head h / (n_heads / n_kv_heads). The
 * score matrix is never stored. causal: query i sees keys 0 .. i + (S_k - S_q).
 * bf16: the keys go by in ascending chunks of 512. m is the maximum of scale * q kT up to the end of the chunk; p =
 * exp(s - m) is rounded to bf16 before it multiplies v, and summed unrounded; exp is within 1.1e-4. That is where
 * torch's CPU kernel rounds, so that both drift from f32 in the same way. On the cuda device chunks are of 64 keys, and
 * exp is the hardware's power of two. */
struct lk_attention {
    const struct lk_tensor *out; /* [S_q, n_heads, head_dim] window */
    const struct lk_tensor *q;   /* [S_q, n_heads, head_dim] window */
    const struct lk_tensor *k;   /* [S_k, n_kv_heads, head_dim] window */
    const struct lk_tensor *v;   /* [S_k, n_kv_heads, head_dim] window */
    float scale;
    bool causal;
};

/* y = w * x / sqrt(mean(x^2) + eps) over the last dimension D. round_before_weight: r(w * r(x * rsqrt)), as language
 * models do; otherwise r(x * rsqrt * w). w NULL: r(x * rsqrt). y may be x. */
struct lk_rms_norm {
    const struct lk_tensor *y; /* [rows, ..., D] window */
    const struct lk_tensor *x; /* same shape, window */
    const struct lk_tensor *w; /* [D] or NULL */
    float eps;
    bool round_before_weight;
};

/* n = r((x - mean) / sqrt(var + eps)) over the last dimension, var biased; y = r(r(r(1 + scale) * n) + shift); without
 * shift and scale y = n; with weight and bias n = r((x - mean) / sqrt(var + eps) * weight + bias). */
struct lk_layer_norm {
    const struct lk_tensor *y;      /* [M, D] window */
    const struct lk_tensor *x;      /* [M, D] window */
    const struct lk_tensor *weight; /* [D] or NULL */
    const struct lk_tensor *bias;   /* [D] or NULL */
    const struct lk_tensor *shift;  /* [D] or NULL */
    const struct lk_tensor *scale;  /* [D] or NULL, present when shift is */
    float eps;
};

enum lk_rope_pairing {
    LK_ROPE_INTERLEAVED, /* pairs (2j, 2j+1): (a cos - b sin, b cos + a sin), diffusion transformers */
    LK_ROPE_HALF,        /* pairs (j, j + head_dim/2), language models */
};

/* In place on x: first RMS norm over head_dim when norm_w is given (r(x * rsqrt(mean x^2 + eps) * norm_w), or with
 * round_before_weight r(norm_w * r(x * rsqrt))), then rotation by the table. round_products: r(r(a cos) - r(b sin)), as
 * language models do in bf16; otherwise one r. */
struct lk_norm_rope {
    const struct lk_tensor *x;      /* [S, n_heads, head_dim] window */
    const struct lk_tensor *norm_w; /* [head_dim] or NULL */
    const struct lk_tensor *cos;    /* f32 [S, head_dim / 2], or NULL for norm only */
    const struct lk_tensor *sin;    /* f32 [S, head_dim / 2] */
    enum lk_rope_pairing pairing;
    float eps;
    bool round_before_weight;
    bool round_products;
};

/* y = r(r(act(x[:, :N])) * x[:, N:]): the gate is the first half, or the second with gate_last. */
struct lk_gated_act {
    const struct lk_tensor *y; /* [M, N] window */
    const struct lk_tensor *x; /* [M, 2 N] window */
    enum lk_act act;
    bool gate_last;
};

/* y = r(act(x)); y may be x. */
struct lk_activation {
    const struct lk_tensor *y; /* any shape, window */
    const struct lk_tensor *x;
    enum lk_act act;
};

/* Statistics of a picture for the group norm that reads it next, taken by the convolution that makes it, so that the
 * norm reads the picture once: 8 bytes for each group and slab of LK_GROUP_SLAB pixels, [n_groups, slabs] in the arena.
 * What they hold is between a device's two ops: by dtype and shape it either uses them in both or, as the cpu device
 * does, in neither. */
#define LK_GROUP_SLAB 64
struct lk_tensor lk_group_sums(void *data, int64_t n_groups, int64_t n_pixels);

/* 2-D convolution, channels last; with upsample 2 the input is first enlarged 2x2 by nearest neighbour (no copy is
 * made). A 3-D causal kernel meets one frame with its last temporal tap: of w [C_out, C_in, kt, kh, kw] only index kt -
 * 1 is used. y = r(conv + bias), then r(residual + y) if there is a residual. Padding is with zeros. H_out = (upsample
 * * H_in + pad_top + pad_bottom - kh) / stride + 1. */
struct lk_conv2d {
    const struct lk_tensor *y;          /* [H_out, W_out, C_out] */
    const struct lk_tensor *x;          /* [H_in, W_in, C_in] */
    const struct lk_tensor *w;          /* [C_out, C_in, kh, kw] as in checkpoints, or [C_out, C_in, kt, kh, kw]; with
                                           taps_first [C_out, kh, kw, C_in], C_in a multiple of 8: the same bits,
                                           without the reordering that is done in every call otherwise */
    const struct lk_tensor *bias;       /* [C_out] or NULL */
    const struct lk_tensor *residual;   /* [H_out, W_out, C_out], may be y; or [C_out], the same for all pixels; or NULL
                                         */
    const struct lk_tensor *group_sums; /* lk_group_sums of y, written; or NULL */
    int stride;
    int upsample;
    int pad_top, pad_left, pad_bottom, pad_right;
    bool taps_first;
};
struct lk_filters {
    int64_t n, channels, kt, kh, kw; /* w [n, channels, kt, kh, kw] */
};
struct lk_filters lk_filters_of(const struct lk_conv2d *op);

/* Groups of C / n_groups neighbouring channels over all pixels; var biased. n = r((x - mean) / sqrt(var + eps) * w +
 * b); y = r(act(n)). y may be x. */
struct lk_group_norm {
    const struct lk_tensor *y;    /* [H, W, C] */
    const struct lk_tensor *x;    /* [H, W, C] */
    const struct lk_tensor *w;    /* [C] */
    const struct lk_tensor *b;    /* [C] */
    const struct lk_tensor *sums; /* of x, as the convolution that wrote x last left them; or NULL */
    int n_groups;
    float eps;
    enum lk_act act;
};

/* Each channel by its own 3 x 3 filter, stride 1: y = r(sum of taps in their order + bias). Beyond the edges are zeros,
 * or with replicate the edge's own values. */
struct lk_depthwise {
    const struct lk_tensor *y;    /* [H, W, C], not x */
    const struct lk_tensor *x;    /* [H, W, C] */
    const struct lk_tensor *w;    /* [C, 1, 3, 3] */
    const struct lk_tensor *bias; /* [C], dtype of w */
    bool replicate;
};

/* Global response normalisation over all rows: n_c = r(sqrt(sum over rows of x_c^2)) of each channel; q_c = r(n_c /
 * r(r(mean over channels of n) + eps)); y = r(r(r(gamma r(x q)) + beta) + x). y may be x. */
struct lk_response_norm {
    const struct lk_tensor *y;     /* [M, C] window */
    const struct lk_tensor *x;     /* [M, C] window */
    const struct lk_tensor *gamma; /* C elements */
    const struct lk_tensor *beta;  /* C elements, dtype of gamma */
    float eps;
};

/* y = r(a + b); y may be a or b. */
struct lk_add {
    const struct lk_tensor *y; /* any shape, window */
    const struct lk_tensor *a;
    const struct lk_tensor *b;
};

/* Per channel of the last dimension: normalize: y = r(r(x - r(mean)) / std); otherwise y = r(r(x * std) + r(mean)).
 * inverse_std says that std holds the inverse: normalize multiplies by it, otherwise x is divided by it. f32 mean and
 * std with bf16 x are what torch does with Python numbers: it rounds those it adds, not those it multiplies or divides
 * by. y may be x. */
struct lk_channel_affine {
    const struct lk_tensor *y;    /* [rows, C] */
    const struct lk_tensor *x;    /* [rows, C] */
    const struct lk_tensor *mean; /* [C], dtype of x or f32 */
    const struct lk_tensor *std;  /* [C], dtype of mean */
    bool normalize;
    bool inverse_std;
};

/* Scales each row to length sqrt(D): n = r(x / max(||x||_2, 1e-12)); y = r(act(r(r(n * sqrt(D)) * w))), where r(act(.))
 * is left out for LK_ACT_NONE. The channel norm of the Qwen-Image VAE. y may be x. */
struct lk_l2_norm {
    const struct lk_tensor *y; /* [rows, ..., D] window */
    const struct lk_tensor *x; /* same shape, window */
    const struct lk_tensor *w; /* D elements */
    enum lk_act act;
};

/* The mean of all rows: y = r(r(sum of rows) / n). The count is not rounded: torch's CPU kernels divide by an integer
 * mask's sum as it is. */
struct lk_mean_rows {
    const struct lk_tensor *y; /* [1, D] */
    const struct lk_tensor *x; /* [n, D] window */
};

/* A sample of a diagonal Gaussian: moments hold mean and logvar. std = r(exp(r(0.5 * clamp(logvar, -30, 20)))); z =
 * r(mean + r(std * noise)). */
struct lk_posterior_sample {
    const struct lk_tensor *z;       /* [H, W, C] */
    const struct lk_tensor *moments; /* [H, W, 2 C]: mean, then logvar */
    const struct lk_tensor *noise;   /* [H, W, C] */
};

enum lk_guidance_kind {
    LK_GUIDANCE_RESCALE, /* Qwen-Image: the combination gets the length of cond */
    LK_GUIDANCE_LIMIT,   /* Step1X-Edit: the difference is divided by a power of its length where that exceeds 1 */
};

/* Classifier-free guidance of two predictions, row by row; ||.|| is the 2-norm of a row in f32. d = r(cond - uncond).
 * RESCALE: c = r(uncond + r(scale * d)); y = r(c * r(r(||cond||) / r(||c||))).
 * LIMIT: n = r(||d||); q = n < 1 ? 1 : r(n^r(power)); y = r(uncond + r(r(scale * d) / q)); power 0 is guidance without
 * a limit. The scale is not rounded. y may be cond or uncond. */
struct lk_guidance {
    const struct lk_tensor *y;      /* [rows, C] */
    const struct lk_tensor *cond;   /* [rows, C] */
    const struct lk_tensor *uncond; /* [rows, C] */
    enum lk_guidance_kind kind;
    float scale, power;
};

/* 2x2 patches to channels: pixel (2i + dy, 2j + dx), channel c <-> token i * (W/2) + j, channel 4 c + 2 dy + dx. */
struct lk_pack_latents {
    const struct lk_tensor *tokens;  /* [H/2 * W/2, 4 C] */
    const struct lk_tensor *latents; /* [H, W, C] */
    bool inverse;                    /* tokens -> latents instead of latents -> tokens */
};

/* x = r(x + r(r(dt) * v)); with bf16 the scalar dt is rounded as well, as torch's type promotion does. In place. */
struct lk_euler_step {
    const struct lk_tensor *x; /* [n, C] */
    const struct lk_tensor *v; /* [n, C] */
    float dt;
};

/* y = r(((scale[0] x[0] + scale[1] x[1]) + scale[2] x[2]) + ...) in f32, products rounded too: a step of a sampler.
 * Terms end at the first NULL. y may be any x. */
#define LK_SUM_TERMS 6
struct lk_weighted_sum {
    const struct lk_tensor *y;               /* [n, C] */
    const struct lk_tensor *x[LK_SUM_TERMS]; /* [n, C]; the first is there */
    float scale[LK_SUM_TERMS];
};

/* Row by row how far a lies from b: y[i] = f32 of the sums of |r(a - b)| and of |b|, which are taken in double. */
struct lk_distance {
    const struct lk_tensor *y; /* f32 [n, 2] */
    const struct lk_tensor *a; /* [n, C] */
    const struct lk_tensor *b; /* [n, C] */
};

/* Where keep is 1: x = p = r(r(sigma * noise) + r((1 - sigma) * source)), the source at the noise level sigma; where it
 * is 0, x stays; between, x = r(r(keep * p) + r(r(1 - keep) * x)). With bf16 sigma and then 1 - sigma are rounded as
 * well. In place. */
struct lk_blend {
    const struct lk_tensor *x;      /* [n, C] */
    const struct lk_tensor *source; /* [n, C] */
    const struct lk_tensor *noise;  /* [n, C] */
    const struct lk_tensor *keep;   /* [n, C], 0 to 1 */
    float sigma;
};

/* y = x with conversion between f32 and bf16 (nearest even). */
struct lk_copy {
    const struct lk_tensor *y; /* window */
    const struct lk_tensor *x; /* same shape, window, any of f32, bf16 */
};

/* u8 RGB <-> [-1, 1]. x u8: y = r(2 * (x / 255) - 1). x activations: y = u8(round_half_even(255 * clamp(r(0.5 x + 0.5),
 * 0, 1))); the product with 0.5 is exact, so there is one rounding in either direction. */
struct lk_pixels {
    const struct lk_tensor *y; /* [H, W, 3] */
    const struct lk_tensor *x; /* [H, W, 3] */
};

/* count += number of NaN and Inf in x. `count` is in host memory; 0 on the plan device. */
struct lk_nonfinite {
    const struct lk_tensor *x; /* any shape, window, f32 or bf16 */
    int64_t *count;
};

/* All ops, each with the last of its tensors: they come first in its struct, for code that must look at all of them.
 * Devices, plans, benchmarks and the selftest follow from this list. */
#define LK_OPS(OP)                                                                                                     \
    OP(linear, up)                                                                                                     \
    OP(attention, v)                                                                                                   \
    OP(rms_norm, w)                                                                                                    \
    OP(layer_norm, scale)                                                                                              \
    OP(norm_rope, sin)                                                                                                 \
    OP(gated_act, x)                                                                                                   \
    OP(activation, x)                                                                                                  \
    OP(conv2d, group_sums)                                                                                             \
    OP(group_norm, sums)                                                                                               \
    OP(depthwise, bias)                                                                                                \
    OP(response_norm, beta)                                                                                            \
    OP(add, b)                                                                                                         \
    OP(channel_affine, std)                                                                                            \
    OP(l2_norm, w)                                                                                                     \
    OP(mean_rows, x)                                                                                                   \
    OP(posterior_sample, noise)                                                                                        \
    OP(guidance, uncond)                                                                                               \
    OP(pack_latents, latents)                                                                                          \
    OP(euler_step, v)                                                                                                  \
    OP(distance, b)                                                                                                    \
    OP(blend, keep)                                                                                                    \
    OP(weighted_sum, x[LK_SUM_TERMS - 1])                                                                              \
    OP(copy, x)                                                                                                        \
    OP(pixels, x)                                                                                                      \
    OP(nonfinite, x)

#define LK_COUNT_TENSORS(name, last)                                                                                   \
    LK_TENSORS_##name = offsetof(struct lk_##name, last) / sizeof(struct lk_tensor *) + 1,
enum { LK_OPS(LK_COUNT_TENSORS) };
#undef LK_COUNT_TENSORS

#define LK_DECLARE_OP(name, last)                                                                                      \
    enum lk_code lk_##name(struct lk_device *dev, const struct lk_##name *op);                                         \
    /* Shapes and dtypes are right, or LK_E_INTERNAL; *cost gets what one call costs. */                               \
    enum lk_code lk_check_##name(const struct lk_##name *op, struct lk_cost *cost);
LK_OPS(LK_DECLARE_OP)
#undef LK_DECLARE_OP

/* What a device implements. run: arguments are already checked; scratch holds as many bytes as `scratch` said, NULL if
 * none. scratch may be NULL in the table (needs none); it must depend on shapes and on the device's description only,
 * and for linear and attention fewer rows must not need more: plans count the longest of several prompts only. */
struct lk_op_table {
#define LK_OP_ENTRY(name, last)                                                                                        \
    struct {                                                                                                           \
        enum lk_code (*run)(struct lk_device * dev, const struct lk_##name *op, void *scratch);                        \
        size_t (*scratch)(const struct lk_device *dev, const struct lk_##name *op);                                    \
    } name;
    LK_OPS(LK_OP_ENTRY)
#undef LK_OP_ENTRY
};
