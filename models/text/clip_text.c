#include "models/text/clip_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/text/decoder.h"

#define LEGACY_EOS 2

const char lk_clip_text_big_g[] =
    "{\"eos_token_id\":2,\"hidden_act\":\"gelu\",\"hidden_size\":1280,\"intermediate_size\":5120,\"layer_norm_eps\":1e-"
    "05,"
    "\"max_position_embeddings\":77,\"model_type\":\"clip_text_model\",\"num_attention_heads\":20,"
    "\"num_hidden_layers\":32,\"projection_dim\":1280,\"vocab_size\":49408}";

void lk_clip_config_ignore(struct lk_config *json) {
    static const char *const inert[] = {
        "architectures", "attention_dropout",    "bos_token_id",      "dropout",
        "dtype",         "initializer_factor",   "initializer_range", "pad_token_id",
        "torch_dtype",   "transformers_version", "_name_or_path",     "tie_word_embeddings"};
    for (size_t i = 0; i < sizeof inert / sizeof *inert; i++) lk_config_ignore(json, inert[i]);
}

void lk_clip_text_config_take(struct lk_clip_text_config *out, struct lk_config *json, bool with_projection) {
    static const char *const acts[] = {"quick_gelu", "gelu", NULL};
    struct lk_clip_text_config c = {0};
    const char *act = "quick_gelu";
    lk_clip_config_ignore(json);
    lk_config_expect_string(json, "model_type", "clip_text_model");
    lk_config_expect_bool(json, "use_attention_mask", false);
    lk_config_int_or(json, "vocab_size", &c.vocab_size, 49408, 1, 1 << 24);
    lk_config_int_or(json, "max_position_embeddings", &c.max_position_embeddings, 77, 77, 77);
    lk_config_int_or(json, "hidden_size", &c.hidden_size, 512, 1, 1 << 16);
    lk_config_int_or(json, "intermediate_size", &c.intermediate_size, 2048, 1, 1 << 20);
    lk_config_int_or(json, "num_hidden_layers", &c.num_hidden_layers, 12, 2, 1000);
    lk_config_int_or(json, "num_attention_heads", &c.num_attention_heads, 8, 1, 4096);
    lk_config_int_or(json, "projection_dim", &c.projection_dim, 512, 1, 1 << 16);
    lk_config_int_or(json, "eos_token_id", &c.eos_token_id, 49407, 0, 1 << 24);
    lk_config_number_or(json, "layer_norm_eps", &c.layer_norm_eps, 1e-5, 0, 1);
    lk_config_expect_one_of(json, "hidden_act", acts);
    lk_config_string_or(json, "hidden_act", &act, "quick_gelu");
    c.hidden_act = act && !strcmp(act, "gelu") ? LK_ACT_GELU_ERF : LK_ACT_QUICK_GELU;
    if (!with_projection) c.projection_dim = 0;
    if (c.num_attention_heads && c.hidden_size % c.num_attention_heads)
        lk_config_problem(json, "num_attention_heads", LK_E_CONFIG_VALUE, "expected a divisor of hidden_size, %lld",
                          (long long)c.hidden_size);
    *out = c;
}

enum lk_code lk_clip_text_config_read(struct lk_clip_text_config *out, struct lk_config *json, bool with_projection) {
    lk_clip_text_config_take(out, json, with_projection);
    return lk_config_close(json);
}

void lk_clip_layer_bind(struct lk_bind *b, struct lk_clip_layer *l, int64_t h, int64_t f, int i) {
    const struct lk_layer_entry table[] = {
        {&l->layer_norm1, "layer_norm1", h, 0},
        {&l->q_proj, "self_attn.q_proj", h, h},
        {&l->k_proj, "self_attn.k_proj", h, h},
        {&l->v_proj, "self_attn.v_proj", h, h},
        {&l->out_proj, "self_attn.out_proj", h, h},
        {&l->layer_norm2, "layer_norm2", h, 0},
        {&l->fc1, "mlp.fc1", f, h},
        {&l->fc2, "mlp.fc2", h, f},
    };
    LK_BIND_LAYERS(b, table, true, "encoder.layers", i);
}

enum lk_code lk_clip_text_bind(struct lk_clip_text *m, const struct lk_clip_text_config *config,
                               const struct lk_checkpoint *checkpoint, const char *component, enum lk_dtype compute) {
    return lk_clip_text_bind_with(m, config, checkpoint, component, compute, NULL);
}

enum lk_code lk_clip_text_bind_with(struct lk_clip_text *m, const struct lk_clip_text_config *config,
                                    const struct lk_checkpoint *checkpoint, const char *component,
                                    enum lk_dtype compute, struct lk_loras *loras) {
    /* transformers 5 writes CLIPTextModel without the prefix. */
    static const char *const prefixes[] = {"text_model.", "", NULL};
    const int64_t h = config->hidden_size;
    struct lk_bind *b;
    *m = (struct lk_clip_text){.config = *config};
    m->layers = lk_calloc((size_t)config->num_hidden_layers, sizeof *m->layers);
    if (!m->layers) return lk_fail(LK_E_NOMEM, "%s: out of memory", component);
    enum lk_code rc = lk_bind_begin(&b, checkpoint, component, compute);
    if (!rc) {
        lk_bind_loras(b, loras, NULL, 0);
        lk_bind_ignore(b, "text_model.embeddings.position_ids");
        lk_bind_ignore(b, "embeddings.position_ids");
        /* Of a file with both towers. */
        lk_bind_ignore(b, "vision_model.");
        lk_bind_ignore(b, "visual_projection.");
        lk_bind_ignore(b, "logit_scale");
        if (config->projection_dim)
            LK_BIND(b, &m->text_projection, LK_SHAPE(config->projection_dim, h), "text_projection.weight");
        lk_bind_prefix(b, "embeddings.token_embedding.weight", prefixes);
        lk_bind_embedding(b, &m->token_embedding, config->vocab_size, h, "embeddings.token_embedding.weight");
        lk_bind_embedding(b, &m->position_embedding, config->max_position_embeddings, h,
                          "embeddings.position_embedding.weight");
        for (int64_t i = 0; i < config->num_hidden_layers; i++)
            lk_clip_layer_bind(b, &m->layers[i], h, config->intermediate_size, (int)i);
        const struct lk_layer_entry final[] = {{&m->final_layer_norm, "final_layer_norm", h, 0}};
        LK_BIND_LAYERS(b, final, true, "", 0);
        rc = lk_bind_finish(b, &m->owned, &m->totals);
    }
    if (rc) lk_clip_text_free(m);
    return rc;
}

void lk_clip_text_free(struct lk_clip_text *m) {
    lk_free(m->layers);
    lk_free(m->owned);
    m->layers = NULL;
    m->owned = NULL;
}

static enum lk_code norm(struct lk_device *dev, float eps, const struct lk_layer *w, const struct lk_tensor *x,
                         const struct lk_tensor *y) {
    return lk_layer_norm(dev,
                         &(struct lk_layer_norm){.y = y, .x = x, .weight = &w->weight, .bias = &w->bias, .eps = eps});
}

static enum lk_code attend(struct lk_device *dev, const struct lk_clip_layer *l, const struct lk_clip_form *form,
                           const struct lk_tensor *h) {
    const int64_t n = h->shape[0], c = h->shape[1], heads = form->n_heads, d = c / heads, n_real = form->n_real;
    const size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor x, qkv[3];
    LK_TRY(LK_NEW(&dev->arena, &x, h->dtype, n, c));
    for (int i = 0; i < 3; i++) LK_TRY(LK_NEW(&dev->arena, &qkv[i], h->dtype, n, c));
    LK_TRY(norm(dev, form->eps, &l->layer_norm1, h, &x));
    LK_TRY(lk_project(dev, &qkv[0], &x, &l->q_proj, LK_ACT_NONE));
    LK_TRY(lk_project(dev, &qkv[1], &x, &l->k_proj, LK_ACT_NONE));
    LK_TRY(lk_project(dev, &qkv[2], &x, &l->v_proj, LK_ACT_NONE));
    for (int padding = 0; padding < (n_real < n ? 2 : 1); padding++) {
        const int64_t first = padding ? n_real : 0, n_rows = padding ? n - n_real : n_real;
        const struct lk_tensor parts[] = {lk_tensor_rows(&x, first, n_rows), lk_tensor_rows(&qkv[0], first, n_rows),
                                          lk_tensor_rows(&qkv[1], 0, n_real), lk_tensor_rows(&qkv[2], 0, n_real)};
        const struct lk_tensor out = LK_VIEW(&parts[0], n_rows, heads, d), q = LK_VIEW(&parts[1], n_rows, heads, d),
                               k = LK_VIEW(&parts[2], n_real, heads, d), v = LK_VIEW(&parts[3], n_real, heads, d);
        LK_TRY(lk_attention(dev, &(struct lk_attention){&out, &q, &k, &v, .scale = 1.0f / sqrtf((float)d),
                                                        .causal = form->causal && !padding}));
    }
    LK_TRY(lk_project_onto(dev, h, &x, &l->out_proj, NULL));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_clip_layer_run(struct lk_device *dev, const struct lk_clip_layer *l, const struct lk_clip_form *form,
                               const struct lk_tensor *h) {
    const size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor x, inner;
    LK_TRY(attend(dev, l, form, h));
    LK_TRY(LK_NEW(&dev->arena, &x, h->dtype, h->shape[0], h->shape[1]));
    LK_TRY(LK_NEW(&dev->arena, &inner, h->dtype, h->shape[0], l->fc1.weight.shape[0]));
    LK_TRY(norm(dev, form->eps, &l->layer_norm2, h, &x));
    LK_TRY(lk_project(dev, &inner, &x, &l->fc1, form->act));
    LK_TRY(lk_project_onto(dev, h, &inner, &l->fc2, NULL));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

/* The end token's place: the first largest id, or the first that is eos_token_id. */
static int64_t end_of(const struct lk_clip_text *m, const int32_t *ids, int64_t n) {
    int64_t at = 0;
    for (int64_t i = 1; ids && i < n; i++) {
        if (m->config.eos_token_id == LEGACY_EOS ? ids[i] > ids[at]
                                                 : ids[i] == m->config.eos_token_id && ids[at] != ids[i])
            at = i;
    }
    return at;
}

static enum lk_code pool(struct lk_device *dev, const struct lk_clip_text *m, const struct lk_clip_text_pass *p,
                         const struct lk_tensor *h) {
    const size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor end = lk_tensor_rows(h, end_of(m, p->ids, p->n), 1), x;
    LK_TRY(LK_NEW(&dev->arena, &x, h->dtype, 1, h->shape[1]));
    LK_TRY(norm(dev, (float)m->config.layer_norm_eps, &m->final_layer_norm, &end, &x));
    LK_TRY(lk_project(dev, p->pooled, &x, &(struct lk_layer){.weight = m->text_projection}, LK_ACT_NONE));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

static enum lk_code embed(struct lk_device *dev, const struct lk_clip_text *m, const struct lk_clip_text_pass *p,
                          const struct lk_tensor *h) {
    const size_t mark = lk_arena_mark(&dev->arena);
    int32_t places[77];
    struct lk_tensor positions;
    for (int64_t i = 0; i < p->n; i++) places[i] = (int32_t)i;
    LK_TRY(LK_NEW(&dev->arena, &positions, h->dtype, p->n, h->shape[1]));
    LK_TRY(lk_decoder_embed(dev, h, &m->token_embedding, p->ids));
    LK_TRY(lk_decoder_embed(dev, &positions, &m->position_embedding, places));
    LK_TRY(lk_add(dev, &(struct lk_add){.y = h, .a = h, .b = &positions}));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_clip_text_encode(struct lk_device *dev, const struct lk_clip_text *m,
                                 const struct lk_clip_text_pass *p) {
    const int64_t n_layers = m->config.num_hidden_layers;
    const struct lk_clip_form form = {m->config.num_attention_heads, p->n_real ? p->n_real : p->n, true,
                                      m->config.hidden_act, (float)m->config.layer_norm_eps};
    const size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor h;
    LK_TRY(LK_NEW(&dev->arena, &h, p->hidden->dtype, p->n, m->config.hidden_size));
    LK_TRY(embed(dev, m, p, &h));
    for (int64_t i = 0; i <= n_layers; i++) {
        LK_TRY(lk_trace(dev, &h, "%s.hidden.%d", p->name, (int)i));
        if (i == p->layer && p->final_norm) LK_TRY(norm(dev, form.eps, &m->final_layer_norm, &h, p->hidden));
        if (i == p->layer && !p->final_norm) LK_TRY(lk_copy(dev, &(struct lk_copy){.y = p->hidden, .x = &h}));
        if (i == n_layers || (i >= p->layer && !p->pooled)) break;
        LK_TRY(lk_clip_layer_run(dev, &m->layers[i], &form, &h));
    }
    if (p->pooled) LK_TRY(pool(dev, m, p, &h));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
