/* Networks of Stable Diffusion and Stable Cascade for bench_dit: a UNet, stage C, a VAE's decoder. The noise is a
 * square of latents; --txt is 77; there is no reference. */
#pragma once

#include "bench/dit.h"
#include "engine/base/alloc.h"
#include "models/cascade/unet.h"
#include "models/sd/unet.h"
#include "models/vae/autoencoder_kl.h"

static inline enum lk_code dit_no_rope(const void *model, const struct dit_tokens *tokens, float *cos, float *sin) {
    (void)model, (void)tokens, (void)cos, (void)sin;
    return LK_OK;
}

static inline struct lk_tensor dit_square(const struct lk_tensor *rows, int64_t side, int64_t channels) {
    return LK_VIEW(rows, side, side, channels);
}

static inline int64_t dit_side(const struct dit_inputs *in) { return (int64_t)sqrt((double)in->x.shape[0]); }

static inline enum lk_code dit_sd_open(void **model, struct lk_config *json, const struct lk_checkpoint *checkpoint,
                                       enum lk_dtype compute) {
    struct lk_unet_config config;
    LK_TRY(lk_unet_config_read(&config, json));
    struct lk_unet *u = *model = lk_calloc(1, sizeof *u);
    if (!u) return lk_fail(LK_E_NOMEM, "UNet: out of memory");
    enum lk_code rc = lk_unet_bind(u, &config, checkpoint, compute, &(struct lk_unet_adapters){0});
    if (rc) lk_free(u);
    return rc;
}

static inline void dit_sd_close(void *model) {
    lk_unet_free(model);
    lk_free(model);
}

static inline struct dit_widths dit_sd_widths(const void *model) {
    const struct lk_unet_config *c = &((const struct lk_unet *)model)->config;
    return (struct dit_widths){c->in_channels, c->out_channels, c->cross_attention_dim, 8, 2};
}

static inline enum lk_code dit_sd_forward(struct lk_device *dev, const void *model, const struct dit_inputs *in) {
    const struct lk_unet *u = model;
    const size_t mark = lk_arena_mark(&dev->arena);
    const int64_t n = in->prompt_embeds.shape[0], side = dit_side(in);
    struct lk_tensor times, keys;
    LK_TRY(LK_NEW(&dev->arena, &times, in->x.dtype, 1, u->time_columns));
    LK_TRY(LK_NEW(&dev->arena, &keys, in->x.dtype, n, u->key_columns));
    LK_TRY(lk_unet_look_ahead(
        dev, u, &(struct lk_unet_times){.timesteps = (const float[]){500}, .n_times = 1, .times = &times}));
    LK_TRY(lk_unet_keys(dev, u, &in->prompt_embeds, &keys));
    const struct lk_tensor x = dit_square(&in->x, side, u->config.in_channels);
    const struct lk_tensor y = dit_square(&in->velocity, side, u->config.out_channels);
    LK_TRY(lk_unet_forward(dev, u, &(struct lk_unet_pass){.x = &x, .time = &times, .keys = &keys, .y = &y}));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

static const struct dit_family dit_sd = {.name = "sd",
                                         .folder = "unet",
                                         .open = dit_sd_open,
                                         .close = dit_sd_close,
                                         .widths = dit_sd_widths,
                                         .rope = dit_no_rope,
                                         .forward = dit_sd_forward};

static inline enum lk_code dit_stage_c_open(void **model, struct lk_config *json,
                                            const struct lk_checkpoint *checkpoint, enum lk_dtype compute) {
    struct lk_cascade_config config;
    LK_TRY(lk_cascade_config_read(&config, json));
    struct lk_cascade_unet *u = *model = lk_calloc(1, sizeof *u);
    if (!u) return lk_fail(LK_E_NOMEM, "stage C: out of memory");
    enum lk_code rc = lk_cascade_unet_bind(u, &config, checkpoint, compute);
    if (rc) lk_free(u);
    return rc;
}

static inline void dit_stage_c_close(void *model) {
    lk_cascade_unet_free(model);
    lk_free(model);
}

static inline struct dit_widths dit_stage_c_widths(const void *model) {
    const struct lk_cascade_config *c = &((const struct lk_cascade_unet *)model)->config;
    return (struct dit_widths){c->in_channels, c->out_channels, c->text_dim, 8, 2};
}

/* The text's first row is its pooled state as well. */
static inline enum lk_code dit_stage_c_forward(struct lk_device *dev, const void *model, const struct dit_inputs *in) {
    const struct lk_cascade_unet *u = model;
    const size_t mark = lk_arena_mark(&dev->arena);
    const int64_t side = dit_side(in);
    struct lk_tensor clip;
    LK_TRY(LK_NEW(&dev->arena, &clip, in->x.dtype, lk_cascade_clip_rows(u, in->prompt_embeds.shape[0]),
                  u->config.conditioning_dim));
    const struct lk_tensor pooled = lk_tensor_rows(&in->prompt_embeds, 0, 1);
    LK_TRY(lk_cascade_condition(dev, u, &in->prompt_embeds, &pooled, &clip));
    const struct lk_tensor x = dit_square(&in->x, side, u->config.in_channels);
    const struct lk_tensor y = dit_square(&in->velocity, side, u->config.out_channels);
    LK_TRY(lk_cascade_forward(dev, u, &(struct lk_cascade_pass){.x = &x, .time = 0.5f, .clip = &clip, .y = &y}));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

static const struct dit_family dit_stage_c = {.name = "stage_c",
                                              .folder = "prior",
                                              .open = dit_stage_c_open,
                                              .close = dit_stage_c_close,
                                              .widths = dit_stage_c_widths,
                                              .rope = dit_no_rope,
                                              .forward = dit_stage_c_forward};

static inline enum lk_code dit_vae_open(void **model, struct lk_config *json, const struct lk_checkpoint *checkpoint,
                                        enum lk_dtype compute) {
    struct lk_vae_config config;
    LK_TRY(lk_vae_config_read(&config, json, "AutoencoderKL"));
    struct lk_vae *v = *model = lk_calloc(1, sizeof *v);
    if (!v) return lk_fail(LK_E_NOMEM, "VAE: out of memory");
    enum lk_code rc = lk_vae_bind(v, &config, checkpoint, compute);
    if (rc) lk_free(v);
    return rc;
}

static inline void dit_vae_close(void *model) {
    lk_vae_free(model);
    lk_free(model);
}

/* A latent pixel becomes f f pixels of three channels. */
static inline struct dit_widths dit_vae_widths(const void *model) {
    const struct lk_vae_config *c = &((const struct lk_vae *)model)->config;
    const int64_t f = lk_vae_scale_factor(c);
    return (struct dit_widths){c->latent_channels, 3 * f * f, 8, 8, 2};
}

static inline enum lk_code dit_vae_forward(struct lk_device *dev, const void *model, const struct dit_inputs *in) {
    const struct lk_vae *v = model;
    const int64_t side = dit_side(in), f = lk_vae_scale_factor(&v->config);
    const struct lk_tensor x = dit_square(&in->x, side, v->config.latent_channels);
    const struct lk_tensor y = dit_square(&in->velocity, f * side, 3);
    return lk_vae_decode(dev, v, &x, &y);
}

static const struct dit_family dit_vae = {.name = "vae",
                                          .folder = "vae",
                                          .open = dit_vae_open,
                                          .close = dit_vae_close,
                                          .widths = dit_vae_widths,
                                          .rope = dit_no_rope,
                                          .forward = dit_vae_forward};
