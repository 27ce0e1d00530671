/* Qwen2.5-VL: the language model. */
#include "models/text/qwen25_vl.h"

#include "engine/base/alloc.h"

#define AXES 3

int64_t lk_qwen25_vl_image_tokens(const struct lk_qwen25_vl_config *config, const struct lk_vlm_image *image) {
    int64_t merge = config->vision.spatial_merge_size;
    return image->grid_h / merge * (image->grid_w / merge);
}

/* The tokens of one image from `at`, which must all be there. */
static enum lk_code place_image(const struct lk_qwen25_vl_config *config, const struct lk_vlm_prompt *prompt, int image,
                                int64_t at, int32_t (*positions)[AXES], int32_t *counter) {
    const struct lk_vlm_image *g = &prompt->images[image];
    int32_t merge = (int32_t)config->vision.spatial_merge_size, w = g->grid_w / merge, h = g->grid_h / merge;
    int64_t n = lk_qwen25_vl_image_tokens(config, g);
    for (int64_t i = 0; i < n; i++) {
        if (at + i == prompt->n || prompt->ids[at + i] != config->image_token_id)
            return lk_fail(LK_E_INTERNAL, "prompt: image %d has %lld tokens, expected %lld", image + 1, (long long)i,
                           (long long)n);
        positions[at + i][0] = *counter;
        positions[at + i][1] = *counter + (int32_t)(i / w);
        positions[at + i][2] = *counter + (int32_t)(i % w);
    }
    *counter += h > w ? h : w;
    return LK_OK;
}

enum lk_code lk_qwen25_vl_positions(const struct lk_qwen25_vl_config *config, const struct lk_vlm_prompt *prompt,
                                    int32_t (*positions)[AXES], int32_t *next) {
    int image = 0;
    int32_t counter = 0;
    for (int64_t i = 0; i < prompt->n; i++) {
        if (prompt->ids[i] == config->image_token_id) {
            if (image == prompt->n_images)
                return lk_fail(LK_E_INTERNAL, "prompt: image token at %lld, after the last of %d images", (long long)i,
                               prompt->n_images);
            LK_TRY(place_image(config, prompt, image, i, positions, &counter));
            i += lk_qwen25_vl_image_tokens(config, &prompt->images[image++]) - 1;
        } else {
            int32_t position = prompt->ids[i] == prompt->uncounted_id ? 1 : counter++;
            for (int axis = 0; axis < AXES; axis++) positions[i][axis] = position;
        }
    }
    if (image < prompt->n_images)
        return lk_fail(LK_E_INTERNAL, "prompt: tokens of %d images, expected %d", image, prompt->n_images);
    *next = counter;
    return LK_OK;
}

static int64_t image_tokens(const void *model, const struct lk_vlm_image *image) {
    return lk_qwen25_vl_image_tokens(&((const struct lk_qwen25_vl *)model)->config, image);
}

static enum lk_code positions_of(const void *model, const struct lk_vlm_prompt *prompt, int32_t (*positions)[AXES],
                                 int32_t *next) {
    return lk_qwen25_vl_positions(&((const struct lk_qwen25_vl *)model)->config, prompt, positions, next);
}

static enum lk_code vision(struct lk_device *dev, const void *model, const struct lk_vlm_image *image, int index,
                           const struct lk_tensor *features) {
    return lk_qwen25_vl_vision(dev, model, image, index, features);
}

static void layer(const void *model, int64_t i, struct lk_decoder_layer *out) {
    const struct lk_qwen25_vl_layer *l = &((const struct lk_qwen25_vl *)model)->layers[i];
    *out = (struct lk_decoder_layer){.input_norm = &l->input_layernorm,
                                     .post_norm = &l->post_attention_layernorm,
                                     .q = {&l->q_proj.weight, &l->q_proj.bias},
                                     .k = {&l->k_proj.weight, &l->k_proj.bias},
                                     .v = {&l->v_proj.weight, &l->v_proj.bias},
                                     .o = {&l->o_proj, NULL},
                                     .gate = &l->gate_proj,
                                     .up = &l->up_proj,
                                     .down = &l->down_proj};
}

struct lk_vlm lk_qwen25_vl_view(const struct lk_qwen25_vl *m) {
    const struct lk_qwen25_vl_config *c = &m->config;
    return (struct lk_vlm){.name = "qwen2.5-vl",
                           .model = m,
                           .embed_tokens = &m->embed_tokens,
                           .norm = &m->norm,
                           .lm_head = &m->lm_head,
                           .vocab_size = c->vocab_size,
                           .hidden_size = c->hidden_size,
                           .n_layers = c->num_hidden_layers,
                           .n_heads = c->num_attention_heads,
                           .n_kv_heads = c->num_key_value_heads,
                           .head_dim = c->head_dim,
                           .eps = c->rms_norm_eps,
                           .rope_theta = c->rope_theta,
                           .rope_sections = {c->mrope_section[0], c->mrope_section[1], c->mrope_section[2]},
                           .image_token_id = c->image_token_id,
                           .layer = layer,
                           .image_tokens = image_tokens,
                           .vision = vision,
                           .positions = positions_of};
}

enum lk_code lk_qwen25_vl_hidden_states(struct lk_device *dev, const struct lk_qwen25_vl *m,
                                        const struct lk_vlm_prompt *prompt, const struct lk_tensor *hidden,
                                        const struct lk_tensor *embeds) {
    struct lk_vlm view = lk_qwen25_vl_view(m);
    int32_t(*positions)[AXES] = NULL, next;
    if (prompt->ids) {
        positions = lk_malloc((size_t)prompt->n * sizeof *positions);
        if (!positions) return lk_fail(LK_E_NOMEM, "positions: out of memory");
    }
    enum lk_code rc = positions ? lk_qwen25_vl_positions(&m->config, prompt, positions, &next) : LK_OK;
    if (!rc) rc = lk_vlm_embed(dev, &view, prompt, 0, hidden);
    if (!rc && embeds) rc = lk_copy(dev, &(struct lk_copy){.y = embeds, .x = hidden});
    if (!rc) rc = lk_vlm_layers(dev, &view, hidden, (const int32_t(*)[AXES])positions, NULL, NULL, 0, prompt->name);
    lk_free(positions);
    if (rc) return rc;
    LK_TRY(lk_decoder_norm(dev, hidden, hidden, &m->norm, m->config.rms_norm_eps));
    return lk_trace(dev, hidden, "%s.text_encoder.hidden.%d", prompt->name, (int)m->config.num_hidden_layers);
}
