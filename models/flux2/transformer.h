/* Flux2Transformer2DModel: double-stream blocks (image and text with weights of their own, joint attention), then
 * single-stream blocks over text and image together. Source: diffusers transformer_flux2.py. */
#pragma once

#include "models/common/mmdit.h"
#include "weights/config.h"
#include "weights/lora/lora.h"

#define LK_FLUX2_AXES          4
#define LK_FLUX2_MAX_EMBEDDING 4096 /* timestep_guidance_channels at most */

struct lk_flux2_transformer_config {
    int64_t in_channels, out_channels;
    int64_t num_layers, num_single_layers;
    int64_t attention_head_dim, num_attention_heads;
    int64_t joint_attention_dim, timestep_guidance_channels;
    int axes_dims_rope[LK_FLUX2_AXES];
    double mlp_ratio, rope_theta, eps;
    bool guidance_embeds;
    int64_t dim;     /* D = heads * head_dim */
    int64_t mlp_dim; /* M = int(D * mlp_ratio) */
};

struct lk_flux2_single_block {
    struct lk_layer to_qkv_mlp_proj; /* [3 D + 2 M, D]: rows q, k, v, gate, up */
    struct lk_layer to_out;          /* [D, D + M]: columns attention, MLP */
    struct lk_tensor norm_q, norm_k;
};

struct lk_flux2_transformer {
    struct lk_flux2_transformer_config config;
    struct lk_layer x_embedder, context_embedder;
    struct lk_embedder timestep_embedder, guidance_embedder;
    struct lk_layer double_stream_modulation_img, double_stream_modulation_txt; /* [6 D, D] */
    struct lk_layer single_stream_modulation;                                   /* [3 D, D] */
    struct lk_mmdit_block *double_blocks;                                       /* ff_in [2 M, D]: gate, up; no mod */
    struct lk_flux2_single_block *single_blocks;
    struct lk_layer norm_out, proj_out;
    struct lk_bind_totals totals;
    void *owned;
};

/* transformer/config.json. Unknown keys are errors. Takes and closes `json`. */
enum lk_code lk_flux2_transformer_config_read(struct lk_flux2_transformer_config *out, struct lk_config *json);

/* Black Forest Labs' names. */
extern const struct lk_rename lk_flux2_other_names[];
extern const size_t lk_flux2_n_other_names;
/* Gives the tensors of a file under BFL's names those that this model binds. */
enum lk_code lk_flux2_rename(struct lk_checkpoint *checkpoint);
/* Modules that are never quantised: modulation, which can be computed ahead, and the ends. Ends in NULL. */
extern const char *const lk_flux2_kept[];

/* checkpoint NULL for planning. Free with lk_flux2_transformer_free. */
enum lk_code lk_flux2_transformer_bind(struct lk_flux2_transformer *t, const struct lk_flux2_transformer_config *config,
                                       const struct lk_checkpoint *checkpoint, enum lk_dtype compute,
                                       enum lk_quantize quantize, struct lk_loras *loras);
void lk_flux2_transformer_free(struct lk_flux2_transformer *t);

/* What stays the same over the steps of a job. */
struct lk_flux2_conditioning {
    struct lk_tensor context;  /* [n_txt, D]: context_embedder's output */
    struct lk_tensor cos, sin; /* f32 [n_txt + n_img, head_dim / 2], text rows first */
    struct lk_ahead ahead;
};

/* context = context_embedder(prompt_embeds [n_txt, joint_attention_dim]). */
enum lk_code lk_flux2_embed_context(struct lk_device *dev, const struct lk_flux2_transformer *t,
                                    const struct lk_tensor *prompt_embeds, const struct lk_tensor *context);

/* Modulation at all steps. timesteps_1000 are the scheduler's (0..1000). *out stays in the arena. */
enum lk_code lk_flux2_look_ahead(struct lk_device *dev, const struct lk_flux2_transformer *t, enum lk_dtype dtype,
                                 const float *timesteps_1000, int n_steps, float guidance, struct lk_ahead *out);

/* x [n_img, in_channels]: noise tokens, then reference tokens; velocity [n_noise, out_channels]: of the first n_noise.
 */
struct lk_flux2_pass {
    const struct lk_tensor *x;
    const struct lk_flux2_conditioning *conditioning;
    int step;
    const struct lk_tensor *velocity;
    int slice_rows;         /* of a block at a time; 0: all */
    struct lk_cache *cache; /* models/common/cache.h; NULL: none */
};

/* One forward of each of at most LK_MAX_PASSES. Scratch from the device's arena. */
enum lk_code lk_flux2_transformer_forward(struct lk_device *dev, const struct lk_flux2_transformer *t,
                                          const struct lk_flux2_pass *in, int n);
