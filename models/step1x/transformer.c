/* Step1XEditTransformer2DModel: the forward pass. */
#include "models/step1x/transformer.h"

#include "engine/flow_match.h"

#define NORM_EPS 1e-6f

/* refined += text_token_mapping(embeds) in the rows of quoted tokens, run by run. */
static enum lk_code map_quoted(const struct lk_mmdit *p, const struct lk_step1x_transformer *t,
                               const struct lk_step1x_conditioning *c, const struct lk_tensor *refined) {
    const bool *quoted = c->quoted;
    if (!quoted || !t->config.enable_text_token_mapping) return LK_OK;
    for (int64_t i = 0, end; i < p->n_txt; i = end + 1) {
        for (end = i; end < p->n_txt && quoted[end];) end++;
        if (end == i) continue;
        struct lk_tensor rows = lk_tensor_rows(refined, i, end - i);
        struct lk_tensor embeds = lk_tensor_rows(&c->embeds, i, end - i);
        LK_TRY(lk_project_onto(p->dev, &rows, &embeds, &t->text_token_mapping, NULL));
    }
    return LK_OK;
}

/* temb = time_embed(sinusoids) + vec_embed(pooled). */
static enum lk_code make_temb(const struct lk_mmdit *p, const struct lk_step1x_transformer *t,
                              const struct lk_tensor *sinusoids, const struct lk_tensor *pooled) {
    size_t mark = lk_arena_mark(&p->dev->arena);
    struct lk_tensor time, vec;
    LK_TRY(LK_NEW(&p->dev->arena, &time, p->dtype, 1, p->dim));
    LK_TRY(LK_NEW(&p->dev->arena, &vec, p->dtype, 1, p->dim));
    LK_TRY(lk_embed(p->dev, &time, sinusoids, &t->time_embed));
    LK_TRY(lk_embed(p->dev, &vec, pooled, &t->vec_embed));
    LK_TRY(lk_add(p->dev, &(struct lk_add){.y = &vec, .a = &time, .b = &vec}));
    LK_TRY(lk_mmdit_set_temb(p, &vec));
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}

/* Timestep and text: silu_temb, and the text rows of z. */
static enum lk_code embed_text(const struct lk_mmdit *p, const struct lk_step1x_transformer *t,
                               const struct lk_step1x_conditioning *c, float timestep_1000) {
    struct lk_arena *arena = &p->dev->arena;
    float host[LK_STEP1X_TIMESTEP_DIM];
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor sinusoids, refined, pooled, z_txt = lk_mmdit_txt(p, &p->z);
    LK_TRY(LK_NEW(arena, &sinusoids, p->dtype, 1, LK_STEP1X_TIMESTEP_DIM));
    LK_TRY(LK_NEW(arena, &pooled, p->dtype, 1, LK_STEP1X_POOLED_DIM));
    LK_TRY(LK_NEW(arena, &refined, p->dtype, p->n_txt, t->config.connector_hidden_size));
    lk_timestep_embedding(lk_timestep_as_fed(p->dtype, timestep_1000), LK_STEP1X_TIMESTEP_DIM, host);
    LK_TRY(lk_upload_rounded(p->dev, &sinusoids, host));
    LK_TRY(lk_step1x_connect(p->dev, t, &c->hidden, &sinusoids, &refined, &pooled));
    LK_TRY(LK_MMDIT_TRACE(p, &refined, "%s", "connector"));
    LK_TRY(LK_MMDIT_TRACE(p, &pooled, "%s", "pooled"));
    LK_TRY(map_quoted(p, t, c, &refined));
    LK_TRY(make_temb(p, t, &sinusoids, &pooled));
    LK_TRY(lk_project(p->dev, &z_txt, &refined, &t->context_embedder, LK_ACT_NONE));
    LK_TRY(LK_MMDIT_TRACE(p, &z_txt, "%s", "txt_in"));
    lk_arena_release(arena, mark);
    return LK_OK;
}

/* rows of z += gate * ff(mod(rows)). */
static enum lk_code feed_forward(const struct lk_mmdit *p, const struct lk_tensor *rows, const struct lk_modulation *m,
                                 const struct lk_mmdit_stream *w) {
    size_t mark = lk_arena_mark(&p->dev->arena);
    struct lk_tensor u, inner;
    LK_TRY(LK_NEW(&p->dev->arena, &u, p->dtype, rows->shape[0], p->dim));
    LK_TRY(LK_NEW(&p->dev->arena, &inner, p->dtype, rows->shape[0], w->ff_in.weight.shape[0]));
    LK_TRY(lk_mmdit_modulate(p, &u, rows, m));
    LK_TRY(lk_project(p->dev, &inner, &u, &w->ff_in, LK_ACT_GELU_TANH));
    LK_TRY(lk_project_onto(p->dev, rows, &inner, &w->ff_out, &m->gate));
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}

static enum lk_code double_block(const struct lk_mmdit *p, int i, const struct lk_mmdit_block *w) {
    size_t mark = lk_arena_mark(&p->dev->arena);
    struct lk_modulation txt[2], img[2]; /* of attention and of MLP */
    struct lk_tensor z_txt = lk_mmdit_txt(p, &p->z), z_img = lk_mmdit_img(p, &p->z);
    LK_TRY(lk_mmdit_modulation(p, &w->txt.mod, 2, txt));
    LK_TRY(lk_mmdit_modulation(p, &w->img.mod, 2, img));
    LK_TRY(lk_mmdit_joint_attention(p, i, w, &txt[0], &img[0]));
    LK_TRY(feed_forward(p, &z_txt, &txt[1], &w->txt));
    LK_TRY(feed_forward(p, &z_img, &img[1], &w->img));
    lk_arena_release(&p->dev->arena, mark);
    LK_TRY(LK_MMDIT_TRACE(p, &z_txt, "double.%d.txt", i));
    return LK_MMDIT_TRACE(p, &z_img, "double.%d.img", i);
}

/* Attention and MLP in parallel from one norm; their outputs stand side by side as the input of one projection. */
static enum lk_code single_block(const struct lk_mmdit *p, int i, const struct lk_step1x_single_block *w) {
    struct lk_arena *arena = &p->dev->arena;
    int64_t d = p->dim, mlp = w->proj_mlp.weight.shape[0];
    size_t mark = lk_arena_mark(arena);
    struct lk_modulation m;
    struct lk_tensor u, both, qkv[3];
    LK_TRY(lk_mmdit_modulation(p, &w->norm, 1, &m));
    LK_TRY(LK_NEW(arena, &u, p->dtype, p->n, d));
    LK_TRY(LK_NEW(arena, &both, p->dtype, p->n, d + mlp));
    for (int j = 0; j < 3; j++) LK_TRY(LK_NEW(arena, &qkv[j], p->dtype, p->n, d));
    struct lk_tensor attended = lk_tensor_cols(&both, 0, d), activated = lk_tensor_cols(&both, d, mlp);
    LK_TRY(lk_mmdit_modulate(p, &u, &p->z, &m));
    LK_TRY(lk_project(p->dev, &activated, &u, &w->proj_mlp, LK_ACT_GELU_TANH));
    LK_TRY(lk_mmdit_project(p, &qkv[0], &u, 0, p->n, &w->to_q, &w->norm_q));
    LK_TRY(lk_mmdit_project(p, &qkv[1], &u, 0, p->n, &w->to_k, &w->norm_k));
    LK_TRY(lk_mmdit_project(p, &qkv[2], &u, 0, p->n, &w->to_v, NULL));
    LK_TRY(lk_mmdit_attention(p, &attended, &qkv[0], &qkv[1], &qkv[2], "single", i));
    LK_TRY(lk_project_onto(p->dev, &p->z, &both, &w->proj_out, &m.gate));
    lk_arena_release(arena, mark);
    return LK_MMDIT_TRACE(p, &p->z, "single.%d", i);
}

enum lk_code lk_step1x_transformer_forward(struct lk_device *dev, const struct lk_step1x_transformer *t,
                                           const struct lk_tensor *x, const struct lk_step1x_conditioning *conditioning,
                                           float timestep_1000, int step, const char *branch,
                                           const struct lk_tensor *velocity) {
    const struct lk_step1x_transformer_config *c = &t->config;
    int64_t n_txt = conditioning->hidden.shape[0], n_img = x->shape[0];
    struct lk_mmdit p = {.dev = dev, .dtype = x->dtype, .n_txt = n_txt, .n_img = n_img, .n = n_txt + n_img};
    size_t mark = lk_arena_mark(&dev->arena);
    p.dim = c->dim, p.n_heads = c->num_attention_heads, p.head_dim = c->attention_head_dim, p.eps = NORM_EPS;
    p.cos = &conditioning->cos, p.sin = &conditioning->sin, p.step = step, p.branch = branch;
    p.untraced = step > 0;
    LK_TRY(LK_NEW(&dev->arena, &p.z, p.dtype, p.n, p.dim));
    LK_TRY(LK_NEW(&dev->arena, &p.silu_temb, p.dtype, 1, p.dim));
    struct lk_tensor z_img = lk_mmdit_img(&p, &p.z);
    LK_TRY(embed_text(&p, t, conditioning, timestep_1000));
    LK_TRY(lk_project(dev, &z_img, x, &t->x_embedder, LK_ACT_NONE));
    LK_TRY(LK_MMDIT_TRACE(&p, &z_img, "%s", "img_in"));
    for (int i = 0; i < c->num_layers; i++) LK_TRY(double_block(&p, i, &t->double_blocks[i]));
    for (int i = 0; i < c->num_single_layers; i++) LK_TRY(single_block(&p, i, &t->single_blocks[i]));
    LK_TRY(lk_mmdit_tail(&p, &t->norm_out, &t->proj_out, velocity));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
