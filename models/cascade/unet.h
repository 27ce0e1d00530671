/* StableCascadeUNet: stage C (from text to 16 channels of "image embeddings") and stage B (from those to the latents of
 * stage A). Levels of residual blocks with a global response norm, timestep blocks and attention blocks. Source:
 * diffusers unet_stable_cascade.py. */
#pragma once

#include "models/common/layers.h"
#include "weights/config.h"

#define LK_CASCADE_MAX_LEVELS  4
#define LK_CASCADE_MAX_REPEATS 4
#define LK_CASCADE_TIME        64 /* of the timestep's embedding */
#define LK_CASCADE_CLIP_SEQ    4  /* rows that a pooled text becomes */

struct lk_cascade_config {
    int64_t in_channels, out_channels, patch_size, conditioning_dim;
    int n_levels;
    int64_t channels[LK_CASCADE_MAX_LEVELS], n_heads[LK_CASCADE_MAX_LEVELS]; /* n_heads 0: no attention */
    int64_t down_layers[LK_CASCADE_MAX_LEVELS];
    int64_t up_layers[LK_CASCADE_MAX_LEVELS], up_repeats[LK_CASCADE_MAX_LEVELS]; /* the deepest level first */
    int64_t text_dim, pooled_dim, image_dim;                                     /* text, image 0: stage B */
    int64_t effnet_dim, pixels_dim;                                              /* 0: stage C */
    int n_conds;                                                                 /* beside the time: sca, crp */
    bool keeps_size; /* stage C: levels are of one size; else each is half the one before */
};

enum lk_cascade_kind { LK_CASCADE_RES, LK_CASCADE_TIMESTEP, LK_CASCADE_ATTENTION };

struct lk_cascade_block {
    enum lk_cascade_kind kind;
    bool takes_skip;
    struct lk_layer depthwise, expand, contract; /* channelwise.0 [4 c, c (+ skip)] and .4 [c, 4 c] */
    struct lk_tensor gamma, beta;                /* [1, 1, 1, 4 c] */
    struct lk_layer mappers[3];                  /* [2 c, 64]: of the time, sca, crp */
    struct lk_layer kv_mapper, to_q, to_k, to_v, to_out;
};

struct lk_cascade_level {
    struct lk_cascade_block *blocks;
    int n_blocks;
    struct lk_layer scaler; /* into this level on the way down, out of it on the way up; absent at the ends */
    struct lk_layer repeat_mappers[LK_CASCADE_MAX_REPEATS - 1];
};

struct lk_cascade_unet {
    struct lk_cascade_config config;
    struct lk_layer pooled_mapper, text_mapper, image_mapper, effnet[2], pixels[2], embedding, clf;
    struct lk_cascade_level down[LK_CASCADE_MAX_LEVELS], up[LK_CASCADE_MAX_LEVELS]; /* up: the deepest first */
    struct lk_bind_totals totals;
    struct lk_cascade_block *blocks; /* all */
    void *owned, *transposed;
};

/* prior/config.json or decoder/config.json. Unknown keys and values that are not implemented are errors. Takes and
 * closes `json`. */
enum lk_code lk_cascade_config_read(struct lk_cascade_config *out, struct lk_config *json);
/* checkpoint NULL for planning. Free with lk_cascade_unet_free. */
enum lk_code lk_cascade_unet_bind(struct lk_cascade_unet *u, const struct lk_cascade_config *config,
                                  const struct lk_checkpoint *checkpoint, enum lk_dtype compute);
void lk_cascade_unet_free(struct lk_cascade_unet *u);

/* Rows of the conditioning: 85 with 77 rows of text, 4 without. */
int64_t lk_cascade_clip_rows(const struct lk_cascade_unet *u, int64_t n_text);
/* clip [rows, conditioning_dim] of text [n, text_dim] (stage C; NULL in stage B) and pooled [1, pooled_dim]; there is
 * no picture. */
enum lk_code lk_cascade_condition(struct lk_device *dev, const struct lk_cascade_unet *u, const struct lk_tensor *text,
                                  const struct lk_tensor *pooled, const struct lk_tensor *clip);

struct lk_cascade_pass {
    const struct lk_tensor *x;    /* [h, w, in_channels]; sides multiples of patch_size 2^(levels - 1) */
    float time;                   /* 1 is noise, 0 the picture */
    const struct lk_tensor *clip; /* of lk_cascade_condition */
    /* Stage B: stage C's latents, enlarged to x's size in patches (lk_cascade_enlarge): [h w / patch_size^2, 16]. */
    const struct lk_tensor *effnet;
    const struct lk_tensor *y; /* [h, w, out_channels]: the prediction of the noise */
};
enum lk_code lk_cascade_forward(struct lk_device *dev, const struct lk_cascade_unet *u,
                                const struct lk_cascade_pass *pass);

/* y [to_h, to_w, channels] of x [h, w, channels]: bilinear, corners aligned. */
struct lk_cascade_sizes {
    int64_t h, w, to_h, to_w, channels;
};
void lk_cascade_enlarge(const float *x, const struct lk_cascade_sizes *sizes, float *y);
