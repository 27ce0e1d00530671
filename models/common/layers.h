/* Layers as checkpoints hold them: a weight with or without a bias. What all models share of binding and applying them.
 */
#pragma once

#include "engine/ops.h"
#include "weights/bind.h"

/* Of a linear layer, a convolution or a norm; bias absent (n_dims 0) where the model has none. Of a linear layer with
 * an adapter: down [R, K] and up [N, R], else absent (weights/lora). */
struct lk_layer {
    struct lk_tensor weight, bias, down, up;
};

/* Rows [first, first + n) of a layer. */
struct lk_layer lk_layer_rows(const struct lk_layer *layer, int64_t first, int64_t n);

/* Two linear layers with silu between them, which embed a timestep, a guidance or a pooled text. */
struct lk_embedder {
    struct lk_layer linear_1, linear_2;
};

/* A layer to bind under its name: weight [rows, cols], or [rows] where cols is 0. */
struct lk_layer_entry {
    struct lk_layer *layer;
    const char *name;
    int64_t rows, cols;
};

/* Binds "BLOCKS.i.NAME.weight" of every entry, and ".bias" [rows] if `bias`; blocks "": no prefix. */
void lk_bind_layers(struct lk_bind *b, const struct lk_layer_entry *table, size_t n, bool bias, const char *blocks,
                    int i);
#define LK_BIND_LAYERS(b, table, bias, blocks, i)                                                                      \
    lk_bind_layers(b, table, sizeof(table) / sizeof *(table), bias, blocks, i)

/* y [M, N] = act(x [M, K] wT + bias), with the layer's adapter. */
enum lk_code lk_project(struct lk_device *dev, const struct lk_tensor *y, const struct lk_tensor *x,
                        const struct lk_layer *w, enum lk_act act);

/* residual [M, N] += gate * (x [M, K] wT + bias), in place; gate [N] or NULL. */
enum lk_code lk_project_onto(struct lk_device *dev, const struct lk_tensor *residual, const struct lk_tensor *x,
                             const struct lk_layer *w, const struct lk_tensor *gate);

/* y [M, N] = linear_2(silu(linear_1(x [M, K]))). */
enum lk_code lk_embed(struct lk_device *dev, const struct lk_tensor *y, const struct lk_tensor *x,
                      const struct lk_embedder *w);
