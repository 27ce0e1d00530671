/* FLUX.2's transformer for bench_dit. */
#pragma once

#include "bench/dit.h"
#include "engine/base/alloc.h"
#include "engine/rope_table.h"
#include "models/flux2/transformer.h"

/* Adapters of the model that is opened next; the step cache of the forwards that follow, NULL: none, and their step, 0
 * or 1. */
static struct lk_loras *dit_flux2_loras;
static struct lk_cache *dit_flux2_cache;
static int dit_flux2_step;

static inline enum lk_code dit_flux2_open(void **model, struct lk_config *json, const struct lk_checkpoint *checkpoint,
                                          enum lk_dtype compute) {
    struct lk_flux2_transformer_config config;
    LK_TRY(lk_flux2_transformer_config_read(&config, json));
    struct lk_flux2_transformer *t = *model = lk_calloc(1, sizeof *t);
    if (!t) return lk_fail(LK_E_NOMEM, "transformer: out of memory");
    enum lk_code rc = lk_flux2_transformer_bind(t, &config, checkpoint, compute, LK_QUANTIZE_NONE, dit_flux2_loras);
    if (rc) lk_free(t);
    return rc;
}

static inline void dit_flux2_close(void *model) {
    lk_flux2_transformer_free(model);
    lk_free(model);
}

static inline struct dit_widths dit_flux2_widths(const void *model) {
    const struct lk_flux2_transformer_config *c = &((const struct lk_flux2_transformer *)model)->config;
    return (struct dit_widths){c->in_channels, c->out_channels, c->joint_attention_dim, c->dim, c->attention_head_dim};
}

static inline float *dit_flux2_ids(float *ids, float t, int64_t n) {
    int64_t height, width;
    dit_grid(n, &height, &width);
    for (int64_t i = 0; i < n; i++, ids += LK_FLUX2_AXES) {
        ids[0] = t;
        ids[1] = (float)(i / width);
        ids[2] = (float)(i % width);
    }
    return ids;
}

static inline enum lk_code dit_flux2_rope(const void *model, const struct dit_tokens *n, float *cos, float *sin) {
    const struct lk_flux2_transformer_config *c = &((const struct lk_flux2_transformer *)model)->config;
    int64_t total = n->txt + n->noise + n->ref;
    float *ids = lk_calloc(LK_FLUX2_AXES * (size_t)total, sizeof *ids);
    if (!ids) return lk_fail(LK_E_NOMEM, "RoPE table: out of memory");
    for (int64_t i = 0; i < n->txt; i++) ids[LK_FLUX2_AXES * i + 3] = (float)i;
    dit_flux2_ids(dit_flux2_ids(ids + LK_FLUX2_AXES * n->txt, 0, n->noise), 10, n->ref);
    lk_rope_table(ids, total, c->axes_dims_rope, LK_FLUX2_AXES, c->rope_theta, cos, sin);
    lk_free(ids);
    return LK_OK;
}

static inline enum lk_code dit_flux2_forward(struct lk_device *dev, const void *model, const struct dit_inputs *in) {
    struct lk_flux2_conditioning conditioning = {.context = in->context, .cos = in->cos, .sin = in->sin};
    struct lk_flux2_pass pass = {.x = &in->x,
                                 .conditioning = &conditioning,
                                 .step = dit_flux2_step,
                                 .velocity = &in->velocity,
                                 .cache = dit_flux2_cache};
    size_t mark = lk_arena_mark(&dev->arena);
    LK_TRY(lk_flux2_look_ahead(dev, model, in->x.dtype, (const float[]){500.0f, 490.0f}, dit_flux2_step + 1, 4.0f,
                               &conditioning.ahead));
    LK_TRY(lk_flux2_embed_context(dev, model, &in->prompt_embeds, &in->context));
    LK_TRY(lk_flux2_transformer_forward(dev, model, &pass, 1));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

static const struct dit_family dit_flux2 = {
    .name = "flux2",
    .folder = "transformer",
    .open = dit_flux2_open,
    .close = dit_flux2_close,
    .widths = dit_flux2_widths,
    .rope = dit_flux2_rope,
    .forward = dit_flux2_forward,
};
