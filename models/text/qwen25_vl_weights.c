/* Qwen2.5-VL: weights. */
#include "models/text/qwen25_vl.h"

#include <stdio.h>

#include "engine/base/alloc.h"

/* A tensor of a layer; cols 0: a vector. */
struct entry {
    struct lk_tensor *tensor;
    const char *name;
    int64_t rows, cols;
};

/* Names get "PREFIX.I." in front, nothing for an empty prefix. totals, unless NULL, counts along. */
static void bind_table(struct lk_bind *b, const struct entry *table, size_t n, const char *prefix, int i,
                       struct lk_bind_totals *totals) {
    char front[32] = "";
    if (*prefix) snprintf(front, sizeof front, "%s.%d.", prefix, i);
    for (size_t j = 0; j < n; j++) {
        const struct entry *e = &table[j];
        lk_bind_tensor(b, e->tensor, e->cols ? 2 : 1, (int64_t[]){e->rows, e->cols}, "%s%s", front, e->name);
        if (!totals) continue;
        totals->parameters += (uint64_t)lk_tensor_numel(e->tensor);
        totals->weight_bytes += lk_tensor_bytes(e->tensor);
        totals->n_tensors++;
    }
}
#define BIND_TABLE(bind, table, prefix, i, totals)                                                                     \
    bind_table(bind, table, sizeof(table) / sizeof *(table), prefix, i, totals)

static void bind_layer(struct lk_bind *b, struct lk_qwen25_vl_layer *l, int i, const struct lk_qwen25_vl_config *c) {
    int64_t d = c->hidden_size, f = c->intermediate_size;
    int64_t q = c->num_attention_heads * c->head_dim, kv = c->num_key_value_heads * c->head_dim;
    const struct entry table[] = {
        {&l->input_layernorm, "input_layernorm.weight", d, 0},
        {&l->post_attention_layernorm, "post_attention_layernorm.weight", d, 0},
        {&l->q_proj.weight, "self_attn.q_proj.weight", q, d},
        {&l->q_proj.bias, "self_attn.q_proj.bias", q, 0},
        {&l->k_proj.weight, "self_attn.k_proj.weight", kv, d},
        {&l->k_proj.bias, "self_attn.k_proj.bias", kv, 0},
        {&l->v_proj.weight, "self_attn.v_proj.weight", kv, d},
        {&l->v_proj.bias, "self_attn.v_proj.bias", kv, 0},
        {&l->o_proj, "self_attn.o_proj.weight", d, q},
        {&l->gate_proj, "mlp.gate_proj.weight", f, d},
        {&l->up_proj, "mlp.up_proj.weight", f, d},
        {&l->down_proj, "mlp.down_proj.weight", d, f},
    };
    BIND_TABLE(b, table, "layers", i, NULL);
}

static void bind_block(struct lk_bind *b, struct lk_qwen25_vl_vision_block *l, int i,
                       const struct lk_qwen25_vl_vision_config *c, struct lk_bind_totals *totals) {
    int64_t d = c->hidden_size, f = c->intermediate_size;
    const struct entry table[] = {
        {&l->norm1, "norm1.weight", d, 0},
        {&l->norm2, "norm2.weight", d, 0},
        {&l->qkv.weight, "attn.qkv.weight", 3 * d, d},
        {&l->qkv.bias, "attn.qkv.bias", 3 * d, 0},
        {&l->proj.weight, "attn.proj.weight", d, d},
        {&l->proj.bias, "attn.proj.bias", d, 0},
        {&l->gate_proj.weight, "mlp.gate_proj.weight", f, d},
        {&l->gate_proj.bias, "mlp.gate_proj.bias", f, 0},
        {&l->up_proj.weight, "mlp.up_proj.weight", f, d},
        {&l->up_proj.bias, "mlp.up_proj.bias", f, 0},
        {&l->down_proj.weight, "mlp.down_proj.weight", d, f},
        {&l->down_proj.bias, "mlp.down_proj.bias", d, 0},
    };
    BIND_TABLE(b, table, "blocks", i, totals);
}

static void bind_vision(struct lk_bind *b, struct lk_qwen25_vl *m) {
    const struct lk_qwen25_vl_vision_config *c = &m->config.vision;
    int64_t merged = c->hidden_size * c->spatial_merge_size * c->spatial_merge_size;
    struct lk_bind_totals *totals = &m->vision_totals;
    LK_BIND(b, &m->patch_embed,
            LK_SHAPE(c->hidden_size, c->in_channels, c->temporal_patch_size, c->patch_size, c->patch_size),
            "patch_embed.proj.weight");
    totals->parameters += (uint64_t)lk_tensor_numel(&m->patch_embed);
    totals->weight_bytes += lk_tensor_bytes(&m->patch_embed);
    totals->n_tensors++;
    for (int i = 0; i < c->depth; i++) bind_block(b, &m->blocks[i], i, c, totals);
    const struct entry merger[] = {
        {&m->merger.ln_q, "merger.ln_q.weight", c->hidden_size, 0},
        {&m->merger.mlp_0.weight, "merger.mlp.0.weight", merged, merged},
        {&m->merger.mlp_0.bias, "merger.mlp.0.bias", merged, 0},
        {&m->merger.mlp_2.weight, "merger.mlp.2.weight", c->out_hidden_size, merged},
        {&m->merger.mlp_2.bias, "merger.mlp.2.bias", c->out_hidden_size, 0},
    };
    BIND_TABLE(b, merger, "", 0, totals);
}

static void bind_all(struct lk_bind *b, struct lk_qwen25_vl *m, bool lm_head) {
    /* As files have them, and as transformers names them since 4.52 in memory. */
    static const char *const language[] = {"model.", "model.language_model.", NULL};
    static const char *const visual[] = {"visual.", "model.visual.", NULL};
    const struct lk_qwen25_vl_config *c = &m->config;
    if (lm_head && !c->tie_word_embeddings)
        LK_BIND(b, &m->lm_head, LK_SHAPE(c->vocab_size, c->hidden_size), "lm_head.weight");
    else
        lk_bind_ignore(b, "lm_head.weight");
    lk_bind_prefix(b, "embed_tokens.weight", language);
    lk_bind_embedding(b, &m->embed_tokens, c->vocab_size, c->hidden_size, "embed_tokens.weight");
    for (int i = 0; i < c->num_hidden_layers; i++) bind_layer(b, &m->layers[i], i, c);
    LK_BIND(b, &m->norm, LK_SHAPE(c->hidden_size), "norm.weight");
    lk_bind_prefix(b, "patch_embed.proj.weight", visual);
    bind_vision(b, m);
}

enum lk_code lk_qwen25_vl_bind(struct lk_qwen25_vl *m, const struct lk_qwen25_vl_config *config, bool lm_head,
                               const struct lk_checkpoint *checkpoint, enum lk_dtype compute) {
    *m = (struct lk_qwen25_vl){.config = *config};
    m->layers = lk_calloc((size_t)config->num_hidden_layers, sizeof *m->layers);
    m->blocks = lk_calloc((size_t)config->vision.depth, sizeof *m->blocks);
    enum lk_code rc = m->layers && m->blocks ? LK_OK : lk_fail(LK_E_NOMEM, "text encoder: out of memory");
    struct lk_bind *b;
    if (!rc) rc = lk_bind_begin(&b, checkpoint, "text_encoder", compute);
    if (!rc) {
        bind_all(b, m, lm_head);
        rc = lk_bind_finish(b, &m->owned, &m->totals);
    }
    if (rc)
        lk_qwen25_vl_free(m);
    else if (lm_head && config->tie_word_embeddings)
        m->lm_head = m->embed_tokens;
    return rc;
}

void lk_qwen25_vl_free(struct lk_qwen25_vl *m) {
    lk_free(m->layers);
    lk_free(m->blocks);
    lk_free(m->owned);
    m->layers = NULL;
    m->blocks = NULL;
    m->owned = NULL;
}
