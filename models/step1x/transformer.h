/* Step1XEditTransformer2DModel: a connector that refines the text encoder's states, then double- and single-stream
 * blocks. Source: the diffusers fork of the model's authors, transformer_step1x_edit.py (branch step1xedit_v1p2). */
#pragma once

#include "models/common/mmdit.h"
#include "weights/config.h"
#include "weights/lora/lora.h"

#define LK_STEP1X_AXES       3
#define LK_STEP1X_ROPE_THETA 10000.0
/* Fixed in the original: channels of the timestep's sinusoids, and of the pooled text. */
#define LK_STEP1X_TIMESTEP_DIM 256
#define LK_STEP1X_POOLED_DIM   768

struct lk_step1x_transformer_config {
    int64_t in_channels, out_channels, num_layers, num_single_layers, attention_head_dim, num_attention_heads;
    int64_t connector_in_channels, connector_hidden_size, connector_heads_num, connector_depth;
    int axes_dims_rope[LK_STEP1X_AXES];
    bool has_enable_text_token_mapping; /* the config says whether there is a mapping */
    bool enable_text_token_mapping;
    int64_t dim; /* D = heads * head_dim */
};

struct lk_step1x_refiner_block {
    struct lk_layer norm1, norm2; /* [H] */
    struct lk_layer self_attn_qkv, self_attn_proj, mlp_fc1, mlp_fc2;
    struct lk_layer adaln_modulation; /* [2 H, H]: gates of attention and MLP */
};

struct lk_step1x_connector {
    struct lk_layer global_proj_out, input_embedder;
    struct lk_embedder t_embedder, c_embedder;
    struct lk_step1x_refiner_block *blocks;
};

struct lk_step1x_single_block {
    struct lk_layer norm, to_q, to_k, to_v, proj_mlp, proj_out;
    struct lk_tensor norm_q, norm_k;
};

struct lk_step1x_transformer {
    struct lk_step1x_transformer_config config;
    struct lk_layer x_embedder, context_embedder, text_token_mapping, norm_out, proj_out;
    struct lk_embedder time_embed, vec_embed;
    struct lk_step1x_connector connector;
    struct lk_mmdit_block *double_blocks;
    struct lk_step1x_single_block *single_blocks;
    struct lk_bind_totals totals;
    void *owned;
};

/* transformer/config.json. Unknown keys are errors. Whether there is a text_token_mapping is decided by the config, or,
 * where the config does not say, by the checkpoint (lk_step1x_transformer_bind). Takes and closes `json`. */
enum lk_code lk_step1x_transformer_config_read(struct lk_step1x_transformer_config *out, struct lk_config *json);

/* Names of layers in LoRA files beside diffusers': those of the authors' own code. */
extern const struct lk_rename lk_step1x_other_names[];
extern const size_t lk_step1x_n_other_names;

/* Modules that are never quantised: modulation, which can be computed ahead, and the ends. Ends in NULL. Of Step1X-Edit
 * also the last projection is quantised: those of all single blocks have its name. */
extern const char *const lk_step1x_kept[];

/* checkpoint NULL for planning. t->config says afterwards whether there is a text_token_mapping. Free with
 * lk_step1x_transformer_free. */
enum lk_code lk_step1x_transformer_bind(struct lk_step1x_transformer *t,
                                        const struct lk_step1x_transformer_config *config,
                                        const struct lk_checkpoint *checkpoint, enum lk_dtype compute,
                                        enum lk_quantize quantize, struct lk_loras *loras);
void lk_step1x_transformer_free(struct lk_step1x_transformer *t);

/* What stays the same over the steps of a job, for one prompt (the negative one has its own). */
struct lk_step1x_conditioning {
    struct lk_tensor hidden;   /* [n_txt, connector_in_channels]: the text encoder's states */
    struct lk_tensor embeds;   /* [n_txt, connector_in_channels]: token embeddings; read where quoted */
    const bool *quoted;        /* host [n_txt]; NULL: no token is quoted */
    struct lk_tensor cos, sin; /* f32 [n_txt + n_img, head_dim / 2], text rows first */
    struct lk_ahead ahead;     /* goes by the text too */
    /* Keys and values of all rows, block by block, [2 * blocks * rows of cos, D]: passes write those of their own rows
     * and attend to all. No dimensions: they are a pass's own. */
    struct lk_tensor kv;
};

/* Refines the text encoder's states `hidden` [n_txt, connector_in_channels] into refined [n_txt,
 * connector_hidden_size]. sinusoids [1, 256]: of the timestep. */
enum lk_code lk_step1x_connect(struct lk_device *dev, const struct lk_step1x_transformer *t,
                               const struct lk_tensor *hidden, const struct lk_tensor *sinusoids,
                               const struct lk_tensor *refined);
/* pooled [1, 768]: a projection of the states' mean. */
enum lk_code lk_step1x_pool(struct lk_device *dev, const struct lk_step1x_transformer *t,
                            const struct lk_tensor *hidden, const struct lk_tensor *pooled);

/* Modulation at all steps for one prompt. timesteps_1000 are the scheduler's; branch names the traces, of which only
 * those of "cond" have the timesteps' embeddings. *out stays in the arena. */
enum lk_code lk_step1x_look_ahead(struct lk_device *dev, const struct lk_step1x_transformer *t,
                                  const struct lk_tensor *hidden, const float *timesteps_1000, int n_steps,
                                  const char *branch, struct lk_ahead *out);

/* x [n_img, in_channels]: noise tokens, then reference tokens; velocity [n_noise, out_channels] of the first n_noise
 * rows. With conditioning->kv x may be only the first of the rows that it was filled with. timestep_1000 is the
 * scheduler's. `step` and `branch` ("cond", "uncond") name the traces. */
struct lk_step1x_pass {
    const struct lk_tensor *x;
    const struct lk_step1x_conditioning *conditioning;
    float timestep_1000;
    int step;
    const char *branch;
    const struct lk_tensor *velocity;
    int slice_rows;         /* of a block at a time; 0: all */
    struct lk_cache *cache; /* models/common/cache.h; NULL: none */
};

/* One forward of each of at most LK_MAX_PASSES. Scratch from the device's arena. */
enum lk_code lk_step1x_transformer_forward(struct lk_device *dev, const struct lk_step1x_transformer *t,
                                           const struct lk_step1x_pass *in, int n);
