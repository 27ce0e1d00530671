/* Flux2Transformer2DModel: the forward pass. */
#include "models/flux2/transformer.h"

#include "engine/bf16.h"
#include "models/pipeline.h"

/* Rows of an MLP's inner activations that exist at one time: 8,704 x 36,864 values would be 0.6 GB in bf16. Rows do not
 * depend on each other, so the bits do not depend on this number. */
#define MLP_ROWS 4096

/* Modulation made ahead, in units of D. */
enum { IMG = 0, TXT = 6, SINGLE = 12, NORM_OUT = 15, UNITS = 17 };

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

static enum lk_code double_block(struct lk_mmdit *passes, int n, int i, const struct lk_mmdit_block *w) {
    LK_TRY(lk_mmdit_joint_attention(passes, n, i, w));
    LK_TRY(lk_mmdit_feed_forward(passes, n, false, &w->img, mlp_in));
    LK_TRY(lk_mmdit_feed_forward(passes, n, true, &w->txt, mlp_in));
    LK_EACH_PASS(p, passes, n) {
        struct lk_tensor z_txt = lk_mmdit_txt(p, &p->z), z_img = lk_mmdit_img(p, &p->z);
        LK_TRY(LK_MMDIT_TRACE(p, &z_txt, "double.%d.txt", i));
        LK_TRY(LK_MMDIT_TRACE(p, &z_img, "double.%d.img", i));
    }
    return LK_OK;
}

/* q, k and v of a single block, side by side in qkv[0]. */
static enum lk_code project_single(struct lk_mmdit *p, const struct lk_tensor *weight) {
    int64_t d = p->dim;
    struct lk_layer all = {.weight = lk_tensor_rows(weight, 0, 3 * d)}, of_q = {.weight = lk_tensor_rows(weight, 0, d)};
    struct lk_layer of_kv = {.weight = lk_tensor_rows(weight, d, 2 * d)};
    LK_TRY(LK_NEW(&p->dev->arena, &p->qkv[0], p->dtype, p->n, 3 * d));
    if (p->n_out == p->n) return lk_project(p->dev, &p->qkv[0], &p->u, &all, LK_ACT_NONE);
    struct lk_tensor q = lk_tensor_cols(&p->qkv[0], 0, d), kv = lk_tensor_cols(&p->qkv[0], d, 2 * d);
    struct lk_tensor rows = lk_tensor_rows(&p->u, p->first_out, p->n_out);
    q = lk_tensor_rows(&q, p->first_out, p->n_out);
    LK_TRY(lk_project(p->dev, &q, &rows, &of_q, LK_ACT_NONE));
    return lk_project(p->dev, &kv, &p->u, &of_kv, LK_ACT_NONE);
}

/* q and k normed and rotated, and attended into the first columns of wide. */
static enum lk_code attend_single(struct lk_mmdit *p, int i, const struct lk_flux2_single_block *w) {
    int64_t d = p->dim;
    struct lk_tensor q = lk_tensor_cols(&p->qkv[0], 0, d), k = lk_tensor_cols(&p->qkv[0], d, d);
    struct lk_tensor v = lk_tensor_cols(&p->qkv[0], 2 * d, d), attended = lk_tensor_cols(&p->wide, 0, d);
    q = lk_tensor_rows(&q, p->first_out, p->n_out);
    LK_TRY(lk_mmdit_norm_rope(p, &q, &w->norm_q, p->first_out));
    LK_TRY(lk_mmdit_norm_rope(p, &k, &w->norm_k, 0));
    return lk_mmdit_attention(p, &attended, &q, &k, &v, "single", i);
}

/* Attention and MLP in parallel from one norm; their outputs stand side by side as the input of one projection. */
static enum lk_code single_block(struct lk_mmdit *passes, int n, int i, const struct lk_flux2_single_block *w) {
    struct lk_arena *arena = &passes->dev->arena;
    int64_t d = passes->dim, mlp = w->to_out.weight.shape[1] - d;
    size_t mark = lk_arena_mark(arena);
    struct lk_layer w_mlp = {.weight = lk_tensor_rows(&w->to_qkv_mlp_proj.weight, 3 * d, 2 * mlp)};
    LK_EACH_PASS(p, passes, n) {
        LK_TRY(LK_NEW(arena, &p->wide, p->dtype, p->n_out, d + mlp));
        LK_TRY(LK_NEW(arena, &p->u, p->dtype, p->n, d));
        LK_TRY(lk_mmdit_modulate(p, &p->u, &p->z, &p->img[0]));
    }
    LK_EACH_PASS(p, passes, n) {
        struct lk_tensor activated = lk_tensor_cols(&p->wide, d, mlp),
                         rows = lk_tensor_rows(&p->u, p->first_out, p->n_out);
        LK_TRY(mlp_in(p, &activated, &rows, &w_mlp));
    }
    LK_EACH_PASS(p, passes, n) LK_TRY(project_single(p, &w->to_qkv_mlp_proj.weight));
    LK_EACH_PASS(p, passes, n) LK_TRY(attend_single(p, i, w));
    LK_EACH_PASS(p, passes, n) {
        struct lk_tensor rows = lk_tensor_rows(&p->z, p->first_out, p->n_out);
        LK_TRY(lk_project_onto(p->dev, &rows, &p->wide, &w->to_out, &p->img[0].gate));
    }
    lk_arena_release(arena, mark);
    LK_EACH_PASS(p, passes, n) LK_TRY(LK_MMDIT_TRACE(p, &p->z, "single.%d", i));
    return LK_OK;
}

enum lk_code lk_flux2_embed_context(struct lk_device *dev, const struct lk_flux2_transformer *t,
                                    const struct lk_tensor *prompt_embeds, const struct lk_tensor *context) {
    return lk_project(dev, context, prompt_embeds, &t->context_embedder, LK_ACT_NONE);
}

enum lk_code lk_flux2_look_ahead(struct lk_device *dev, const struct lk_flux2_transformer *t, enum lk_dtype dtype,
                                 const float *timesteps_1000, int n_steps, float guidance, struct lk_ahead *out) {
    float fed[LK_MAX_STEPS],
        g = dtype == LK_BF16 ? lk_round_bf16(lk_round_bf16(guidance) * 1000.0f) : guidance * 1000.0f;
    struct lk_tensor temb, guided;
    LK_TRY(lk_ahead_new(dev, dtype, UNITS, n_steps, t->config.dim, out));
    size_t mark = lk_arena_mark(&dev->arena);
    LK_TRY(LK_NEW(&dev->arena, &temb, dtype, n_steps, t->config.dim));
    LK_TRY(LK_NEW(&dev->arena, &guided, dtype, n_steps, t->config.dim));
    for (int i = 0; i < n_steps; i++) fed[i] = lk_timestep_as_fed(dtype, timesteps_1000[i]);
    LK_TRY(lk_embed_scalars(dev, &t->timestep_embedder, fed, 1.0f, &temb));
    if (t->config.guidance_embeds) {
        for (int i = 0; i < n_steps; i++) fed[i] = g;
        LK_TRY(lk_embed_scalars(dev, &t->guidance_embedder, fed, 1.0f, &guided));
        LK_TRY(lk_add(dev, &(struct lk_add){.y = &temb, .a = &temb, .b = &guided}));
    }
    LK_TRY(lk_ahead_silu(dev, &temb, n_steps));
    LK_TRY(lk_ahead_layer(dev, out, &temb, &t->double_stream_modulation_img, IMG));
    LK_TRY(lk_ahead_layer(dev, out, &temb, &t->double_stream_modulation_txt, TXT));
    LK_TRY(lk_ahead_layer(dev, out, &temb, &t->single_stream_modulation, SINGLE));
    LK_TRY(lk_ahead_layer(dev, out, &temb, &t->norm_out, NORM_OUT));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

static enum lk_code begin_pass(struct lk_mmdit *p, struct lk_device *dev, const struct lk_flux2_transformer *t,
                               const struct lk_flux2_pass *in) {
    const struct lk_flux2_transformer_config *c = &t->config;
    int64_t n_txt = in->conditioning->context.shape[0], n_img = in->x->shape[0];
    *p = (struct lk_mmdit){.dev = dev, .dtype = in->x->dtype, .n_txt = n_txt, .n_img = n_img, .n = n_txt + n_img};
    p->dim = c->dim, p->n_heads = c->num_attention_heads, p->head_dim = c->attention_head_dim, p->eps = (float)c->eps;
    p->cos = &in->conditioning->cos, p->sin = &in->conditioning->sin;
    p->ahead = &in->conditioning->ahead, p->step = in->step;
    lk_mmdit_modulation(p, IMG, 2, p->img);
    lk_mmdit_modulation(p, TXT, 2, p->txt);
    LK_TRY(LK_NEW(&dev->arena, &p->z, p->dtype, p->n, p->dim));
    struct lk_tensor z_txt = lk_mmdit_txt(p, &p->z), z_img = lk_mmdit_img(p, &p->z);
    LK_TRY(lk_project(dev, &z_img, in->x, &t->x_embedder, LK_ACT_NONE));
    LK_TRY(lk_copy(dev, &(struct lk_copy){.y = &z_txt, .x = &in->conditioning->context}));
    LK_TRY(LK_MMDIT_TRACE(p, &z_img, "%s", "x_embedder"));
    return LK_MMDIT_TRACE(p, &z_txt, "%s", "context_embedder");
}

enum lk_code lk_flux2_transformer_forward(struct lk_device *dev, const struct lk_flux2_transformer *t,
                                          const struct lk_flux2_pass *in, int n) {
    struct lk_mmdit passes[LK_MAX_PASSES];
    size_t mark = lk_arena_mark(&dev->arena);
    for (int k = 0; k < n; k++) LK_TRY(begin_pass(&passes[k], dev, t, &in[k]));
    for (int i = 0; i < t->config.num_layers; i++) LK_TRY(double_block(passes, n, i, &t->double_blocks[i]));
    LK_EACH_PASS(p, passes, n) lk_mmdit_modulation(p, SINGLE, 1, p->img);
    for (int i = 0; i < t->config.num_single_layers; i++) {
        for (int k = 0; k < n; k++)
            lk_mmdit_rows_out(&passes[k], i + 1 == t->config.num_single_layers, in[k].velocity->shape[0]);
        LK_TRY(single_block(passes, n, i, &t->single_blocks[i]));
    }
    for (int k = 0; k < n; k++) LK_TRY(lk_mmdit_tail(&passes[k], NORM_OUT, &t->proj_out, in[k].velocity));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
