/* The two halves of a decoder layer, as Mistral and Qwen2.5 have them: attention with grouped heads and rotated halves,
 * and the gated MLP, each behind an RMS norm and added to the residual stream. */
#pragma once

#include "engine/ops.h"

/* A projection; bias NULL: none. */
struct lk_projection {
    const struct lk_tensor *weight, *bias;
};

/* The weights of one layer. */
struct lk_decoder_layer {
    const struct lk_tensor *input_norm, *post_norm;
    struct lk_projection q, k, v, o;
    const struct lk_tensor *gate, *up, *down;
};

/* New rows of one sequence: n of them, after n_past that are cached; its part of the cache begins at row `first` and
 * holds `capacity`. */
struct lk_decoder_rows {
    int64_t n, first, n_past, capacity;
};

/* h += o(attention(rope(q(n)), rope(k(n)), v(n))), n = norm(h); causal. With a cache, h holds the new rows of several
 * sequences, one after the other; each one's rotated keys and values are written to rows [n_past, n_past + n) of its
 * part, and its attention reads [0, n_past + n). The bits of a row are those of a pass over its sequence alone, all
 * tokens at once. */
struct lk_decoder_attention {
    const struct lk_tensor *h;       /* [n, hidden] window, in place */
    const struct lk_tensor *norm;    /* [hidden] */
    struct lk_projection q, k, v, o; /* [heads * head_dim, hidden], twice [kv_heads * head_dim, hidden], and back */
    const struct lk_tensor *cos;     /* f32 [n, head_dim / 2] */
    const struct lk_tensor *sin;
    int64_t n_heads, n_kv_heads, head_dim;
    double eps;
    const struct lk_tensor *k_cache; /* [rows, kv_heads, head_dim] or NULL: one sequence, nothing before it */
    const struct lk_tensor *v_cache;
    const struct lk_decoder_rows *sequences; /* with a cache */
    int n_sequences;
};
enum lk_code lk_decoder_attention(struct lk_device *dev, const struct lk_decoder_attention *op);

/* h += down(silu(gate(n)) * up(n)), n = norm(h). */
struct lk_decoder_mlp {
    const struct lk_tensor *h;                /* [n, hidden] window, in place */
    const struct lk_tensor *norm;             /* [hidden] */
    const struct lk_tensor *gate, *up, *down; /* [intermediate, hidden] twice, [hidden, intermediate] */
    double eps;
};
enum lk_code lk_decoder_mlp(struct lk_device *dev, const struct lk_decoder_mlp *op);

/* y = norm(x), rounded before the weight. y may be x. */
enum lk_code lk_decoder_norm(struct lk_device *dev, const struct lk_tensor *y, const struct lk_tensor *x,
                             const struct lk_tensor *weight, double eps);

/* y [n, D] = rows ids[0..n) of an embedding's table [V, D] in host memory. They are gathered there: only these rows go
 * to the device, the table never does. ids: in host memory, not looked at on the plan device. LK_E_INTERNAL for an id
 * outside the table (the tokenizer's job to prevent). */
enum lk_code lk_decoder_embed(struct lk_device *dev, const struct lk_tensor *y, const struct lk_tensor *table,
                              const int32_t *ids);
