/* The convolutional autoencoder of the FLUX family (AutoencoderKL, AutoencoderKLFlux2): pixels [H, W, 3] in [-1, 1] to
 * latents [H/f, W/f, C] and back, f = 2^(levels - 1). Channels last throughout. Source: diffusers autoencoder_kl*.py,
 * vae.py.
 *
 * It works on the whole picture: a group norm takes mean and variance over all pixels, so that a band of rows by itself
 * gives other bits (Qwen-Image's norms look at one pixel, and its VAE can work in bands). What that costs decides no
 * budget: 1.5 GiB at 1024x1024 for a stage of its own, less than the transformer's with one streamed layer. */
#pragma once

#include "models/vae/layers.h"
#include "weights/bind.h"
#include "weights/config.h"

#define LK_VAE_MAX_LEVELS  8
#define LK_VAE_MAX_RESNETS 8

struct lk_vae_config {
    int64_t in_channels, out_channels, latent_channels;
    int64_t block_out_channels[LK_VAE_MAX_LEVELS];
    int n_levels;
    int64_t layers_per_block;
    int64_t norm_num_groups;
    int64_t sample_size;
    bool use_quant_conv, use_post_quant_conv, mid_block_add_attention;
    bool is_flux2;         /* AutoencoderKLFlux2: latents are normalised by running statistics of 2x2-packed channels */
    double batch_norm_eps; /* of those statistics */
    double scaling_factor, shift_factor; /* AutoencoderKL: (latents - shift) * scaling */
};

struct lk_vae_resnet {
    struct lk_layer norm1, conv1, norm2, conv2, conv_shortcut; /* conv_shortcut only when channels change */
};

struct lk_vae_attention {
    struct lk_layer group_norm, to_q, to_k, to_v, to_out;
};

/* An encoder (levels down) or a decoder (levels up). */
struct lk_vae_half {
    struct lk_layer conv_in;
    struct {
        struct lk_vae_resnet resnets[LK_VAE_MAX_RESNETS];
        int n_resnets;
        struct lk_layer sampler; /* downsampler or upsampler convolution; none at the last level */
        bool has_sampler;
    } levels[LK_VAE_MAX_LEVELS];
    struct lk_vae_resnet mid[2];
    struct lk_vae_attention mid_attention;
    struct lk_layer conv_norm_out, conv_out;
};

struct lk_vae {
    struct lk_vae_config config;
    struct lk_vae_half encoder, decoder;
    struct lk_layer quant_conv, post_quant_conv;
    struct lk_tensor bn_mean, bn_std; /* [4 C] in the compute dtype: std = sqrt(running_var + eps); FLUX.2's */
    struct lk_tensor shift, scaling;  /* f32 [C], the factors repeated, for lk_channel_affine with inverse_std; plain */
    struct lk_bind_totals totals;
    void *owned[2];
};

/* vae/config.json of the class that the family takes, "AutoencoderKLFlux2" or "AutoencoderKL"; another _class_name and
 * unknown keys are errors. Takes and closes `json`. */
enum lk_code lk_vae_config_read(struct lk_vae_config *out, struct lk_config *json, const char *class_name);

/* Binds the weights; checkpoint NULL for planning. compute: LK_F32 or LK_BF16. Free with lk_vae_free. */
enum lk_code lk_vae_bind(struct lk_vae *vae, const struct lk_vae_config *config, const struct lk_checkpoint *checkpoint,
                         enum lk_dtype compute);
void lk_vae_free(struct lk_vae *vae);

int lk_vae_scale_factor(const struct lk_vae_config *config); /* f */

/* The posterior of pixels [H, W, 3], H and W multiples of f: moments [H/f, W/f, 2 C], mean before log-variance, or the
 * mean [H/f, W/f, C] alone. Scratch from the device's arena. */
enum lk_code lk_vae_encode_moments(struct lk_device *dev, const struct lk_vae *vae, const struct lk_tensor *pixels,
                                   const struct lk_tensor *moments);
enum lk_code lk_vae_encode(struct lk_device *dev, const struct lk_vae *vae, const struct lk_tensor *pixels,
                           const struct lk_tensor *mean);
/* decoded [f h, f w, 3] of latents [h, w, C]. */
enum lk_code lk_vae_decode(struct lk_device *dev, const struct lk_vae *vae, const struct lk_tensor *latents,
                           const struct lk_tensor *decoded);
