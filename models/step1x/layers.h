/* What the connector and the transformer of Step1X-Edit share. Private to models/step1x. */
#pragma once

#include "models/step1x/transformer.h"

/* y = act(x wT + bias). */
static inline enum lk_code lk_step1x_project(struct lk_device *dev, const struct lk_tensor *y,
                                             const struct lk_tensor *x, const struct lk_step1x_linear *w,
                                             enum lk_act act) {
    return lk_linear(dev, &(struct lk_linear){.y = y, .x = x, .w = &w->weight, .bias = &w->bias, .act = act});
}

/* residual += gate * (x wT + bias), in place; gate [N] or NULL. */
static inline enum lk_code lk_step1x_project_onto(struct lk_device *dev, const struct lk_tensor *residual,
                                                  const struct lk_tensor *x, const struct lk_step1x_linear *w,
                                                  const struct lk_tensor *gate) {
    struct lk_linear op = {.y = residual, .x = x, .w = &w->weight, .bias = &w->bias, .residual = residual};
    op.gate = gate;
    return lk_linear(dev, &op);
}

/* y [1, N] = out(silu(in(x))). */
enum lk_code lk_step1x_embed(struct lk_device *dev, const struct lk_tensor *y, const struct lk_tensor *x,
                             const struct lk_step1x_embedder *w);

/* Refines the text encoder's states `hidden` [n_txt, connector_in_channels] into refined [n_txt,
 * connector_hidden_size]; pooled [1, 768] is a projection of their mean. sinusoids [1, 256]: of the timestep. */
enum lk_code lk_step1x_connect(struct lk_device *dev, const struct lk_step1x_transformer *t,
                               const struct lk_tensor *hidden, const struct lk_tensor *sinusoids,
                               const struct lk_tensor *refined, const struct lk_tensor *pooled);
