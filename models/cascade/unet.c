/* The forward pass. Pictures have channels last, so that rows of the linear layers are pixels. What the way down leaves
 * for the way up lies in the arena one level behind the other; each block's scratch is released behind it. */
#include "models/cascade/unet.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"

#define EPS 1e-6f

struct walk {
    struct lk_device *dev;
    const struct lk_cascade_unet *u;
    const struct lk_cascade_pass *in;
    struct lk_tensor embeds;      /* [2, 64]: of the time, and of 0 */
    struct lk_tensor ones;        /* f32 [the most channels] */
    int64_t h, w;                 /* of x now */
    struct lk_tensor x;           /* [h w, c] */
    const struct lk_tensor *skip; /* [h w, c] of the level on the way up, or NULL */
};

/* Layers of 1 x 1 convolutions are bound as such. */
static enum lk_code project(struct lk_device *dev, const struct lk_layer *layer, const struct lk_tensor *x,
                            const struct lk_tensor *y, enum lk_act act) {
    const int64_t rows = layer->weight.shape[0];
    const struct lk_tensor w = LK_VIEW(&layer->weight, rows, lk_tensor_numel(&layer->weight) / rows);
    return lk_linear(dev, &(struct lk_linear){.y = y, .x = x, .w = &w, .bias = &layer->bias, .act = act});
}

static enum lk_code norm(struct lk_device *dev, const struct lk_tensor *x, const struct lk_tensor *y) {
    return lk_layer_norm(dev, &(struct lk_layer_norm){.y = y, .x = x, .eps = EPS});
}

/* Values from the host in t's dtype. NULL: zeros. */
static enum lk_code upload(struct lk_device *dev, const struct lk_tensor *t, const float *values) {
    const size_t n = (size_t)lk_tensor_numel(t);
    if (dev->kind == LK_DEVICE_PLAN) return LK_OK;
    void *host = lk_calloc(n, sizeof(float));
    if (!host) return lk_fail(LK_E_NOMEM, "Stable Cascade: out of memory");
    for (size_t i = 0; i < n && values; i++)
        if (t->dtype == LK_BF16)
            ((uint16_t *)host)[i] = lk_f32_to_bf16(values[i]);
        else
            ((float *)host)[i] = values[i];
    const enum lk_code rc = lk_upload(dev, t, host);
    lk_free(host);
    return rc;
}

int64_t lk_cascade_clip_rows(const struct lk_cascade_unet *u, int64_t n_text) {
    return LK_CASCADE_CLIP_SEQ + (u->config.text_dim ? n_text + LK_CASCADE_CLIP_SEQ : 0);
}

/* Four rows of clip, from `first` on, of a row of x. */
static enum lk_code four_rows(struct lk_device *dev, const struct lk_layer *layer, const struct lk_tensor *x,
                              const struct lk_tensor *clip, int64_t first) {
    const struct lk_tensor rows = lk_tensor_rows(clip, first, LK_CASCADE_CLIP_SEQ);
    const struct lk_tensor one = LK_VIEW(&rows, 1, LK_CASCADE_CLIP_SEQ * clip->shape[1]);
    return project(dev, layer, x, &one, LK_ACT_NONE);
}

enum lk_code lk_cascade_condition(struct lk_device *dev, const struct lk_cascade_unet *u, const struct lk_tensor *text,
                                  const struct lk_tensor *pooled, const struct lk_tensor *clip) {
    const int64_t n_text = text ? text->shape[0] : 0;
    const size_t mark = lk_arena_mark(&dev->arena);
    if (text) {
        const struct lk_tensor rows = lk_tensor_rows(clip, 0, n_text);
        struct lk_tensor none;
        LK_TRY(project(dev, &u->text_mapper, text, &rows, LK_ACT_NONE));
        LK_TRY(LK_NEW(&dev->arena, &none, clip->dtype, 1, u->config.image_dim));
        LK_TRY(upload(dev, &none, NULL));
        LK_TRY(four_rows(dev, &u->image_mapper, &none, clip, n_text + LK_CASCADE_CLIP_SEQ));
    }
    LK_TRY(four_rows(dev, &u->pooled_mapper, pooled, clip, n_text));
    LK_TRY(norm(dev, clip, clip));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

static enum lk_code res(struct walk *w, const struct lk_cascade_block *k) {
    struct lk_arena *arena = &w->dev->arena;
    const int64_t rows = w->x.shape[0], c = w->x.shape[1];
    struct lk_tensor filtered, normed, hidden;
    LK_TRY(LK_NEW(arena, &normed, w->x.dtype, rows, k->takes_skip ? 2 * c : c));
    LK_TRY(LK_NEW(arena, &hidden, w->x.dtype, rows, 4 * c));
    LK_TRY(LK_NEW(arena, &filtered, w->x.dtype, rows, c));
    const struct lk_tensor x = LK_VIEW(&w->x, w->h, w->w, c), y = LK_VIEW(&filtered, w->h, w->w, c);
    struct lk_depthwise conv = {.y = &y, .x = &x, .w = &k->depthwise.weight, .bias = &k->depthwise.bias};
    const struct lk_tensor left = lk_tensor_cols(&normed, 0, c);
    LK_TRY(lk_depthwise(w->dev, &conv));
    LK_TRY(norm(w->dev, &filtered, &left));
    if (k->takes_skip) {
        const struct lk_tensor right = lk_tensor_cols(&normed, c, c);
        LK_TRY(lk_copy(w->dev, &(struct lk_copy){.y = &right, .x = w->skip}));
    }
    LK_TRY(project(w->dev, &k->expand, &normed, &hidden, LK_ACT_GELU_ERF));
    LK_TRY(lk_response_norm(w->dev, &(struct lk_response_norm){&hidden, &hidden, &k->gamma, &k->beta, EPS}));
    return lk_project_onto(w->dev, &w->x, &hidden, &k->contract, NULL);
}

/* x (1 + a) + b, [a, b] from the time. */
static enum lk_code timestep(struct walk *w, const struct lk_cascade_block *k) {
    struct lk_arena *arena = &w->dev->arena;
    const int64_t c = w->x.shape[1];
    struct lk_tensor sum, other;
    LK_TRY(LK_NEW(arena, &sum, w->x.dtype, 1, 2 * c));
    LK_TRY(LK_NEW(arena, &other, w->x.dtype, 1, 2 * c));
    for (int i = 0; i <= w->u->config.n_conds; i++) {
        const struct lk_tensor embed = lk_tensor_rows(&w->embeds, i ? 1 : 0, 1);
        LK_TRY(project(w->dev, &k->mappers[i], &embed, i ? &other : &sum, LK_ACT_NONE));
        if (i) LK_TRY(lk_add(w->dev, &(struct lk_add){&sum, &sum, &other}));
    }
    const struct lk_tensor scale = lk_tensor_cols(&sum, 0, c), shift = lk_tensor_cols(&sum, c, c);
    const struct lk_tensor ones = lk_tensor_rows(&w->ones, 0, c);
    const struct lk_tensor a = LK_VIEW(&scale, c), b = LK_VIEW(&shift, c);
    LK_TRY(
        lk_channel_affine(w->dev, &(struct lk_channel_affine){.y = &scale, .x = &scale, .mean = &ones, .std = &ones}));
    return lk_channel_affine(w->dev, &(struct lk_channel_affine){.y = &w->x, .x = &w->x, .mean = &b, .std = &a});
}

static enum lk_code attention(struct walk *w, const struct lk_cascade_block *k, int64_t n_heads) {
    struct lk_arena *arena = &w->dev->arena;
    const int64_t rows = w->x.shape[0], c = w->x.shape[1], extra = w->in->clip->shape[0], d = c / n_heads;
    const enum lk_dtype dtype = w->x.dtype;
    struct lk_tensor all, q, keys, values, clip;
    LK_TRY(LK_NEW(arena, &all, dtype, rows + extra, c));
    LK_TRY(LK_NEW(arena, &keys, dtype, rows + extra, c));
    LK_TRY(LK_NEW(arena, &values, dtype, rows + extra, c));
    LK_TRY(LK_NEW(arena, &q, dtype, rows, c));
    LK_TRY(LK_NEW(arena, &clip, dtype, extra, w->in->clip->shape[1]));
    const struct lk_tensor own = lk_tensor_rows(&all, 0, rows), given = lk_tensor_rows(&all, rows, extra);
    LK_TRY(norm(w->dev, &w->x, &own));
    LK_TRY(lk_activation(w->dev, &(struct lk_activation){.y = &clip, .x = w->in->clip, .act = LK_ACT_SILU}));
    LK_TRY(project(w->dev, &k->kv_mapper, &clip, &given, LK_ACT_NONE));
    LK_TRY(project(w->dev, &k->to_q, &own, &q, LK_ACT_NONE));
    LK_TRY(project(w->dev, &k->to_k, &all, &keys, LK_ACT_NONE));
    LK_TRY(project(w->dev, &k->to_v, &all, &values, LK_ACT_NONE));
    const struct lk_tensor hq = LK_VIEW(&q, rows, n_heads, d), hk = LK_VIEW(&keys, rows + extra, n_heads, d);
    const struct lk_tensor hv = LK_VIEW(&values, rows + extra, n_heads, d), out = LK_VIEW(&own, rows, n_heads, d);
    struct lk_attention op = {.out = &out, .q = &hq, .k = &hk, .v = &hv, .scale = 1.0f / sqrtf((float)d)};
    LK_TRY(lk_attention(w->dev, &op));
    return lk_project_onto(w->dev, &w->x, &own, &k->to_out, NULL);
}

static enum lk_code blocks(struct walk *w, const struct lk_cascade_level *l, int level) {
    for (int i = 0; i < l->n_blocks; i++) {
        const struct lk_cascade_block *k = &l->blocks[i];
        const size_t mark = lk_arena_mark(&w->dev->arena);
        if (k->kind == LK_CASCADE_RES)
            LK_TRY(res(w, k));
        else if (k->kind == LK_CASCADE_TIMESTEP)
            LK_TRY(timestep(w, k));
        else
            LK_TRY(attention(w, k, w->u->config.n_heads[level]));
        lk_arena_release(&w->dev->arena, mark);
    }
    return LK_OK;
}

static void resize(struct walk *w, const struct lk_tensor *x, int64_t h, int64_t width) {
    w->x = *x;
    w->h = h;
    w->w = width;
}

/* x normed and scaled into level i, which is new in the arena. */
static enum lk_code down_into(struct walk *w, int i) {
    const struct lk_cascade_config *c = &w->u->config;
    const struct lk_layer *s = &w->u->down[i].scaler;
    const int64_t by = c->keeps_size ? 1 : 2, h = w->h / by, width = w->w / by;
    struct lk_tensor y, normed;
    LK_TRY(LK_NEW(&w->dev->arena, &y, w->x.dtype, h * width, c->channels[i]));
    const size_t mark = lk_arena_mark(&w->dev->arena);
    LK_TRY(LK_NEW(&w->dev->arena, &normed, w->x.dtype, w->x.shape[0], w->x.shape[1]));
    LK_TRY(norm(w->dev, &w->x, &normed));
    if (c->keeps_size) {
        LK_TRY(project(w->dev, s, &normed, &y, LK_ACT_NONE));
    } else {
        const struct lk_tensor from = LK_VIEW(&normed, w->h, w->w, w->x.shape[1]);
        const struct lk_tensor to = LK_VIEW(&y, h, width, c->channels[i]);
        struct lk_conv2d conv = {.y = &to, .x = &from, .w = &s->weight, .bias = &s->bias, .stride = 2, .upsample = 1};
        LK_TRY(lk_conv2d(w->dev, &conv));
    }
    lk_arena_release(&w->dev->arena, mark);
    resize(w, &y, h, width);
    return LK_OK;
}

/* x normed and scaled out of level u of the way up, to `to` [h w, c] of the next. */
static enum lk_code up_from(struct walk *w, int u, const struct lk_tensor *to) {
    const bool keeps = w->u->config.keeps_size;
    const struct lk_layer *s = &w->u->up[u].scaler;
    const size_t mark = lk_arena_mark(&w->dev->arena);
    struct lk_tensor wide;
    LK_TRY(norm(w->dev, &w->x, &w->x));
    if (keeps) {
        LK_TRY(project(w->dev, s, &w->x, to, LK_ACT_NONE));
    } else {
        LK_TRY(LK_NEW(&w->dev->arena, &wide, w->x.dtype, w->x.shape[0], 4 * to->shape[1]));
        LK_TRY(project(w->dev, s, &w->x, &wide, LK_ACT_NONE));
        const struct lk_tensor picture = LK_VIEW(to, 2 * w->h, 2 * w->w, to->shape[1]);
        LK_TRY(lk_pack_latents(w->dev, &(struct lk_pack_latents){&wide, &picture, true}));
    }
    lk_arena_release(&w->dev->arena, mark);
    resize(w, to, keeps ? w->h : 2 * w->h, keeps ? w->w : 2 * w->w);
    return LK_OK;
}

/* y = LN(mapper(x)) for the two layers of a mapper. */
static enum lk_code map(struct lk_device *dev, const struct lk_layer mapper[2], const struct lk_tensor *x,
                        const struct lk_tensor *y) {
    const size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor hidden;
    LK_TRY(LK_NEW(&dev->arena, &hidden, y->dtype, x->shape[0], 4 * y->shape[1]));
    LK_TRY(project(dev, &mapper[0], x, &hidden, LK_ACT_GELU_ERF));
    LK_TRY(project(dev, &mapper[1], &hidden, y, LK_ACT_NONE));
    LK_TRY(norm(dev, y, y));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

static enum lk_code embed(struct walk *w) {
    const struct lk_cascade_config *c = &w->u->config;
    const struct lk_tensor *x = w->in->x;
    struct lk_arena *arena = &w->dev->arena;
    const int64_t p = c->patch_size, h = x->shape[0] / p, width = x->shape[1] / p, first = c->channels[0];
    struct lk_tensor out, patches = LK_VIEW(x, h * width, x->shape[2] * p * p), more, pixels;
    LK_TRY(LK_NEW(arena, &out, x->dtype, h * width, first));
    const size_t mark = lk_arena_mark(arena);
    if (p == 2) {
        LK_TRY(LK_NEW(arena, &patches, x->dtype, h * width, 4 * x->shape[2]));
        LK_TRY(lk_pack_latents(w->dev, &(struct lk_pack_latents){&patches, x, false}));
    }
    LK_TRY(project(w->dev, &w->u->embedding, &patches, &out, LK_ACT_NONE));
    LK_TRY(norm(w->dev, &out, &out));
    if (c->effnet_dim) {
        LK_TRY(LK_NEW(arena, &more, x->dtype, h * width, first));
        LK_TRY(map(w->dev, w->u->effnet, w->in->effnet, &more));
        LK_TRY(lk_add(w->dev, &(struct lk_add){&out, &out, &more}));
    }
    if (c->pixels_dim) { /* there are none: zeros, of which the mapper makes something else */
        LK_TRY(LK_NEW(arena, &pixels, x->dtype, 1, c->pixels_dim));
        LK_TRY(LK_NEW(arena, &more, x->dtype, 1, first));
        LK_TRY(upload(w->dev, &pixels, NULL));
        LK_TRY(map(w->dev, w->u->pixels, &pixels, &more));
        struct lk_tensor ones, shift = LK_VIEW(&more, first);
        LK_TRY(LK_NEW(arena, &ones, x->dtype, first));
        const struct lk_tensor from = lk_tensor_rows(&w->ones, 0, first);
        LK_TRY(lk_copy(w->dev, &(struct lk_copy){.y = &ones, .x = &from}));
        LK_TRY(
            lk_channel_affine(w->dev, &(struct lk_channel_affine){.y = &out, .x = &out, .mean = &shift, .std = &ones}));
    }
    lk_arena_release(arena, mark);
    resize(w, &out, h, width);
    return LK_OK;
}

/* Sines first; frequencies divide by 31, not by 32. */
static void embed_time(float time, bool bf16, float out[LK_CASCADE_TIME]) {
    const int half = LK_CASCADE_TIME / 2;
    const float position = bf16 ? lk_round_bf16(10000 * lk_round_bf16(time)) : 10000 * time;
    const float step = (float)(-log(10000.0) / (half - 1));
    for (int k = 0; k < half; k++) {
        const float angle = position * expf((float)k * step);
        out[k] = sinf(angle);
        out[half + k] = cosf(angle);
    }
}

static enum lk_code constants(struct walk *w) {
    const struct lk_cascade_config *c = &w->u->config;
    struct lk_arena *arena = &w->dev->arena;
    float embeds[2 * LK_CASCADE_TIME];
    int64_t most = 0;
    for (int i = 0; i < c->n_levels; i++) most = c->channels[i] > most ? c->channels[i] : most;
    LK_TRY(LK_NEW(arena, &w->embeds, w->in->x->dtype, 2, LK_CASCADE_TIME));
    LK_TRY(LK_NEW(arena, &w->ones, LK_F32, most));
    embed_time(w->in->time, w->in->x->dtype == LK_BF16, embeds);
    embed_time(0, w->in->x->dtype == LK_BF16, embeds + LK_CASCADE_TIME);
    LK_TRY(upload(w->dev, &w->embeds, embeds));
    float *ones = lk_malloc((size_t)most * sizeof *ones);
    if (!ones) return lk_fail(LK_E_NOMEM, "Stable Cascade: out of memory");
    for (int64_t i = 0; i < most; i++) ones[i] = 1;
    const enum lk_code rc = upload(w->dev, &w->ones, ones);
    lk_free(ones);
    return rc;
}

/* The way up: level by level, each with its repetitions, the first block of each repetition with the skip. */
static enum lk_code up(struct walk *w, const struct lk_tensor *skips) {
    const struct lk_cascade_config *c = &w->u->config;
    struct lk_arena *arena = &w->dev->arena;
    struct lk_tensor x;
    LK_TRY(LK_NEW(arena, &x, w->x.dtype, w->x.shape[0], w->x.shape[1]));
    LK_TRY(lk_copy(w->dev, &(struct lk_copy){.y = &x, .x = &w->x}));
    w->x = x;
    for (int u = 0; u < c->n_levels; u++) {
        const int level = c->n_levels - 1 - u;
        const struct lk_cascade_level *l = &w->u->up[u];
        w->skip = u ? &skips[level] : NULL;
        for (int k = 0; k < c->up_repeats[u]; k++) {
            LK_TRY(blocks(w, l, level));
            if (k + 1 == c->up_repeats[u]) break;
            const size_t mark = lk_arena_mark(arena);
            LK_TRY(LK_NEW(arena, &x, w->x.dtype, w->x.shape[0], w->x.shape[1]));
            LK_TRY(project(w->dev, &l->repeat_mappers[k], &w->x, &x, LK_ACT_NONE));
            LK_TRY(lk_copy(w->dev, &(struct lk_copy){.y = &w->x, .x = &x}));
            lk_arena_release(arena, mark);
        }
        if (!level) break;
        LK_TRY(LK_NEW(arena, &x, w->x.dtype, skips[level - 1].shape[0], c->channels[level - 1]));
        LK_TRY(up_from(w, u, &x));
    }
    return LK_OK;
}

enum lk_code lk_cascade_forward(struct lk_device *dev, const struct lk_cascade_unet *u,
                                const struct lk_cascade_pass *pass) {
    const struct lk_cascade_config *c = &u->config;
    struct walk w = {.dev = dev, .u = u, .in = pass};
    struct lk_tensor skips[LK_CASCADE_MAX_LEVELS], patches;
    const size_t mark = lk_arena_mark(&dev->arena);
    LK_TRY(constants(&w));
    LK_TRY(embed(&w));
    for (int i = 0; i < c->n_levels; i++) {
        if (i) LK_TRY(down_into(&w, i));
        LK_TRY(blocks(&w, &u->down[i], i));
        skips[i] = w.x;
    }
    LK_TRY(up(&w, skips));
    LK_TRY(norm(dev, &w.x, &w.x));
    const int64_t p = c->patch_size;
    patches = LK_VIEW(pass->y, w.x.shape[0], c->out_channels * p * p);
    if (p == 2) LK_TRY(LK_NEW(&dev->arena, &patches, w.x.dtype, w.x.shape[0], 4 * c->out_channels));
    LK_TRY(project(dev, &u->clf, &w.x, &patches, LK_ACT_NONE));
    if (p == 2) LK_TRY(lk_pack_latents(dev, &(struct lk_pack_latents){&patches, pass->y, true}));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

/* Where output i of n_out lies among n_in: the one before, and the share of the one behind. */
static int64_t place(int64_t i, int64_t n_in, int64_t n_out, float *share) {
    const float scale = n_out > 1 ? (float)(n_in - 1) / (float)(n_out - 1) : 0, at = (float)i * scale;
    int64_t low = (int64_t)at;
    if (low > n_in - 1) low = n_in - 1;
    *share = at - (float)low;
    return low;
}

void lk_cascade_enlarge(const float *x, const struct lk_cascade_sizes *s, float *y) {
    for (int64_t i = 0; i < s->to_h; i++)
        for (int64_t j = 0; j < s->to_w; j++) {
            float fy, fx;
            const int64_t y0 = place(i, s->h, s->to_h, &fy), x0 = place(j, s->w, s->to_w, &fx);
            const int64_t y1 = y0 + 1 < s->h ? y0 + 1 : y0, x1 = x0 + 1 < s->w ? x0 + 1 : x0;
            for (int64_t c = 0; c < s->channels; c++) {
                const float a = x[(y0 * s->w + x0) * s->channels + c], b = x[(y0 * s->w + x1) * s->channels + c];
                const float d = x[(y1 * s->w + x0) * s->channels + c], e = x[(y1 * s->w + x1) * s->channels + c];
                y[(i * s->to_w + j) * s->channels + c] =
                    (1 - fy) * ((1 - fx) * a + fx * b) + fy * ((1 - fx) * d + fx * e);
            }
        }
}
