/* Mistral-Small-3 whole (Mistral3ForConditionalGeneration): the Pixtral vision tower, its projector, the language model
 * and the output head. FLUX.2-dev's text encoder is this model, of which editing uses the first 30 layers only
 * (models/text/mistral.h). Source: transformers modeling_mistral3.py, modeling_pixtral.py. */
#pragma once

#include "models/common/layers.h"
#include "models/text/mistral.h"
#include "models/text/vlm.h"

struct lk_pixtral_config {
    int64_t hidden_size, intermediate_size, num_hidden_layers, num_attention_heads;
    int64_t num_channels, patch_size;
    double rope_theta;
    enum lk_act hidden_act;
};

struct lk_mistral3_config {
    struct lk_mistral_config text;
    struct lk_pixtral_config vision;
    bool projector_bias;
    int32_t image_token_index;
};

struct lk_pixtral_layer {
    struct lk_tensor attention_norm, ffn_norm;
    struct lk_tensor q_proj, k_proj, v_proj, o_proj;
    struct lk_tensor gate_proj, up_proj, down_proj;
};

struct lk_mistral3 {
    struct lk_mistral3_config config;
    struct lk_mistral text; /* all layers and the final norm; its memory is ours */
    struct lk_tensor lm_head;
    struct lk_tensor patch_conv, ln_pre; /* [hidden, C, p, p] */
    struct lk_pixtral_layer *layers;
    struct {
        struct lk_tensor norm, merging_layer;
        struct lk_layer linear_1, linear_2;
    } projector;
    struct lk_bind_totals totals;
    void *owned;
};

/* Tokens that an image's side of the language model is merged from: 2 x 2 patches. */
#define LK_MISTRAL3_MERGE 2

/* config.json with vision_config and text_config. Unknown keys are errors, as is what would compute another network.
 * Takes and closes `json`. */
enum lk_code lk_mistral3_config_read(struct lk_mistral3_config *out, struct lk_config *json);

/* The three spellings of tensor names: as released, as transformers holds them since 4.52, as writers of single files
 * have the language model ("model."). checkpoint NULL for planning. Free with lk_mistral3_free. */
enum lk_code lk_mistral3_bind(struct lk_mistral3 *m, const struct lk_mistral3_config *config,
                              const struct lk_checkpoint *checkpoint, enum lk_dtype compute);
void lk_mistral3_free(struct lk_mistral3 *m);

/* features [grid_h / 2 * grid_w / 2, hidden of the language model] of image number `index` (for the traces
 * vision.INDEX.*). */
enum lk_code lk_mistral3_vision(struct lk_device *dev, const struct lk_mistral3 *m, const struct lk_vlm_image *image,
                                int index, const struct lk_tensor *features);

/* m as generation sees it; it must outlive the view. */
struct lk_vlm lk_mistral3_view(const struct lk_mistral3 *m);
