/* A FLUX.2 checkpoint of any size. */
#pragma once

#include "tools/make/weights.h"
#include "tools/make/family.h"

struct make_flux2 {
    /* transformer */
    int in_channels, n_double, n_single, head_dim, n_heads, axis_dim, time_channels;
    double mlp_ratio;
    /* text encoder */
    int hidden, intermediate, n_layers, n_q_heads, n_kv_heads, text_head_dim, vocab;
    struct make_autoencoder_kl vae;
};
