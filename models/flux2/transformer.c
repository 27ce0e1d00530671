/* Flux2Transformer2DModel: the forward pass. */
#include "models/flux2/transformer.h"
#include "models/common/cache.h"

#include "engine/bf16.h"
#include "models/pipeline.h"

/* Modulation made ahead, in units of D. */
enum { IMG = 0, TXT = 6, SINGLE = 12, NORM_OUT = 15, UNITS = 17 };

/* y [rows, M] = silu(gate) * up of x wT, w [2 M, D], a slab of rows at a time. */
static enum lk_code mlp_in(const struct lk_mmdit *p, const struct lk_tensor *y, const struct lk_tensor *x,
                           const struct lk_layer *w) {
    int64_t n = x->shape[0], slab = n < LK_MLP_ROWS ? n : LK_MLP_ROWS;
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

/* Columns [first, first + n) in units of D of q, k and v side by side. */
static enum lk_code project_columns(const struct lk_mmdit *p, const struct lk_tensor *y, const struct lk_tensor *u,
                                    const struct lk_layer *all, int64_t first, int64_t n) {
    struct lk_layer w = lk_layer_rows(all, first * p->dim, n * p->dim);
    return lk_project(p->dev, y, u, &w, LK_ACT_NONE);
}

/* q, k and v of a single block, side by side in one matrix; in slices q apart, of one. */
static enum lk_code new_qkv(struct lk_mmdit *p) {
    int64_t d = p->dim;
    bool sliced = lk_mmdit_sliced(p);
    struct lk_tensor all;
    LK_TRY(LK_NEW(&p->dev->arena, &all, p->dtype, p->n, (sliced ? 2 : 3) * d));
    for (int j = 0; j < 3; j++)
        if (j || !sliced) p->qkv[j] = lk_tensor_cols(&all, (sliced ? j - 1 : j) * d, d);
    return sliced ? LK_NEW(&p->dev->arena, &p->qkv[0], p->dtype, p->slice_rows, d) : LK_OK;
}

/* Keys and values of the slice, v right of k; or all three of all rows in one product where all are read. */
static enum lk_code project_kv(struct lk_mmdit *p, const struct lk_flux2_single_block *w) {
    if (p->at.n <= 0) return LK_OK;
    bool all = !lk_mmdit_sliced(p) && p->n_out == p->n;
    struct lk_tensor u = lk_mmdit_own(p, &p->u, p->at), k = lk_tensor_rows(&p->qkv[1], p->at.first, p->at.n);
    struct lk_tensor y = all ? p->qkv[0] : k;
    y.shape[1] = (all ? 3 : 2) * p->dim;
    LK_TRY(project_columns(p, &y, &u, &w->to_qkv_mlp_proj, all ? 0 : 1, all ? 3 : 2));
    return lk_mmdit_norm_rope(p, &k, &w->norm_k, p->at.first);
}

static enum lk_code attend_single(struct lk_mmdit *p, int i, const struct lk_flux2_single_block *w) {
    if (p->at.n <= 0) return LK_OK;
    struct lk_tensor u = lk_mmdit_own(p, &p->u, p->at), q = lk_mmdit_own(p, &p->qkv[0], p->at);
    if (lk_mmdit_sliced(p) || p->n_out < p->n) LK_TRY(project_columns(p, &q, &u, &w->to_qkv_mlp_proj, 0, 1));
    LK_TRY(lk_mmdit_norm_rope(p, &q, &w->norm_q, p->at.first));
    return lk_mmdit_attend_wide(p, i);
}

static enum lk_code mlp_single(struct lk_mmdit *p, const struct lk_flux2_single_block *w) {
    int64_t d = p->dim, mlp = w->to_out.weight.shape[1] - d;
    if (p->at.n <= 0) return LK_OK;
    struct lk_layer w_mlp = lk_layer_rows(&w->to_qkv_mlp_proj, 3 * d, 2 * mlp);
    struct lk_tensor u = lk_mmdit_own(p, &p->u, p->at), wide = lk_tensor_rows(&p->wide, 0, p->at.n);
    struct lk_tensor activated = lk_tensor_cols(&wide, d, mlp);
    return mlp_in(p, &activated, &u, &w_mlp);
}

/* Attention and MLP in parallel from one norm; their outputs stand side by side as the input of one projection. */
static enum lk_code single_block(struct lk_mmdit *passes, int n, int i, const struct lk_flux2_single_block *w) {
    struct lk_arena *arena = &passes->dev->arena;
    size_t mark = lk_arena_mark(arena);
    LK_EACH_PASS(p, passes, n) {
        LK_TRY(LK_NEW(arena, &p->wide, p->dtype, lk_mmdit_slice_rows(p, p->n_out), w->to_out.weight.shape[1]));
        LK_TRY(LK_NEW(arena, &p->u, p->dtype, lk_mmdit_slice_rows(p, p->n), p->dim));
    }
    /* All at once the MLP comes first, whose scratch is gone when q, k and v are made; in slices it is small. */
    lk_mmdit_slices(passes, n, 0, LK_ROWS_ALL);
    LK_EACH_PASS(p, passes, n) if (!lk_mmdit_sliced(p)) LK_TRY(lk_mmdit_modulate_rows(p, p->at, &p->img[0]));
    lk_mmdit_slices(passes, n, 0, LK_ROWS_OUT);
    LK_EACH_PASS(p, passes, n) if (!lk_mmdit_sliced(p)) LK_TRY(mlp_single(p, w));
    LK_EACH_PASS(p, passes, n) LK_TRY(new_qkv(p));
    for (int64_t s = 0; lk_mmdit_slices(passes, n, s, LK_ROWS_ALL); s++) {
        LK_EACH_PASS(p, passes, n) if (lk_mmdit_sliced(p)) LK_TRY(lk_mmdit_modulate_rows(p, p->at, &p->img[0]));
        LK_EACH_PASS(p, passes, n) LK_TRY(project_kv(p, w));
    }
    for (int64_t s = 0; lk_mmdit_slices(passes, n, s, LK_ROWS_OUT); s++) {
        LK_EACH_PASS(p, passes, n) if (lk_mmdit_sliced(p)) LK_TRY(lk_mmdit_modulate_rows(p, p->at, &p->img[0]));
        LK_EACH_PASS(p, passes, n) if (lk_mmdit_sliced(p)) LK_TRY(mlp_single(p, w));
        LK_EACH_PASS(p, passes, n) LK_TRY(attend_single(p, i, w));
        LK_EACH_PASS(p, passes, n) LK_TRY(lk_mmdit_project_wide(p, &w->to_out));
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
    p->slice_rows = in->slice_rows;
    p->velocity = in->velocity;
    lk_mmdit_begin(p);
    lk_mmdit_modulation(p, IMG, 2, p->img);
    lk_mmdit_modulation(p, TXT, 2, p->txt);
    LK_TRY(LK_NEW(&dev->arena, &p->z, p->dtype, p->n, p->dim));
    struct lk_tensor z_txt = lk_mmdit_txt(p, &p->z), z_img = lk_mmdit_img(p, &p->z);
    LK_TRY(lk_project(dev, &z_img, in->x, &t->x_embedder, LK_ACT_NONE));
    LK_TRY(lk_copy(dev, &(struct lk_copy){.y = &z_txt, .x = &in->conditioning->context}));
    LK_TRY(LK_MMDIT_TRACE(p, &z_img, "%s", "x_embedder"));
    LK_TRY(LK_MMDIT_TRACE(p, &z_txt, "%s", "context_embedder"));
    return lk_cache_begin(p, in->cache, &p->img[0]);
}

enum lk_code lk_flux2_transformer_forward(struct lk_device *dev, const struct lk_flux2_transformer *t,
                                          const struct lk_flux2_pass *in, int n) {
    struct lk_mmdit passes[LK_MAX_PASSES];
    size_t mark = lk_arena_mark(&dev->arena);
    for (int k = 0; k < n; k++) LK_TRY(begin_pass(&passes[k], dev, t, &in[k]));
    const int64_t n_double = t->config.num_layers, n_single = t->config.num_single_layers;
    int n_active = n; /* passes that no gate holds back */
    for (int i = 0; i <= n_double; i++) {
        LK_TRY(lk_mmdit_gate(passes, n, 0, i, n_double, false, &n_active));
        if (n_active && i < n_double) LK_TRY(double_block(passes, n_active, i, &t->double_blocks[i]));
    }
    LK_EACH_PASS(p, passes, n) lk_mmdit_modulation(p, SINGLE, 1, p->img);
    for (int i = 0; i <= n_single; i++) {
        LK_TRY(lk_mmdit_gate(passes, n, 1, i, n_single, true, &n_active));
        if (!n_active || i == n_single) continue;
        LK_EACH_PASS(p, passes, n_active) lk_mmdit_rows_out(p, i + 1 == n_single, p->velocity->shape[0]);
        LK_TRY(single_block(passes, n_active, i, &t->single_blocks[i]));
    }
    LK_EACH_PASS(p, passes, n) LK_TRY(lk_mmdit_tail(p, NORM_OUT, &t->proj_out, p->velocity));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
