/* CLIP's text towers: ViT-L/14 (CLIPTextModel) and bigG (CLIPTextModelWithProjection), which condition Stable
 * Diffusion and Stable Cascade. Pre-norm layers with biases everywhere; attention is causal. Source: transformers
 * modeling_clip.py. */
#pragma once

#include "models/common/layers.h"
#include "weights/config.h"

struct lk_clip_text_config {
    int64_t vocab_size, max_position_embeddings;
    int64_t hidden_size, intermediate_size, num_hidden_layers, num_attention_heads;
    int64_t projection_dim; /* 0: CLIPTextModel, which has no projection */
    int64_t eos_token_id;   /* of the pooled state; 2 in old configs, which means the largest id */
    enum lk_act hidden_act; /* quick_gelu or gelu */
    double layer_norm_eps;
};

/* A layer of either of CLIP's towers. */
struct lk_clip_layer {
    struct lk_layer layer_norm1, q_proj, k_proj, v_proj, out_proj, layer_norm2, fc1, fc2;
};
/* Binds "encoder.layers.I....": norms [hidden], fc1 [intermediate, hidden]. */
void lk_clip_layer_bind(struct lk_bind *b, struct lk_clip_layer *l, int64_t hidden, int64_t intermediate, int i);

/* What all layers of a tower share. */
struct lk_clip_form {
    int64_t n_heads;
    int64_t n_real; /* rows before the padding, which see these alone; padding sees no other padding */
    bool causal;    /* rows before the padding see no later ones */
    enum lk_act act;
    float eps;
};
/* h [n, H] += attention(norm1(h)); h += fc2(act(fc1(norm2(h)))). */
enum lk_code lk_clip_layer_run(struct lk_device *dev, const struct lk_clip_layer *l, const struct lk_clip_form *form,
                               const struct lk_tensor *h);

struct lk_clip_text {
    struct lk_clip_text_config config;
    struct lk_tensor token_embedding, position_embedding; /* [vocab, H], [positions, H] */
    struct lk_clip_layer *layers;
    struct lk_layer final_layer_norm;
    struct lk_tensor text_projection; /* [P, H] */
    struct lk_bind_totals totals;
    void *owned;
};

/* config.json of LAION's bigG, which SDXL and Stable Cascade have. */
extern const char lk_clip_text_big_g[];

/* config.json of the class CLIPTextModel, or CLIPTextModelWithProjection; unknown keys are errors. Takes and closes
 * `json`. */
enum lk_code lk_clip_text_config_read(struct lk_clip_text_config *out, struct lk_config *json, bool with_projection);
/* The same of an object in a larger config, which stays open. */
void lk_clip_text_config_take(struct lk_clip_text_config *out, struct lk_config *json, bool with_projection);
/* Keys of either tower that change nothing here. */
void lk_clip_config_ignore(struct lk_config *json);

/* checkpoint NULL for planning; component: for messages. Free with lk_clip_text_free. */
enum lk_code lk_clip_text_bind(struct lk_clip_text *m, const struct lk_clip_text_config *config,
                               const struct lk_checkpoint *checkpoint, const char *component, enum lk_dtype compute);
/* The same with adapters in its weights (lk_loras_open_whole); NULL: none. */
struct lk_loras;
enum lk_code lk_clip_text_bind_with(struct lk_clip_text *m, const struct lk_clip_text_config *config,
                                    const struct lk_checkpoint *checkpoint, const char *component,
                                    enum lk_dtype compute, struct lk_loras *loras);
void lk_clip_text_free(struct lk_clip_text *m);

struct lk_clip_text_pass {
    const char *name;   /* of the component, for traces: "text_encoder" */
    const int32_t *ids; /* [n], NULL when planning; below vocab_size */
    int64_t n;          /* at most max_position_embeddings */
    int64_t n_real;     /* rows before the padding, whose rows then attend to these alone; 0: padding is not masked */
    int64_t layer;      /* whose state is wanted: after so many layers */
    bool final_norm;    /* with the final norm */
    const struct lk_tensor *hidden; /* [n, H] window */
    const struct lk_tensor *pooled; /* [1, P]: the projected, normed last state at the end token; NULL: not wanted */
};
enum lk_code lk_clip_text_encode(struct lk_device *dev, const struct lk_clip_text *m,
                                 const struct lk_clip_text_pass *pass);
