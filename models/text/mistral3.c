/* Mistral-Small-3: configuration, weights, and the model as generation sees it. */
#include "models/text/mistral3.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "weights/quant/config.h"

static void ignore_all(struct lk_config *json, const char *const *keys, size_t n) {
    for (size_t i = 0; i < n; i++) lk_config_ignore(json, keys[i]);
}
#define IGNORE_ALL(json, keys) ignore_all(json, keys, sizeof(keys) / sizeof *(keys))

/* transformers' class has gelu where the file says nothing; released files say silu. */
static void read_act(struct lk_config *json, enum lk_act *act) {
    const char *name = NULL;
    lk_config_string_or(json, "hidden_act", &name, "gelu");
    if (!name || !strcmp(name, "silu"))
        *act = LK_ACT_SILU;
    else if (!strcmp(name, "gelu"))
        *act = LK_ACT_GELU_ERF;
    else
        lk_config_problem(json, "hidden_act", LK_E_CONFIG_VALUE, "expected \"silu\" or \"gelu\", got \"%.80s\"", name);
}

static void read_vision(struct lk_config *json, struct lk_pixtral_config *v) {
    static const char *const inert[] = {"architectures", "attention_dropout",   "dtype",
                                        "torch_dtype",   "initializer_range",   "image_size",
                                        "_name_or_path", "transformers_version"};
    IGNORE_ALL(json, inert);
    lk_config_expect_string(json, "model_type", "pixtral");
    lk_config_int_or(json, "hidden_size", &v->hidden_size, 1024, 1, 1 << 16);
    lk_config_int_or(json, "intermediate_size", &v->intermediate_size, 4096, 1, 1 << 20);
    lk_config_int_or(json, "num_hidden_layers", &v->num_hidden_layers, 24, 1, 1000);
    lk_config_int_or(json, "num_attention_heads", &v->num_attention_heads, 16, 1, 4096);
    lk_config_int_or(json, "num_channels", &v->num_channels, 3, 3, 3);
    lk_config_int_or(json, "patch_size", &v->patch_size, 16, 1, 256);
    read_act(json, &v->hidden_act);
    int64_t heads = v->num_attention_heads, head_dim = heads ? v->hidden_size / heads : 0;
    lk_config_expect_int(json, "head_dim", head_dim);
    struct lk_config *rope = lk_config_object(json, "rope_parameters", false);
    lk_config_expect_string(rope, "rope_type", "axial");
    lk_config_number_or(rope ? rope : json, "rope_theta", &v->rope_theta, 10000, 1, 1e12);
    if (heads && (v->hidden_size % heads || head_dim % 4 || head_dim < 4 || head_dim > 512))
        lk_config_problem(json, "num_attention_heads", LK_E_CONFIG_VALUE,
                          "expected heads whose size is a multiple of 4 up to 512, got hidden_size / "
                          "num_attention_heads = %lld / %lld",
                          (long long)v->hidden_size, (long long)heads);
}

enum lk_code lk_mistral3_config_read(struct lk_mistral3_config *out, struct lk_config *json) {
    static const char *const inert[] = {"architectures", "dtype",        "torch_dtype",  "transformers_version",
                                        "bos_token_id",  "eos_token_id", "pad_token_id", "image_seq_length",
                                        "model_dtype",   "_name_or_path"};
    struct lk_mistral3_config c = {0};
    int64_t image_token = 10;
    bool tied;
    IGNORE_ALL(json, inert);
    lk_quantization_config_read(json);
    lk_config_expect_string(json, "model_type", "mistral3");
    struct lk_config *text = lk_config_object(json, "text_config", true);
    struct lk_config *vision = lk_config_object(json, "vision_config", true);
    if (text) lk_mistral_text_config_read(text, &c.text);
    if (vision) read_vision(vision, &c.vision);
    /* Whether the head is the embedding is for the file's tensors to say. */
    lk_config_bool_or(json, "tie_word_embeddings", &tied, false);
    lk_config_expect_int(json, "spatial_merge_size", LK_MISTRAL3_MERGE);
    lk_config_expect_int(json, "vision_feature_layer", -1);
    lk_config_expect_string(json, "projector_hidden_act", "gelu");
    lk_config_bool_or(json, "multimodal_projector_bias", &c.projector_bias, false);
    const char *key = lk_config_has(json, "image_token_id") ? "image_token_id" : "image_token_index";
    lk_config_int_or(json, key, &image_token, 10, 0, c.text.vocab_size - 1);
    lk_config_expect_int(json, "image_token_index", image_token);
    lk_config_expect_int(json, "image_token_id", image_token);
    c.image_token_index = (int32_t)image_token;
    *out = c;
    return lk_config_close(json);
}

static void bind_vision_layer(struct lk_bind *b, struct lk_pixtral_layer *l, int i, const struct lk_pixtral_config *c) {
    int64_t d = c->hidden_size, f = c->intermediate_size;
    const struct {
        struct lk_tensor *tensor;
        const char *name;
        int64_t rows, cols;
    } table[] = {
        {&l->q_proj, "attention.q_proj", d, d},
        {&l->k_proj, "attention.k_proj", d, d},
        {&l->v_proj, "attention.v_proj", d, d},
        {&l->o_proj, "attention.o_proj", d, d},
        {&l->gate_proj, "feed_forward.gate_proj", f, d},
        {&l->up_proj, "feed_forward.up_proj", f, d},
        {&l->down_proj, "feed_forward.down_proj", d, f},
        {&l->attention_norm, "attention_norm", d, 0},
        {&l->ffn_norm, "ffn_norm", d, 0},
    };
    for (size_t j = 0; j < sizeof table / sizeof *table; j++)
        lk_bind_tensor(b, table[j].tensor, table[j].cols ? 2 : 1, (int64_t[]){table[j].rows, table[j].cols},
                       "transformer.layers.%d.%s.weight", i, table[j].name);
}

static void bind_vision(struct lk_bind *b, struct lk_mistral3 *m) {
    static const char *const tower[] = {"vision_tower.", "model.vision_tower.", NULL};
    static const char *const projector[] = {"multi_modal_projector.", "model.multi_modal_projector.", NULL};
    const struct lk_pixtral_config *c = &m->config.vision;
    int64_t d = c->hidden_size, p = c->patch_size, h = m->config.text.hidden_size;
    lk_bind_prefix(b, "patch_conv.weight", tower);
    LK_BIND(b, &m->patch_conv, LK_SHAPE(d, c->num_channels, p, p), "patch_conv.weight");
    LK_BIND(b, &m->ln_pre, LK_SHAPE(d), "ln_pre.weight");
    for (int64_t i = 0; i < c->num_hidden_layers; i++) bind_vision_layer(b, &m->layers[i], (int)i, c);
    lk_bind_prefix(b, "norm.weight", projector);
    LK_BIND(b, &m->projector.norm, LK_SHAPE(d), "norm.weight");
    LK_BIND(b, &m->projector.merging_layer, LK_SHAPE(d, d * LK_MISTRAL3_MERGE * LK_MISTRAL3_MERGE),
            "patch_merger.merging_layer.weight");
    const struct lk_layer_entry linear[] = {{&m->projector.linear_1, "linear_1", h, d},
                                            {&m->projector.linear_2, "linear_2", h, h}};
    LK_BIND_LAYERS(b, linear, m->config.projector_bias, "", 0);
}

static void bind_all(struct lk_bind *b, struct lk_mistral3 *m) {
    static const char *const head[] = {"language_model.", "", NULL};
    const struct lk_mistral_config *c = &m->config.text;
    lk_mistral_bind_layers(b, &m->text);
    /* Never tied silently: whoever tied them wrote no head, and then the model is refused. */
    lk_bind_prefix(b, "lm_head.weight", head);
    LK_BIND(b, &m->lm_head, LK_SHAPE(c->vocab_size, c->hidden_size), "lm_head.weight");
    bind_vision(b, m);
}

enum lk_code lk_mistral3_bind(struct lk_mistral3 *m, const struct lk_mistral3_config *config,
                              const struct lk_checkpoint *checkpoint, enum lk_dtype compute) {
    *m = (struct lk_mistral3){.config = *config};
    m->text = (struct lk_mistral){.config = config->text, .n_layers = config->text.num_hidden_layers};
    m->text.layers = lk_calloc((size_t)m->text.n_layers, sizeof *m->text.layers);
    m->layers = lk_calloc((size_t)config->vision.num_hidden_layers, sizeof *m->layers);
    enum lk_code rc = m->text.layers && m->layers ? LK_OK : lk_fail(LK_E_NOMEM, "Mistral: out of memory");
    struct lk_bind *b;
    if (!rc) rc = lk_bind_begin(&b, checkpoint, "text_encoder", compute);
    if (!rc) {
        bind_all(b, m);
        rc = lk_bind_finish(b, &m->owned, &m->totals);
    }
    if (rc) lk_mistral3_free(m);
    return rc;
}

void lk_mistral3_free(struct lk_mistral3 *m) {
    lk_mistral_free(&m->text);
    lk_free(m->layers);
    lk_free(m->owned);
    m->layers = NULL;
    m->owned = NULL;
}

static int64_t image_tokens(const void *model, const struct lk_vlm_image *image) {
    (void)model;
    return (int64_t)(image->grid_h / LK_MISTRAL3_MERGE) * (image->grid_w / LK_MISTRAL3_MERGE);
}

/* One after the other, images included: no axes. */
static enum lk_code positions_of(const void *model, const struct lk_vlm_prompt *prompt, int32_t (*positions)[3],
                                 int32_t *next) {
    const struct lk_mistral3 *m = model;
    int64_t n = 0, expected = 0;
    for (int64_t i = 0; i < prompt->n; i++) {
        for (int axis = 0; axis < 3; axis++) positions[i][axis] = (int32_t)i;
        n += prompt->ids[i] == m->config.image_token_index;
    }
    for (int i = 0; i < prompt->n_images; i++) expected += image_tokens(m, &prompt->images[i]);
    *next = (int32_t)prompt->n;
    if (n == expected) return LK_OK;
    return lk_fail(LK_E_INTERNAL, "prompt: %lld image tokens, expected %lld", (long long)n, (long long)expected);
}

static enum lk_code vision(struct lk_device *dev, const void *model, const struct lk_vlm_image *image, int index,
                           const struct lk_tensor *features) {
    return lk_mistral3_vision(dev, model, image, index, features);
}

static void layer(const void *model, int64_t i, struct lk_decoder_layer *out) {
    const struct lk_mistral_layer *l = &((const struct lk_mistral3 *)model)->text.layers[i];
    *out = (struct lk_decoder_layer){.input_norm = &l->input_layernorm,
                                     .post_norm = &l->post_attention_layernorm,
                                     .q = {&l->q_proj, NULL},
                                     .k = {&l->k_proj, NULL},
                                     .v = {&l->v_proj, NULL},
                                     .o = {&l->o_proj, NULL},
                                     .gate = &l->gate_proj,
                                     .up = &l->up_proj,
                                     .down = &l->down_proj};
}

struct lk_vlm lk_mistral3_view(const struct lk_mistral3 *m) {
    const struct lk_mistral_config *c = &m->config.text;
    return (struct lk_vlm){.name = "mistral3",
                           .model = m,
                           .embed_tokens = &m->text.embed_tokens,
                           .norm = &m->text.norm,
                           .lm_head = &m->lm_head,
                           .vocab_size = c->vocab_size,
                           .hidden_size = c->hidden_size,
                           .n_layers = c->num_hidden_layers,
                           .n_heads = c->num_attention_heads,
                           .n_kv_heads = c->num_key_value_heads,
                           .head_dim = c->head_dim,
                           .eps = c->rms_norm_eps,
                           .rope_theta = c->rope_theta,
                           .rope_sections = {(int)c->head_dim / 2, 0, 0},
                           .image_token_id = m->config.image_token_index,
                           .layer = layer,
                           .image_tokens = image_tokens,
                           .vision = vision,
                           .positions = positions_of};
}
