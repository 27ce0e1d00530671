/* QwenImageTransformer2DModel: double-stream blocks with joint attention over text and image. With zero_cond_t the
 * reference tokens are modulated as at time 0. Source: diffusers transformer_qwenimage.py. */
#pragma once

#include "models/common/mmdit.h"
#include "weights/config.h"
#include "weights/lora/lora.h"

#define LK_QWEN_AXES       3
#define LK_QWEN_MAX_IMAGES 11 /* the target and ten references */

struct lk_qwen_transformer_config {
    int64_t in_channels, out_channels; /* out_channels as in the file: before the 2x2 patches */
    int64_t patch_size, num_layers, attention_head_dim, num_attention_heads, joint_attention_dim;
    int axes_dims_rope[LK_QWEN_AXES];
    bool zero_cond_t;
    int64_t dim; /* D = heads * head_dim */
};

struct lk_qwen_transformer {
    struct lk_qwen_transformer_config config;
    struct lk_embedder timestep_embedder;
    struct lk_layer img_in, txt_in, norm_out, proj_out;
    struct lk_tensor txt_norm; /* [joint_attention_dim] */
    struct lk_mmdit_block *blocks;
    struct lk_bind_totals totals;
    void *owned;
};

/* transformer/config.json. Unknown keys are errors. Takes and closes `json`. */
enum lk_code lk_qwen_transformer_config_read(struct lk_qwen_transformer_config *out, struct lk_config *json);

/* Names of layers in LoRA files beside diffusers'. */
extern const struct lk_rename lk_qwen_other_names[];
extern const size_t lk_qwen_n_other_names;

/* Modules that are never quantised: modulation, which can be computed ahead, and the ends. Ends in NULL. */
extern const char *const lk_qwen_kept[];

/* checkpoint NULL for planning. Free with lk_qwen_transformer_free. */
enum lk_code lk_qwen_transformer_bind(struct lk_qwen_transformer *t, const struct lk_qwen_transformer_config *config,
                                      const struct lk_checkpoint *checkpoint, enum lk_dtype compute,
                                      enum lk_quantize quantize, struct lk_loras *loras);
void lk_qwen_transformer_free(struct lk_qwen_transformer *t);

/* Token grids: the target's, then each reference's. */
struct lk_qwen_grid {
    int height, width; /* tokens */
};

/* What stays the same over the steps of a job, for one prompt (the negative one has its own). */
struct lk_qwen_conditioning {
    struct lk_tensor context;  /* [n_txt, D]: txt_in(txt_norm(prompt_embeds)) */
    struct lk_tensor cos, sin; /* f32 [n_txt + n_img, head_dim / 2], text rows first */
    struct lk_ahead ahead;     /* the same for all prompts */
};

/* LK_E_IMAGE_SIZE when a position of n_txt text rows is beyond the reference's tables (4096); *first: that of the first
 * row. */
enum lk_code lk_qwen_rope_check(int64_t n_txt, const struct lk_qwen_grid *grids, int n_grids, int32_t *first);
/* The rotation table for n_txt text rows and the images: host f32 [n_txt + n_img, head_dim / 2] each. Codes as
 * lk_qwen_rope_check. */
enum lk_code lk_qwen_rope(const struct lk_qwen_transformer_config *config, int64_t n_txt,
                          const struct lk_qwen_grid *grids, int n_grids, float *cos_out, float *sin_out);

/* context = txt_in(txt_norm(prompt_embeds [n_txt, joint_attention_dim])). */
enum lk_code lk_qwen_embed_context(struct lk_device *dev, const struct lk_qwen_transformer *t,
                                   const struct lk_tensor *prompt_embeds, const struct lk_tensor *context);

/* Modulation at all steps, and at time zero. timesteps_1000 are the scheduler's. *out stays in the arena. */
enum lk_code lk_qwen_look_ahead(struct lk_device *dev, const struct lk_qwen_transformer *t, enum lk_dtype dtype,
                                const float *timesteps_1000, int n_steps, struct lk_ahead *out);

/* x [n_img, in_channels]: noise tokens, then reference tokens; velocity [n_noise, 4 out_channels] of the first n_noise
 * rows. `branch` ("cond", "uncond") names the traces, as step does. */
struct lk_qwen_pass {
    const struct lk_tensor *x;
    const struct lk_qwen_conditioning *conditioning;
    int step;
    const char *branch;
    const struct lk_tensor *velocity;
    int slice_rows;         /* of a block at a time; 0: all */
    struct lk_cache *cache; /* models/common/cache.h; NULL: none */
};

/* One forward of each of at most LK_MAX_PASSES. Scratch from the device's arena. */
enum lk_code lk_qwen_transformer_forward(struct lk_device *dev, const struct lk_qwen_transformer *t,
                                         const struct lk_qwen_pass *in, int n);
