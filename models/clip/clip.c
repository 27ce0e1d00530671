#include "models/clip/clip.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/common/files.h"
#include "models/text/clip_text.h"
#include "models/text/qwen2_vl_image.h"
#include "models/tokenizer/tokenizer.h"
#include "weights/config_identity.h"

/* Widths of the vision tower. */
struct vision_config {
    int64_t hidden_size, intermediate_size, num_hidden_layers, num_attention_heads, image_size, patch_size;
    enum lk_act hidden_act;
    double layer_norm_eps;
};

struct vision {
    struct vision_config config;
    struct lk_tensor class_embedding, patch_embedding, position_embedding; /* [H], [H, 3, P, P], [1 + n, H] */
    struct lk_layer pre_layrnorm, post_layernorm;
    struct lk_clip_layer *layers;
    struct lk_tensor projection; /* [width, H] */
    void *owned;
};

struct lk_clip {
    char *folder, *configs;
    struct lk_checkpoint checkpoint;
    struct lk_tokenizer *tokenizer;
    struct lk_clip_ids ids;
    struct lk_clip_text text;
    struct vision vision;
    float mean[3], std[3];
    int64_t width;
    struct lk_device *dev;
};

/* What transformers 4.1x wrote of every config into the objects of the two towers. */
static void ignore_of_old(struct lk_config *json) {
    static const char *const inert[] = {"add_cross_attention",
                                        "bad_words_ids",
                                        "begin_suppress_tokens",
                                        "chunk_size_feed_forward",
                                        "cross_attention_hidden_size",
                                        "decoder_start_token_id",
                                        "diversity_penalty",
                                        "do_sample",
                                        "early_stopping",
                                        "encoder_no_repeat_ngram_size",
                                        "exponential_decay_length_penalty",
                                        "finetuning_task",
                                        "forced_bos_token_id",
                                        "forced_eos_token_id",
                                        "id2label",
                                        "is_decoder",
                                        "is_encoder_decoder",
                                        "label2id",
                                        "length_penalty",
                                        "max_length",
                                        "min_length",
                                        "no_repeat_ngram_size",
                                        "num_beam_groups",
                                        "num_beams",
                                        "num_return_sequences",
                                        "output_attentions",
                                        "output_hidden_states",
                                        "output_scores",
                                        "prefix",
                                        "problem_type",
                                        "pruned_heads",
                                        "remove_invalid_values",
                                        "repetition_penalty",
                                        "return_dict",
                                        "return_dict_in_generate",
                                        "sep_token_id",
                                        "suppress_tokens",
                                        "task_specific_params",
                                        "temperature",
                                        "tf_legacy_loss",
                                        "tie_encoder_decoder",
                                        "tokenizer_class",
                                        "top_k",
                                        "top_p",
                                        "torchscript",
                                        "typical_p",
                                        "use_bfloat16"};
    for (size_t i = 0; i < sizeof inert / sizeof *inert; i++) lk_config_ignore(json, inert[i]);
}

static void take_vision(struct vision_config *c, struct lk_config *json) {
    static const char *const acts[] = {"quick_gelu", "gelu", NULL};
    const char *act = "quick_gelu";
    lk_clip_config_ignore(json);
    ignore_of_old(json);
    lk_config_ignore(json, "projection_dim");
    lk_config_ignore(json, "eos_token_id");
    lk_config_expect_string(json, "model_type", "clip_vision_model");
    if (lk_config_has(json, "num_channels")) lk_config_expect_int(json, "num_channels", 3);
    lk_config_int_or(json, "hidden_size", &c->hidden_size, 768, 1, 1 << 16);
    lk_config_int_or(json, "intermediate_size", &c->intermediate_size, 3072, 1, 1 << 20);
    lk_config_int_or(json, "num_hidden_layers", &c->num_hidden_layers, 12, 1, 1000);
    lk_config_int_or(json, "num_attention_heads", &c->num_attention_heads, 12, 1, 4096);
    lk_config_int_or(json, "image_size", &c->image_size, 224, 1, 4096);
    lk_config_int_or(json, "patch_size", &c->patch_size, 32, 1, 4096);
    lk_config_number_or(json, "layer_norm_eps", &c->layer_norm_eps, 1e-5, 0, 1);
    lk_config_expect_one_of(json, "hidden_act", acts);
    lk_config_string_or(json, "hidden_act", &act, "quick_gelu");
    c->hidden_act = act && !strcmp(act, "gelu") ? LK_ACT_GELU_ERF : LK_ACT_QUICK_GELU;
    if (c->num_attention_heads && c->hidden_size % c->num_attention_heads)
        lk_config_problem(json, "num_attention_heads", LK_E_CONFIG_VALUE, "expected a divisor of hidden_size, %lld",
                          (long long)c->hidden_size);
    if (c->patch_size && c->image_size % c->patch_size)
        lk_config_problem(json, "patch_size", LK_E_CONFIG_VALUE, "expected a divisor of image_size, %lld",
                          (long long)c->image_size);
}

/* config.json: both towers' objects, which the outer projection_dim overrules. */
static enum lk_code read_config(struct lk_clip *m, struct lk_clip_text_config *text) {
    static const char *const inert[] = {"logit_scale_init_value", "text_config_dict", "vision_config_dict"};
    struct lk_config *json;
    enum lk_code rc = lk_component_config(&json, m->folder, "config.json", NULL);
    if (rc == LK_E_NOT_FOUND)
        return lk_fail(rc, "%s: has no config.json; expected CLIP with both towers, as openai/clip-vit-large-patch14",
                       m->folder);
    if (rc) return rc;
    lk_clip_config_ignore(json);
    for (size_t i = 0; i < sizeof inert / sizeof *inert; i++) lk_config_ignore(json, inert[i]);
    lk_config_expect_string(json, "model_type", "clip");
    lk_config_int_or(json, "projection_dim", &m->width, 512, 1, LK_CLIP_WIDTH_MAX);
    struct lk_config *of_text = lk_config_object(json, "text_config", true);
    struct lk_config *of_vision = lk_config_object(json, "vision_config", true);
    ignore_of_old(of_text);
    if (of_text) lk_clip_text_config_take(text, of_text, true);
    if (of_vision) take_vision(&m->vision.config, of_vision);
    text->projection_dim = m->width;
    return lk_config_close(json);
}

/* A number, or an object with these two keys, which are the same. */
static void expect_side(struct lk_config *json, const char *key, const char *a, const char *b, int64_t side) {
    struct lk_config *both = lk_config_is_object(json, key) ? lk_config_object(json, key, true) : NULL;
    if (!both) {
        lk_config_expect_int(json, key, side);
        return;
    }
    lk_config_expect_int(both, a, side);
    if (b) lk_config_expect_int(both, b, side);
}

static enum lk_code read_processor(struct lk_clip *m) {
    static const char *const ignored[] = {"processor_class",  "default_to_square",      "device",
                                          "disable_grouping", "return_tensors",         "do_pad",
                                          "pad_size",         "feature_extractor_type", "input_data_format",
                                          "data_format"};
    struct lk_config *c;
    LK_TRY(lk_component_config(&c, m->folder, "preprocessor_config.json", NULL));
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) lk_config_ignore(c, ignored[i]);
    if (lk_config_has(c, "do_center_crop")) lk_config_expect_bool(c, "do_center_crop", true);
    lk_config_ignore(c, "do_center_crop");
    expect_side(c, "size", "shortest_edge", NULL, m->vision.config.image_size);
    expect_side(c, "crop_size", "height", "width", m->vision.config.image_size);
    lk_image_processor_three(c, "image_mean", m->mean, 0);
    lk_image_processor_three(c, "image_std", m->std, 1e-6);
    lk_image_processor_expect(c, "CLIPImageProcessor");
    return lk_config_close(c);
}

static int64_t n_patches(const struct vision_config *c) {
    const int64_t side = c->image_size / c->patch_size;
    return side * side;
}

static enum lk_code bind_vision(struct lk_clip *m) {
    struct vision *v = &m->vision;
    const struct vision_config *c = &v->config;
    const int64_t h = c->hidden_size, p = c->patch_size;
    static const char *const others[] = {"text_model.", "text_projection.", "logit_scale",
                                         "vision_model.embeddings.position_ids"};
    static const char *const prefixes[] = {"vision_model.", NULL};
    struct lk_bind *b;
    v->layers = lk_calloc((size_t)c->num_hidden_layers, sizeof *v->layers);
    if (!v->layers) return lk_fail(LK_E_NOMEM, "%s: out of memory", m->folder);
    LK_TRY(lk_bind_begin(&b, &m->checkpoint, "CLIP's vision tower", LK_F32));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) lk_bind_ignore(b, others[i]);
    LK_BIND(b, &v->projection, LK_SHAPE(m->width, h), "visual_projection.weight");
    lk_bind_prefix(b, "embeddings.class_embedding", prefixes);
    LK_BIND(b, &v->class_embedding, LK_SHAPE(h), "embeddings.class_embedding");
    LK_BIND(b, &v->patch_embedding, LK_SHAPE(h, 3, p, p), "embeddings.patch_embedding.weight");
    LK_BIND(b, &v->position_embedding, LK_SHAPE(1 + n_patches(c), h), "embeddings.position_embedding.weight");
    const struct lk_layer_entry norms[] = {{&v->pre_layrnorm, "pre_layrnorm", h, 0},
                                           {&v->post_layernorm, "post_layernorm", h, 0}};
    LK_BIND_LAYERS(b, norms, true, "", 0);
    for (int64_t i = 0; i < c->num_hidden_layers; i++)
        lk_clip_layer_bind(b, &v->layers[i], h, c->intermediate_size, (int)i);
    return lk_bind_finish(b, &v->owned, NULL);
}

static enum lk_code open_parts(struct lk_clip *m) {
    struct lk_clip_text_config text = {0};
    LK_TRY(read_config(m, &text));
    LK_TRY(read_processor(m));
    LK_TRY(lk_tokenizer_open_clip(&m->tokenizer, m->folder, ".", &m->ids));
    if (lk_tokenizer_vocab_size(m->tokenizer) > text.vocab_size)
        return lk_fail(LK_E_TOKENIZER, "%s: expected at most %lld ids, as the text tower has, got %d", m->folder,
                       (long long)text.vocab_size, (int)lk_tokenizer_vocab_size(m->tokenizer));
    LK_TRY(lk_checkpoint_open(&m->checkpoint, m->folder, "model"));
    LK_TRY(lk_clip_text_bind(&m->text, &text, &m->checkpoint, "CLIP's text tower", LK_F32));
    return bind_vision(m);
}

enum lk_code lk_clip_open(struct lk_clip **out, const char *model, int n_threads) {
    struct lk_clip *m = lk_calloc(1, sizeof *m);
    *out = NULL;
    if (!m) return lk_fail(LK_E_NOMEM, "%s: out of memory", model);
    enum lk_code rc = lk_model_find(model, &m->folder);
    if (!rc) rc = lk_config_identity_begin(m->folder);
    if (!rc) rc = lk_config_identity_end(open_parts(m), &m->configs);
    if (!rc) rc = lk_device_cpu_create(n_threads, &m->dev);
    if (rc)
        lk_clip_close(m);
    else
        *out = m;
    return rc;
}

void lk_clip_close(struct lk_clip *m) {
    if (!m) return;
    if (m->dev) lk_device_free(m->dev);
    lk_clip_text_free(&m->text);
    lk_free(m->vision.layers);
    lk_free(m->vision.owned);
    lk_tokenizer_free(m->tokenizer);
    lk_checkpoint_close(&m->checkpoint);
    lk_free(m->configs);
    lk_free(m->folder);
    lk_free(m);
}

const char *lk_clip_configs(const struct lk_clip *m) { return m->configs; }

enum lk_code lk_clip_identity(const struct lk_clip *m, char out[65]) {
    return lk_checkpoint_identity(&m->checkpoint, out);
}

static enum lk_code encode_text(struct lk_clip *m, const int32_t *ids, float *out) {
    struct lk_tensor hidden, pooled;
    LK_TRY(LK_NEW(&m->dev->arena, &hidden, LK_F32, LK_CLIP_IDS, m->text.config.hidden_size));
    LK_TRY(LK_NEW(&m->dev->arena, &pooled, LK_F32, 1, m->width));
    LK_TRY(lk_clip_text_encode(m->dev, &m->text,
                               &(struct lk_clip_text_pass){.name = "clip.text",
                                                           .ids = ids,
                                                           .n = LK_CLIP_IDS,
                                                           .layer = m->text.config.num_hidden_layers,
                                                           .hidden = &hidden,
                                                           .pooled = &pooled}));
    return lk_download(m->dev, out, &pooled);
}

/* Twice what a pass holds at most: the states, a norm's, three projections', the inner ones, the patches. */
static size_t room(int64_t rows, int64_t hidden, int64_t intermediate, int64_t values) {
    return ((size_t)1 << 20) + 2 * sizeof(float) * (size_t)(rows * (8 * hidden + 2 * intermediate + 2 * values));
}

enum lk_code lk_clip_text(struct lk_clip *m, const char *text, float out[LK_CLIP_WIDTH_MAX], int *n_cut) {
    const struct lk_clip_text_config *c = &m->text.config;
    int32_t ids[LK_CLIP_IDS];
    int n_real;
    LK_TRY(lk_tokenizer_encode_clip(m->tokenizer, &m->ids, text, ids, &n_real, n_cut));
    LK_TRY(lk_device_prepare(m->dev, room(LK_CLIP_IDS, c->hidden_size, c->intermediate_size, 0)));
    const size_t mark = lk_arena_mark(&m->dev->arena);
    enum lk_code rc = encode_text(m, ids, out);
    lk_arena_release(&m->dev->arena, mark);
    return rc;
}

/* The shorter side to the tower's, the middle of the longer one, into patches [n, 3 P P]: channel, y, x. */
static enum lk_code cut_patches(const struct lk_clip *m, const struct lk_image *image, float *to) {
    const int side = (int)m->vision.config.image_size, p = (int)m->vision.config.patch_size;
    const int w = image->width, h = image->height;
    const int64_t longer = (int64_t)side * (w > h ? w : h) / (w > h ? h : w);
    struct lk_image rgb = {0}, resized = {0}, square = {0};
    float table[3][256];
    for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++) table[c][v] = ((float)(v * (1 / 255.0)) - m->mean[c]) / m->std[c];
    if (longer > LK_CLIP_WIDTH_MAX)
        return lk_fail(LK_E_IMAGE_SIZE, "image: %dx%d is too narrow for CLIP; crop it", w, h);
    LK_TRY(lk_image_on_white(&rgb, image));
    const int width = w > h ? (int)longer : side, height = w > h ? side : (int)longer;
    enum lk_code rc = lk_image_resize(&resized, &rgb, width, height, LK_RESAMPLE_BICUBIC);
    if (!rc) rc = lk_image_crop(&square, &resized, (width - side) / 2, (height - side) / 2, side, side);
    for (int top = 0; top < side && !rc; top += p)
        for (int left = 0; left < side; left += p)
            for (int c = 0; c < 3; c++)
                for (int y = top; y < top + p; y++)
                    for (int x = left; x < left + p; x++) *to++ = table[c][square.pixels[3 * (y * side + x) + c]];
    lk_image_free(&rgb);
    lk_image_free(&resized);
    lk_image_free(&square);
    return rc;
}

static enum lk_code norm(struct lk_clip *m, const struct lk_layer *w, const struct lk_tensor *x,
                         const struct lk_tensor *y) {
    return lk_layer_norm(
        m->dev,
        &(struct lk_layer_norm){
            .y = y, .x = x, .weight = &w->weight, .bias = &w->bias, .eps = (float)m->vision.config.layer_norm_eps});
}

static enum lk_code encode_image(struct lk_clip *m, const float *patches, float *out) {
    const struct vision *v = &m->vision;
    const int64_t n = n_patches(&v->config), h = v->config.hidden_size;
    const int64_t values = lk_tensor_row_numel(&v->patch_embedding);
    const struct lk_clip_form form = {v->config.num_attention_heads, 1 + n, false, v->config.hidden_act,
                                      (float)v->config.layer_norm_eps};
    struct lk_arena *arena = &m->dev->arena;
    struct lk_tensor x, embedded, states, y, projected;
    LK_TRY(LK_NEW(arena, &x, LK_F32, n, values));
    LK_TRY(LK_NEW(arena, &embedded, LK_F32, 1 + n, h));
    LK_TRY(LK_NEW(arena, &states, LK_F32, 1 + n, h));
    LK_TRY(LK_NEW(arena, &y, LK_F32, 1, h));
    LK_TRY(LK_NEW(arena, &projected, LK_F32, 1, m->width));
    const struct lk_tensor first = lk_tensor_rows(&embedded, 0, 1), rest = lk_tensor_rows(&embedded, 1, n);
    const struct lk_tensor class_row = LK_VIEW(&v->class_embedding, 1, h);
    LK_TRY(lk_upload(m->dev, &x, patches));
    LK_TRY(lk_copy(m->dev, &(struct lk_copy){.y = &first, .x = &class_row}));
    /* A convolution whose stride is its kernel's side is one matrix product. */
    LK_TRY(lk_project(m->dev, &rest, &x, &(struct lk_layer){.weight = LK_VIEW(&v->patch_embedding, h, values)},
                      LK_ACT_NONE));
    LK_TRY(lk_add(m->dev, &(struct lk_add){.y = &embedded, .a = &embedded, .b = &v->position_embedding}));
    LK_TRY(norm(m, &v->pre_layrnorm, &embedded, &states));
    for (int64_t i = 0; i < v->config.num_hidden_layers; i++)
        LK_TRY(lk_clip_layer_run(m->dev, &v->layers[i], &form, &states));
    const struct lk_tensor of_class = lk_tensor_rows(&states, 0, 1);
    LK_TRY(norm(m, &v->post_layernorm, &of_class, &y));
    LK_TRY(lk_project(m->dev, &projected, &y, &(struct lk_layer){.weight = v->projection}, LK_ACT_NONE));
    return lk_download(m->dev, out, &projected);
}

enum lk_code lk_clip_image(struct lk_clip *m, const struct lk_image *image, float out[LK_CLIP_WIDTH_MAX]) {
    const struct vision_config *c = &m->vision.config;
    const int64_t n = n_patches(c), values = 3 * c->patch_size * c->patch_size;
    float *patches = lk_malloc((size_t)(n * values) * sizeof *patches);
    if (!patches) return lk_fail(LK_E_NOMEM, "%s: out of memory", m->folder);
    enum lk_code rc = cut_patches(m, image, patches);
    if (!rc) rc = lk_device_prepare(m->dev, room(1 + n, c->hidden_size, c->intermediate_size, values));
    if (!rc) {
        const size_t mark = lk_arena_mark(&m->dev->arena);
        rc = encode_image(m, patches, out);
        lk_arena_release(&m->dev->arena, mark);
    }
    lk_free(patches);
    return rc;
}

double lk_clip_cosine(const struct lk_clip *m, const float *a, const float *b) {
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < m->width; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return ab / sqrt(aa * bb);
}
