/* Qwen2.5-VL (Qwen2_5_VLForConditionalGeneration): vision tower and language model. As a text encoder it gives hidden
 * states of a prompt with images; with its output head it generates text (models/text/generate.h). Source: transformers
 * modeling_qwen2_5_vl.py. */
#pragma once

#include "models/common/layers.h"
#include "models/text/vlm.h"
#include "weights/config.h"

#define LK_QWEN25_VL_MAX_DEPTH 128 /* of the vision tower */
/* Base of the vision tower's rotation; no config had another. */
#define LK_QWEN25_VL_VISION_THETA 10000

struct lk_qwen25_vl_vision_config {
    int64_t depth, hidden_size, num_heads, intermediate_size, out_hidden_size;
    int64_t in_channels, patch_size, temporal_patch_size, spatial_merge_size, window_size;
    bool full_attention[LK_QWEN25_VL_MAX_DEPTH]; /* fullatt_block_indexes */
};

struct lk_qwen25_vl_config {
    int64_t vocab_size, hidden_size, intermediate_size, num_hidden_layers;
    int64_t num_attention_heads, num_key_value_heads, head_dim;
    double rms_norm_eps, rope_theta;
    int mrope_section[3]; /* frequencies of the t, h and w axis; together head_dim / 2 */
    int32_t image_token_id, vision_start_token_id, vision_end_token_id;
    bool tie_word_embeddings;
    struct lk_qwen25_vl_vision_config vision;
};

struct lk_qwen25_vl_layer {
    struct lk_tensor input_layernorm, post_attention_layernorm;
    struct lk_layer q_proj, k_proj, v_proj;
    struct lk_tensor o_proj, gate_proj, up_proj, down_proj;
};

struct lk_qwen25_vl_vision_block {
    struct lk_tensor norm1, norm2;
    struct lk_layer qkv, proj, gate_proj, up_proj, down_proj;
};

struct lk_qwen25_vl {
    struct lk_qwen25_vl_config config;
    struct lk_tensor embed_tokens, norm, lm_head; /* lm_head only when bound for generation */
    struct lk_qwen25_vl_layer *layers;
    struct lk_tensor patch_embed; /* [hidden, C, T, p, p] */
    struct lk_qwen25_vl_vision_block *blocks;
    struct {
        struct lk_tensor ln_q;
        struct lk_layer mlp_0, mlp_2;
    } merger;
    struct lk_bind_totals totals;        /* of everything bound */
    struct lk_bind_totals vision_totals; /* of which the vision tower */
    void *owned;
};

/* text_encoder/config.json, in the flat form of transformers 4 or with "text_config". Unknown keys are errors. Takes
 * and closes `json`. */
enum lk_code lk_qwen25_vl_config_read(struct lk_qwen25_vl_config *out, struct lk_config *json);

/* Both spellings of tensor names ("visual.", "model." and "model.visual.", "model.language_model."). lm_head: bind the
 * output head too, otherwise it is known and not read. checkpoint NULL for planning. Free with lk_qwen25_vl_free. */
enum lk_code lk_qwen25_vl_bind(struct lk_qwen25_vl *m, const struct lk_qwen25_vl_config *config, bool lm_head,
                               const struct lk_checkpoint *checkpoint, enum lk_dtype compute);
void lk_qwen25_vl_free(struct lk_qwen25_vl *m);

/* Tokens of an image in the language model: grid_h * grid_w / spatial_merge_size^2. */
int64_t lk_qwen25_vl_image_tokens(const struct lk_qwen25_vl_config *config, const struct lk_vlm_image *image);

/* features [image_tokens, out_hidden] of image number `index` (for the traces vision.INDEX.*). Once per image: all
 * prompts about it share them. */
enum lk_code lk_qwen25_vl_vision(struct lk_device *dev, const struct lk_qwen25_vl *m, const struct lk_vlm_image *image,
                                 int index, const struct lk_tensor *features);

/* Position triples (t, h, w) of the prompt: text counts up on all axes; an image's tokens stand at (c, c + y, c + x)
 * and advance the counter by the larger side. *next gets the counter after the last token. LK_E_INTERNAL when image
 * tokens and images do not match. */
enum lk_code lk_qwen25_vl_positions(const struct lk_qwen25_vl_config *config, const struct lk_vlm_prompt *prompt,
                                    int32_t (*positions)[3], int32_t *next);

/* hidden [n, hidden]: the state after the final norm, of every token. embeds [n, hidden] or NULL: the embeddings that
 * went in, images in their places. Traces NAME.text_encoder.hidden.N: the state after N layers (after the final norm
 * for the last N). */
enum lk_code lk_qwen25_vl_hidden_states(struct lk_device *dev, const struct lk_qwen25_vl *m,
                                        const struct lk_vlm_prompt *prompt, const struct lk_tensor *hidden,
                                        const struct lk_tensor *embeds);

/* m as generation sees it; it must outlive the view. Bind it with its head for logits. */
struct lk_vlm lk_qwen25_vl_view(const struct lk_qwen25_vl *m);
