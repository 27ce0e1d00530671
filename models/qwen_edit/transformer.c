/* QwenImageTransformer2DModel: the forward pass. */
#include "models/qwen_edit/transformer.h"

#include "engine/bf16.h"
#include "engine/flow_match.h"

#define EPS             1e-6f
#define TIME_EMBEDDING  256
#define TIMESTEP_FACTOR 1000.0f
/* Rows of an MLP's inner activations that exist at one time. Rows do not depend on each other, so the bits do not
 * depend on this number. */
#define MLP_ROWS 4096

/* Rows of the sequence that are modulated alike: all text rows, the target's, the references'. */
struct segment {
    int64_t first, n;
    bool text;
    int time;                    /* row of silu_temb: 0 the step's time, 1 time zero */
    struct lk_modulation mod[2]; /* of the block at hand: attention, MLP */
};

/* What a pass of this family has beside the common. */
struct pass {
    struct lk_mmdit mm;
    int64_t n_noise; /* the target's rows: the first of the image's */
    struct segment segments[3];
    int n_segments;
};

/* The pipeline divides the timestep by 1000 in the dtype of the latents; the model's embedding multiplies by 1000 after
 * the frequencies. */
static float as_fed(enum lk_dtype dtype, float timestep_1000) {
    if (dtype != LK_BF16) return timestep_1000 / TIMESTEP_FACTOR;
    return lk_round_bf16(lk_round_bf16(timestep_1000) / TIMESTEP_FACTOR);
}

/* silu(temb) [n_times, D]: of the step's time, and of time zero when references are modulated by it. */
static enum lk_code make_temb(struct lk_mmdit *p, const struct lk_qwen_transformer *t, float timestep_1000,
                              int n_times) {
    struct lk_arena *arena = &p->dev->arena;
    struct lk_tensor e, temb;
    float host[2 * TIME_EMBEDDING];
    LK_TRY(LK_NEW(arena, &p->silu_temb, p->dtype, n_times, p->dim));
    size_t mark = lk_arena_mark(arena);
    LK_TRY(LK_NEW(arena, &e, p->dtype, n_times, TIME_EMBEDDING));
    LK_TRY(LK_NEW(arena, &temb, p->dtype, n_times, p->dim));
    lk_timestep_embedding_scaled(as_fed(p->dtype, timestep_1000), TIMESTEP_FACTOR, TIME_EMBEDDING, host);
    lk_timestep_embedding_scaled(0, TIMESTEP_FACTOR, TIME_EMBEDDING, host + TIME_EMBEDDING);
    LK_TRY(lk_upload_rounded(p->dev, &e, host));
    LK_TRY(lk_embed(p->dev, &temb, &e, &t->timestep_embedder));
    LK_TRY(lk_mmdit_set_temb(p, &temb));
    lk_arena_release(arena, mark);
    return LK_OK;
}

static void make_segments(struct pass *p, bool zero_cond_t) {
    int64_t n_txt = p->mm.n_txt, n_img = p->mm.n_img;
    bool apart = zero_cond_t && n_img > p->n_noise;
    p->segments[0] = (struct segment){.first = 0, .n = n_txt, .text = true};
    p->segments[1] = (struct segment){.first = n_txt, .n = apart ? p->n_noise : n_img};
    p->segments[2] = (struct segment){.first = n_txt + p->n_noise, .n = n_img - p->n_noise, .time = 1};
    p->n_segments = apart ? 3 : 2;
}

/* Modulation of attention and of MLP for the segments of one stream. Stays in the arena. */
static enum lk_code make_modulation(struct pass *p, const struct lk_layer *w, bool text) {
    const struct lk_mmdit *mm = &p->mm;
    struct lk_tensor m, times = lk_tensor_rows(&mm->silu_temb, 0, text ? 1 : mm->silu_temb.shape[0]);
    LK_TRY(LK_NEW(&mm->dev->arena, &m, mm->dtype, times.shape[0], 6 * mm->dim));
    LK_TRY(lk_project(mm->dev, &m, &times, w, LK_ACT_NONE));
    for (int s = 0; s < p->n_segments; s++) {
        if (p->segments[s].text != text) continue;
        struct lk_tensor row = lk_tensor_rows(&m, p->segments[s].time, 1);
        lk_modulation_split(&row, 2, p->segments[s].mod);
    }
    return LK_OK;
}

/* rows of z += gate * mlp(mod(rows)), a slab of rows at a time. */
static enum lk_code feed_forward(const struct lk_mmdit *p, const struct lk_tensor *rows, const struct lk_modulation *m,
                                 const struct lk_mmdit_stream *w) {
    int64_t n = rows->shape[0], slab = n < MLP_ROWS ? n : MLP_ROWS, d = p->dim;
    size_t mark = lk_arena_mark(&p->dev->arena);
    struct lk_tensor norm, inner;
    LK_TRY(LK_NEW(&p->dev->arena, &norm, p->dtype, slab, d));
    LK_TRY(LK_NEW(&p->dev->arena, &inner, p->dtype, slab, 4 * d));
    for (int64_t i = 0; i < n; i += slab) {
        int64_t k = n - i < slab ? n - i : slab;
        struct lk_tensor z = lk_tensor_rows(rows, i, k), x = lk_tensor_rows(&norm, 0, k),
                         h = lk_tensor_rows(&inner, 0, k);
        LK_TRY(lk_mmdit_modulate(p, &x, &z, m));
        LK_TRY(lk_project(p->dev, &h, &x, &w->ff_in, LK_ACT_GELU_TANH));
        LK_TRY(lk_project_onto(p->dev, &z, &h, &w->ff_out, &m->gate));
    }
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}

/* q, k, v of all rows from their modulated norms in `norm`. Queries of the rows from first_q to last_q only. */
static enum lk_code project_all(const struct lk_mmdit *p, const struct lk_mmdit_block *w, const struct lk_tensor *norm,
                                int64_t first_q, int64_t last_q, const struct lk_tensor qkv[3]) {
    for (int i = 0; i < 2; i++) {
        const struct lk_mmdit_stream *s = i ? &w->img : &w->txt;
        int64_t first = i ? p->n_txt : 0, last = i ? p->n : p->n_txt;
        int64_t q0 = first > first_q ? first : first_q, q1 = last < last_q ? last : last_q;
        if (q1 > q0) LK_TRY(lk_mmdit_project(p, &qkv[0], norm, q0, q1 - q0, &s->to_q, &s->norm_q));
        LK_TRY(lk_mmdit_project(p, &qkv[1], norm, first, last - first, &s->to_k, &s->norm_k));
        LK_TRY(lk_mmdit_project(p, &qkv[2], norm, first, last - first, &s->to_v, NULL));
    }
    return LK_OK;
}

/* Of the last block only the target's rows are read: the others give keys and values, and nothing else. */
static int64_t rows_read(const struct pass *p, const struct segment *segment, bool last) {
    if (!last) return segment->n;
    return segment->first == p->mm.n_txt ? p->n_noise : 0;
}

static enum lk_code block(struct pass *p, int i, const struct lk_mmdit_block *w, bool last) {
    const struct lk_mmdit *mm = &p->mm;
    struct lk_arena *arena = &mm->dev->arena;
    int64_t first_out = last ? mm->n_txt : 0, n_out = last ? p->n_noise : mm->n;
    size_t mark = lk_arena_mark(arena);
    LK_TRY(make_modulation(p, &w->txt.mod, true));
    LK_TRY(make_modulation(p, &w->img.mod, false));
    size_t attention_mark = lk_arena_mark(arena);
    struct lk_tensor norm, qkv[3];
    LK_TRY(LK_NEW(arena, &norm, mm->dtype, mm->n, mm->dim)); /* later the attention's output */
    for (int j = 0; j < 3; j++) LK_TRY(LK_NEW(arena, &qkv[j], mm->dtype, mm->n, mm->dim));
    for (int s = 0; s < p->n_segments; s++) {
        const struct segment *seg = &p->segments[s];
        struct lk_tensor y = lk_tensor_rows(&norm, seg->first, seg->n), x = lk_tensor_rows(&mm->z, seg->first, seg->n);
        LK_TRY(lk_mmdit_modulate(mm, &y, &x, &seg->mod[0]));
    }
    LK_TRY(project_all(mm, w, &norm, first_out, first_out + n_out, qkv));
    struct lk_tensor out = lk_tensor_rows(&norm, first_out, n_out), q = lk_tensor_rows(&qkv[0], first_out, n_out);
    LK_TRY(lk_mmdit_attention(mm, &out, &q, &qkv[1], &qkv[2], "block", i));
    for (int s = 0; s < p->n_segments; s++) {
        const struct segment *seg = &p->segments[s];
        int64_t rows = rows_read(p, seg, last);
        struct lk_tensor x = lk_tensor_rows(&mm->z, seg->first, rows), y = lk_tensor_rows(&norm, seg->first, rows);
        const struct lk_mmdit_stream *stream = seg->text ? &w->txt : &w->img;
        if (rows) LK_TRY(lk_project_onto(mm->dev, &x, &y, &stream->to_out, &seg->mod[0].gate));
    }
    lk_arena_release(arena, attention_mark);
    for (int s = 0; s < p->n_segments; s++) {
        const struct segment *seg = &p->segments[s];
        int64_t rows = rows_read(p, seg, last);
        struct lk_tensor x = lk_tensor_rows(&mm->z, seg->first, rows);
        if (rows) LK_TRY(feed_forward(mm, &x, &seg->mod[1], seg->text ? &w->txt : &w->img));
    }
    lk_arena_release(arena, mark);
    if (last) return LK_OK;
    struct lk_tensor txt = lk_mmdit_txt(mm, &mm->z), img = lk_mmdit_img(mm, &mm->z);
    LK_TRY(LK_MMDIT_TRACE(mm, &txt, "block.%d.txt", i));
    return LK_MMDIT_TRACE(mm, &img, "block.%d.img", i);
}

enum lk_code lk_qwen_embed_context(struct lk_device *dev, const struct lk_qwen_transformer *t,
                                   const struct lk_tensor *prompt_embeds, const struct lk_tensor *context) {
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor norm;
    LK_TRY(LK_NEW(&dev->arena, &norm, prompt_embeds->dtype, prompt_embeds->shape[0], prompt_embeds->shape[1]));
    struct lk_rms_norm op = {
        .y = &norm, .x = prompt_embeds, .w = &t->txt_norm, .eps = EPS, .round_before_weight = true};
    LK_TRY(lk_rms_norm(dev, &op));
    LK_TRY(lk_project(dev, context, &norm, &t->txt_in, LK_ACT_NONE));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_qwen_transformer_forward(struct lk_device *dev, const struct lk_qwen_transformer *t,
                                         const struct lk_tensor *x, const struct lk_qwen_conditioning *conditioning,
                                         float timestep_1000, int step, const char *branch,
                                         const struct lk_tensor *velocity) {
    const struct lk_qwen_transformer_config *c = &t->config;
    int64_t n_txt = conditioning->context.shape[0], n_img = x->shape[0];
    struct pass p = {.n_noise = velocity->shape[0]};
    struct lk_mmdit *mm = &p.mm;
    size_t mark = lk_arena_mark(&dev->arena);
    *mm = (struct lk_mmdit){.dev = dev, .dtype = x->dtype, .n_txt = n_txt, .n_img = n_img, .n = n_txt + n_img};
    mm->dim = c->dim, mm->n_heads = c->num_attention_heads, mm->head_dim = c->attention_head_dim;
    mm->eps = EPS, mm->round_before_weight = true;
    mm->cos = &conditioning->cos, mm->sin = &conditioning->sin, mm->step = step, mm->branch = branch;
    make_segments(&p, c->zero_cond_t);
    LK_TRY(make_temb(mm, t, timestep_1000, p.n_segments - 1));
    LK_TRY(LK_NEW(&dev->arena, &mm->z, mm->dtype, mm->n, mm->dim));
    struct lk_tensor txt = lk_mmdit_txt(mm, &mm->z), img = lk_mmdit_img(mm, &mm->z);
    LK_TRY(lk_project(dev, &img, x, &t->img_in, LK_ACT_NONE));
    LK_TRY(lk_copy(dev, &(struct lk_copy){.y = &txt, .x = &conditioning->context}));
    LK_TRY(LK_MMDIT_TRACE(mm, &img, "%s", "img_in"));
    LK_TRY(LK_MMDIT_TRACE(mm, &txt, "%s", "txt_in"));
    for (int i = 0; i < c->num_layers; i++) LK_TRY(block(&p, i, &t->blocks[i], i + 1 == c->num_layers));
    LK_TRY(lk_mmdit_tail(mm, &t->norm_out, &t->proj_out, velocity));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
