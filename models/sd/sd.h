/* Stable Diffusion 1.5 and SDXL: what their pipelines hold. Private to models/sd. Source: diffusers
 * pipeline_stable_diffusion.py, pipeline_stable_diffusion_xl.py. */
#pragma once

#include "models/family.h"
#include "models/sd/sampler.h"
#include "models/sd/sega.h"
#include "models/sd/single_file.h"
#include "models/sd/unet.h"
#include "models/text/clip_text.h"
#include "models/tokenizer/tokenizer.h"
#include "models/vae/autoencoder_kl.h"
#include "weights/quant/rename.h"

#define LK_SD_IDS LK_CLIP_IDS

enum { LK_SD_TEXT, LK_SD_UNET, LK_SD_VAE, LK_SD_TEXT_2, LK_SD_CHECKPOINTS };

struct lk_sd {
    bool xl;
    bool force_zeros; /* SDXL: without a negative prompt the second branch is told zeros, not "" */
    struct lk_sampler_config scheduler;
    struct lk_tokenizer *tokenizers[2]; /* the second of each is SDXL's */
    struct lk_clip_ids clip_ids[2];
    /* Always in f32: in bf16 the reference rounds quick_gelu three times, the op once; f32 is nearer to both, and of a
     * whole run these are a fraction. */
    struct lk_clip_text text[2];
    int n_text;
    struct lk_checkpoint checkpoints[LK_SD_CHECKPOINTS];
    struct lk_unet unet;
    struct lk_vae vae;
};

/* The released configurations as JSON texts, for planning without files: of SD 1.5 and SDXL. */
struct lk_sd_released {
    const char *scheduler, *text_encoder, *text_encoder_2, *unet, *vae;
};
extern const struct lk_sd_released lk_sd_released[2];

enum lk_code lk_sd_open(struct lk_pipeline *pipeline, bool with_weights);
void lk_sd_close(struct lk_pipeline *pipeline);

/* Opens m's checkpoints from a single file, and takes over what that says of its training. LK_E_BIND where a part is
 * missing. */
enum lk_code lk_sd_open_single_file(struct lk_sd *m, const char *path, const struct lk_unet_config *unet,
                                    const struct lk_vae_config *vae);

/* What the modules of a UNet are called in its authors' code (LDM), as rules from there to here. */
struct lk_sd_names {
    struct lk_rename *list;
    size_t n, capacity;
    enum lk_code rc;
};
enum lk_code lk_sd_unet_names(struct lk_sd_names *out, const struct lk_unet_config *config);
void lk_sd_names_free(struct lk_sd_names *names); /* in any case */

extern const struct lk_stages lk_sd_stages;
