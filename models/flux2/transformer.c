/* Flux2Transformer2DModel: the forward pass. */
#include "models/flux2/transformer.h"

#include <math.h>

#include "engine/bf16.h"
#include "engine/flow_match.h"

/* Rows of an MLP's inner activations that exist at one time: 8,704 x 36,864 values would be 0.6 GB in bf16. Rows do not
 * depend on each other, so the bits do not depend on this number. */
#define MLP_ROWS 4096

/* One forward pass. The sequence is kept as one matrix, text rows first, so that joint attention needs no
 * concatenation. */
struct pass {
    struct lk_device *dev;
    const struct lk_flux2_transformer *t;
    const struct lk_flux2_conditioning *conditioning;
    enum lk_dtype dtype;
    int64_t n_txt, n_img, n; /* n = n_txt + n_img */
    int step;
    struct lk_tensor z;         /* [n, D]: residual stream */
    struct lk_tensor silu_temb; /* [1, D] */
};

/* shift, scale, gate: [D] each. */
struct modulation {
    struct lk_tensor shift, scale, gate;
};

static struct lk_tensor txt_rows(const struct pass *p, const struct lk_tensor *t) {
    return lk_tensor_rows(t, 0, p->n_txt);
}
static struct lk_tensor img_rows(const struct pass *p, const struct lk_tensor *t) {
    return lk_tensor_rows(t, p->n_txt, p->n_img);
}

static enum lk_code linear(const struct pass *p, const struct lk_tensor *y, const struct lk_tensor *x,
                           const struct lk_tensor *w) {
    return lk_linear(p->dev, &(struct lk_linear){.y = y, .x = x, .w = w});
}

/* residual += gate * (x wT), in place. */
static enum lk_code linear_gated(const struct pass *p, const struct lk_tensor *residual, const struct lk_tensor *x,
                                 const struct lk_tensor *w, const struct lk_tensor *gate) {
    return lk_linear(p->dev, &(struct lk_linear){.y = residual, .x = x, .w = w, .gate = gate, .residual = residual});
}

static enum lk_code modulate(const struct pass *p, const struct lk_tensor *y, const struct lk_tensor *x,
                             const struct modulation *m) {
    struct lk_layer_norm op = {.y = y, .x = x, .shift = &m->shift, .scale = &m->scale, .eps = (float)p->t->config.eps};
    return lk_layer_norm(p->dev, &op);
}

/* linear_2(silu(linear_1(e))) of the sinusoidal embedding e of a scalar. */
static enum lk_code embed_scalar(const struct pass *p, const struct lk_flux2_embedder *w, float scalar_1000,
                                 const struct lk_tensor *y) {
    int64_t channels = p->t->config.timestep_guidance_channels, d = p->t->config.dim;
    struct lk_arena *arena = &p->dev->arena;
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor wide, e, h;
    LK_TRY(LK_NEW(arena, &wide, LK_F32, 1, channels));
    LK_TRY(LK_NEW(arena, &e, p->dtype, 1, channels));
    LK_TRY(LK_NEW(arena, &h, p->dtype, 1, d));
    float host[LK_FLUX2_MAX_EMBEDDING];
    lk_timestep_embedding(scalar_1000, (int)channels, host);
    LK_TRY(lk_upload(p->dev, &wide, host));
    LK_TRY(lk_copy(p->dev, &(struct lk_copy){.y = &e, .x = &wide}));
    LK_TRY(lk_linear(p->dev, &(struct lk_linear){.y = &h, .x = &e, .w = &w->linear_1, .act = LK_ACT_SILU}));
    LK_TRY(linear(p, y, &h, &w->linear_2));
    lk_arena_release(arena, mark);
    return LK_OK;
}

/* The pipeline divides the timestep by 1000 and the model multiplies it again, each in the dtype of the latents. */
static float as_fed(enum lk_dtype dtype, float timestep_1000) {
    if (dtype != LK_BF16) return timestep_1000 / 1000.0f * 1000.0f;
    return lk_round_bf16(lk_round_bf16(lk_round_bf16(timestep_1000) / 1000.0f) * 1000.0f);
}

static enum lk_code make_temb(struct pass *p, float timestep_1000, float guidance) {
    const struct lk_flux2_transformer *t = p->t;
    struct lk_tensor temb, guided;
    LK_TRY(LK_NEW(&p->dev->arena, &p->silu_temb, p->dtype, 1, t->config.dim));
    size_t mark = lk_arena_mark(&p->dev->arena);
    LK_TRY(LK_NEW(&p->dev->arena, &temb, p->dtype, 1, t->config.dim));
    LK_TRY(LK_NEW(&p->dev->arena, &guided, p->dtype, 1, t->config.dim));
    LK_TRY(embed_scalar(p, &t->timestep_embedder, as_fed(p->dtype, timestep_1000), &temb));
    if (t->config.guidance_embeds) {
        float g = p->dtype == LK_BF16 ? lk_round_bf16(lk_round_bf16(guidance) * 1000.0f) : guidance * 1000.0f;
        LK_TRY(embed_scalar(p, &t->guidance_embedder, g, &guided));
        LK_TRY(lk_add(p->dev, &(struct lk_add){.y = &temb, .a = &temb, .b = &guided}));
    }
    LK_TRY(lk_trace(p->dev, &temb, "step.%d.temb", p->step));
    LK_TRY(lk_activation(p->dev, &(struct lk_activation){.y = &p->silu_temb, .x = &temb, .act = LK_ACT_SILU}));
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}

/* n_sets times shift, scale, gate, from one linear layer over silu(temb). Stays in the arena. */
static enum lk_code make_modulation(const struct pass *p, const struct lk_tensor *w, int n_sets,
                                    struct modulation *out) {
    int64_t d = p->t->config.dim;
    struct lk_tensor m;
    LK_TRY(LK_NEW(&p->dev->arena, &m, p->dtype, 1, 3 * n_sets * d));
    LK_TRY(linear(p, &m, &p->silu_temb, w));
    for (int i = 0; i < n_sets; i++) {
        struct lk_tensor *parts[] = {&out[i].shift, &out[i].scale, &out[i].gate};
        for (int j = 0; j < 3; j++) {
            struct lk_tensor part = lk_tensor_cols(&m, (3 * i + j) * d, d);
            *parts[j] = LK_VIEW(&part, d);
        }
    }
    return LK_OK;
}

/* RMS norm over each head, then rotation, in place on [rows, heads, head_dim]. */
static enum lk_code norm_rope(const struct pass *p, const struct lk_tensor *x, const struct lk_tensor *w,
                              int64_t first_row) {
    struct lk_tensor cos = lk_tensor_rows(&p->conditioning->cos, first_row, x->shape[0]);
    struct lk_tensor sin = lk_tensor_rows(&p->conditioning->sin, first_row, x->shape[0]);
    struct lk_norm_rope op = {.x = x, .norm_w = w, .cos = &cos, .sin = &sin, .eps = (float)p->t->config.eps};
    op.pairing = LK_ROPE_INTERLEAVED;
    return lk_norm_rope(p->dev, &op);
}

static struct lk_tensor heads(const struct pass *p, const struct lk_tensor *t) {
    return LK_VIEW(t, t->shape[0], p->t->config.num_attention_heads, p->t->config.attention_head_dim);
}

static enum lk_code attention(const struct pass *p, const struct lk_tensor *out, const struct lk_tensor *q,
                              const struct lk_tensor *k, const struct lk_tensor *v, const char *kind, int i) {
    struct lk_tensor out3 = heads(p, out), q3 = heads(p, q), k3 = heads(p, k), v3 = heads(p, v);
    LK_TRY(lk_trace(p->dev, &q3, "step.%d.%s.%d.query", p->step, kind, i));
    LK_TRY(lk_trace(p->dev, &k3, "step.%d.%s.%d.key", p->step, kind, i));
    float scale = 1.0f / sqrtf((float)p->t->config.attention_head_dim);
    LK_TRY(lk_attention(p->dev, &(struct lk_attention){.out = &out3, .q = &q3, .k = &k3, .v = &v3, .scale = scale}));
    return lk_trace(p->dev, out, "step.%d.%s.%d.attention", p->step, kind, i);
}

/* y [rows, M] = silu(gate) * up of x wT, w [2 M, D], a slab of rows at a time. */
static enum lk_code mlp_in(const struct pass *p, const struct lk_tensor *y, const struct lk_tensor *x,
                           const struct lk_tensor *w) {
    int64_t m = p->t->config.mlp_dim, n = x->shape[0], slab = n < MLP_ROWS ? n : MLP_ROWS;
    size_t mark = lk_arena_mark(&p->dev->arena);
    struct lk_tensor u;
    LK_TRY(LK_NEW(&p->dev->arena, &u, p->dtype, slab, 2 * m));
    for (int64_t i = 0; i < n; i += slab) {
        int64_t rows = n - i < slab ? n - i : slab;
        struct lk_tensor xs = lk_tensor_rows(x, i, rows), ys = lk_tensor_rows(y, i, rows),
                         us = lk_tensor_rows(&u, 0, rows);
        LK_TRY(linear(p, &us, &xs, w));
        LK_TRY(lk_gated_act(p->dev, &(struct lk_gated_act){.y = &ys, .x = &us, .act = LK_ACT_SILU}));
    }
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}

/* rows of z += gate * ff(mod(rows)). */
static enum lk_code feed_forward(const struct pass *p, const struct lk_tensor *rows, const struct modulation *m,
                                 const struct lk_tensor *w_in, const struct lk_tensor *w_out) {
    size_t mark = lk_arena_mark(&p->dev->arena);
    struct lk_tensor n, g;
    LK_TRY(LK_NEW(&p->dev->arena, &n, p->dtype, rows->shape[0], p->t->config.dim));
    LK_TRY(LK_NEW(&p->dev->arena, &g, p->dtype, rows->shape[0], p->t->config.mlp_dim));
    LK_TRY(modulate(p, &n, rows, m));
    LK_TRY(mlp_in(p, &g, &n, w_in));
    LK_TRY(linear_gated(p, rows, &g, w_out, &m->gate));
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}

/* q, k, v of one stream's rows, normed and rotated. */
static enum lk_code project_qkv(const struct pass *p, const struct lk_tensor *x, const struct lk_tensor *const w[3],
                                const struct lk_tensor *norm_q, const struct lk_tensor *norm_k, int64_t first_row,
                                const struct lk_tensor out[3]) {
    struct lk_tensor rows[3];
    for (int i = 0; i < 3; i++) {
        rows[i] = lk_tensor_rows(&out[i], first_row, x->shape[0]);
        LK_TRY(linear(p, &rows[i], x, w[i]));
    }
    struct lk_tensor q = heads(p, &rows[0]), k = heads(p, &rows[1]);
    LK_TRY(norm_rope(p, &q, norm_q, first_row));
    return norm_rope(p, &k, norm_k, first_row);
}

static enum lk_code double_block(const struct pass *p, int i, const struct modulation img[2],
                                 const struct modulation txt[2]) {
    const struct lk_flux2_double_block *w = &p->t->double_blocks[i];
    struct lk_arena *arena = &p->dev->arena;
    int64_t d = p->t->config.dim;
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor x = img_rows(p, &p->z), c = txt_rows(p, &p->z), norm, qkv[3];
    LK_TRY(LK_NEW(arena, &norm, p->dtype, p->n, d)); /* later the attention's output */
    for (int j = 0; j < 3; j++) LK_TRY(LK_NEW(arena, &qkv[j], p->dtype, p->n, d));
    struct lk_tensor norm_x = img_rows(p, &norm), norm_c = txt_rows(p, &norm);
    LK_TRY(modulate(p, &norm_x, &x, &img[0]));
    LK_TRY(modulate(p, &norm_c, &c, &txt[0]));
    const struct lk_tensor *const w_txt[] = {&w->add_q_proj, &w->add_k_proj, &w->add_v_proj};
    const struct lk_tensor *const w_img[] = {&w->to_q, &w->to_k, &w->to_v};
    LK_TRY(project_qkv(p, &norm_c, w_txt, &w->norm_added_q, &w->norm_added_k, 0, qkv));
    LK_TRY(project_qkv(p, &norm_x, w_img, &w->norm_q, &w->norm_k, p->n_txt, qkv));
    LK_TRY(attention(p, &norm, &qkv[0], &qkv[1], &qkv[2], "double", i));
    LK_TRY(linear_gated(p, &x, &norm_x, &w->to_out, &img[0].gate));
    LK_TRY(linear_gated(p, &c, &norm_c, &w->to_add_out, &txt[0].gate));
    lk_arena_release(arena, mark);
    LK_TRY(feed_forward(p, &x, &img[1], &w->ff_in, &w->ff_out));
    LK_TRY(feed_forward(p, &c, &txt[1], &w->ff_context_in, &w->ff_context_out));
    LK_TRY(lk_trace(p->dev, &c, "step.%d.double.%d.txt", p->step, i));
    return lk_trace(p->dev, &x, "step.%d.double.%d.img", p->step, i);
}

/* Attention and MLP in parallel from one norm; their outputs stand side by side as the input of one projection. */
static enum lk_code single_block(const struct pass *p, int i, const struct modulation *m) {
    const struct lk_flux2_single_block *w = &p->t->single_blocks[i];
    struct lk_arena *arena = &p->dev->arena;
    int64_t d = p->t->config.dim, mlp = p->t->config.mlp_dim;
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor norm, qkv, both;
    LK_TRY(LK_NEW(arena, &both, p->dtype, p->n, d + mlp));
    LK_TRY(LK_NEW(arena, &norm, p->dtype, p->n, d));
    LK_TRY(modulate(p, &norm, &p->z, m));
    struct lk_tensor w_qkv = lk_tensor_rows(&w->to_qkv_mlp_proj, 0, 3 * d);
    struct lk_tensor w_mlp = lk_tensor_rows(&w->to_qkv_mlp_proj, 3 * d, 2 * mlp);
    struct lk_tensor attended = lk_tensor_cols(&both, 0, d), activated = lk_tensor_cols(&both, d, mlp);
    LK_TRY(mlp_in(p, &activated, &norm, &w_mlp));
    LK_TRY(LK_NEW(arena, &qkv, p->dtype, p->n, 3 * d));
    LK_TRY(linear(p, &qkv, &norm, &w_qkv));
    struct lk_tensor q = lk_tensor_cols(&qkv, 0, d), k = lk_tensor_cols(&qkv, d, d), v = lk_tensor_cols(&qkv, 2 * d, d);
    struct lk_tensor q3 = heads(p, &q), k3 = heads(p, &k);
    LK_TRY(norm_rope(p, &q3, &w->norm_q, 0));
    LK_TRY(norm_rope(p, &k3, &w->norm_k, 0));
    LK_TRY(attention(p, &attended, &q, &k, &v, "single", i));
    LK_TRY(linear_gated(p, &p->z, &both, &w->to_out, &m->gate));
    lk_arena_release(arena, mark);
    return lk_trace(p->dev, &p->z, "step.%d.single.%d", p->step, i);
}

/* The noise rows through the last norm, whose linear gives scale before shift, and the output projection. */
static enum lk_code tail(const struct pass *p, const struct lk_tensor *velocity) {
    int64_t d = p->t->config.dim;
    size_t mark = lk_arena_mark(&p->dev->arena);
    struct lk_tensor s, n, noise = lk_tensor_rows(&p->z, p->n_txt, velocity->shape[0]);
    LK_TRY(LK_NEW(&p->dev->arena, &s, p->dtype, 1, 2 * d));
    LK_TRY(LK_NEW(&p->dev->arena, &n, p->dtype, velocity->shape[0], d));
    LK_TRY(linear(p, &s, &p->silu_temb, &p->t->norm_out));
    struct lk_tensor scale = lk_tensor_cols(&s, 0, d), shift = lk_tensor_cols(&s, d, d);
    struct modulation m = {.shift = LK_VIEW(&shift, d), .scale = LK_VIEW(&scale, d)};
    LK_TRY(modulate(p, &n, &noise, &m));
    LK_TRY(linear(p, velocity, &n, &p->t->proj_out));
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_flux2_embed_context(struct lk_device *dev, const struct lk_flux2_transformer *t,
                                    const struct lk_tensor *prompt_embeds, const struct lk_tensor *context) {
    return lk_linear(dev, &(struct lk_linear){.y = context, .x = prompt_embeds, .w = &t->context_embedder});
}

enum lk_code lk_flux2_transformer_forward(struct lk_device *dev, const struct lk_flux2_transformer *t,
                                          const struct lk_tensor *x, const struct lk_flux2_conditioning *conditioning,
                                          float timestep_1000, float guidance, int step,
                                          const struct lk_tensor *velocity) {
    struct pass p = {.dev = dev, .t = t, .conditioning = conditioning, .dtype = x->dtype, .step = step};
    struct modulation img[2], txt[2], single;
    size_t mark = lk_arena_mark(&dev->arena);
    p.n_txt = conditioning->context.shape[0];
    p.n_img = x->shape[0];
    p.n = p.n_txt + p.n_img;
    LK_TRY(make_temb(&p, timestep_1000, guidance));
    LK_TRY(make_modulation(&p, &t->double_stream_modulation_img, 2, img));
    LK_TRY(make_modulation(&p, &t->double_stream_modulation_txt, 2, txt));
    LK_TRY(make_modulation(&p, &t->single_stream_modulation, 1, &single));
    LK_TRY(LK_NEW(&dev->arena, &p.z, p.dtype, p.n, t->config.dim));
    struct lk_tensor z_txt = txt_rows(&p, &p.z), z_img = img_rows(&p, &p.z);
    LK_TRY(linear(&p, &z_img, x, &t->x_embedder));
    LK_TRY(lk_copy(dev, &(struct lk_copy){.y = &z_txt, .x = &conditioning->context}));
    LK_TRY(lk_trace(dev, &z_img, "step.%d.x_embedder", step));
    LK_TRY(lk_trace(dev, &z_txt, "step.%d.context_embedder", step));
    for (int i = 0; i < t->config.num_layers; i++) LK_TRY(double_block(&p, i, img, txt));
    for (int i = 0; i < t->config.num_single_layers; i++) LK_TRY(single_block(&p, i, &single));
    LK_TRY(tail(&p, velocity));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
