/* A FLUX.2 checkpoint of any size: configs, tensors and tokenizer in the released layout. */
#pragma once

#include <cjson/cJSON.h>

#include "tools/make/weights.h"

struct make_flux2 {
    /* transformer */
    int in_channels, n_double, n_single, head_dim, n_heads, axis_dim, time_channels;
    double mlp_ratio;
    /* text encoder */
    int hidden, intermediate, n_layers, n_q_heads, n_kv_heads, text_head_dim, vocab;
    /* VAE */
    int latent_channels, levels[4], layers_per_block, n_groups;
    uint64_t max_shard_bytes;
};

/* "tiny", "small" or "wide"; released_vae: the released VAE's widths (latent channels must be 32). */
enum lk_code make_flux2_preset(struct make_flux2 *out, const char *preset, bool released_vae);

/* Configs as diffusers and transformers save them; NULL when memory is out. */
cJSON *make_flux2_model_index(void);
cJSON *make_flux2_scheduler(void);
cJSON *make_flux2_transformer_config(const struct make_flux2 *f);
cJSON *make_flux2_vae_config(const struct make_flux2 *f);
cJSON *make_flux2_text_config(const struct make_flux2 *f);
cJSON *make_flux2_generation_config(void);
cJSON *make_flux2_tokenizer_config(void);
cJSON *make_flux2_tokenizer(int vocab);

void make_flux2_transformer(struct make_list *list, const struct make_flux2 *f);
void make_flux2_vae(struct make_list *list, const struct make_flux2 *f);
void make_flux2_text_encoder(struct make_list *list, const struct make_flux2 *f);
