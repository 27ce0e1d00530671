/* QwenImageTransformer2DModel: the forward pass. */
#include "models/qwen_edit/transformer.h"

#include <math.h>
#include <string.h>

#include "engine/bf16.h"
#include "engine/flow_match.h"

#define EPS             1e-6f
#define TIME_EMBEDDING  256
#define TIMESTEP_FACTOR 1000.0f
/* Rows of an MLP's inner activations that exist at one time. Rows do not depend on each other, so the bits do not
 * depend on this number. */
#define MLP_ROWS 4096

/* shift, scale, gate: [D] each. */
struct modulation {
    struct lk_tensor shift, scale, gate;
};

/* Rows of the sequence that are modulated alike: all text rows, the target's, the references'. */
struct segment {
    int64_t first, n;
    bool text;
    int time;                 /* row of silu_temb: 0 the step's time, 1 time zero */
    struct modulation mod[2]; /* of the block at hand: attention, MLP */
};

/* One forward pass. The sequence is kept as one matrix, text rows first, so that joint attention needs no
 * concatenation. */
struct pass {
    struct lk_device *dev;
    const struct lk_qwen_transformer *t;
    const struct lk_qwen_conditioning *conditioning;
    enum lk_dtype dtype;
    int64_t n_txt, n_noise, n; /* n: with references */
    int step;
    const char *branch;
    struct lk_tensor z;         /* [n, D]: residual stream */
    struct lk_tensor silu_temb; /* [1 or 2, D] */
    struct segment segments[3];
    int n_segments;
};

static enum lk_code linear(const struct pass *p, const struct lk_tensor *y, const struct lk_tensor *x,
                           const struct lk_qwen_linear *w, enum lk_act act) {
    return lk_linear(p->dev, &(struct lk_linear){.y = y, .x = x, .w = &w->weight, .bias = &w->bias, .act = act});
}

/* residual += gate * (x wT + bias), in place. */
static enum lk_code linear_gated(const struct pass *p, const struct lk_tensor *residual, const struct lk_tensor *x,
                                 const struct lk_qwen_linear *w, const struct lk_tensor *gate) {
    struct lk_linear op = {.y = residual, .x = x, .w = &w->weight, .bias = &w->bias, .gate = gate};
    op.residual = residual;
    return lk_linear(p->dev, &op);
}

static enum lk_code modulate(const struct pass *p, const struct lk_tensor *y, const struct lk_tensor *x,
                             const struct modulation *m) {
    return lk_layer_norm(p->dev,
                         &(struct lk_layer_norm){.y = y, .x = x, .shift = &m->shift, .scale = &m->scale, .eps = EPS});
}

/* The pipeline divides the timestep by 1000 in the dtype of the latents; the model's embedding multiplies by 1000 after
 * the frequencies. */
static float as_fed(enum lk_dtype dtype, float timestep_1000) {
    if (dtype != LK_BF16) return timestep_1000 / TIMESTEP_FACTOR;
    return lk_round_bf16(lk_round_bf16(timestep_1000) / TIMESTEP_FACTOR);
}

/* silu(temb) [n_times, D]: of the step's time, and of time zero when references are modulated by it. */
static enum lk_code make_temb(struct pass *p, float timestep_1000, int n_times) {
    const struct lk_qwen_transformer *t = p->t;
    struct lk_arena *arena = &p->dev->arena;
    struct lk_tensor wide, e, h, temb;
    float host[2 * TIME_EMBEDDING];
    LK_TRY(LK_NEW(arena, &p->silu_temb, p->dtype, n_times, t->config.dim));
    size_t mark = lk_arena_mark(arena);
    LK_TRY(LK_NEW(arena, &wide, LK_F32, n_times, TIME_EMBEDDING));
    LK_TRY(LK_NEW(arena, &e, p->dtype, n_times, TIME_EMBEDDING));
    LK_TRY(LK_NEW(arena, &h, p->dtype, n_times, t->config.dim));
    LK_TRY(LK_NEW(arena, &temb, p->dtype, n_times, t->config.dim));
    lk_timestep_embedding_scaled(as_fed(p->dtype, timestep_1000), TIMESTEP_FACTOR, TIME_EMBEDDING, host);
    lk_timestep_embedding_scaled(0, TIMESTEP_FACTOR, TIME_EMBEDDING, host + TIME_EMBEDDING);
    LK_TRY(lk_upload(p->dev, &wide, host));
    LK_TRY(lk_copy(p->dev, &(struct lk_copy){.y = &e, .x = &wide}));
    LK_TRY(linear(p, &h, &e, &t->time_linear_1, LK_ACT_SILU));
    LK_TRY(linear(p, &temb, &h, &t->time_linear_2, LK_ACT_NONE));
    struct lk_tensor of_step = lk_tensor_rows(&temb, 0, 1);
    if (!strcmp(p->branch, "cond")) LK_TRY(lk_trace(p->dev, &of_step, "step.%d.temb", p->step));
    LK_TRY(lk_activation(p->dev, &(struct lk_activation){.y = &p->silu_temb, .x = &temb, .act = LK_ACT_SILU}));
    lk_arena_release(arena, mark);
    return LK_OK;
}

static void make_segments(struct pass *p) {
    int64_t n_img = p->n - p->n_txt;
    bool apart = p->t->config.zero_cond_t && n_img > p->n_noise;
    p->segments[0] = (struct segment){.first = 0, .n = p->n_txt, .text = true};
    p->segments[1] = (struct segment){.first = p->n_txt, .n = apart ? p->n_noise : n_img};
    p->segments[2] = (struct segment){.first = p->n_txt + p->n_noise, .n = n_img - p->n_noise, .time = 1};
    p->n_segments = apart ? 3 : 2;
}

/* Shift, scale, gate of attention and of MLP, from one linear layer over silu(temb), for the segments of one stream.
 * Stays in the arena. */
static enum lk_code make_modulation(struct pass *p, const struct lk_qwen_linear *w, bool text) {
    int64_t d = p->t->config.dim;
    struct lk_tensor m, times = lk_tensor_rows(&p->silu_temb, 0, text ? 1 : p->silu_temb.shape[0]);
    LK_TRY(LK_NEW(&p->dev->arena, &m, p->dtype, times.shape[0], 6 * d));
    LK_TRY(linear(p, &m, &times, w, LK_ACT_NONE));
    for (int s = 0; s < p->n_segments; s++) {
        struct segment *segment = &p->segments[s];
        if (segment->text != text) continue;
        struct lk_tensor row = lk_tensor_rows(&m, segment->time, 1);
        for (int i = 0; i < 6; i++) {
            struct modulation *set = &segment->mod[i / 3];
            struct lk_tensor *parts[] = {&set->shift, &set->scale, &set->gate}, part = lk_tensor_cols(&row, i * d, d);
            *parts[i % 3] = LK_VIEW(&part, d);
        }
    }
    return LK_OK;
}

static struct lk_tensor heads(const struct pass *p, const struct lk_tensor *t) {
    return LK_VIEW(t, t->shape[0], p->t->config.num_attention_heads, p->t->config.attention_head_dim);
}

/* Rows [first, first + n) of y = x wT + bias; with norm_w RMS norm over each head, then rotation. */
static enum lk_code project(const struct pass *p, const struct lk_tensor *y, const struct lk_tensor *x, int64_t first,
                            int64_t n, const struct lk_qwen_linear *w, const struct lk_tensor *norm_w) {
    struct lk_tensor ys = lk_tensor_rows(y, first, n), xs = lk_tensor_rows(x, first, n), y3 = heads(p, &ys);
    struct lk_tensor cos = lk_tensor_rows(&p->conditioning->cos, first, n);
    struct lk_tensor sin = lk_tensor_rows(&p->conditioning->sin, first, n);
    LK_TRY(linear(p, &ys, &xs, w, LK_ACT_NONE));
    if (!norm_w) return LK_OK;
    struct lk_norm_rope op = {.x = &y3, .norm_w = norm_w, .cos = &cos, .sin = &sin, .eps = EPS};
    op.round_before_weight = true;
    op.pairing = LK_ROPE_INTERLEAVED;
    return lk_norm_rope(p->dev, &op);
}

/* Joint attention of the rows [first, first + n) over all, into the same rows of out. */
static enum lk_code attention(const struct pass *p, const struct lk_tensor *out, const struct lk_tensor qkv[3],
                              int64_t first, int64_t n, int i) {
    struct lk_tensor out_rows = lk_tensor_rows(out, first, n), q_rows = lk_tensor_rows(&qkv[0], first, n);
    struct lk_tensor out3 = heads(p, &out_rows), q3 = heads(p, &q_rows), k3 = heads(p, &qkv[1]), v3 = heads(p, &qkv[2]);
    LK_TRY(lk_trace(p->dev, &q3, "step.%d.%s.block.%d.query", p->step, p->branch, i));
    LK_TRY(lk_trace(p->dev, &k3, "step.%d.%s.block.%d.key", p->step, p->branch, i));
    float scale = 1.0f / sqrtf((float)p->t->config.attention_head_dim);
    LK_TRY(lk_attention(p->dev, &(struct lk_attention){.out = &out3, .q = &q3, .k = &k3, .v = &v3, .scale = scale}));
    return lk_trace(p->dev, &out_rows, "step.%d.%s.block.%d.attention", p->step, p->branch, i);
}

/* rows of z += gate * mlp(mod(rows)), a slab of rows at a time. */
static enum lk_code feed_forward(const struct pass *p, const struct lk_tensor *rows, const struct modulation *m,
                                 const struct lk_qwen_stream *w) {
    int64_t n = rows->shape[0], slab = n < MLP_ROWS ? n : MLP_ROWS, d = p->t->config.dim;
    size_t mark = lk_arena_mark(&p->dev->arena);
    struct lk_tensor norm, inner;
    LK_TRY(LK_NEW(&p->dev->arena, &norm, p->dtype, slab, d));
    LK_TRY(LK_NEW(&p->dev->arena, &inner, p->dtype, slab, 4 * d));
    for (int64_t i = 0; i < n; i += slab) {
        int64_t k = n - i < slab ? n - i : slab;
        struct lk_tensor z = lk_tensor_rows(rows, i, k), x = lk_tensor_rows(&norm, 0, k),
                         h = lk_tensor_rows(&inner, 0, k);
        LK_TRY(modulate(p, &x, &z, m));
        LK_TRY(linear(p, &h, &x, &w->mlp_in, LK_ACT_GELU_TANH));
        LK_TRY(linear_gated(p, &z, &h, &w->mlp_out, &m->gate));
    }
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}

/* q, k, v of all rows from their modulated norms in `norm`. Queries of the rows from first_q to last_q only. */
static enum lk_code project_all(const struct pass *p, const struct lk_qwen_block *w, const struct lk_tensor *norm,
                                int64_t first_q, int64_t last_q, const struct lk_tensor qkv[3]) {
    for (int i = 0; i < 2; i++) {
        const struct lk_qwen_stream *s = i ? &w->img : &w->txt;
        int64_t first = i ? p->n_txt : 0, last = i ? p->n : p->n_txt;
        int64_t q0 = first > first_q ? first : first_q, q1 = last < last_q ? last : last_q;
        if (q1 > q0) LK_TRY(project(p, &qkv[0], norm, q0, q1 - q0, &s->to_q, &s->norm_q));
        LK_TRY(project(p, &qkv[1], norm, first, last - first, &s->to_k, &s->norm_k));
        LK_TRY(project(p, &qkv[2], norm, first, last - first, &s->to_v, NULL));
    }
    return LK_OK;
}

/* Of the last block only the target's rows are read: the others give keys and values, and nothing else. */
static int64_t rows_read(const struct pass *p, const struct segment *segment, bool last) {
    if (!last) return segment->n;
    return segment->first == p->n_txt ? p->n_noise : 0;
}

static enum lk_code block(struct pass *p, int i) {
    const struct lk_qwen_block *w = &p->t->blocks[i];
    struct lk_arena *arena = &p->dev->arena;
    bool last = i + 1 == p->t->config.num_layers;
    int64_t first_out = last ? p->n_txt : 0, last_out = last ? p->n_txt + p->n_noise : p->n;
    size_t mark = lk_arena_mark(arena);
    LK_TRY(make_modulation(p, &w->txt.mod, true));
    LK_TRY(make_modulation(p, &w->img.mod, false));
    size_t attention_mark = lk_arena_mark(arena);
    struct lk_tensor norm, qkv[3];
    LK_TRY(LK_NEW(arena, &norm, p->dtype, p->n, p->t->config.dim)); /* later the attention's output */
    for (int j = 0; j < 3; j++) LK_TRY(LK_NEW(arena, &qkv[j], p->dtype, p->n, p->t->config.dim));
    for (int s = 0; s < p->n_segments; s++) {
        const struct segment *seg = &p->segments[s];
        struct lk_tensor y = lk_tensor_rows(&norm, seg->first, seg->n), x = lk_tensor_rows(&p->z, seg->first, seg->n);
        LK_TRY(modulate(p, &y, &x, &seg->mod[0]));
    }
    LK_TRY(project_all(p, w, &norm, first_out, last_out, qkv));
    LK_TRY(attention(p, &norm, qkv, first_out, last_out - first_out, i));
    for (int s = 0; s < p->n_segments; s++) {
        const struct segment *seg = &p->segments[s];
        int64_t rows = rows_read(p, seg, last);
        struct lk_tensor x = lk_tensor_rows(&p->z, seg->first, rows), y = lk_tensor_rows(&norm, seg->first, rows);
        if (rows) LK_TRY(linear_gated(p, &x, &y, seg->text ? &w->txt.to_out : &w->img.to_out, &seg->mod[0].gate));
    }
    lk_arena_release(arena, attention_mark);
    for (int s = 0; s < p->n_segments; s++) {
        const struct segment *seg = &p->segments[s];
        int64_t rows = rows_read(p, seg, last);
        struct lk_tensor x = lk_tensor_rows(&p->z, seg->first, rows);
        if (rows) LK_TRY(feed_forward(p, &x, &seg->mod[1], seg->text ? &w->txt : &w->img));
    }
    lk_arena_release(arena, mark);
    if (last) return LK_OK;
    struct lk_tensor txt = lk_tensor_rows(&p->z, 0, p->n_txt), img = lk_tensor_rows(&p->z, p->n_txt, p->n - p->n_txt);
    LK_TRY(lk_trace(p->dev, &txt, "step.%d.%s.block.%d.txt", p->step, p->branch, i));
    return lk_trace(p->dev, &img, "step.%d.%s.block.%d.img", p->step, p->branch, i);
}

/* The target's rows through the last norm, whose linear gives scale before shift, and the output projection. */
static enum lk_code tail(const struct pass *p, const struct lk_tensor *velocity) {
    int64_t d = p->t->config.dim;
    size_t mark = lk_arena_mark(&p->dev->arena);
    struct lk_tensor s, n, target = lk_tensor_rows(&p->z, p->n_txt, p->n_noise);
    struct lk_tensor time = lk_tensor_rows(&p->silu_temb, 0, 1);
    LK_TRY(LK_NEW(&p->dev->arena, &s, p->dtype, 1, 2 * d));
    LK_TRY(LK_NEW(&p->dev->arena, &n, p->dtype, p->n_noise, d));
    LK_TRY(linear(p, &s, &time, &p->t->norm_out, LK_ACT_NONE));
    struct lk_tensor scale = lk_tensor_cols(&s, 0, d), shift = lk_tensor_cols(&s, d, d);
    struct modulation m = {.shift = LK_VIEW(&shift, d), .scale = LK_VIEW(&scale, d)};
    LK_TRY(modulate(p, &n, &target, &m));
    LK_TRY(linear(p, velocity, &n, &p->t->proj_out, LK_ACT_NONE));
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_qwen_embed_context(struct lk_device *dev, const struct lk_qwen_transformer *t,
                                   const struct lk_tensor *prompt_embeds, const struct lk_tensor *context) {
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor norm;
    LK_TRY(LK_NEW(&dev->arena, &norm, prompt_embeds->dtype, prompt_embeds->shape[0], prompt_embeds->shape[1]));
    struct lk_rms_norm op = {
        .y = &norm, .x = prompt_embeds, .w = &t->txt_norm, .eps = EPS, .round_before_weight = true};
    LK_TRY(lk_rms_norm(dev, &op));
    const struct lk_qwen_linear *w = &t->txt_in;
    LK_TRY(lk_linear(dev, &(struct lk_linear){.y = context, .x = &norm, .w = &w->weight, .bias = &w->bias}));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_qwen_transformer_forward(struct lk_device *dev, const struct lk_qwen_transformer *t,
                                         const struct lk_tensor *x, const struct lk_qwen_conditioning *conditioning,
                                         float timestep_1000, int step, const char *branch,
                                         const struct lk_tensor *velocity) {
    struct pass p = {.dev = dev, .t = t, .conditioning = conditioning, .dtype = x->dtype, .step = step};
    size_t mark = lk_arena_mark(&dev->arena);
    p.branch = branch;
    p.n_txt = conditioning->context.shape[0];
    p.n_noise = velocity->shape[0];
    p.n = p.n_txt + x->shape[0];
    make_segments(&p);
    LK_TRY(make_temb(&p, timestep_1000, p.n_segments - 1));
    LK_TRY(LK_NEW(&dev->arena, &p.z, p.dtype, p.n, t->config.dim));
    struct lk_tensor txt = lk_tensor_rows(&p.z, 0, p.n_txt), img = lk_tensor_rows(&p.z, p.n_txt, x->shape[0]);
    LK_TRY(linear(&p, &img, x, &t->img_in, LK_ACT_NONE));
    LK_TRY(lk_copy(dev, &(struct lk_copy){.y = &txt, .x = &conditioning->context}));
    LK_TRY(lk_trace(dev, &img, "step.%d.%s.img_in", step, branch));
    LK_TRY(lk_trace(dev, &txt, "step.%d.%s.txt_in", step, branch));
    for (int i = 0; i < t->config.num_layers; i++) LK_TRY(block(&p, i));
    LK_TRY(tail(&p, velocity));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
