/* A FLUX.2 checkpoint of any size. */
#pragma once

#include "tools/make/autoencoder_kl.h"
#include "tools/make/family.h"

struct make_flux2 {
    /* transformer */
    int in_channels, n_double, n_single, head_dim, n_heads, axis_dim, time_channels;
    double mlp_ratio;
    /* text encoder */
    int hidden, intermediate, n_layers, n_q_heads, n_kv_heads, text_head_dim, vocab;
    struct make_autoencoder_kl vae;
};

/* size: a struct make_flux2. */
void make_flux2_transformer(struct make_list *list, const void *size);
void make_flux2_text_encoder(struct make_list *list, const void *size);
