/* The video autoencoder of Qwen-Image (AutoencoderKLQwenImage) at one frame: pixels [H, W, 3] in [-1, 1] to latents
 * [H/f, W/f, C] and back, f = 2^len(temperal_downsample). A causal 3-D convolution meets a single frame with its last
 * temporal tap only; the temporal convolutions of the samplers never run. Source: diffusers
 * autoencoder_kl_qwenimage.py. */
#pragma once

#include "models/vae/layers.h"
#include "weights/bind.h"
#include "weights/config.h"

#define LK_QWEN_VAE_MAX_LEVELS  8
#define LK_QWEN_VAE_MAX_RESNETS 8

struct lk_qwen_vae_config {
    int64_t base_dim, z_dim, num_res_blocks, input_channels;
    int64_t dim_mult[LK_QWEN_VAE_MAX_LEVELS];
    int n_levels;
    bool temporal_downsample[LK_QWEN_VAE_MAX_LEVELS]; /* n_levels - 1 of them */
    double latents_mean[64], latents_std[64];         /* z_dim of them */
};

struct lk_qwen_vae_resnet {
    struct lk_tensor norm1, norm2;
    struct lk_layer conv1, conv2, conv_shortcut; /* conv_shortcut only when channels change */
};

struct lk_qwen_vae_half {
    struct lk_layer conv_in;
    struct {
        struct lk_qwen_vae_resnet resnets[LK_QWEN_VAE_MAX_RESNETS];
        int n_resnets;
        struct lk_layer sampler;
        struct lk_layer time_conv; /* not used at one frame; bound so that it is counted, and missed */
        bool has_sampler;
    } levels[LK_QWEN_VAE_MAX_LEVELS];
    struct lk_qwen_vae_resnet mid[2];
    struct {
        struct lk_tensor norm;
        struct lk_layer to_qkv, proj;
    } mid_attention;
    struct lk_tensor norm_out;
    struct lk_layer conv_out;
};

struct lk_qwen_vae {
    struct lk_qwen_vae_config config;
    struct lk_qwen_vae_half encoder, decoder;
    struct lk_layer quant_conv, post_quant_conv;
    /* [C] in the compute dtype; std for encoding, inverse_std = r(1 / r(std)) for decoding, which divides by it. */
    struct lk_tensor latents_mean, latents_std, latents_inverse_std;
    struct lk_bind_totals totals;
    void *owned[2];
};

/* vae/config.json. Unknown keys are errors. Takes and closes `json`. */
enum lk_code lk_qwen_vae_config_read(struct lk_qwen_vae_config *out, struct lk_config *json);

/* checkpoint NULL for planning. Free with lk_qwen_vae_free. */
enum lk_code lk_qwen_vae_bind(struct lk_qwen_vae *vae, const struct lk_qwen_vae_config *config,
                              const struct lk_checkpoint *checkpoint, enum lk_dtype compute);
void lk_qwen_vae_free(struct lk_qwen_vae *vae);

int lk_qwen_vae_scale_factor(const struct lk_qwen_vae_config *config); /* f */

/* tile_rows: the levels of high resolution work through the picture in bands of about so many rows of pixels, which
 * takes less memory and, for the rows that neighbours share, more time; 0: all at once. No bit of the result changes.
 *
 * Traces: vae.encode.level.I and vae.decode.level.I, the value after level I with its sampler (not of tiled levels);
 * vae.encode.mid and vae.decode.mid. */

/* mean [H/f, W/f, C] of the posterior of pixels [H, W, 3], not normalised; H and W multiples of f. */
enum lk_code lk_qwen_vae_encode(struct lk_device *dev, const struct lk_qwen_vae *vae, const struct lk_tensor *pixels,
                                const struct lk_tensor *mean, int64_t tile_rows);
/* decoded [f h, f w, 3], not clamped, of latents [h, w, C], denormalised. */
enum lk_code lk_qwen_vae_decode(struct lk_device *dev, const struct lk_qwen_vae *vae, const struct lk_tensor *latents,
                                const struct lk_tensor *decoded, int64_t tile_rows);
