/* UNet2DConditionModel as Stable Diffusion 1.5 and SDXL have it: resnets and transformers over four or three levels,
 * with skips from the way down to the way up. Source: diffusers unet_2d_condition.py, unet_2d_blocks.py, attention.py.
 */
#pragma once

#include "models/common/layers.h"
#include "weights/config.h"
#include "weights/lora/lora.h"

#define LK_UNET_MAX_LEVELS  4
#define LK_UNET_MAX_RESNETS 5   /* of a level of the way up */
#define LK_UNET_MAX_DEPTH   100 /* blocks of a transformer */
#define LK_UNET_SIZE_IDS    6

struct lk_unet_config {
    int n_levels;
    int64_t block_out_channels[LK_UNET_MAX_LEVELS];
    int64_t n_heads[LK_UNET_MAX_LEVELS];                                   /* the config calls it attention_head_dim */
    int64_t depth[LK_UNET_MAX_LEVELS];                                     /* transformer blocks of a transformer */
    bool attends_down[LK_UNET_MAX_LEVELS], attends_up[LK_UNET_MAX_LEVELS]; /* up in its own order, smallest first */
    int64_t layers_per_block, cross_attention_dim, norm_num_groups, sample_size;
    int64_t in_channels, out_channels;
    double norm_eps;
    bool use_linear_projection;
    /* addition_embed_type "text_time" (SDXL): pooled text and six sizes join the timestep; 0: none. */
    int64_t addition_time_embed_dim, pooled_dim;
};

struct lk_unet_resnet {
    struct lk_layer norm1, conv1, time_emb_proj, norm2, conv2, conv_shortcut; /* the last when channels change */
    int64_t first_time; /* column of its part of the table of times */
};

struct lk_unet_attention {
    struct lk_layer to_q, to_k, to_v, to_out;
};

struct lk_unet_block {
    struct lk_layer norm1, norm2, norm3, ff_in, ff_out; /* ff_in [8 C, C]: values, then gates */
    struct lk_unet_attention attn1, attn2;
    int64_t first_key; /* column of its keys in the context's; its values follow */
};

struct lk_unet_transformer {
    struct lk_layer norm, proj_in, proj_out; /* proj [C, C], of a convolution too */
    struct lk_unet_block *blocks;
    int64_t n_blocks, n_heads; /* n_blocks 0: there is none */
};

struct lk_unet_level {
    struct lk_unet_resnet resnets[LK_UNET_MAX_RESNETS];
    struct lk_unet_transformer transformers[LK_UNET_MAX_RESNETS];
    int n_resnets;
    struct lk_layer sampler; /* absent at the last level */
    bool has_sampler;
};

struct lk_unet {
    struct lk_unet_config config;
    struct lk_layer conv_in, conv_norm_out, conv_out;
    struct lk_embedder time_embedding, add_embedding;
    struct lk_unet_level down[LK_UNET_MAX_LEVELS], up[LK_UNET_MAX_LEVELS];
    struct lk_unet_resnet mid[2];
    struct lk_unet_transformer mid_transformer;
    int64_t time_columns, key_columns;
    struct lk_bind_totals totals;
    struct lk_unet_block *blocks; /* all */
    void *owned, *filters;
};

/* unet/config.json. Unknown keys and values that are not implemented are errors. Takes and closes `json`. */
enum lk_code lk_unet_config_read(struct lk_unet_config *out, struct lk_config *json);
/* checkpoint NULL for planning; loras NULL: none, with other names of its modules. Free with lk_unet_free. */
struct lk_unet_adapters {
    struct lk_loras *loras;
    const struct lk_rename *names;
    size_t n_names;
};
enum lk_code lk_unet_bind(struct lk_unet *u, const struct lk_unet_config *config,
                          const struct lk_checkpoint *checkpoint, enum lk_dtype compute,
                          const struct lk_unet_adapters *adapters);
void lk_unet_free(struct lk_unet *u);

/* What the resnets add at each time: times [n_times, time_columns]. pooled [1, pooled_dim] and ids (original height and
 * width, crop top and left, target height and width) only with addition_time_embed_dim, else NULL. branch: of the
 * traces of the embedding, or NULL. */
struct lk_unet_times {
    const float *timesteps;
    int n_times;
    const struct lk_tensor *pooled;
    const float *ids;
    const char *branch;
    const struct lk_tensor *times;
};
enum lk_code lk_unet_look_ahead(struct lk_device *dev, const struct lk_unet *u, const struct lk_unet_times *in);

/* keys [n, key_columns] of all cross-attentions, values beside them, of a context [n, cross_attention_dim]. */
enum lk_code lk_unet_keys(struct lk_device *dev, const struct lk_unet *u, const struct lk_tensor *context,
                          const struct lk_tensor *keys);

struct lk_unet_pass {
    const struct lk_tensor *x;    /* [h, w, in_channels], h and w multiples of 2^(levels - 1) */
    const struct lk_tensor *time; /* [1, time_columns] */
    const struct lk_tensor *keys; /* [n, key_columns] */
    const struct lk_tensor *y;    /* [h, w, out_channels]: the prediction */
    const char *name;             /* traces of blocks begin with it, "step.0.negative"; NULL: they are not shown */
    const char *attention;        /* traces of cross-attentions begin with it */
};
enum lk_code lk_unet_forward(struct lk_device *dev, const struct lk_unet *u, const struct lk_unet_pass *pass);
