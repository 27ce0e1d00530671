/* The convolutional autoencoder of the FLUX family at any size, for FLUX.2 and Step1X-Edit. */
#pragma once

#include "tools/make/weights.h"

struct make_autoencoder_kl {
    int latent_channels, levels[4], layers_per_block, n_groups;
    bool quant_convs, batch_norm;
};

void make_autoencoder_kl(struct make_list *list, const struct make_autoencoder_kl *vae);
