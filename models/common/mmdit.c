#include "models/common/mmdit.h"

#include <math.h>

#include "engine/base/alloc.h"
#include "models/common/cache.h"
#include "engine/bf16.h"
#include "engine/flow_match.h"

void lk_mmdit_bind_attention(struct lk_bind *b, struct lk_mmdit_block *w, int i, int64_t dim, int64_t head_dim,
                             bool bias) {
    const struct lk_layer_entry table[] = {
        {&w->img.to_q, "attn.to_q", dim, dim},       {&w->img.to_k, "attn.to_k", dim, dim},
        {&w->img.to_v, "attn.to_v", dim, dim},       {&w->img.to_out, "attn.to_out.0", dim, dim},
        {&w->txt.to_q, "attn.add_q_proj", dim, dim}, {&w->txt.to_k, "attn.add_k_proj", dim, dim},
        {&w->txt.to_v, "attn.add_v_proj", dim, dim}, {&w->txt.to_out, "attn.to_add_out", dim, dim},
    };
    LK_BIND_LAYERS(b, table, bias, "transformer_blocks", i);
    LK_BIND(b, &w->img.norm_q, LK_SHAPE(head_dim), "transformer_blocks.%d.attn.norm_q.weight", i);
    LK_BIND(b, &w->img.norm_k, LK_SHAPE(head_dim), "transformer_blocks.%d.attn.norm_k.weight", i);
    LK_BIND(b, &w->txt.norm_q, LK_SHAPE(head_dim), "transformer_blocks.%d.attn.norm_added_q.weight", i);
    LK_BIND(b, &w->txt.norm_k, LK_SHAPE(head_dim), "transformer_blocks.%d.attn.norm_added_k.weight", i);
}

struct lk_tensor lk_mmdit_txt(const struct lk_mmdit *p, const struct lk_tensor *t) {
    return lk_tensor_rows(t, 0, p->n_txt);
}
struct lk_tensor lk_mmdit_img(const struct lk_mmdit *p, const struct lk_tensor *t) {
    return lk_tensor_rows(t, p->n_txt, p->n_img);
}

float lk_timestep_as_fed(enum lk_dtype dtype, float timestep_1000) {
    if (dtype != LK_BF16) return timestep_1000 / 1000.0f * 1000.0f;
    return lk_round_bf16(lk_round_bf16(lk_round_bf16(timestep_1000) / 1000.0f) * 1000.0f);
}

enum lk_code lk_upload_rounded(struct lk_device *dev, const struct lk_tensor *y, const float *host) {
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor wide;
    LK_TRY(LK_NEW(&dev->arena, &wide, LK_F32, y->shape[0], y->shape[1]));
    LK_TRY(lk_upload(dev, &wide, host));
    LK_TRY(lk_copy(dev, &(struct lk_copy){.y = y, .x = &wide}));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_embed_scalars(struct lk_device *dev, const struct lk_embedder *w, const float *scalars, float factor,
                              const struct lk_tensor *y) {
    int64_t n = y->shape[0], channels = w->linear_1.weight.shape[1];
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor e;
    LK_TRY(LK_NEW(&dev->arena, &e, y->dtype, n, channels));
    float *host = lk_malloc((size_t)(n * channels) * sizeof *host);
    if (!host) return lk_fail(LK_E_NOMEM, "timesteps: out of memory");
    for (int64_t i = 0; i < n; i++)
        lk_timestep_embedding_scaled(scalars[i], factor, (int)channels, host + i * channels);
    enum lk_code rc = lk_upload_rounded(dev, &e, host);
    lk_free(host);
    if (!rc) rc = lk_embed(dev, y, &e, w);
    lk_arena_release(&dev->arena, mark);
    return rc;
}

enum lk_code lk_ahead_new(struct lk_device *dev, enum lk_dtype dtype, int64_t units, int64_t n_times, int64_t dim,
                          struct lk_ahead *out) {
    out->n_times = n_times;
    return LK_NEW(&dev->arena, &out->rows, dtype, units * n_times, dim);
}

enum lk_code lk_ahead_silu(struct lk_device *dev, const struct lk_tensor *temb, int n_steps) {
    for (int i = 0; dev->trace && i < n_steps; i++) {
        struct lk_tensor row = lk_tensor_rows(temb, i, 1);
        LK_TRY(lk_trace(dev, &row, "step.%d.temb", i));
    }
    return lk_activation(dev, &(struct lk_activation){.y = temb, .x = temb, .act = LK_ACT_SILU});
}

/* [n_times, units dim] of the layer that `first` units stand before. */
static struct lk_tensor ahead_rows(const struct lk_ahead *a, int64_t first, int64_t units) {
    struct lk_tensor rows = lk_tensor_rows(&a->rows, first * a->n_times, units * a->n_times);
    return LK_VIEW(&rows, a->n_times, units * a->rows.shape[1]);
}

enum lk_code lk_ahead_layer(struct lk_device *dev, const struct lk_ahead *ahead, const struct lk_tensor *silu_temb,
                            const struct lk_layer *w, int64_t first) {
    struct lk_tensor y = ahead_rows(ahead, first, w->weight.shape[0] / silu_temb->shape[1]);
    return lk_project(dev, &y, silu_temb, w, LK_ACT_NONE);
}

struct lk_tensor lk_ahead_row(const struct lk_ahead *ahead, int64_t first, int64_t units, int64_t time) {
    struct lk_tensor rows = ahead_rows(ahead, first, units);
    return lk_tensor_rows(&rows, time, 1);
}

void lk_modulation_split(const struct lk_tensor *row, int n_sets, struct lk_modulation *out) {
    int64_t d = row->shape[1] / (3 * n_sets);
    for (int i = 0; i < n_sets; i++) {
        struct lk_tensor *parts[] = {&out[i].shift, &out[i].scale, &out[i].gate};
        for (int j = 0; j < 3; j++) {
            struct lk_tensor part = lk_tensor_cols(row, (3 * i + j) * d, d);
            *parts[j] = LK_VIEW(&part, d);
        }
    }
}

void lk_mmdit_modulation(const struct lk_mmdit *p, int64_t first, int n_sets, struct lk_modulation *out) {
    struct lk_tensor row = lk_ahead_row(p->ahead, first, 3 * n_sets, p->step);
    lk_modulation_split(&row, n_sets, out);
}

enum lk_code lk_mmdit_modulate(const struct lk_mmdit *p, const struct lk_tensor *y, const struct lk_tensor *x,
                               const struct lk_modulation *m) {
    struct lk_layer_norm op = {.y = y, .x = x, .shift = &m->shift, .scale = &m->scale, .eps = p->eps};
    return lk_layer_norm(p->dev, &op);
}

static struct lk_tensor heads(const struct lk_mmdit *p, const struct lk_tensor *t) {
    return LK_VIEW(t, t->shape[0], p->n_heads, p->head_dim);
}

enum lk_code lk_mmdit_norm_rope(const struct lk_mmdit *p, const struct lk_tensor *x, const struct lk_tensor *norm_w,
                                int64_t first) {
    struct lk_tensor x3 = heads(p, x);
    struct lk_tensor cos = lk_tensor_rows(p->cos, first, x->shape[0]), sin = lk_tensor_rows(p->sin, first, x->shape[0]);
    struct lk_norm_rope op = {.x = &x3, .norm_w = norm_w, .cos = &cos, .sin = &sin, .eps = p->eps};
    op.round_before_weight = p->round_before_weight;
    op.pairing = LK_ROPE_INTERLEAVED;
    return lk_norm_rope(p->dev, &op);
}

enum lk_code lk_mmdit_project(const struct lk_mmdit *p, const struct lk_tensor *y, const struct lk_tensor *x,
                              int64_t first, const struct lk_layer *w, const struct lk_tensor *norm_w) {
    LK_TRY(lk_project(p->dev, y, x, w, LK_ACT_NONE));
    return norm_w ? lk_mmdit_norm_rope(p, y, norm_w, first) : LK_OK;
}

enum lk_code lk_mmdit_attention(const struct lk_mmdit *p, const struct lk_tensor *out, const struct lk_tensor *q,
                                const struct lk_tensor *k, const struct lk_tensor *v, const char *kind, int i) {
    struct lk_tensor out3 = heads(p, out), q3 = heads(p, q), k3 = heads(p, k), v3 = heads(p, v);
    LK_TRY(LK_MMDIT_TRACE(p, &q3, "%s.%d.query", kind, i));
    LK_TRY(LK_MMDIT_TRACE(p, &k3, "%s.%d.key", kind, i));
    float scale = 1.0f / sqrtf((float)p->head_dim);
    LK_TRY(lk_attention(p->dev, &(struct lk_attention){.out = &out3, .q = &q3, .k = &k3, .v = &v3, .scale = scale}));
    return LK_MMDIT_TRACE(p, out, "%s.%d.attention", kind, i);
}

void lk_mmdit_rows_out(struct lk_mmdit *p, bool last, int64_t n_noise) {
    bool few = last && !p->dev->trace && !p->dev->counts_traced;
    p->first_out = few ? p->n_txt : 0;
    p->n_out = few ? n_noise : p->n;
}

enum lk_code lk_mmdit_gate(struct lk_mmdit *passes, int n, int list, int64_t done, int64_t n_blocks, bool last_list,
                           int *n_active) {
    struct lk_mmdit skipped[LK_MAX_PASSES];
    int n_skipped = 0;
    *n_active = 0;
    for (int k = 0; k < n; k++) {
        LK_TRY(lk_cache_between(&passes[k], list, done, n_blocks, last_list));
        if (passes[k].skips)
            skipped[n_skipped++] = passes[k];
        else
            passes[(*n_active)++] = passes[k];
    }
    for (int k = 0; k < n_skipped; k++) passes[*n_active + k] = skipped[k];
    return LK_OK;
}

void lk_mmdit_begin(struct lk_mmdit *p) {
    if (p->dev->trace || p->dev->counts_traced) p->slice_rows = 0;
    lk_mmdit_rows_out(p, false, 0);
}

bool lk_mmdit_slice(struct lk_mmdit *p, int64_t s, enum lk_mmdit_of of) {
    const struct lk_rows rows[] = {[LK_ROWS_OUT] = {p->first_out, p->n_out},
                                   [LK_ROWS_ALL] = {0, p->n},
                                   [LK_ROWS_TXT] = {0, p->n_txt},
                                   [LK_ROWS_IMG] = {p->n_txt, p->n_img}};
    int64_t step = lk_mmdit_sliced(p) ? p->slice_rows : p->n, left = rows[of].n - s * step;
    p->at = (struct lk_rows){rows[of].first + s * step, left < step ? left : step};
    p->own = lk_mmdit_sliced(p) ? p->at.first : 0;
    return left > 0;
}

bool lk_mmdit_slices(struct lk_mmdit *passes, int n, int64_t s, enum lk_mmdit_of of) {
    bool some = false;
    LK_EACH_PASS(p, passes, n) some |= lk_mmdit_slice(p, s, of);
    return some;
}

struct lk_rows lk_mmdit_cut(const struct lk_mmdit *p, int64_t first, int64_t n) {
    int64_t from = first > p->at.first ? first : p->at.first, end = first + n, of_slice = p->at.first + p->at.n;
    return (struct lk_rows){from, (end < of_slice ? end : of_slice) - from};
}

struct lk_tensor lk_mmdit_own(const struct lk_mmdit *p, const struct lk_tensor *t, struct lk_rows rows) {
    return lk_tensor_rows(t, rows.first - p->own, rows.n);
}

static struct lk_rows cut_stream(const struct lk_mmdit *p, bool text) {
    return text ? lk_mmdit_cut(p, 0, p->n_txt) : lk_mmdit_cut(p, p->n_txt, p->n_img);
}

enum lk_code lk_mmdit_new_block(struct lk_mmdit *passes, int n) {
    LK_EACH_PASS(p, passes, n) {
        struct lk_arena *arena = &p->dev->arena;
        int64_t own = lk_mmdit_slice_rows(p, p->n), n_keys = p->cos->shape[0];
        LK_TRY(LK_NEW(arena, &p->u, p->dtype, own, p->dim));
        LK_TRY(LK_NEW(arena, &p->qkv[0], p->dtype, own, p->dim));
        for (int j = 1; j < 3; j++) {
            if (p->kv)
                p->qkv[j] = lk_tensor_rows(p->kv, n_keys * p->n_kv++, n_keys);
            else
                LK_TRY(LK_NEW(arena, &p->qkv[j], p->dtype, p->n, p->dim));
        }
    }
    return LK_OK;
}

enum lk_code lk_mmdit_project_qkv(const struct lk_mmdit *p, const struct lk_mmdit_stream *w, bool text, int j) {
    const struct lk_layer *const layers[] = {&w->to_q, &w->to_k, &w->to_v};
    const struct lk_tensor *const norms[] = {&w->norm_q, &w->norm_k, NULL};
    struct lk_rows rows = cut_stream(p, text);
    if (rows.n <= 0) return LK_OK;
    struct lk_tensor u = lk_mmdit_own(p, &p->u, rows);
    struct lk_tensor y = j ? lk_tensor_rows(&p->qkv[j], rows.first, rows.n) : lk_mmdit_own(p, &p->qkv[0], rows);
    return lk_mmdit_project(p, &y, &u, rows.first, layers[j], norms[j]);
}

enum lk_code lk_mmdit_modulate_rows(const struct lk_mmdit *p, struct lk_rows rows, const struct lk_modulation *m) {
    if (rows.n <= 0) return LK_OK;
    struct lk_tensor u = lk_mmdit_own(p, &p->u, rows), z = lk_tensor_rows(&p->z, rows.first, rows.n);
    return lk_mmdit_modulate(p, &u, &z, m);
}

static enum lk_code modulate_streams(const struct lk_mmdit *p) {
    LK_TRY(lk_mmdit_modulate_rows(p, cut_stream(p, true), &p->txt[0]));
    return lk_mmdit_modulate_rows(p, cut_stream(p, false), &p->img[0]);
}

enum lk_code lk_mmdit_attend_wide(const struct lk_mmdit *p, int i) {
    if (p->at.n <= 0) return LK_OK;
    struct lk_tensor q = lk_mmdit_own(p, &p->qkv[0], p->at), wide = lk_tensor_rows(&p->wide, 0, p->at.n);
    struct lk_tensor attended = lk_tensor_cols(&wide, 0, p->dim);
    return lk_mmdit_attention(p, &attended, &q, &p->qkv[1], &p->qkv[2], "single", i);
}

enum lk_code lk_mmdit_project_wide(const struct lk_mmdit *p, const struct lk_layer *w) {
    if (p->at.n <= 0) return LK_OK;
    struct lk_tensor z = lk_tensor_rows(&p->z, p->at.first, p->at.n), wide = lk_tensor_rows(&p->wide, 0, p->at.n);
    return lk_project_onto(p->dev, &z, &wide, w, &p->img[0].gate);
}

/* z += gate * to_out(u) in one stream's rows of the slice. */
static enum lk_code project_out(const struct lk_mmdit *p, const struct lk_mmdit_stream *w, bool text) {
    struct lk_rows rows = cut_stream(p, text);
    if (rows.n <= 0) return LK_OK;
    struct lk_tensor u = lk_mmdit_own(p, &p->u, rows), z = lk_tensor_rows(&p->z, rows.first, rows.n);
    return lk_project_onto(p->dev, &z, &u, &w->to_out, text ? &p->txt[0].gate : &p->img[0].gate);
}

enum lk_code lk_mmdit_attend(const struct lk_mmdit *p, const char *kind, int i) {
    struct lk_tensor u = lk_mmdit_own(p, &p->u, p->at), q = lk_mmdit_own(p, &p->qkv[0], p->at);
    return p->at.n > 0 ? lk_mmdit_attention(p, &u, &q, &p->qkv[1], &p->qkv[2], kind, i) : LK_OK;
}

enum lk_code lk_mmdit_joint_attention(struct lk_mmdit *passes, int n, int i, const struct lk_mmdit_block *w) {
    struct lk_arena *arena = &passes->dev->arena;
    size_t mark = lk_arena_mark(arena);
    LK_TRY(lk_mmdit_new_block(passes, n));
    for (int64_t s = 0; lk_mmdit_slices(passes, n, s, LK_ROWS_ALL); s++) {
        LK_EACH_PASS(p, passes, n) LK_TRY(modulate_streams(p));
        for (int j = 1; j < 3; j++) LK_EACH_PASS(p, passes, n) LK_TRY(lk_mmdit_project_qkv(p, &w->txt, true, j));
        for (int j = 1; j < 3; j++) LK_EACH_PASS(p, passes, n) LK_TRY(lk_mmdit_project_qkv(p, &w->img, false, j));
    }
    for (int64_t s = 0; lk_mmdit_slices(passes, n, s, LK_ROWS_OUT); s++) {
        LK_EACH_PASS(p, passes, n) LK_TRY(lk_mmdit_sliced(p) ? modulate_streams(p) : LK_OK);
        LK_EACH_PASS(p, passes, n) LK_TRY(lk_mmdit_project_qkv(p, &w->txt, true, 0));
        LK_EACH_PASS(p, passes, n) LK_TRY(lk_mmdit_project_qkv(p, &w->img, false, 0));
        LK_EACH_PASS(p, passes, n) LK_TRY(lk_mmdit_attend(p, "double", i));
        LK_EACH_PASS(p, passes, n) LK_TRY(project_out(p, &w->txt, true));
        LK_EACH_PASS(p, passes, n) LK_TRY(project_out(p, &w->img, false));
    }
    lk_arena_release(arena, mark);
    return LK_OK;
}

enum lk_code lk_mmdit_feed_forward(struct lk_mmdit *passes, int n, bool text, const struct lk_mmdit_stream *w,
                                   lk_mmdit_inner_fn *inner) {
    struct lk_arena *arena = &passes->dev->arena;
    size_t mark = lk_arena_mark(arena);
    LK_EACH_PASS(p, passes, n) {
        int64_t rows = lk_mmdit_slice_rows(p, text ? p->n_txt : p->n_img);
        LK_TRY(LK_NEW(arena, &p->wide, p->dtype, rows, w->ff_out.weight.shape[1]));
    }
    for (int64_t s = 0; lk_mmdit_slices(passes, n, s, text ? LK_ROWS_TXT : LK_ROWS_IMG); s++) {
        LK_EACH_PASS(p, passes, n) {
            if (p->at.n <= 0) continue;
            struct lk_tensor rows = lk_tensor_rows(&p->z, p->at.first, p->at.n), norm;
            struct lk_tensor wide = lk_tensor_rows(&p->wide, 0, p->at.n);
            size_t norm_mark = lk_arena_mark(arena);
            LK_TRY(LK_NEW(arena, &norm, p->dtype, rows.shape[0], p->dim));
            LK_TRY(lk_mmdit_modulate(p, &norm, &rows, text ? &p->txt[1] : &p->img[1]));
            LK_TRY(inner(p, &wide, &norm, &w->ff_in));
            lk_arena_release(arena, norm_mark);
        }
        LK_EACH_PASS(p, passes, n) {
            if (p->at.n <= 0) continue;
            struct lk_tensor rows = lk_tensor_rows(&p->z, p->at.first, p->at.n);
            struct lk_tensor wide = lk_tensor_rows(&p->wide, 0, p->at.n);
            LK_TRY(lk_project_onto(p->dev, &rows, &wide, &w->ff_out, text ? &p->txt[1].gate : &p->img[1].gate));
        }
    }
    lk_arena_release(arena, mark);
    return LK_OK;
}

enum lk_code lk_mmdit_tail(const struct lk_mmdit *p, int64_t first, const struct lk_layer *proj_out,
                           const struct lk_tensor *velocity) {
    int64_t n = velocity->shape[0], d = p->dim;
    size_t mark = lk_arena_mark(&p->dev->arena);
    struct lk_tensor u, noise = lk_tensor_rows(&p->z, p->n_txt, n), s = lk_ahead_row(p->ahead, first, 2, p->step);
    LK_TRY(LK_NEW(&p->dev->arena, &u, p->dtype, n, d));
    struct lk_tensor scale = lk_tensor_cols(&s, 0, d), shift = lk_tensor_cols(&s, d, d);
    struct lk_modulation m = {.shift = LK_VIEW(&shift, d), .scale = LK_VIEW(&scale, d)};
    LK_TRY(lk_mmdit_modulate(p, &u, &noise, &m));
    LK_TRY(lk_project(p->dev, velocity, &u, proj_out, LK_ACT_NONE));
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}
