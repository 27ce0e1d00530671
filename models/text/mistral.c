#include "models/text/mistral.h"

#include <stdio.h>

#include "engine/base/alloc.h"
#include "engine/rope_table.h"
#include "models/text/decoder.h"
#include "weights/quant/config.h"

static void read_rope(struct lk_config *text, double *theta) {
    struct lk_config *rope = lk_config_object(text, "rope_parameters", false);
    if (rope) { /* transformers 5 */
        lk_config_expect_string(rope, "rope_type", "default");
        lk_config_number(rope, "rope_theta", theta, 1, 1e12);
    } else {
        lk_config_number(text, "rope_theta", theta, 1, 1e12);
    }
    lk_config_expect_null(text, "rope_scaling");
}

void lk_mistral_text_config_read(struct lk_config *text, struct lk_mistral_config *c) {
    static const char *const inert[] = {
        "architectures",       "attention_dropout", "initializer_range", "use_cache", "max_position_embeddings",
        "bos_token_id",        "eos_token_id",      "pad_token_id",      "dtype",     "torch_dtype",
        "tie_word_embeddings", "_name_or_path"};
    for (size_t i = 0; i < sizeof inert / sizeof *inert; i++) lk_config_ignore(text, inert[i]);
    lk_config_expect_string(text, "model_type", "mistral");
    lk_config_expect_string(text, "hidden_act", "silu");
    lk_config_expect_null(text, "sliding_window");
    lk_config_int(text, "vocab_size", &c->vocab_size, 1, 1 << 24);
    lk_config_int(text, "hidden_size", &c->hidden_size, 1, 1 << 20);
    lk_config_int(text, "intermediate_size", &c->intermediate_size, 1, 1 << 22);
    lk_config_int(text, "num_hidden_layers", &c->num_hidden_layers, 1, 1000);
    lk_config_int(text, "num_attention_heads", &c->num_attention_heads, 1, 4096);
    lk_config_int_or(text, "num_key_value_heads", &c->num_key_value_heads, 8, 1, 4096);
    int64_t head_dim = c->num_attention_heads > 0 ? c->hidden_size / c->num_attention_heads : 0;
    lk_config_int_or(text, "head_dim", &c->head_dim, head_dim, 2, 512);
    lk_config_number_or(text, "rms_norm_eps", &c->rms_norm_eps, 1e-6, 0, 1);
    read_rope(text, &c->rope_theta);
    if (c->num_key_value_heads > 0 && c->num_attention_heads % c->num_key_value_heads)
        lk_config_problem(text, "num_key_value_heads", LK_E_CONFIG_VALUE, "expected a divisor of num_attention_heads");
    if (c->head_dim % 2) lk_config_problem(text, "head_dim", LK_E_CONFIG_VALUE, "expected an even number");
}

enum lk_code lk_mistral_config_read(struct lk_mistral_config *out, struct lk_config *json) {
    /* The vision tower, the projector and the output head are not used by a text encoder. */
    static const char *const inert[] = {"architectures",
                                        "dtype",
                                        "torch_dtype",
                                        "bos_token_id",
                                        "eos_token_id",
                                        "pad_token_id",
                                        "image_seq_length",
                                        "image_token_index",
                                        "image_token_id",
                                        "model_dtype",
                                        "multimodal_projector_bias",
                                        "projector_hidden_act",
                                        "spatial_merge_size",
                                        "tie_word_embeddings",
                                        "transformers_version",
                                        "vision_config",
                                        "vision_feature_layer",
                                        "_name_or_path"};
    struct lk_mistral_config c = {0};
    for (size_t i = 0; i < sizeof inert / sizeof *inert; i++) lk_config_ignore(json, inert[i]);
    lk_quantization_config_read(json);
    lk_config_expect_string(json, "model_type", "mistral3");
    struct lk_config *text = lk_config_object(json, "text_config", true);
    if (text) lk_mistral_text_config_read(text, &c);
    *out = c;
    return lk_config_close(json);
}

static void bind_layer(struct lk_bind *b, struct lk_mistral_layer *l, int i, const struct lk_mistral_config *c) {
    int64_t d = c->hidden_size, f = c->intermediate_size;
    int64_t q = c->num_attention_heads * c->head_dim, kv = c->num_key_value_heads * c->head_dim;
    const struct {
        struct lk_tensor *tensor;
        const char *name;
        int64_t shape[2];
    } table[] = {
        {&l->q_proj, "self_attn.q_proj", {q, d}},  {&l->k_proj, "self_attn.k_proj", {kv, d}},
        {&l->v_proj, "self_attn.v_proj", {kv, d}}, {&l->o_proj, "self_attn.o_proj", {d, q}},
        {&l->gate_proj, "mlp.gate_proj", {f, d}},  {&l->up_proj, "mlp.up_proj", {f, d}},
        {&l->down_proj, "mlp.down_proj", {d, f}},
    };
    for (size_t j = 0; j < sizeof table / sizeof *table; j++)
        lk_bind_tensor(b, table[j].tensor, 2, table[j].shape, "layers.%d.%s.weight", i, table[j].name);
    lk_bind_tensor(b, &l->input_layernorm, 1, &d, "layers.%d.input_layernorm.weight", i);
    lk_bind_tensor(b, &l->post_attention_layernorm, 1, &d, "layers.%d.post_attention_layernorm.weight", i);
}

static const char *const prefixes[] = {"language_model.model.", "model.language_model.", "model.", "", NULL};

void lk_mistral_bind_layers(struct lk_bind *b, struct lk_mistral *m) {
    const struct lk_mistral_config *c = &m->config;
    lk_bind_prefix(b, "embed_tokens.weight", prefixes);
    lk_bind_embedding(b, &m->embed_tokens, c->vocab_size, c->hidden_size, "embed_tokens.weight");
    for (int64_t i = 0; i < m->n_layers; i++) bind_layer(b, &m->layers[i], (int)i, c);
    if (m->n_layers == c->num_hidden_layers) lk_bind_tensor(b, &m->norm, 1, &c->hidden_size, "norm.weight");
}

/* What other tensors a checkpoint of the whole model has. */
static void ignore_unused(struct lk_bind *b, const struct lk_mistral_config *c, int64_t n_layers) {
    static const char *const unused[] = {"vision_tower.",           "multi_modal_projector.",
                                         "model.vision_tower.",     "model.multi_modal_projector.",
                                         "language_model.lm_head.", "lm_head."};
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++) lk_bind_ignore(b, unused[i]);
    for (int i = 0; prefixes[i]; i++) {
        char name[96];
        for (int64_t j = n_layers; j < c->num_hidden_layers; j++) {
            snprintf(name, sizeof name, "%slayers.%lld.", prefixes[i], (long long)j);
            lk_bind_ignore(b, name);
        }
        snprintf(name, sizeof name, "%snorm.", prefixes[i]);
        if (n_layers < c->num_hidden_layers) lk_bind_ignore(b, name);
    }
}

enum lk_code lk_mistral_bind(struct lk_mistral *m, const struct lk_mistral_config *config, int64_t n_layers,
                             const struct lk_checkpoint *checkpoint, enum lk_dtype compute) {
    *m = (struct lk_mistral){.config = *config, .n_layers = n_layers};
    if (n_layers < 0 || n_layers > config->num_hidden_layers)
        return lk_fail(LK_E_USAGE,
                       "text encoder: layer %lld asked for, the model has %lld; give --text-encoder-out-layers",
                       (long long)n_layers, (long long)config->num_hidden_layers);
    m->layers = lk_calloc((size_t)n_layers + 1, sizeof *m->layers);
    if (!m->layers) return lk_fail(LK_E_NOMEM, "text encoder: out of memory");
    struct lk_bind *b;
    enum lk_code rc = lk_bind_begin(&b, checkpoint, "text_encoder", compute);
    if (!rc) {
        ignore_unused(b, config, n_layers);
        lk_mistral_bind_layers(b, m);
        rc = lk_bind_finish(b, &m->owned, &m->totals);
    }
    if (rc) lk_mistral_free(m);
    return rc;
}

void lk_mistral_free(struct lk_mistral *m) {
    lk_free(m->layers);
    lk_free(m->owned);
    m->layers = NULL;
    m->owned = NULL;
}

/* State of one pass. */
struct pass {
    struct lk_device *dev;
    const struct lk_mistral *m;
    int64_t n_rows, n_real;
    struct lk_tensor h;    /* [n_rows, hidden]: residual stream, the pad row first if there is one */
    struct lk_tensor real; /* [n_real, hidden]: its rows of real tokens */
    struct lk_tensor cos, sin;
};

/* real += attention. The pad row stays: its attention is zero. */
static enum lk_code attend(const struct pass *p, const struct lk_mistral_layer *l) {
    const struct lk_mistral_config *c = &p->m->config;
    struct lk_decoder_attention op = {.h = &p->real,
                                      .norm = &l->input_layernorm,
                                      .q = {&l->q_proj, NULL},
                                      .k = {&l->k_proj, NULL},
                                      .v = {&l->v_proj, NULL},
                                      .o = {&l->o_proj, NULL},
                                      .cos = &p->cos,
                                      .sin = &p->sin,
                                      .n_heads = c->num_attention_heads,
                                      .n_kv_heads = c->num_key_value_heads,
                                      .head_dim = c->head_dim,
                                      .eps = c->rms_norm_eps};
    return lk_decoder_attention(p->dev, &op);
}

static enum lk_code mlp(const struct pass *p, const struct lk_mistral_layer *l) {
    struct lk_decoder_mlp op = {.h = &p->h,
                                .norm = &l->post_attention_layernorm,
                                .gate = &l->gate_proj,
                                .up = &l->up_proj,
                                .down = &l->down_proj,
                                .eps = p->m->config.rms_norm_eps};
    return lk_decoder_mlp(p->dev, &op);
}

/* Copies the state to the column block of `out` that asked for it: the pad row n_pad times, then the real rows. */
static enum lk_code emit(const struct pass *p, int64_t n_pad, const struct lk_tensor *block, bool final_norm) {
    size_t mark = lk_arena_mark(&p->dev->arena);
    struct lk_tensor state = p->h;
    if (final_norm) {
        LK_TRY(LK_NEW(&p->dev->arena, &state, p->h.dtype, p->n_rows, p->m->config.hidden_size));
        LK_TRY(lk_decoder_norm(p->dev, &state, &p->h, &p->m->norm, p->m->config.rms_norm_eps));
    }
    struct lk_tensor pad = lk_tensor_rows(&state, 0, 1);
    for (int64_t i = 0; i < n_pad; i++) {
        struct lk_tensor row = lk_tensor_rows(block, i, 1);
        LK_TRY(lk_copy(p->dev, &(struct lk_copy){.y = &row, .x = &pad}));
    }
    struct lk_tensor from = lk_tensor_rows(&state, p->n_rows - p->n_real, p->n_real);
    struct lk_tensor to = lk_tensor_rows(block, n_pad, p->n_real);
    LK_TRY(lk_copy(p->dev, &(struct lk_copy){.y = &to, .x = &from}));
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}

/* The rotation table of the real rows: uploaded from a table made on the host. */
static enum lk_code make_rope(struct pass *p, int64_t n_pad) {
    const struct lk_mistral_config *c = &p->m->config;
    int64_t n = p->n_real, half = c->head_dim / 2;
    LK_TRY(LK_NEW(&p->dev->arena, &p->cos, LK_F32, n, half));
    LK_TRY(LK_NEW(&p->dev->arena, &p->sin, LK_F32, n, half));
    float *table = lk_malloc(2 * (size_t)(n * half) * sizeof *table);
    if (!table) return lk_fail(LK_E_NOMEM, "text encoder: out of memory");
    lk_rope_table_lm((int)n_pad, (int)n, (int)c->head_dim, c->rope_theta, p->h.dtype == LK_BF16, table,
                     table + n * half);
    enum lk_code rc = lk_upload(p->dev, &p->cos, table);
    if (!rc) rc = lk_upload(p->dev, &p->sin, table + n * half);
    lk_free(table);
    return rc;
}

enum lk_code lk_mistral_hidden_states(struct lk_device *dev, const struct lk_mistral *m, const int32_t *ids, int64_t n,
                                      int64_t n_pad, const int *out_layers, int n_out, const struct lk_tensor *out) {
    int64_t d = m->config.hidden_size;
    size_t mark = lk_arena_mark(&dev->arena);
    struct pass p = {.dev = dev, .m = m, .n_rows = n, .n_real = n - (n_pad > 0)};
    int last = 0;
    for (int j = 0; j < n_out; j++) last = out_layers[j] > last ? out_layers[j] : last;
    LK_TRY(LK_NEW(&dev->arena, &p.h, out->dtype, p.n_rows, d));
    p.real = lk_tensor_rows(&p.h, p.n_rows - p.n_real, p.n_real);
    LK_TRY(make_rope(&p, n_pad));
    LK_TRY(lk_decoder_embed(dev, &p.h, &m->embed_tokens, ids));
    for (int64_t i = 0; i <= last; i++) {
        for (int j = 0; j < n_out; j++) {
            if (out_layers[j] != i) continue;
            struct lk_tensor block = lk_tensor_cols(out, j * d, d);
            LK_TRY(emit(&p, n_pad, &block, i == m->config.num_hidden_layers));
            LK_TRY(lk_trace(dev, &block, "text_encoder.hidden.%d", (int)i));
        }
        if (i == last) break;
        LK_TRY(attend(&p, &m->layers[i]));
        LK_TRY(mlp(&p, &m->layers[i]));
    }
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
