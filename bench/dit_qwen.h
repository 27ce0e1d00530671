/* Qwen-Image's transformer for bench_dit: one reference, or none. */
#pragma once

#include "bench/dit.h"
#include "engine/base/alloc.h"
#include "models/qwen_edit/transformer.h"

static inline enum lk_code dit_qwen_open(void **model, struct lk_config *json, const struct lk_checkpoint *checkpoint,
                                         enum lk_dtype compute) {
    struct lk_qwen_transformer_config config;
    LK_TRY(lk_qwen_transformer_config_read(&config, json));
    struct lk_qwen_transformer *t = *model = lk_calloc(1, sizeof *t);
    if (!t) return lk_fail(LK_E_NOMEM, "transformer: out of memory");
    enum lk_code rc = lk_qwen_transformer_bind(t, &config, checkpoint, compute, LK_QUANTIZE_NONE, NULL);
    if (rc) lk_free(t);
    return rc;
}

static inline void dit_qwen_close(void *model) {
    lk_qwen_transformer_free(model);
    lk_free(model);
}

static inline struct dit_widths dit_qwen_widths(const void *model) {
    const struct lk_qwen_transformer_config *c = &((const struct lk_qwen_transformer *)model)->config;
    return (struct dit_widths){c->in_channels, c->in_channels, c->joint_attention_dim, c->dim, c->attention_head_dim};
}

static inline enum lk_code dit_qwen_rope(const void *model, const struct dit_tokens *n, float *cos, float *sin) {
    const int64_t tokens[] = {n->noise, n->ref};
    struct lk_qwen_grid grids[2];
    for (int i = 0; i < 2; i++) {
        int64_t height, width;
        dit_grid(tokens[i], &height, &width);
        grids[i] = (struct lk_qwen_grid){(int)height, (int)width};
    }
    return lk_qwen_rope(&((const struct lk_qwen_transformer *)model)->config, n->txt, grids, 1 + (n->ref > 0), cos,
                        sin);
}

static inline enum lk_code dit_qwen_forward(struct lk_device *dev, const void *model, const struct dit_inputs *in) {
    struct lk_qwen_conditioning conditioning = {.context = in->context, .cos = in->cos, .sin = in->sin};
    struct lk_qwen_pass pass = {
        .x = &in->x, .conditioning = &conditioning, .branch = "cond", .velocity = &in->velocity};
    size_t mark = lk_arena_mark(&dev->arena);
    LK_TRY(lk_qwen_look_ahead(dev, model, in->x.dtype, &(float){500.0f}, 1, &conditioning.ahead));
    LK_TRY(lk_qwen_embed_context(dev, model, &in->prompt_embeds, &in->context));
    LK_TRY(lk_qwen_transformer_forward(dev, model, &pass, 1));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

static const struct dit_family dit_qwen = {
    .name = "qwen",
    .folder = "transformer",
    .open = dit_qwen_open,
    .close = dit_qwen_close,
    .widths = dit_qwen_widths,
    .rope = dit_qwen_rope,
    .forward = dit_qwen_forward,
};
