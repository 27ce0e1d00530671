/* Step1XEditTransformer2DModel: the forward pass. */
#include "models/step1x/transformer.h"

#include <math.h>
#include <string.h>

#include "engine/bf16.h"
#include "engine/flow_match.h"
#include "models/step1x/layers.h"

#define NORM_EPS 1e-6f

/* One forward pass. The sequence is kept as one matrix, text rows first, so that joint attention needs no
 * concatenation. */
struct pass {
    struct lk_device *dev;
    const struct lk_step1x_transformer *t;
    const struct lk_step1x_conditioning *conditioning;
    enum lk_dtype dtype;
    int64_t n_txt, n_img, n; /* n = n_txt + n_img */
    int step;
    const char *branch;
    struct lk_tensor z;        /* [n, D]: residual stream */
    struct lk_tensor silu_vec; /* [1, D] */
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
                           const struct lk_step1x_linear *w) {
    return lk_step1x_project(p->dev, y, x, w, LK_ACT_NONE);
}

static enum lk_code modulate(const struct pass *p, const struct lk_tensor *y, const struct lk_tensor *x,
                             const struct modulation *m) {
    struct lk_layer_norm op = {.y = y, .x = x, .shift = &m->shift, .scale = &m->scale, .eps = NORM_EPS};
    return lk_layer_norm(p->dev, &op);
}

/* Intermediate tensors of a block are shown in the first step only, as all others of a branch. */
#define TRACE_BRANCH(p, value, format, ...)                                                                            \
    ((p)->step ? LK_OK : lk_trace((p)->dev, value, "step.0.%s." format, (p)->branch, __VA_ARGS__))

/* The pipeline divides the timestep by 1000 and the model multiplies it again, each in the dtype of the latents. */
static float as_fed(enum lk_dtype dtype, float timestep_1000) {
    if (dtype != LK_BF16) return timestep_1000 / 1000.0f * 1000.0f;
    return lk_round_bf16(lk_round_bf16(lk_round_bf16(timestep_1000) / 1000.0f) * 1000.0f);
}

/* The timestep's sinusoids [1, 256] in the compute dtype. */
static enum lk_code make_sinusoids(const struct pass *p, float timestep_1000, const struct lk_tensor *sinusoids) {
    float host[LK_STEP1X_TIMESTEP_DIM];
    size_t mark = lk_arena_mark(&p->dev->arena);
    struct lk_tensor wide;
    LK_TRY(LK_NEW(&p->dev->arena, &wide, LK_F32, 1, LK_STEP1X_TIMESTEP_DIM));
    lk_timestep_embedding(as_fed(p->dtype, timestep_1000), LK_STEP1X_TIMESTEP_DIM, host);
    LK_TRY(lk_upload(p->dev, &wide, host));
    LK_TRY(lk_copy(p->dev, &(struct lk_copy){.y = sinusoids, .x = &wide}));
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}

/* refined += text_token_mapping(embeds) in the rows of quoted tokens, run by run. */
static enum lk_code map_quoted(const struct pass *p, const struct lk_tensor *refined) {
    const bool *quoted = p->conditioning->quoted;
    if (!quoted || !p->t->config.enable_text_token_mapping) return LK_OK;
    for (int64_t i = 0, end; i < p->n_txt; i = end + 1) {
        for (end = i; end < p->n_txt && quoted[end];) end++;
        if (end == i) continue;
        struct lk_tensor rows = lk_tensor_rows(refined, i, end - i);
        struct lk_tensor embeds = lk_tensor_rows(&p->conditioning->embeds, i, end - i);
        LK_TRY(lk_step1x_project_onto(p->dev, &rows, &embeds, &p->t->text_token_mapping, NULL));
    }
    return LK_OK;
}

/* silu(vec), vec = time_embed(sinusoids) + vec_embed(pooled). */
static enum lk_code make_silu_vec(const struct pass *p, const struct lk_tensor *sinusoids,
                                  const struct lk_tensor *pooled) {
    size_t mark = lk_arena_mark(&p->dev->arena);
    struct lk_tensor time, vec;
    LK_TRY(LK_NEW(&p->dev->arena, &time, p->dtype, 1, p->t->config.dim));
    LK_TRY(LK_NEW(&p->dev->arena, &vec, p->dtype, 1, p->t->config.dim));
    LK_TRY(lk_step1x_embed(p->dev, &time, sinusoids, &p->t->time_embed));
    LK_TRY(lk_step1x_embed(p->dev, &vec, pooled, &p->t->vec_embed));
    LK_TRY(lk_add(p->dev, &(struct lk_add){.y = &vec, .a = &time, .b = &vec}));
    if (!strcmp(p->branch, "cond")) LK_TRY(lk_trace(p->dev, &vec, "step.%d.temb", p->step));
    LK_TRY(lk_activation(p->dev, &(struct lk_activation){.y = &p->silu_vec, .x = &vec, .act = LK_ACT_SILU}));
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}

/* Timestep and text: silu_vec, and the text rows of z. */
static enum lk_code embed_text(const struct pass *p, float timestep_1000) {
    struct lk_arena *arena = &p->dev->arena;
    const struct lk_step1x_conditioning *c = p->conditioning;
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor sinusoids, refined, pooled, z_txt = txt_rows(p, &p->z);
    LK_TRY(LK_NEW(arena, &sinusoids, p->dtype, 1, LK_STEP1X_TIMESTEP_DIM));
    LK_TRY(LK_NEW(arena, &pooled, p->dtype, 1, LK_STEP1X_POOLED_DIM));
    LK_TRY(LK_NEW(arena, &refined, p->dtype, p->n_txt, p->t->config.connector_hidden_size));
    LK_TRY(make_sinusoids(p, timestep_1000, &sinusoids));
    LK_TRY(lk_step1x_connect(p->dev, p->t, &c->hidden, &sinusoids, &refined, &pooled));
    LK_TRY(TRACE_BRANCH(p, &refined, "%s", "connector"));
    LK_TRY(TRACE_BRANCH(p, &pooled, "%s", "pooled"));
    LK_TRY(map_quoted(p, &refined));
    LK_TRY(make_silu_vec(p, &sinusoids, &pooled));
    LK_TRY(linear(p, &z_txt, &refined, &p->t->context_embedder));
    LK_TRY(TRACE_BRANCH(p, &z_txt, "%s", "txt_in"));
    lk_arena_release(arena, mark);
    return LK_OK;
}

/* n_sets times shift, scale, gate, from one linear layer over silu(vec). Stays in the arena. */
static enum lk_code make_modulation(const struct pass *p, const struct lk_step1x_linear *w, int n_sets,
                                    struct modulation *out) {
    int64_t d = p->t->config.dim;
    struct lk_tensor m;
    LK_TRY(LK_NEW(&p->dev->arena, &m, p->dtype, 1, 3 * n_sets * d));
    LK_TRY(linear(p, &m, &p->silu_vec, w));
    for (int i = 0; i < n_sets; i++) {
        struct lk_tensor *parts[] = {&out[i].shift, &out[i].scale, &out[i].gate};
        for (int j = 0; j < 3; j++) {
            struct lk_tensor part = lk_tensor_cols(&m, (3 * i + j) * d, d);
            *parts[j] = LK_VIEW(&part, d);
        }
    }
    return LK_OK;
}

static struct lk_tensor heads(const struct pass *p, const struct lk_tensor *t) {
    return LK_VIEW(t, t->shape[0], p->t->config.num_attention_heads, p->t->config.attention_head_dim);
}

/* RMS norm over each head, then rotation, in place on rows [first_row, ...) of q or k. */
static enum lk_code norm_rope(const struct pass *p, const struct lk_tensor *rows, const struct lk_tensor *w,
                              int64_t first_row) {
    struct lk_tensor x = heads(p, rows);
    struct lk_tensor cos = lk_tensor_rows(&p->conditioning->cos, first_row, x.shape[0]);
    struct lk_tensor sin = lk_tensor_rows(&p->conditioning->sin, first_row, x.shape[0]);
    struct lk_norm_rope op = {.x = &x, .norm_w = w, .cos = &cos, .sin = &sin, .eps = NORM_EPS};
    op.pairing = LK_ROPE_INTERLEAVED;
    return lk_norm_rope(p->dev, &op);
}

static enum lk_code attention(const struct pass *p, const struct lk_tensor *out, const struct lk_tensor qkv[3],
                              const char *kind, int i) {
    struct lk_tensor out3 = heads(p, out), q = heads(p, &qkv[0]), k = heads(p, &qkv[1]), v = heads(p, &qkv[2]);
    LK_TRY(TRACE_BRANCH(p, &q, "%s.%d.query", kind, i));
    LK_TRY(TRACE_BRANCH(p, &k, "%s.%d.key", kind, i));
    float scale = 1.0f / sqrtf((float)p->t->config.attention_head_dim);
    LK_TRY(lk_attention(p->dev, &(struct lk_attention){.out = &out3, .q = &q, .k = &k, .v = &v, .scale = scale}));
    return TRACE_BRANCH(p, out, "%s.%d.attention", kind, i);
}

/* rows of z += gate * ff(mod(rows)). */
static enum lk_code feed_forward(const struct pass *p, const struct lk_tensor *rows, const struct modulation *m,
                                 const struct lk_step1x_stream *w) {
    size_t mark = lk_arena_mark(&p->dev->arena);
    struct lk_tensor u, inner;
    LK_TRY(LK_NEW(&p->dev->arena, &u, p->dtype, rows->shape[0], p->t->config.dim));
    LK_TRY(LK_NEW(&p->dev->arena, &inner, p->dtype, rows->shape[0], w->ff_in.weight.shape[0]));
    LK_TRY(modulate(p, &u, rows, m));
    LK_TRY(lk_step1x_project(p->dev, &inner, &u, &w->ff_in, LK_ACT_GELU_TANH));
    LK_TRY(lk_step1x_project_onto(p->dev, rows, &inner, &w->ff_out, &m->gate));
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}

/* q, k, v of one stream's normed rows into its rows of qkv; q and k normed and rotated. */
static enum lk_code project_qkv(const struct pass *p, const struct lk_tensor *x, const struct lk_step1x_stream *w,
                                int64_t first_row, const struct lk_tensor qkv[3]) {
    const struct lk_step1x_linear *const weights[] = {&w->to_q, &w->to_k, &w->to_v};
    struct lk_tensor rows[3];
    for (int i = 0; i < 3; i++) {
        rows[i] = lk_tensor_rows(&qkv[i], first_row, x->shape[0]);
        LK_TRY(linear(p, &rows[i], x, weights[i]));
    }
    LK_TRY(norm_rope(p, &rows[0], &w->norm_q, first_row));
    return norm_rope(p, &rows[1], &w->norm_k, first_row);
}

/* Streams: 0 text, 1 image. */
static enum lk_code double_block(const struct pass *p, int i) {
    const struct lk_step1x_stream *w[] = {&p->t->double_blocks[i].txt, &p->t->double_blocks[i].img};
    struct lk_arena *arena = &p->dev->arena;
    size_t mark = lk_arena_mark(arena), inner_mark;
    struct modulation m[2][2];
    struct lk_tensor rows[] = {txt_rows(p, &p->z), img_rows(p, &p->z)}, u, qkv[3];
    for (int s = 0; s < 2; s++) LK_TRY(make_modulation(p, &w[s]->norm1, 2, m[s]));
    inner_mark = lk_arena_mark(arena);
    LK_TRY(LK_NEW(arena, &u, p->dtype, p->n, p->t->config.dim)); /* the norms' output, then the attention's */
    for (int j = 0; j < 3; j++) LK_TRY(LK_NEW(arena, &qkv[j], p->dtype, p->n, p->t->config.dim));
    struct lk_tensor u_rows[] = {txt_rows(p, &u), img_rows(p, &u)};
    for (int s = 0; s < 2; s++) {
        LK_TRY(modulate(p, &u_rows[s], &rows[s], &m[s][0]));
        LK_TRY(project_qkv(p, &u_rows[s], w[s], s * p->n_txt, qkv));
    }
    LK_TRY(attention(p, &u, qkv, "double", i));
    for (int s = 0; s < 2; s++)
        LK_TRY(lk_step1x_project_onto(p->dev, &rows[s], &u_rows[s], &w[s]->to_out, &m[s][0].gate));
    lk_arena_release(arena, inner_mark);
    for (int s = 0; s < 2; s++) LK_TRY(feed_forward(p, &rows[s], &m[s][1], w[s]));
    lk_arena_release(arena, mark);
    LK_TRY(TRACE_BRANCH(p, &rows[0], "double.%d.txt", i));
    return TRACE_BRANCH(p, &rows[1], "double.%d.img", i);
}

/* Attention and MLP in parallel from one norm; their outputs stand side by side as the input of one projection. */
static enum lk_code single_block(const struct pass *p, int i) {
    const struct lk_step1x_single_block *w = &p->t->single_blocks[i];
    const struct lk_step1x_linear *const weights[] = {&w->to_q, &w->to_k, &w->to_v};
    struct lk_arena *arena = &p->dev->arena;
    int64_t d = p->t->config.dim, mlp = w->proj_mlp.weight.shape[0];
    size_t mark = lk_arena_mark(arena);
    struct modulation m;
    struct lk_tensor u, both, qkv[3];
    LK_TRY(make_modulation(p, &w->norm, 1, &m));
    LK_TRY(LK_NEW(arena, &u, p->dtype, p->n, d));
    LK_TRY(LK_NEW(arena, &both, p->dtype, p->n, d + mlp));
    for (int j = 0; j < 3; j++) LK_TRY(LK_NEW(arena, &qkv[j], p->dtype, p->n, d));
    struct lk_tensor attended = lk_tensor_cols(&both, 0, d), activated = lk_tensor_cols(&both, d, mlp);
    LK_TRY(modulate(p, &u, &p->z, &m));
    LK_TRY(lk_step1x_project(p->dev, &activated, &u, &w->proj_mlp, LK_ACT_GELU_TANH));
    for (int j = 0; j < 3; j++) LK_TRY(linear(p, &qkv[j], &u, weights[j]));
    LK_TRY(norm_rope(p, &qkv[0], &w->norm_q, 0));
    LK_TRY(norm_rope(p, &qkv[1], &w->norm_k, 0));
    LK_TRY(attention(p, &attended, qkv, "single", i));
    LK_TRY(lk_step1x_project_onto(p->dev, &p->z, &both, &w->proj_out, &m.gate));
    lk_arena_release(arena, mark);
    return TRACE_BRANCH(p, &p->z, "single.%d", i);
}

/* The noise rows through the last norm, whose linear gives scale before shift, and the output projection. */
static enum lk_code tail(const struct pass *p, const struct lk_tensor *velocity) {
    int64_t d = p->t->config.dim;
    size_t mark = lk_arena_mark(&p->dev->arena);
    struct lk_tensor s, u, noise = lk_tensor_rows(&p->z, p->n_txt, velocity->shape[0]);
    LK_TRY(LK_NEW(&p->dev->arena, &s, p->dtype, 1, 2 * d));
    LK_TRY(LK_NEW(&p->dev->arena, &u, p->dtype, velocity->shape[0], d));
    LK_TRY(linear(p, &s, &p->silu_vec, &p->t->norm_out));
    struct lk_tensor scale = lk_tensor_cols(&s, 0, d), shift = lk_tensor_cols(&s, d, d);
    struct modulation m = {.shift = LK_VIEW(&shift, d), .scale = LK_VIEW(&scale, d)};
    LK_TRY(modulate(p, &u, &noise, &m));
    LK_TRY(linear(p, velocity, &u, &p->t->proj_out));
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_step1x_transformer_forward(struct lk_device *dev, const struct lk_step1x_transformer *t,
                                           const struct lk_tensor *x, const struct lk_step1x_conditioning *conditioning,
                                           float timestep_1000, int step, const char *branch,
                                           const struct lk_tensor *velocity) {
    struct pass p = {.dev = dev, .t = t, .conditioning = conditioning, .dtype = x->dtype, .step = step};
    size_t mark = lk_arena_mark(&dev->arena);
    p.branch = branch;
    p.n_txt = conditioning->hidden.shape[0];
    p.n_img = x->shape[0];
    p.n = p.n_txt + p.n_img;
    LK_TRY(LK_NEW(&dev->arena, &p.z, p.dtype, p.n, t->config.dim));
    LK_TRY(LK_NEW(&dev->arena, &p.silu_vec, p.dtype, 1, t->config.dim));
    struct lk_tensor z_img = img_rows(&p, &p.z);
    LK_TRY(embed_text(&p, timestep_1000));
    LK_TRY(linear(&p, &z_img, x, &t->x_embedder));
    LK_TRY(TRACE_BRANCH(&p, &z_img, "%s", "img_in"));
    for (int i = 0; i < t->config.num_layers; i++) LK_TRY(double_block(&p, i));
    for (int i = 0; i < t->config.num_single_layers; i++) LK_TRY(single_block(&p, i));
    LK_TRY(tail(&p, velocity));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
