/* The decoder of PaellaVQModel, stage A of Stable Cascade: latents [h, w, 4] to a picture [4 h, 4 w, 3] in [0, 1], not
 * clamped. Decoding does not quantise. Source: diffusers modeling_paella_vq_model.py. */
#pragma once

#include "models/common/layers.h"
#include "weights/config.h"

#define LK_PAELLA_MAX_BLOCKS 64
#define LK_PAELLA_SCALARS    6

struct lk_paella_config {
    int64_t out_channels, embed_dim, latent_channels;
    int n_bottleneck;
    double scale_factor; /* latents are multiplied by it */
};

struct lk_paella_block {
    struct lk_tensor gammas; /* [6], as bound */
    struct lk_tensor each;   /* [7, c]: each of them repeated, and zeros, in the compute dtype */
    struct lk_layer depthwise, expand, contract;
};

struct lk_paella {
    struct lk_paella_config config;
    struct lk_layer in, up, out;                             /* up: as a convolution 3 x 3 to 4 times the channels */
    struct lk_paella_block blocks[LK_PAELLA_MAX_BLOCKS + 1]; /* the last one at twice the size, half the channels */
    struct lk_bind_totals totals;
    void *owned, *made;
};

/* vqgan/config.json. Takes and closes `json`. */
enum lk_code lk_paella_config_read(struct lk_paella_config *out, struct lk_config *json);
/* checkpoint NULL for planning. Free with lk_paella_free. */
enum lk_code lk_paella_bind(struct lk_paella *m, const struct lk_paella_config *config,
                            const struct lk_checkpoint *checkpoint, enum lk_dtype compute);
void lk_paella_free(struct lk_paella *m);

/* latents are scaled already. */
enum lk_code lk_paella_decode(struct lk_device *dev, const struct lk_paella *m, const struct lk_tensor *latents,
                              const struct lk_tensor *picture);
