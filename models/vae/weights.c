/* AutoencoderKL: configuration and weights. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "models/vae/autoencoder_kl.h"

static void read_block_types(struct lk_config *json, const char *key, const char *expected, int n_levels) {
    const char *types[LK_VAE_MAX_LEVELS];
    size_t n = 0;
    lk_config_strings(json, key, types, LK_VAE_MAX_LEVELS, &n);
    if (n && n != (size_t)n_levels)
        lk_config_problem(json, key, LK_E_CONFIG_VALUE, "expected %d entries as in block_out_channels, got %zu",
                          n_levels, n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(types[i], expected))
            lk_config_problem(json, key, LK_E_CONFIG_VALUE, "expected only \"%s\", got \"%s\"", expected, types[i]);
}

static void check_channels(struct lk_config *json, const struct lk_vae_config *c) {
    for (int i = 0; i < c->n_levels; i++)
        if (c->block_out_channels[i] < 1 || c->block_out_channels[i] > 65536 || c->norm_num_groups < 1 ||
            c->block_out_channels[i] % c->norm_num_groups)
            lk_config_problem(json, "block_out_channels", LK_E_CONFIG_VALUE,
                              "entry %d is %lld: expected a multiple of norm_num_groups", i,
                              (long long)c->block_out_channels[i]);
    if (c->n_levels && c->mid_block_add_attention && c->block_out_channels[c->n_levels - 1] > LK_VAE_MAX_ATTENTION)
        lk_config_problem(json, "block_out_channels", LK_E_CONFIG_VALUE,
                          "the last entry is %lld: expected at most %d, the widest head that attention has",
                          (long long)c->block_out_channels[c->n_levels - 1], LK_VAE_MAX_ATTENTION);
}

/* What only AutoencoderKLFlux2 has. */
static void read_statistics(struct lk_config *json, struct lk_vae_config *c) {
    int64_t patch_size[2] = {2, 2};
    size_t n_patch = 0;
    lk_config_ignore(json, "batch_norm_momentum"); /* training only */
    lk_config_expect_null(json, "decoder_block_out_channels");
    lk_config_number_or(json, "batch_norm_eps", &c->batch_norm_eps, 1e-4, 0, 1);
    if (!lk_config_has(json, "patch_size")) return;
    lk_config_ints(json, "patch_size", patch_size, 2, &n_patch);
    if (n_patch != 2 || patch_size[0] != 2 || patch_size[1] != 2)
        lk_config_problem(json, "patch_size", LK_E_CONFIG_VALUE, "expected [2, 2]: no other packing is implemented");
}

/* What only AutoencoderKL has. */
static void read_factors(struct lk_config *json, struct lk_vae_config *c) {
    if (!c->use_quant_conv) {
        lk_config_number(json, "scaling_factor", &c->scaling_factor, 1e-6, 1e6);
        lk_config_number(json, "shift_factor", &c->shift_factor, -1e6, 1e6);
    } else { /* Stable Diffusion names no shift, and at first no scale */
        lk_config_number_or(json, "scaling_factor", &c->scaling_factor, 0.18215, 1e-6, 1e6);
        lk_config_number_or(json, "shift_factor", &c->shift_factor, 0, -1e6, 1e6);
    }
    lk_config_expect_null(json, "latents_mean");
    lk_config_expect_null(json, "latents_std");
}

enum lk_code lk_vae_config_read(struct lk_vae_config *out, struct lk_config *json, const char *class_name) {
    struct lk_vae_config c = {.is_flux2 = !strcmp(class_name, "AutoencoderKLFlux2")};
    size_t n_levels = 0;
    lk_config_expect_string(json, "_class_name", class_name);
    lk_config_ignore(json, "_diffusers_version");
    lk_config_ignore(json, "_name_or_path");
    lk_config_ignore(json, "force_upcast"); /* the reference pipelines do not look at it */
    lk_config_expect_string(json, "act_fn", "silu");
    lk_config_int(json, "in_channels", &c.in_channels, 3, 3);
    lk_config_int(json, "out_channels", &c.out_channels, 3, 3);
    lk_config_int(json, "latent_channels", &c.latent_channels, 1, 1024);
    lk_config_ints(json, "block_out_channels", c.block_out_channels, LK_VAE_MAX_LEVELS, &n_levels);
    lk_config_int(json, "layers_per_block", &c.layers_per_block, 1, LK_VAE_MAX_RESNETS - 1);
    lk_config_int(json, "norm_num_groups", &c.norm_num_groups, 1, 1024);
    lk_config_int_or(json, "sample_size", &c.sample_size, 1024, 1, 65536);
    lk_config_bool_or(json, "use_quant_conv", &c.use_quant_conv, true);
    lk_config_bool_or(json, "use_post_quant_conv", &c.use_post_quant_conv, true);
    lk_config_bool_or(json, "mid_block_add_attention", &c.mid_block_add_attention, true);
    c.n_levels = (int)n_levels;
    read_block_types(json, "down_block_types", "DownEncoderBlock2D", c.n_levels);
    read_block_types(json, "up_block_types", "UpDecoderBlock2D", c.n_levels);
    check_channels(json, &c);
    if (c.is_flux2)
        read_statistics(json, &c);
    else
        read_factors(json, &c);
    *out = c;
    return lk_config_close(json);
}

int lk_vae_scale_factor(const struct lk_vae_config *config) { return 1 << (config->n_levels - 1); }

static void bind_conv(struct lk_bind *b, struct lk_layer *layer, const char *name, int64_t c_out, int64_t c_in,
                      int64_t kernel) {
    lk_bind_tensor(b, &layer->weight, 4, (int64_t[]){c_out, c_in, kernel, kernel}, "%s.weight", name);
    lk_bind_tensor(b, &layer->bias, 1, &c_out, "%s.bias", name);
}

static void bind_linear(struct lk_bind *b, struct lk_layer *layer, const char *name, int64_t n) {
    lk_bind_tensor(b, &layer->weight, 2, (int64_t[]){n, n}, "%s.weight", name);
    lk_bind_tensor(b, &layer->bias, 1, &n, "%s.bias", name);
}

static void bind_norm(struct lk_bind *b, struct lk_layer *layer, const char *name, int64_t n) {
    lk_bind_tensor(b, &layer->weight, 1, &n, "%s.weight", name);
    lk_bind_tensor(b, &layer->bias, 1, &n, "%s.bias", name);
}

#define NAME(buffer, ...) (snprintf(buffer, sizeof buffer, __VA_ARGS__), buffer)

static void bind_resnet(struct lk_bind *b, struct lk_vae_resnet *r, const char *name, int64_t c_in, int64_t c_out) {
    char full[128];
    bind_norm(b, &r->norm1, NAME(full, "%s.norm1", name), c_in);
    bind_conv(b, &r->conv1, NAME(full, "%s.conv1", name), c_out, c_in, 3);
    bind_norm(b, &r->norm2, NAME(full, "%s.norm2", name), c_out);
    bind_conv(b, &r->conv2, NAME(full, "%s.conv2", name), c_out, c_out, 3);
    if (c_in != c_out) bind_conv(b, &r->conv_shortcut, NAME(full, "%s.conv_shortcut", name), c_out, c_in, 1);
}

static void bind_mid(struct lk_bind *b, struct lk_vae_half *half, const char *side, int64_t c, bool attention) {
    char name[96];
    for (int i = 0; i < 2; i++) bind_resnet(b, &half->mid[i], NAME(name, "%s.mid_block.resnets.%d", side, i), c, c);
    if (!attention) return;
    bind_norm(b, &half->mid_attention.group_norm, NAME(name, "%s.mid_block.attentions.0.group_norm", side), c);
    bind_linear(b, &half->mid_attention.to_q, NAME(name, "%s.mid_block.attentions.0.to_q", side), c);
    bind_linear(b, &half->mid_attention.to_k, NAME(name, "%s.mid_block.attentions.0.to_k", side), c);
    bind_linear(b, &half->mid_attention.to_v, NAME(name, "%s.mid_block.attentions.0.to_v", side), c);
    bind_linear(b, &half->mid_attention.to_out, NAME(name, "%s.mid_block.attentions.0.to_out.0", side), c);
}

static void bind_encoder(struct lk_bind *b, struct lk_vae_half *half, const struct lk_vae_config *c) {
    char name[96];
    int64_t channels = c->block_out_channels[0], last = c->block_out_channels[c->n_levels - 1];
    bind_conv(b, &half->conv_in, "encoder.conv_in", channels, c->in_channels, 3);
    for (int i = 0; i < c->n_levels; i++) {
        half->levels[i].n_resnets = (int)c->layers_per_block;
        for (int j = 0; j < half->levels[i].n_resnets; j++) {
            bind_resnet(b, &half->levels[i].resnets[j], NAME(name, "encoder.down_blocks.%d.resnets.%d", i, j), channels,
                        c->block_out_channels[i]);
            channels = c->block_out_channels[i];
        }
        half->levels[i].has_sampler = i + 1 < c->n_levels;
        if (half->levels[i].has_sampler)
            bind_conv(b, &half->levels[i].sampler, NAME(name, "encoder.down_blocks.%d.downsamplers.0.conv", i),
                      channels, channels, 3);
    }
    bind_mid(b, half, "encoder", last, c->mid_block_add_attention);
    bind_norm(b, &half->conv_norm_out, "encoder.conv_norm_out", last);
    bind_conv(b, &half->conv_out, "encoder.conv_out", 2 * c->latent_channels, last, 3);
}

static void bind_decoder(struct lk_bind *b, struct lk_vae_half *half, const struct lk_vae_config *c) {
    char name[96];
    int64_t channels = c->block_out_channels[c->n_levels - 1];
    bind_conv(b, &half->conv_in, "decoder.conv_in", channels, c->latent_channels, 3);
    bind_mid(b, half, "decoder", channels, c->mid_block_add_attention);
    for (int i = 0; i < c->n_levels; i++) {
        int64_t c_out = c->block_out_channels[c->n_levels - 1 - i];
        half->levels[i].n_resnets = (int)c->layers_per_block + 1;
        for (int j = 0; j < half->levels[i].n_resnets; j++) {
            bind_resnet(b, &half->levels[i].resnets[j], NAME(name, "decoder.up_blocks.%d.resnets.%d", i, j), channels,
                        c_out);
            channels = c_out;
        }
        half->levels[i].has_sampler = i + 1 < c->n_levels;
        if (half->levels[i].has_sampler)
            bind_conv(b, &half->levels[i].sampler, NAME(name, "decoder.up_blocks.%d.upsamplers.0.conv", i), channels,
                      channels, 3);
    }
    bind_norm(b, &half->conv_norm_out, "decoder.conv_norm_out", channels);
    bind_conv(b, &half->conv_out, "decoder.conv_out", c->out_channels, channels, 3);
}

static float element(const struct lk_tensor *t, int64_t i) {
    float v;
    if (t->dtype == LK_BF16) return lk_bf16_to_f32(((const uint16_t *)t->data)[i]);
    memcpy(&v, (const char *)t->data + (size_t)i * sizeof v, sizeof v);
    return v;
}

/* mean, and std = r(sqrt(r(r(running_var) + eps))), in the compute dtype whatever the file has. */
static void statistics(const struct lk_vae *vae, const struct lk_tensor *mean, const struct lk_tensor *var) {
    float eps = (float)vae->config.batch_norm_eps;
    for (int64_t i = 0; i < mean->shape[0]; i++) {
        if (vae->bn_std.dtype == LK_BF16) {
            ((uint16_t *)vae->bn_mean.data)[i] = lk_f32_to_bf16(element(mean, i));
            ((uint16_t *)vae->bn_std.data)[i] = lk_f32_to_bf16(sqrtf(lk_round_bf16(element(var, i) + eps)));
        } else {
            ((float *)vae->bn_mean.data)[i] = element(mean, i);
            ((float *)vae->bn_std.data)[i] = sqrtf(element(var, i) + eps);
        }
    }
}

/* Bytes of the VAE's own, `bytes` of them, in owned[1]; without values they lie nowhere. */
static enum lk_code own(struct lk_vae *vae, bool with_values, size_t bytes, void **out) {
    if (!with_values) {
        *out = lk_bind_nowhere(bytes);
        return LK_OK;
    }
    vae->owned[1] = *out = lk_malloc(bytes);
    return *out ? LK_OK : lk_fail(LK_E_NOMEM, "vae: out of memory for %zu bytes of statistics", bytes);
}

static enum lk_code make_statistics(struct lk_vae *vae, const struct lk_tensor *mean, const struct lk_tensor *var,
                                    enum lk_dtype compute, bool with_values) {
    int64_t n = mean->shape[0];
    void *values;
    vae->bn_mean = vae->bn_std = LK_TENSOR(NULL, compute, n);
    size_t bytes = lk_tensor_bytes(&vae->bn_mean);
    LK_TRY(own(vae, with_values, 2 * bytes, &values));
    vae->bn_mean.data = values;
    vae->bn_std.data = (char *)values + bytes;
    if (with_values) statistics(vae, mean, var);
    return LK_OK;
}

/* The factors stay f32 in a bf16 model: torch takes a Python number unrounded. */
static enum lk_code make_factors(struct lk_vae *vae, bool with_values) {
    int64_t c = vae->config.latent_channels;
    void *values;
    LK_TRY(own(vae, with_values, 2 * (size_t)c * sizeof(float), &values));
    vae->shift = LK_TENSOR(values, LK_F32, c);
    vae->scaling = LK_TENSOR((char *)values + (size_t)c * sizeof(float), LK_F32, c);
    for (int64_t i = 0; with_values && i < c; i++) {
        ((float *)vae->shift.data)[i] = (float)vae->config.shift_factor;
        ((float *)vae->scaling.data)[i] = (float)vae->config.scaling_factor;
    }
    return LK_OK;
}

enum lk_code lk_vae_bind(struct lk_vae *vae, const struct lk_vae_config *config, const struct lk_checkpoint *checkpoint,
                         enum lk_dtype compute) {
    struct lk_tensor mean, var;
    struct lk_bind *b;
    int64_t c = config->latent_channels, packed = 4 * c;
    *vae = (struct lk_vae){.config = *config};
    LK_TRY(lk_bind_begin(&b, checkpoint, "vae", compute));
    bind_encoder(b, &vae->encoder, config);
    bind_decoder(b, &vae->decoder, config);
    if (config->use_quant_conv) bind_conv(b, &vae->quant_conv, "quant_conv", 2 * c, 2 * c, 1);
    if (config->use_post_quant_conv) bind_conv(b, &vae->post_quant_conv, "post_quant_conv", c, c, 1);
    if (config->is_flux2) {
        lk_bind_tensor(b, &mean, 1, &packed, "bn.running_mean");
        lk_bind_tensor(b, &var, 1, &packed, "bn.running_var");
        lk_bind_ignore(b, "bn.num_batches_tracked");
    }
    LK_TRY(lk_bind_finish(b, &vae->owned[0], &vae->totals));
    if (config->is_flux2)
        vae->totals.parameters -= (uint64_t)(2 * packed); /* running statistics are buffers, not parameters */
    enum lk_code rc = config->is_flux2 ? make_statistics(vae, &mean, &var, compute, checkpoint != NULL)
                                       : make_factors(vae, checkpoint != NULL);
    if (rc) lk_vae_free(vae);
    return rc;
}

void lk_vae_free(struct lk_vae *vae) {
    lk_free(vae->owned[0]);
    lk_free(vae->owned[1]);
    vae->owned[0] = vae->owned[1] = NULL;
}
