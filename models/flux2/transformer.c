/* Flux2Transformer2DModel: the forward pass. */
#include "models/flux2/transformer.h"

#include "engine/bf16.h"
#include "engine/flow_match.h"

/* Rows of an MLP's inner activations that exist at one time: 8,704 x 36,864 values would be 0.6 GB in bf16. Rows do not
 * depend on each other, so the bits do not depend on this number. */
#define MLP_ROWS 4096

/* linear_2(silu(linear_1(e))) of the sinusoidal embedding e of a scalar. */
static enum lk_code embed_scalar(const struct lk_mmdit *p, const struct lk_embedder *w, float scalar_1000,
                                 const struct lk_tensor *y) {
    int64_t channels = w->linear_1.weight.shape[1];
    float host[LK_FLUX2_MAX_EMBEDDING];
    size_t mark = lk_arena_mark(&p->dev->arena);
    struct lk_tensor e;
    LK_TRY(LK_NEW(&p->dev->arena, &e, p->dtype, 1, channels));
    lk_timestep_embedding(scalar_1000, (int)channels, host);
    LK_TRY(lk_upload_rounded(p->dev, &e, host));
    LK_TRY(lk_embed(p->dev, y, &e, w));
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}

static enum lk_code make_temb(const struct lk_mmdit *p, const struct lk_flux2_transformer *t, float timestep_1000,
                              float guidance) {
    struct lk_tensor temb, guided;
    size_t mark = lk_arena_mark(&p->dev->arena);
    LK_TRY(LK_NEW(&p->dev->arena, &temb, p->dtype, 1, p->dim));
    LK_TRY(LK_NEW(&p->dev->arena, &guided, p->dtype, 1, p->dim));
    LK_TRY(embed_scalar(p, &t->timestep_embedder, lk_timestep_as_fed(p->dtype, timestep_1000), &temb));
    if (t->config.guidance_embeds) {
        float g = p->dtype == LK_BF16 ? lk_round_bf16(lk_round_bf16(guidance) * 1000.0f) : guidance * 1000.0f;
        LK_TRY(embed_scalar(p, &t->guidance_embedder, g, &guided));
        LK_TRY(lk_add(p->dev, &(struct lk_add){.y = &temb, .a = &temb, .b = &guided}));
    }
    LK_TRY(lk_mmdit_set_temb(p, &temb));
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}

/* y [rows, M] = silu(gate) * up of x wT, w [2 M, D], a slab of rows at a time. */
static enum lk_code mlp_in(const struct lk_mmdit *p, const struct lk_tensor *y, const struct lk_tensor *x,
                           const struct lk_layer *w) {
    int64_t n = x->shape[0], slab = n < MLP_ROWS ? n : MLP_ROWS;
    size_t mark = lk_arena_mark(&p->dev->arena);
    struct lk_tensor u;
    LK_TRY(LK_NEW(&p->dev->arena, &u, p->dtype, slab, 2 * y->shape[1]));
    for (int64_t i = 0; i < n; i += slab) {
        int64_t rows = n - i < slab ? n - i : slab;
        struct lk_tensor xs = lk_tensor_rows(x, i, rows), ys = lk_tensor_rows(y, i, rows),
                         us = lk_tensor_rows(&u, 0, rows);
        LK_TRY(lk_project(p->dev, &us, &xs, w, LK_ACT_NONE));
        LK_TRY(lk_gated_act(p->dev, &(struct lk_gated_act){.y = &ys, .x = &us, .act = LK_ACT_SILU}));
    }
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}

/* rows of z += gate * ff(mod(rows)). */
static enum lk_code feed_forward(const struct lk_mmdit *p, const struct lk_tensor *rows, const struct lk_modulation *m,
                                 const struct lk_mmdit_stream *w) {
    size_t mark = lk_arena_mark(&p->dev->arena);
    struct lk_tensor n, g;
    LK_TRY(LK_NEW(&p->dev->arena, &n, p->dtype, rows->shape[0], p->dim));
    LK_TRY(LK_NEW(&p->dev->arena, &g, p->dtype, rows->shape[0], w->ff_out.weight.shape[1]));
    LK_TRY(lk_mmdit_modulate(p, &n, rows, m));
    LK_TRY(mlp_in(p, &g, &n, &w->ff_in));
    LK_TRY(lk_project_onto(p->dev, rows, &g, &w->ff_out, &m->gate));
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}

/* txt, img: modulation of attention and of MLP. */
static enum lk_code double_block(const struct lk_mmdit *p, int i, const struct lk_mmdit_block *w,
                                 const struct lk_modulation txt[2], const struct lk_modulation img[2]) {
    struct lk_tensor z_txt = lk_mmdit_txt(p, &p->z), z_img = lk_mmdit_img(p, &p->z);
    LK_TRY(lk_mmdit_joint_attention(p, i, w, &txt[0], &img[0]));
    LK_TRY(feed_forward(p, &z_img, &img[1], &w->img));
    LK_TRY(feed_forward(p, &z_txt, &txt[1], &w->txt));
    LK_TRY(LK_MMDIT_TRACE(p, &z_txt, "double.%d.txt", i));
    return LK_MMDIT_TRACE(p, &z_img, "double.%d.img", i);
}

/* Attention and MLP in parallel from one norm; their outputs stand side by side as the input of one projection. */
static enum lk_code single_block(const struct lk_mmdit *p, int i, const struct lk_flux2_single_block *w,
                                 const struct lk_modulation *m) {
    struct lk_arena *arena = &p->dev->arena;
    int64_t d = p->dim, mlp = w->to_out.weight.shape[1] - d;
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor norm, qkv, both;
    LK_TRY(LK_NEW(arena, &both, p->dtype, p->n, d + mlp));
    LK_TRY(LK_NEW(arena, &norm, p->dtype, p->n, d));
    LK_TRY(lk_mmdit_modulate(p, &norm, &p->z, m));
    struct lk_layer w_qkv = {.weight = lk_tensor_rows(&w->to_qkv_mlp_proj.weight, 0, 3 * d)};
    struct lk_layer w_mlp = {.weight = lk_tensor_rows(&w->to_qkv_mlp_proj.weight, 3 * d, 2 * mlp)};
    struct lk_tensor attended = lk_tensor_cols(&both, 0, d), activated = lk_tensor_cols(&both, d, mlp);
    LK_TRY(mlp_in(p, &activated, &norm, &w_mlp));
    LK_TRY(LK_NEW(arena, &qkv, p->dtype, p->n, 3 * d));
    LK_TRY(lk_project(p->dev, &qkv, &norm, &w_qkv, LK_ACT_NONE));
    struct lk_tensor q = lk_tensor_cols(&qkv, 0, d), k = lk_tensor_cols(&qkv, d, d), v = lk_tensor_cols(&qkv, 2 * d, d);
    LK_TRY(lk_mmdit_norm_rope(p, &q, &w->norm_q, 0));
    LK_TRY(lk_mmdit_norm_rope(p, &k, &w->norm_k, 0));
    LK_TRY(lk_mmdit_attention(p, &attended, &q, &k, &v, "single", i));
    LK_TRY(lk_project_onto(p->dev, &p->z, &both, &w->to_out, &m->gate));
    lk_arena_release(arena, mark);
    return LK_MMDIT_TRACE(p, &p->z, "single.%d", i);
}

enum lk_code lk_flux2_embed_context(struct lk_device *dev, const struct lk_flux2_transformer *t,
                                    const struct lk_tensor *prompt_embeds, const struct lk_tensor *context) {
    return lk_project(dev, context, prompt_embeds, &t->context_embedder, LK_ACT_NONE);
}

enum lk_code lk_flux2_transformer_forward(struct lk_device *dev, const struct lk_flux2_transformer *t,
                                          const struct lk_tensor *x, const struct lk_flux2_conditioning *conditioning,
                                          float timestep_1000, float guidance, int step,
                                          const struct lk_tensor *velocity) {
    const struct lk_flux2_transformer_config *c = &t->config;
    int64_t n_txt = conditioning->context.shape[0], n_img = x->shape[0];
    struct lk_mmdit p = {.dev = dev, .dtype = x->dtype, .n_txt = n_txt, .n_img = n_img, .n = n_txt + n_img};
    struct lk_modulation img[2], txt[2], single;
    size_t mark = lk_arena_mark(&dev->arena);
    p.dim = c->dim, p.n_heads = c->num_attention_heads, p.head_dim = c->attention_head_dim, p.eps = (float)c->eps;
    p.cos = &conditioning->cos, p.sin = &conditioning->sin, p.step = step;
    LK_TRY(LK_NEW(&dev->arena, &p.silu_temb, p.dtype, 1, p.dim));
    LK_TRY(make_temb(&p, t, timestep_1000, guidance));
    LK_TRY(lk_mmdit_modulation(&p, &t->double_stream_modulation_img, 2, img));
    LK_TRY(lk_mmdit_modulation(&p, &t->double_stream_modulation_txt, 2, txt));
    LK_TRY(lk_mmdit_modulation(&p, &t->single_stream_modulation, 1, &single));
    LK_TRY(LK_NEW(&dev->arena, &p.z, p.dtype, p.n, p.dim));
    struct lk_tensor z_txt = lk_mmdit_txt(&p, &p.z), z_img = lk_mmdit_img(&p, &p.z);
    LK_TRY(lk_project(dev, &z_img, x, &t->x_embedder, LK_ACT_NONE));
    LK_TRY(lk_copy(dev, &(struct lk_copy){.y = &z_txt, .x = &conditioning->context}));
    LK_TRY(LK_MMDIT_TRACE(&p, &z_img, "%s", "x_embedder"));
    LK_TRY(LK_MMDIT_TRACE(&p, &z_txt, "%s", "context_embedder"));
    for (int i = 0; i < c->num_layers; i++) LK_TRY(double_block(&p, i, &t->double_blocks[i], txt, img));
    for (int i = 0; i < c->num_single_layers; i++) LK_TRY(single_block(&p, i, &t->single_blocks[i], &single));
    LK_TRY(lk_mmdit_tail(&p, &t->norm_out, &t->proj_out, velocity));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
