/* Step1X-Edit's transformer for bench_dit: no token is quoted, text stands at times that end in -1. */
#pragma once

#include "bench/dit.h"
#include "engine/base/alloc.h"
#include "engine/rope_table.h"
#include "models/step1x/transformer.h"

static inline enum lk_code dit_step1x_open(void **model, struct lk_config *json, const struct lk_checkpoint *checkpoint,
                                           enum lk_dtype compute) {
    struct lk_step1x_transformer_config config;
    LK_TRY(lk_step1x_transformer_config_read(&config, json));
    struct lk_step1x_transformer *t = *model = lk_calloc(1, sizeof *t);
    if (!t) return lk_fail(LK_E_NOMEM, "transformer: out of memory");
    enum lk_code rc = lk_step1x_transformer_bind(t, &config, checkpoint, compute, LK_QUANTIZE_NONE, NULL);
    if (rc) lk_free(t);
    return rc;
}

static inline void dit_step1x_close(void *model) {
    lk_step1x_transformer_free(model);
    lk_free(model);
}

static inline struct dit_widths dit_step1x_widths(const void *model) {
    const struct lk_step1x_transformer_config *c = &((const struct lk_step1x_transformer *)model)->config;
    return (struct dit_widths){c->in_channels, c->out_channels, c->connector_in_channels, c->dim,
                               c->attention_head_dim};
}

static inline float *dit_step1x_ids(float *ids, float t, int64_t n) {
    int64_t height, width;
    dit_grid(n, &height, &width);
    for (int64_t i = 0; i < n; i++, ids += LK_STEP1X_AXES) {
        ids[0] = t;
        ids[1] = (float)(i / width);
        ids[2] = (float)(i % width);
    }
    return ids;
}

static inline enum lk_code dit_step1x_rope(const void *model, const struct dit_tokens *n, float *cos, float *sin) {
    const struct lk_step1x_transformer_config *c = &((const struct lk_step1x_transformer *)model)->config;
    int64_t total = n->txt + n->noise + n->ref;
    float *ids = lk_calloc(LK_STEP1X_AXES * (size_t)total, sizeof *ids);
    if (!ids) return lk_fail(LK_E_NOMEM, "RoPE table: out of memory");
    for (int64_t i = 0; i < n->txt; i++) ids[LK_STEP1X_AXES * i] = (float)(i - n->txt);
    dit_step1x_ids(dit_step1x_ids(ids + LK_STEP1X_AXES * n->txt, 0, n->noise), 1, n->ref);
    lk_rope_table(ids, total, c->axes_dims_rope, LK_STEP1X_AXES, LK_STEP1X_ROPE_THETA, cos, sin);
    lk_free(ids);
    return LK_OK;
}

static inline enum lk_code dit_step1x_forward(struct lk_device *dev, const void *model, const struct dit_inputs *in) {
    struct lk_step1x_conditioning conditioning = {.hidden = in->prompt_embeds, .cos = in->cos, .sin = in->sin};
    struct lk_step1x_pass pass = {.x = &in->x,
                                  .conditioning = &conditioning,
                                  .timestep_1000 = 500.0f,
                                  .branch = "cond",
                                  .velocity = &in->velocity};
    size_t mark = lk_arena_mark(&dev->arena);
    LK_TRY(lk_step1x_look_ahead(dev, model, &conditioning.hidden, &pass.timestep_1000, 1, "cond", &conditioning.ahead));
    LK_TRY(lk_step1x_transformer_forward(dev, model, &pass, 1));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

static const struct dit_family dit_step1x = {
    .name = "step1x",
    .folder = "transformer",
    .open = dit_step1x_open,
    .close = dit_step1x_close,
    .widths = dit_step1x_widths,
    .rope = dit_step1x_rope,
    .forward = dit_step1x_forward,
};
