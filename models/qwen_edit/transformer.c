/* QwenImageTransformer2DModel: the forward pass. */
#include "models/qwen_edit/transformer.h"
#include "models/common/cache.h"

#include "engine/bf16.h"
#include "models/pipeline.h"

#define EPS             1e-6f
#define TIMESTEP_FACTOR 1000.0f

/* Rows of the sequence that are modulated alike: all text rows, the target's, the references'. */
struct segment {
    int64_t first, n;
    bool text;
    bool time_zero;              /* modulated as at time zero, not as at the step's */
    struct lk_modulation mod[2]; /* of the block at hand: attention, MLP */
};

/* What a pass of this family has beside the common. */
struct pass {
    struct lk_mmdit mm;
    int64_t n_noise; /* the target's rows: the first of the image's */
    struct segment segments[3];
    int n_segments;
    const struct lk_tensor *velocity;
};
#define EACH(p, passes, n) for (struct pass *p = (passes); p < (passes) + (n); p++)

/* Modulation made ahead, in units of D: of block i, then of the tail. */
#define TXT(i)      (12 * (int64_t)(i))
#define IMG(i)      (12 * (int64_t)(i) + 6)
#define NORM_OUT(n) (12 * (int64_t)(n))

/* The pipeline divides the timestep by 1000 in the dtype of the latents; the model's embedding multiplies by 1000 after
 * the frequencies. */
static float as_fed(enum lk_dtype dtype, float timestep_1000) {
    if (dtype != LK_BF16) return timestep_1000 / TIMESTEP_FACTOR;
    return lk_round_bf16(lk_round_bf16(timestep_1000) / TIMESTEP_FACTOR);
}

static void make_segments(struct pass *p, bool zero_cond_t) {
    int64_t n_txt = p->mm.n_txt, n_img = p->mm.n_img;
    bool apart = zero_cond_t && n_img > p->n_noise;
    p->segments[0] = (struct segment){.first = 0, .n = n_txt, .text = true};
    p->segments[1] = (struct segment){.first = n_txt, .n = apart ? p->n_noise : n_img};
    p->segments[2] = (struct segment){.first = n_txt + p->n_noise, .n = n_img - p->n_noise, .time_zero = true};
    p->n_segments = apart ? 3 : 2;
}

static void set_modulation(struct pass *p, int i) {
    const struct lk_ahead *ahead = p->mm.ahead;
    for (int s = 0; s < p->n_segments; s++) {
        struct segment *seg = &p->segments[s];
        int64_t time = seg->time_zero ? ahead->n_times - 1 : p->mm.step;
        struct lk_tensor row = lk_ahead_row(ahead, seg->text ? TXT(i) : IMG(i), 6, time);
        lk_modulation_split(&row, 2, seg->mod);
    }
}

static int64_t slab_of(const struct lk_mmdit *p, int64_t rows) {
    return lk_mmdit_slice_rows(p, rows < LK_MLP_ROWS ? rows : LK_MLP_ROWS);
}

/* rows of z += gate * mlp(mod(rows)), a slab of rows at a time; norm and inner: room for a slab's. */
static enum lk_code feed_forward(const struct lk_mmdit *p, const struct lk_tensor *rows, const struct lk_modulation *m,
                                 const struct lk_mmdit_stream *w, const struct lk_tensor *norm,
                                 const struct lk_tensor *inner) {
    int64_t n = rows->shape[0], slab = slab_of(p, n);
    for (int64_t i = 0; i < n; i += slab) {
        int64_t k = n - i < slab ? n - i : slab;
        struct lk_tensor z = lk_tensor_rows(rows, i, k), x = lk_tensor_rows(norm, 0, k),
                         h = lk_tensor_rows(inner, 0, k);
        LK_TRY(lk_mmdit_modulate(p, &x, &z, m));
        LK_TRY(lk_project(p->dev, &h, &x, &w->ff_in, LK_ACT_GELU_TANH));
        LK_TRY(lk_project_onto(p->dev, &z, &h, &w->ff_out, &m->gate));
    }
    return LK_OK;
}

/* Of the last block only the target's rows are read: the others give keys and values, and nothing else. */
static int64_t rows_read(const struct pass *p, const struct segment *segment, bool last) {
    if (!last) return segment->n;
    return segment->first == p->mm.n_txt ? p->n_noise : 0;
}

/* Rows of the slice in segment s, of one stream or (-1) any. */
static struct lk_rows cut(const struct pass *p, int s, int text) {
    const struct segment *seg = &p->segments[s];
    if (text >= 0 && seg->text != (bool)text) return (struct lk_rows){0};
    return lk_mmdit_cut(&p->mm, seg->first, seg->n);
}

/* u = mod(norm(z)) in the slice. */
static enum lk_code modulate(const struct pass *p) {
    for (int s = 0; s < p->n_segments; s++)
        LK_TRY(lk_mmdit_modulate_rows(&p->mm, cut(p, s, -1), &p->segments[s].mod[0]));
    return LK_OK;
}

/* z += gate * to_out(u) in one stream's rows of the slice. */
static enum lk_code project_out(const struct pass *p, const struct lk_mmdit_stream *w, bool text) {
    for (int s = 0; s < p->n_segments; s++) {
        struct lk_rows rows = cut(p, s, text);
        if (rows.n <= 0) continue;
        struct lk_tensor x = lk_tensor_rows(&p->mm.z, rows.first, rows.n), y = lk_mmdit_own(&p->mm, &p->mm.u, rows);
        LK_TRY(lk_project_onto(p->mm.dev, &x, &y, &w->to_out, &p->segments[s].mod[0].gate));
    }
    return LK_OK;
}

static bool slices(struct pass *passes, int n, int64_t s, enum lk_mmdit_of of) {
    bool some = false;
    EACH(p, passes, n) some |= lk_mmdit_slice(&p->mm, s, of);
    return some;
}

static enum lk_code attend(struct pass *passes, int n, int i, const struct lk_mmdit_block *w) {
    struct lk_arena *arena = &passes->mm.dev->arena;
    size_t mark = lk_arena_mark(arena);
    EACH(p, passes, n) LK_TRY(lk_mmdit_new_block(&p->mm, 1));
    for (int64_t s = 0; slices(passes, n, s, LK_ROWS_ALL); s++) {
        EACH(p, passes, n) LK_TRY(modulate(p));
        for (int j = 1; j < 3; j++) EACH(p, passes, n) LK_TRY(lk_mmdit_project_qkv(&p->mm, &w->txt, true, j));
        for (int j = 1; j < 3; j++) EACH(p, passes, n) LK_TRY(lk_mmdit_project_qkv(&p->mm, &w->img, false, j));
    }
    for (int64_t s = 0; slices(passes, n, s, LK_ROWS_OUT); s++) {
        EACH(p, passes, n) if (lk_mmdit_sliced(&p->mm)) LK_TRY(modulate(p));
        EACH(p, passes, n) LK_TRY(lk_mmdit_project_qkv(&p->mm, &w->txt, true, 0));
        EACH(p, passes, n) LK_TRY(lk_mmdit_project_qkv(&p->mm, &w->img, false, 0));
        EACH(p, passes, n) LK_TRY(lk_mmdit_attend(&p->mm, "block", i));
        EACH(p, passes, n) LK_TRY(project_out(p, &w->txt, true));
        EACH(p, passes, n) LK_TRY(project_out(p, &w->img, false));
    }
    lk_arena_release(arena, mark);
    return LK_OK;
}

/* One room for the slabs of all: what the device keeps beside it (a layer's weights, unpacked) stays where it is. */
static enum lk_code feed_all_forward(struct pass *passes, int n, const struct lk_mmdit_block *w, bool last) {
    const struct lk_mmdit *mm = &passes->mm;
    struct lk_arena *arena = &mm->dev->arena;
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor norm, inner;
    int64_t slab = 0;
    EACH(p, passes, n) {
        for (int s = 0; s < p->n_segments; s++) {
            int64_t own = slab_of(&p->mm, rows_read(p, &p->segments[s], last));
            if (own > slab) slab = own;
        }
    }
    LK_TRY(LK_NEW(arena, &norm, mm->dtype, slab, mm->dim));
    LK_TRY(LK_NEW(arena, &inner, mm->dtype, slab, 4 * mm->dim));
    for (int text = 1; text >= 0; text--) {
        EACH(p, passes, n) {
            for (int s = 0; s < p->n_segments; s++) {
                const struct segment *seg = &p->segments[s];
                int64_t rows = seg->text == text ? rows_read(p, seg, last) : 0;
                struct lk_tensor x = lk_tensor_rows(&p->mm.z, seg->first, rows);
                if (rows) LK_TRY(feed_forward(&p->mm, &x, &seg->mod[1], text ? &w->txt : &w->img, &norm, &inner));
            }
        }
    }
    lk_arena_release(arena, mark);
    return LK_OK;
}

static enum lk_code block(struct pass *passes, int n, int i, const struct lk_mmdit_block *w, bool last) {
    EACH(p, passes, n) {
        set_modulation(p, i);
        p->mm.first_out = last ? p->mm.n_txt : 0;
        p->mm.n_out = last ? p->n_noise : p->mm.n;
    }
    LK_TRY(attend(passes, n, i, w));
    LK_TRY(feed_all_forward(passes, n, w, last));
    EACH(p, passes, last ? 0 : n) {
        struct lk_tensor txt = lk_mmdit_txt(&p->mm, &p->mm.z), img = lk_mmdit_img(&p->mm, &p->mm.z);
        LK_TRY(LK_MMDIT_TRACE(&p->mm, &txt, "block.%d.txt", i));
        LK_TRY(LK_MMDIT_TRACE(&p->mm, &img, "block.%d.img", i));
    }
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
    LK_TRY(lk_project(dev, context, &norm, &t->txt_in, LK_ACT_NONE));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_qwen_look_ahead(struct lk_device *dev, const struct lk_qwen_transformer *t, enum lk_dtype dtype,
                                const float *timesteps_1000, int n_steps, struct lk_ahead *out) {
    const struct lk_qwen_transformer_config *c = &t->config;
    float fed[LK_MAX_STEPS + 1];
    struct lk_tensor temb;
    LK_TRY(lk_ahead_new(dev, dtype, NORM_OUT(c->num_layers) + 2, n_steps + 1, c->dim, out));
    size_t mark = lk_arena_mark(&dev->arena);
    LK_TRY(LK_NEW(&dev->arena, &temb, dtype, n_steps + 1, c->dim));
    for (int i = 0; i < n_steps; i++) fed[i] = as_fed(dtype, timesteps_1000[i]);
    fed[n_steps] = 0;
    LK_TRY(lk_embed_scalars(dev, &t->timestep_embedder, fed, TIMESTEP_FACTOR, &temb));
    LK_TRY(lk_ahead_silu(dev, &temb, n_steps));
    for (int i = 0; i < c->num_layers; i++) {
        LK_TRY(lk_ahead_layer(dev, out, &temb, &t->blocks[i].txt.mod, TXT(i)));
        LK_TRY(lk_ahead_layer(dev, out, &temb, &t->blocks[i].img.mod, IMG(i)));
    }
    LK_TRY(lk_ahead_layer(dev, out, &temb, &t->norm_out, NORM_OUT(c->num_layers)));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

static enum lk_code begin_pass(struct pass *p, struct lk_device *dev, const struct lk_qwen_transformer *t,
                               const struct lk_qwen_pass *in) {
    const struct lk_qwen_transformer_config *c = &t->config;
    int64_t n_txt = in->conditioning->context.shape[0], n_img = in->x->shape[0];
    struct lk_mmdit *mm = &p->mm;
    *mm = (struct lk_mmdit){.dev = dev, .dtype = in->x->dtype, .n_txt = n_txt, .n_img = n_img, .n = n_txt + n_img};
    mm->dim = c->dim, mm->n_heads = c->num_attention_heads, mm->head_dim = c->attention_head_dim;
    mm->eps = EPS, mm->round_before_weight = true;
    mm->cos = &in->conditioning->cos, mm->sin = &in->conditioning->sin;
    mm->ahead = &in->conditioning->ahead, mm->step = in->step, mm->branch = in->branch;
    p->velocity = in->velocity;
    p->n_noise = in->velocity->shape[0];
    make_segments(p, c->zero_cond_t);
    mm->slice_rows = in->slice_rows;
    lk_mmdit_begin(mm);
    LK_TRY(LK_NEW(&dev->arena, &mm->z, mm->dtype, mm->n, mm->dim));
    struct lk_tensor txt = lk_mmdit_txt(mm, &mm->z), img = lk_mmdit_img(mm, &mm->z);
    LK_TRY(lk_project(dev, &img, in->x, &t->img_in, LK_ACT_NONE));
    LK_TRY(lk_copy(dev, &(struct lk_copy){.y = &txt, .x = &in->conditioning->context}));
    LK_TRY(LK_MMDIT_TRACE(mm, &img, "%s", "img_in"));
    LK_TRY(LK_MMDIT_TRACE(mm, &txt, "%s", "txt_in"));
    set_modulation(p, 0);
    return lk_cache_begin(mm, in->cache, &p->segments[1].mod[0]);
}

/* lk_mmdit_gate of this family's passes. */
static enum lk_code gate(struct pass *passes, int n, int64_t done, int64_t n_blocks, int *n_active) {
    struct pass skipped[LK_MAX_PASSES];
    int n_skipped = 0;
    *n_active = 0;
    for (int k = 0; k < n; k++) {
        LK_TRY(lk_cache_between(&passes[k].mm, 0, done, n_blocks, true));
        if (passes[k].mm.skips)
            skipped[n_skipped++] = passes[k];
        else
            passes[(*n_active)++] = passes[k];
    }
    for (int k = 0; k < n_skipped; k++) passes[*n_active + k] = skipped[k];
    return LK_OK;
}

enum lk_code lk_qwen_transformer_forward(struct lk_device *dev, const struct lk_qwen_transformer *t,
                                         const struct lk_qwen_pass *in, int n) {
    const int64_t n_layers = t->config.num_layers;
    struct pass passes[LK_MAX_PASSES];
    size_t mark = lk_arena_mark(&dev->arena);
    for (int k = 0; k < n; k++) LK_TRY(begin_pass(&passes[k], dev, t, &in[k]));
    int n_active = n; /* passes that no gate holds back */
    for (int i = 0; i <= n_layers; i++) {
        LK_TRY(gate(passes, n, i, n_layers, &n_active));
        if (n_active && i < n_layers) LK_TRY(block(passes, n_active, i, &t->blocks[i], i + 1 == n_layers));
    }
    EACH(p, passes, n) LK_TRY(lk_mmdit_tail(&p->mm, NORM_OUT(n_layers), &t->proj_out, p->velocity));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
