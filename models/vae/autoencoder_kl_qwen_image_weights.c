/* AutoencoderKLQwenImage: configuration and weights. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "models/vae/autoencoder_kl_qwen_image.h"

#define MAX_LATENT_CHANNELS (sizeof((struct lk_qwen_vae_config *)0)->latents_mean / sizeof(double))

/* One number per latent channel. */
static void read_statistic(struct lk_config *json, const char *key, double *out, int64_t z_dim, bool divisor) {
    size_t n = 0;
    lk_config_numbers(json, key, out, MAX_LATENT_CHANNELS, &n);
    if (n && n != (size_t)z_dim)
        lk_config_problem(json, key, LK_E_CONFIG_VALUE, "expected z_dim = %lld numbers, got %zu", (long long)z_dim, n);
    for (size_t i = 0; divisor && i < n; i++)
        if (!(out[i] > 1e-6 && out[i] < 1e6))
            lk_config_problem(json, key, LK_E_CONFIG_VALUE, "number %zu is %g: expected a positive one", i, out[i]);
}

static void check_levels(struct lk_config *json, const struct lk_qwen_vae_config *c, size_t n_samplers) {
    if (c->n_levels < 2)
        lk_config_problem(json, "dim_mult", LK_E_CONFIG_VALUE, "expected at least 2 levels, got %d", c->n_levels);
    if (n_samplers + 1 != (size_t)c->n_levels)
        lk_config_problem(json, "temperal_downsample", LK_E_CONFIG_VALUE,
                          "expected one entry less than the %d of dim_mult, got %zu", c->n_levels, n_samplers);
    for (int i = 0; i < c->n_levels; i++)
        if (c->dim_mult[i] < 1 || c->dim_mult[i] > 64)
            lk_config_problem(json, "dim_mult", LK_E_CONFIG_VALUE, "entry %d is %lld: expected 1 to 64", i,
                              (long long)c->dim_mult[i]);
        else if (i && c->base_dim * c->dim_mult[i] % 2)
            lk_config_problem(json, "dim_mult", LK_E_CONFIG_VALUE,
                              "level %d has %lld channels: expected an even number, which the upsampler halves", i,
                              (long long)(c->base_dim * c->dim_mult[i]));
    if (c->n_levels && c->base_dim * c->dim_mult[c->n_levels - 1] > LK_VAE_MAX_ATTENTION)
        lk_config_problem(json, "dim_mult", LK_E_CONFIG_VALUE,
                          "base_dim times the last entry is %lld: expected at most %d, the widest head that attention "
                          "has",
                          (long long)(c->base_dim * c->dim_mult[c->n_levels - 1]), LK_VAE_MAX_ATTENTION);
}

enum lk_code lk_qwen_vae_config_read(struct lk_qwen_vae_config *out, struct lk_config *json) {
    struct lk_qwen_vae_config c = {0};
    size_t n_levels = 0, n_samplers = 0, n_scales = 0;
    double scales[1];
    lk_config_expect_string(json, "_class_name", "AutoencoderKLQwenImage");
    lk_config_ignore(json, "_diffusers_version");
    lk_config_ignore(json, "_name_or_path");
    lk_config_ignore(json, "dropout"); /* training only */
    /* What the class in diffusers does not know and other copies of the file hold. */
    lk_config_expect_bool(json, "is_residual", false);
    lk_config_expect_null(json, "patch_size");
    lk_config_expect_null(json, "clip_output");
    lk_config_int(json, "base_dim", &c.base_dim, 1, 4096);
    lk_config_int(json, "z_dim", &c.z_dim, 1, MAX_LATENT_CHANNELS);
    lk_config_int_or(json, "input_channels", &c.input_channels, 3, 3, 3);
    lk_config_int(json, "num_res_blocks", &c.num_res_blocks, 1, LK_QWEN_VAE_MAX_RESNETS - 1);
    lk_config_ints(json, "dim_mult", c.dim_mult, LK_QWEN_VAE_MAX_LEVELS, &n_levels);
    lk_config_bools(json, "temperal_downsample", c.temporal_downsample, LK_QWEN_VAE_MAX_LEVELS - 1, &n_samplers);
    if (lk_config_has(json, "attn_scales")) lk_config_numbers(json, "attn_scales", scales, 1, &n_scales);
    if (n_scales)
        lk_config_problem(json, "attn_scales", LK_E_CONFIG_VALUE,
                          "expected an empty list: attention is implemented in the middle only");
    read_statistic(json, "latents_mean", c.latents_mean, c.z_dim, false);
    read_statistic(json, "latents_std", c.latents_std, c.z_dim, true);
    c.n_levels = (int)n_levels;
    check_levels(json, &c, n_samplers);
    *out = c;
    return lk_config_close(json);
}

int lk_qwen_vae_scale_factor(const struct lk_qwen_vae_config *config) { return 1 << (config->n_levels - 1); }

#define NAME(buffer, ...) (snprintf(buffer, sizeof buffer, __VA_ARGS__), buffer)

static void bind_bias(struct lk_bind *b, struct lk_layer *layer, const char *name, int64_t c_out) {
    lk_bind_tensor(b, &layer->bias, 1, &c_out, "%s.bias", name);
}

/* A causal 3-D convolution with a cubic kernel. */
static void bind_conv3d(struct lk_bind *b, struct lk_layer *layer, const char *name, int64_t c_out, int64_t c_in,
                        int64_t kernel) {
    lk_bind_tensor(b, &layer->weight, 5, (int64_t[]){c_out, c_in, kernel, kernel, kernel}, "%s.weight", name);
    bind_bias(b, layer, name, c_out);
}

static void bind_conv2d(struct lk_bind *b, struct lk_layer *layer, const char *name, int64_t c_out, int64_t c_in,
                        int64_t kernel) {
    lk_bind_tensor(b, &layer->weight, 4, (int64_t[]){c_out, c_in, kernel, kernel}, "%s.weight", name);
    bind_bias(b, layer, name, c_out);
}

static void bind_norm(struct lk_bind *b, struct lk_tensor *gamma, const char *name, int64_t c) {
    lk_bind_tensor(b, gamma, 4, (int64_t[]){c, 1, 1, 1}, "%s.gamma", name);
}

static void bind_resnet(struct lk_bind *b, struct lk_qwen_vae_resnet *r, const char *name, int64_t c_in,
                        int64_t c_out) {
    char full[128];
    bind_norm(b, &r->norm1, NAME(full, "%s.norm1", name), c_in);
    bind_conv3d(b, &r->conv1, NAME(full, "%s.conv1", name), c_out, c_in, 3);
    bind_norm(b, &r->norm2, NAME(full, "%s.norm2", name), c_out);
    bind_conv3d(b, &r->conv2, NAME(full, "%s.conv2", name), c_out, c_out, 3);
    if (c_in != c_out) bind_conv3d(b, &r->conv_shortcut, NAME(full, "%s.conv_shortcut", name), c_out, c_in, 1);
}

static void bind_mid(struct lk_bind *b, struct lk_qwen_vae_half *half, const char *side, int64_t c) {
    char name[96];
    for (int i = 0; i < 2; i++) bind_resnet(b, &half->mid[i], NAME(name, "%s.mid_block.resnets.%d", side, i), c, c);
    lk_bind_tensor(b, &half->mid_attention.norm, 3, (int64_t[]){c, 1, 1}, "%s.mid_block.attentions.0.norm.gamma", side);
    bind_conv2d(b, &half->mid_attention.to_qkv, NAME(name, "%s.mid_block.attentions.0.to_qkv", side), 3 * c, c, 1);
    bind_conv2d(b, &half->mid_attention.proj, NAME(name, "%s.mid_block.attentions.0.proj", side), c, c, 1);
}

/* The 3x3 convolution of a sampler, and the temporal one if it has that: [time_out, c, 3, 1, 1]. */
static void bind_sampler(struct lk_bind *b, struct lk_qwen_vae_half *half, int level, const char *name, int64_t c_out,
                         int64_t c, int64_t time_out) {
    char full[128];
    half->levels[level].has_sampler = true;
    bind_conv2d(b, &half->levels[level].sampler, NAME(full, "%s.resample.1", name), c_out, c, 3);
    if (!time_out) return;
    struct lk_layer *layer = &half->levels[level].time_conv;
    lk_bind_tensor(b, &layer->weight, 5, (int64_t[]){time_out, c, 3, 1, 1}, "%s.time_conv.weight", name);
    bind_bias(b, layer, NAME(full, "%s.time_conv", name), time_out);
}

/* encoder.down_blocks numbers resnets and downsamplers in one row. */
static void bind_encoder(struct lk_bind *b, struct lk_qwen_vae_half *half, const struct lk_qwen_vae_config *c) {
    char name[96];
    int64_t channels = c->base_dim;
    int block = 0;
    bind_conv3d(b, &half->conv_in, "encoder.conv_in", channels, c->input_channels, 3);
    for (int i = 0; i < c->n_levels; i++) {
        half->levels[i].n_resnets = (int)c->num_res_blocks;
        for (int j = 0; j < half->levels[i].n_resnets; j++) {
            bind_resnet(b, &half->levels[i].resnets[j], NAME(name, "encoder.down_blocks.%d", block++), channels,
                        c->base_dim * c->dim_mult[i]);
            channels = c->base_dim * c->dim_mult[i];
        }
        if (i + 1 < c->n_levels)
            bind_sampler(b, half, i, NAME(name, "encoder.down_blocks.%d", block++), channels, channels,
                         c->temporal_downsample[i] ? channels : 0);
    }
    bind_mid(b, half, "encoder", channels);
    bind_norm(b, &half->norm_out, "encoder.norm_out", channels);
    bind_conv3d(b, &half->conv_out, "encoder.conv_out", 2 * c->z_dim, channels, 3);
}

/* The decoder's samplers are the encoder's in reverse, and halve the channels. */
static void bind_decoder(struct lk_bind *b, struct lk_qwen_vae_half *half, const struct lk_qwen_vae_config *c) {
    char name[96];
    int64_t channels = c->base_dim * c->dim_mult[c->n_levels - 1];
    bind_conv3d(b, &half->conv_in, "decoder.conv_in", channels, c->z_dim, 3);
    bind_mid(b, half, "decoder", channels);
    for (int i = 0; i < c->n_levels; i++) {
        int64_t c_out = c->base_dim * c->dim_mult[c->n_levels - 1 - i];
        half->levels[i].n_resnets = (int)c->num_res_blocks + 1;
        for (int j = 0; j < half->levels[i].n_resnets; j++) {
            bind_resnet(b, &half->levels[i].resnets[j], NAME(name, "decoder.up_blocks.%d.resnets.%d", i, j), channels,
                        c_out);
            channels = c_out;
        }
        if (i + 1 == c->n_levels) break;
        bind_sampler(b, half, i, NAME(name, "decoder.up_blocks.%d.upsamplers.0", i), channels / 2, channels,
                     c->temporal_downsample[c->n_levels - 2 - i] ? 2 * channels : 0);
        channels /= 2;
    }
    bind_norm(b, &half->norm_out, "decoder.norm_out", channels);
    bind_conv3d(b, &half->conv_out, "decoder.conv_out", c->input_channels, channels, 3);
}

/* mean, std and 1 / std, rounded where the reference's tensors are. */
static void fill_statistics(const struct lk_qwen_vae *vae, enum lk_dtype compute) {
    for (int64_t i = 0; i < vae->config.z_dim; i++) {
        float mean = (float)vae->config.latents_mean[i], std = (float)vae->config.latents_std[i];
        if (compute == LK_BF16) {
            ((uint16_t *)vae->latents_mean.data)[i] = lk_f32_to_bf16(mean);
            ((uint16_t *)vae->latents_std.data)[i] = lk_f32_to_bf16(std);
            ((uint16_t *)vae->latents_inverse_std.data)[i] = lk_f32_to_bf16(1.0f / lk_round_bf16(std));
        } else {
            ((float *)vae->latents_mean.data)[i] = mean;
            ((float *)vae->latents_std.data)[i] = std;
            ((float *)vae->latents_inverse_std.data)[i] = 1.0f / std;
        }
    }
}

static enum lk_code make_statistics(struct lk_qwen_vae *vae, bool values, enum lk_dtype compute) {
    struct lk_tensor *all[] = {&vae->latents_mean, &vae->latents_std, &vae->latents_inverse_std};
    size_t bytes = (size_t)vae->config.z_dim * lk_dtype_size(compute);
    if (values && !(vae->owned[1] = lk_malloc(3 * bytes)))
        return lk_fail(LK_E_NOMEM, "vae: out of memory for %zu bytes of statistics", 3 * bytes);
    char *block = values ? vae->owned[1] : lk_bind_nowhere(3 * bytes);
    for (int i = 0; i < 3; i++) *all[i] = LK_TENSOR(block + (size_t)i * bytes, compute, (int64_t)vae->config.z_dim);
    if (values) fill_statistics(vae, compute);
    return LK_OK;
}

enum lk_code lk_qwen_vae_bind(struct lk_qwen_vae *vae, const struct lk_qwen_vae_config *config,
                              const struct lk_checkpoint *checkpoint, enum lk_dtype compute) {
    struct lk_bind *b;
    *vae = (struct lk_qwen_vae){.config = *config};
    LK_TRY(lk_bind_begin(&b, checkpoint, "vae", compute));
    bind_encoder(b, &vae->encoder, config);
    bind_decoder(b, &vae->decoder, config);
    bind_conv3d(b, &vae->quant_conv, "quant_conv", 2 * config->z_dim, 2 * config->z_dim, 1);
    bind_conv3d(b, &vae->post_quant_conv, "post_quant_conv", config->z_dim, config->z_dim, 1);
    LK_TRY(lk_bind_finish(b, &vae->owned[0], &vae->totals));
    enum lk_code rc = make_statistics(vae, checkpoint != NULL, compute);
    if (rc) lk_qwen_vae_free(vae);
    return rc;
}

void lk_qwen_vae_free(struct lk_qwen_vae *vae) {
    lk_free(vae->owned[0]);
    lk_free(vae->owned[1]);
    vae->owned[0] = vae->owned[1] = NULL;
}
