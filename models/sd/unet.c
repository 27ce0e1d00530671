/* The forward pass. What is pushed on the way down lies in the arena one behind the other; the way up alternates
 * between two buffers ("slots"). Pictures have channels last, so that a transformer's rows are pixels. */
#include "models/sd/unet.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "engine/flow_match.h"
#include "models/common/mmdit.h"

#define TRANSFORMER_GROUP_EPS 1e-6f
#define LAYER_EPS             1e-5f
#define MOST_SKIPS            (LK_UNET_MAX_LEVELS * LK_UNET_MAX_RESNETS + 1)

struct walk {
    struct lk_device *dev;
    const struct lk_unet *u;
    const struct lk_unet_pass *in;
    enum lk_dtype dtype;
    struct lk_tensor skips[MOST_SKIPS];
    int n_skips;
    void *slots[2];
    int slot;
    struct lk_tensor x; /* of the moment, [h, w, c] */
    char place[48];     /* of the transformer at hand: "down.1.attentions.0" */
};

#define TRACE(w, value, ...) LK_TRY(show(w, value, __VA_ARGS__))
static enum lk_code show(const struct walk *w, const struct lk_tensor *value, const char *way, int i, const char *kind,
                         int j) {
    if (!w->in->name) return LK_OK;
    if (i < 0) return lk_trace(w->dev, value, "%s.%s.%s.%d", w->in->name, way, kind, j);
    return lk_trace(w->dev, value, "%s.%s.%d.%s.%d", w->in->name, way, i, kind, j);
}

static enum lk_code conv(const struct walk *w, const struct lk_layer *layer, const struct lk_tensor *x,
                         const struct lk_tensor *y, const struct lk_tensor *residual, const struct lk_tensor *sums) {
    struct lk_conv2d op = {.y = y, .x = x, .w = &layer->weight, .bias = &layer->bias, .residual = residual};
    op.group_sums = sums;
    op.taps_first = layer->weight.shape[3] > 3; /* as many channels as pictures have; unet_weights.c */
    const int pad = (int)lk_filters_of(&op).kh / 2;
    op.stride = (int)(x->shape[0] / y->shape[0] > 1 ? 2 : 1);
    op.upsample = (int)(y->shape[0] / x->shape[0] > 1 ? 2 : 1);
    op.pad_top = op.pad_left = op.pad_bottom = op.pad_right = pad;
    return lk_conv2d(w->dev, &op);
}

static enum lk_code group_norm(const struct walk *w, const struct lk_layer *layer, const struct lk_tensor *x,
                               const struct lk_tensor *y, float eps, enum lk_act act, const struct lk_tensor *sums) {
    struct lk_group_norm op = {.y = y, .x = x, .w = &layer->weight, .b = &layer->bias, .sums = sums};
    op.n_groups = (int)w->u->config.norm_num_groups;
    op.eps = eps;
    op.act = act;
    return lk_group_norm(w->dev, &op);
}

/* y = shortcut(x) + conv2(silu(norm2(conv1(silu(norm1(x))) + time))). x may be overwritten when it is `own` and there
 * is a shortcut, whose value is taken first. */
static enum lk_code resnet(const struct walk *w, const struct lk_unet_resnet *r, const struct lk_tensor *x,
                           const struct lk_tensor *y, bool own) {
    struct lk_arena *arena = &w->dev->arena;
    const size_t mark = lk_arena_mark(arena);
    const int64_t height = x->shape[0], width = x->shape[1], c_in = x->shape[2], c = y->shape[2];
    const float eps = (float)w->u->config.norm_eps;
    const struct lk_tensor time_row = lk_tensor_cols(w->in->time, r->first_time, c), time = LK_VIEW(&time_row, c);
    struct lk_tensor n = *x, h, sums = lk_group_sums(NULL, w->u->config.norm_num_groups, height * width);
    if (c_in != c) LK_TRY(conv(w, &r->conv_shortcut, x, y, NULL, NULL));
    if (!own || c_in == c) LK_TRY(LK_NEW(arena, &n, w->dtype, height, width, c_in));
    LK_TRY(LK_NEW(arena, &h, w->dtype, height, width, c));
    LK_TRY(lk_arena_alloc(arena, lk_tensor_bytes(&sums), &sums.data));
    LK_TRY(group_norm(w, &r->norm1, x, &n, eps, LK_ACT_SILU, NULL));
    LK_TRY(conv(w, &r->conv1, &n, &h, &time, &sums));
    LK_TRY(group_norm(w, &r->norm2, &h, &h, eps, LK_ACT_SILU, &sums));
    LK_TRY(conv(w, &r->conv2, &h, y, c_in == c ? x : y, NULL));
    lk_arena_release(arena, mark);
    return LK_OK;
}

static enum lk_code layer_norm(const struct walk *w, const struct lk_layer *layer, const struct lk_tensor *x,
                               const struct lk_tensor *y) {
    struct lk_layer_norm op = {.y = y, .x = x, .weight = &layer->weight, .bias = &layer->bias, .eps = LAYER_EPS};
    return lk_layer_norm(w->dev, &op);
}

/* y [n, c] += to_out(attention of to_q(x) over k and v [n_keys, c], which may be windows). cross: the number of the
 * block whose cross-attention it is, or -1. */
static enum lk_code attend(const struct walk *w, const struct lk_unet_attention *a, int64_t heads,
                           const struct lk_tensor *x, const struct lk_tensor *k, const struct lk_tensor *v,
                           const struct lk_tensor *y, int cross) {
    struct lk_arena *arena = &w->dev->arena;
    const size_t mark = lk_arena_mark(arena);
    const int64_t n = x->shape[0], c = x->shape[1], n_keys = k->shape[0], d = c / heads;
    struct lk_tensor q, out;
    LK_TRY(LK_NEW(arena, &q, w->dtype, n, c));
    LK_TRY(LK_NEW(arena, &out, w->dtype, n, c));
    LK_TRY(lk_project(w->dev, &q, x, &a->to_q, LK_ACT_NONE));
    const struct lk_tensor q3 = LK_VIEW(&q, n, heads, d), out3 = LK_VIEW(&out, n, heads, d);
    const struct lk_tensor k3 = LK_VIEW(k, n_keys, heads, d), v3 = LK_VIEW(v, n_keys, heads, d);
    struct lk_attention op = {.out = &out3, .q = &q3, .k = &k3, .v = &v3, .scale = 1.0f / sqrtf((float)d)};
    if (cross >= 0) LK_TRY(lk_trace(w->dev, &q3, "%s.%s.block.%d.query", w->in->attention, w->place, cross));
    if (cross >= 0) LK_TRY(lk_trace(w->dev, &k3, "%s.%s.block.%d.key", w->in->attention, w->place, cross));
    LK_TRY(lk_attention(w->dev, &op));
    LK_TRY(lk_project_onto(w->dev, y, &out, &a->to_out, NULL));
    lk_arena_release(arena, mark);
    return LK_OK;
}

static enum lk_code self_attention(const struct walk *w, const struct lk_unet_block *b, int64_t heads,
                                   const struct lk_tensor *x, const struct lk_tensor *y) {
    struct lk_arena *arena = &w->dev->arena;
    const size_t mark = lk_arena_mark(arena);
    struct lk_tensor k, v;
    LK_TRY(LK_NEW(arena, &k, w->dtype, x->shape[0], x->shape[1]));
    LK_TRY(LK_NEW(arena, &v, w->dtype, x->shape[0], x->shape[1]));
    LK_TRY(lk_project(w->dev, &k, x, &b->attn1.to_k, LK_ACT_NONE));
    LK_TRY(lk_project(w->dev, &v, x, &b->attn1.to_v, LK_ACT_NONE));
    LK_TRY(attend(w, &b->attn1, heads, x, &k, &v, y, -1));
    lk_arena_release(arena, mark);
    return LK_OK;
}

/* y += ff_out(values * gelu(gates)), the gates behind the values. */
static enum lk_code feed_forward(const struct walk *w, const struct lk_unet_block *b, const struct lk_tensor *x,
                                 const struct lk_tensor *y) {
    struct lk_arena *arena = &w->dev->arena;
    const size_t mark = lk_arena_mark(arena);
    const int64_t n = x->shape[0], c = x->shape[1];
    struct lk_tensor u, g;
    LK_TRY(LK_NEW(arena, &u, w->dtype, n, 8 * c));
    LK_TRY(LK_NEW(arena, &g, w->dtype, n, 4 * c));
    LK_TRY(lk_project(w->dev, &u, x, &b->ff_in, LK_ACT_NONE));
    struct lk_gated_act op = {.y = &g, .x = &u, .act = LK_ACT_GELU_ERF, .gate_last = true};
    LK_TRY(lk_gated_act(w->dev, &op));
    LK_TRY(lk_project_onto(w->dev, y, &g, &b->ff_out, NULL));
    lk_arena_release(arena, mark);
    return LK_OK;
}

/* Block i of a transformer. y [n, c]; x is scratch. */
static enum lk_code block(const struct walk *w, const struct lk_unet_transformer *t, int64_t i,
                          const struct lk_tensor *x, const struct lk_tensor *y) {
    const struct lk_unet_block *b = &t->blocks[i];
    const int64_t c = y->shape[1];
    const struct lk_tensor k = lk_tensor_cols(w->in->keys, b->first_key, c);
    const struct lk_tensor v = lk_tensor_cols(w->in->keys, b->first_key + c, c);
    LK_TRY(layer_norm(w, &b->norm1, y, x));
    LK_TRY(self_attention(w, b, t->n_heads, x, y));
    LK_TRY(layer_norm(w, &b->norm2, y, x));
    LK_TRY(attend(w, &b->attn2, t->n_heads, x, &k, &v, y, (int)i));
    LK_TRY(layer_norm(w, &b->norm3, y, x));
    return feed_forward(w, b, x, y);
}

/* In place on picture [h, w, c]. The linear projection of SDXL reads a transposed view in the reference, for which
 * torch adds the bias to the rounded product. */
static enum lk_code transformer(const struct walk *w, const struct lk_unet_transformer *t,
                                const struct lk_tensor *picture) {
    struct lk_arena *arena = &w->dev->arena;
    const size_t mark = lk_arena_mark(arena);
    const int64_t n = picture->shape[0] * picture->shape[1], c = picture->shape[2];
    const struct lk_tensor rows = LK_VIEW(picture, n, c), in = LK_VIEW(&t->proj_in.weight, c, c);
    const struct lk_layer out = {.weight = LK_VIEW(&t->proj_out.weight, c, c), .bias = t->proj_out.bias};
    struct lk_tensor x, y;
    LK_TRY(LK_NEW(arena, &x, w->dtype, n, c));
    LK_TRY(LK_NEW(arena, &y, w->dtype, n, c));
    const struct lk_tensor normed = LK_VIEW(&x, picture->shape[0], picture->shape[1], c);
    LK_TRY(group_norm(w, &t->norm, picture, &normed, TRANSFORMER_GROUP_EPS, LK_ACT_NONE, NULL));
    struct lk_linear project = {.y = &y, .x = &x, .w = &in, .bias = &t->proj_in.bias};
    project.round_before_bias = w->u->config.use_linear_projection;
    LK_TRY(lk_linear(w->dev, &project));
    for (int64_t i = 0; i < t->n_blocks; i++) LK_TRY(block(w, t, i, &x, &y));
    LK_TRY(lk_project_onto(w->dev, &rows, &y, &out, NULL));
    lk_arena_release(arena, mark);
    return LK_OK;
}

/* The next tensor of the way down, in the arena, which stays. */
static enum lk_code push(struct walk *w, int64_t height, int64_t width, int64_t c, struct lk_tensor *y) {
    LK_TRY(LK_NEW(&w->dev->arena, y, w->dtype, height, width, c));
    w->skips[w->n_skips++] = *y;
    return LK_OK;
}

static enum lk_code down(struct walk *w, int i) {
    const struct lk_unet_level *l = &w->u->down[i];
    const int64_t c = w->u->config.block_out_channels[i];
    for (int j = 0; j < l->n_resnets; j++) {
        struct lk_tensor x = w->x;
        LK_TRY(push(w, x.shape[0], x.shape[1], c, &w->x));
        LK_TRY(resnet(w, &l->resnets[j], &x, &w->x, false));
        TRACE(w, &w->x, "down", i, "resnet", j);
        if (!l->transformers[j].n_blocks) continue;
        snprintf(w->place, sizeof w->place, "down.%d.attentions.%d", i, j);
        LK_TRY(transformer(w, &l->transformers[j], &w->x));
        TRACE(w, &w->x, "down", i, "attention", j);
    }
    if (!l->has_sampler) return LK_OK;
    struct lk_tensor x = w->x;
    LK_TRY(push(w, x.shape[0] / 2, x.shape[1] / 2, c, &w->x));
    return conv(w, &l->sampler, &x, &w->x, NULL, NULL);
}

static void move(struct walk *w, int64_t height, int64_t width, int64_t c) {
    w->slot = !w->slot;
    w->x = LK_TENSOR(w->slots[w->slot], w->dtype, height, width, c);
}

static enum lk_code middle(struct walk *w) {
    for (int j = 0; j < 2; j++) {
        const struct lk_tensor x = w->x;
        move(w, x.shape[0], x.shape[1], x.shape[2]);
        LK_TRY(resnet(w, &w->u->mid[j], &x, &w->x, false));
        TRACE(w, &w->x, "mid", -1, "resnet", j);
        if (j) continue;
        snprintf(w->place, sizeof w->place, "mid.attentions.0");
        LK_TRY(transformer(w, &w->u->mid_transformer, &w->x));
        TRACE(w, &w->x, "mid", -1, "attention", 0);
    }
    return LK_OK;
}

/* Channels of x, then those of the last skip, which is taken. */
static enum lk_code join(struct walk *w, struct lk_tensor *joined) {
    const struct lk_tensor *skip = &w->skips[--w->n_skips];
    const int64_t n = w->x.shape[0] * w->x.shape[1], a = w->x.shape[2], b = skip->shape[2];
    LK_TRY(LK_NEW(&w->dev->arena, joined, w->dtype, w->x.shape[0], w->x.shape[1], a + b));
    const struct lk_tensor rows = LK_VIEW(joined, n, a + b), x = LK_VIEW(&w->x, n, a), s = LK_VIEW(skip, n, b);
    const struct lk_tensor left = lk_tensor_cols(&rows, 0, a), right = lk_tensor_cols(&rows, a, b);
    LK_TRY(lk_copy(w->dev, &(struct lk_copy){.y = &left, .x = &x}));
    return lk_copy(w->dev, &(struct lk_copy){.y = &right, .x = &s});
}

static enum lk_code up(struct walk *w, int i) {
    const struct lk_unet_level *l = &w->u->up[i];
    const int64_t c = w->u->config.block_out_channels[w->u->config.n_levels - 1 - i];
    for (int j = 0; j < l->n_resnets; j++) {
        const size_t mark = lk_arena_mark(&w->dev->arena);
        struct lk_tensor joined;
        LK_TRY(join(w, &joined));
        move(w, joined.shape[0], joined.shape[1], c);
        LK_TRY(resnet(w, &l->resnets[j], &joined, &w->x, true));
        lk_arena_release(&w->dev->arena, mark);
        TRACE(w, &w->x, "up", i, "resnet", j);
        if (!l->transformers[j].n_blocks) continue;
        snprintf(w->place, sizeof w->place, "up.%d.attentions.%d", i, j);
        LK_TRY(transformer(w, &l->transformers[j], &w->x));
        TRACE(w, &w->x, "up", i, "attention", j);
    }
    if (!l->has_sampler) return LK_OK;
    const struct lk_tensor x = w->x;
    move(w, 2 * x.shape[0], 2 * x.shape[1], c);
    return conv(w, &l->sampler, &x, &w->x, NULL, NULL);
}

/* Two slots for what the middle and the way up make of latents [height, width]. */
static enum lk_code new_slots(struct walk *w, int64_t height, int64_t width) {
    const struct lk_unet_config *c = &w->u->config;
    int64_t most = 0;
    for (int i = 0; i < c->n_levels; i++) {
        /* A level is met first with the channels of the one below. */
        int64_t channels = c->block_out_channels[i];
        if (i + 1 < c->n_levels && c->block_out_channels[i + 1] > channels) channels = c->block_out_channels[i + 1];
        const int64_t n = (height >> i) * (width >> i) * channels;
        if (n > most) most = n;
    }
    for (int i = 0; i < 2; i++)
        LK_TRY(lk_arena_alloc(&w->dev->arena, (size_t)most * lk_dtype_size(w->dtype), &w->slots[i]));
    return LK_OK;
}

enum lk_code lk_unet_forward(struct lk_device *dev, const struct lk_unet *u, const struct lk_unet_pass *in) {
    struct walk w = {.dev = dev, .u = u, .in = in, .dtype = in->x->dtype};
    const int64_t height = in->x->shape[0], width = in->x->shape[1];
    const int n_levels = u->config.n_levels, multiple = 1 << (n_levels - 1);
    if (height % multiple || width % multiple)
        return lk_fail(LK_E_INTERNAL, "unet: %lldx%lld latents are no multiples of %d", (long long)width,
                       (long long)height, multiple);
    const size_t mark = lk_arena_mark(&dev->arena);
    LK_TRY(push(&w, height, width, u->config.block_out_channels[0], &w.x));
    LK_TRY(conv(&w, &u->conv_in, in->x, &w.x, NULL, NULL));
    for (int i = 0; i < n_levels; i++) LK_TRY(down(&w, i));
    LK_TRY(new_slots(&w, height, width));
    LK_TRY(middle(&w));
    for (int i = 0; i < n_levels; i++) LK_TRY(up(&w, i));
    LK_TRY(group_norm(&w, &u->conv_norm_out, &w.x, &w.x, (float)u->config.norm_eps, LK_ACT_SILU, NULL));
    LK_TRY(conv(&w, &u->conv_out, &w.x, in->y, NULL, NULL));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

/* Every attn2's keys and values, and every resnet's share of the times: one loop over all transformers or resnets. */
typedef enum lk_code lk_unet_each_fn(struct lk_device *dev, const struct lk_unet_resnet *resnet,
                                     const struct lk_unet_transformer *transformer, const void *context);

static enum lk_code each_level(struct lk_device *dev, const struct lk_unet *u, const struct lk_unet_level *levels,
                               lk_unet_each_fn *body, const void *context) {
    for (int i = 0; i < u->config.n_levels; i++)
        for (int j = 0; j < levels[i].n_resnets; j++)
            LK_TRY(body(dev, &levels[i].resnets[j], &levels[i].transformers[j], context));
    return LK_OK;
}

static enum lk_code each(struct lk_device *dev, const struct lk_unet *u, lk_unet_each_fn *body, const void *context) {
    static const struct lk_unet_transformer none;
    LK_TRY(each_level(dev, u, u->down, body, context));
    LK_TRY(body(dev, &u->mid[0], &u->mid_transformer, context));
    LK_TRY(body(dev, &u->mid[1], &none, context));
    return each_level(dev, u, u->up, body, context);
}

struct io {
    const struct lk_tensor *x, *y;
};

static enum lk_code make_keys(struct lk_device *dev, const struct lk_unet_resnet *resnet,
                              const struct lk_unet_transformer *t, const void *context) {
    const struct io *io = context;
    (void)resnet;
    for (int64_t i = 0; i < t->n_blocks; i++) {
        const struct lk_unet_block *b = &t->blocks[i];
        const int64_t c = b->attn2.to_k.weight.shape[0];
        const struct lk_tensor k = lk_tensor_cols(io->y, b->first_key, c);
        const struct lk_tensor v = lk_tensor_cols(io->y, b->first_key + c, c);
        LK_TRY(lk_project(dev, &k, io->x, &b->attn2.to_k, LK_ACT_NONE));
        LK_TRY(lk_project(dev, &v, io->x, &b->attn2.to_v, LK_ACT_NONE));
    }
    return LK_OK;
}

enum lk_code lk_unet_keys(struct lk_device *dev, const struct lk_unet *u, const struct lk_tensor *context,
                          const struct lk_tensor *keys) {
    return each(dev, u, make_keys, &(struct io){context, keys});
}

static enum lk_code make_times(struct lk_device *dev, const struct lk_unet_resnet *r,
                               const struct lk_unet_transformer *transformer, const void *context) {
    const struct io *io = context;
    const struct lk_tensor y = lk_tensor_cols(io->y, r->first_time, r->time_emb_proj.weight.shape[0]);
    (void)transformer;
    return lk_project(dev, &y, io->x, &r->time_emb_proj, LK_ACT_NONE);
}

/* a [1, E] = add_embedding(pooled, then the sinusoids of the six sizes). */
static enum lk_code embed_addition(struct lk_device *dev, const struct lk_unet *u, const struct lk_unet_times *in,
                                   const struct lk_tensor *a) {
    const int64_t dim = u->config.addition_time_embed_dim, n = LK_UNET_SIZE_IDS * dim;
    const size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor x;
    LK_TRY(LK_NEW(&dev->arena, &x, a->dtype, 1, u->config.pooled_dim + n));
    const struct lk_tensor pooled = lk_tensor_cols(&x, 0, u->config.pooled_dim);
    const struct lk_tensor sizes = lk_tensor_cols(&x, u->config.pooled_dim, n);
    float *host = lk_malloc((size_t)n * sizeof *host);
    if (!host) return lk_fail(LK_E_NOMEM, "size ids: out of memory");
    for (int i = 0; i < LK_UNET_SIZE_IDS; i++) {
        /* In the reference the ids have the dtype of the text. */
        const float id = a->dtype == LK_BF16 ? lk_round_bf16(in->ids[i]) : in->ids[i];
        lk_timestep_embedding(id, (int)dim, host + i * dim);
    }
    enum lk_code rc = lk_copy(dev, &(struct lk_copy){.y = &pooled, .x = in->pooled});
    if (!rc) rc = lk_upload_rounded(dev, &sizes, host);
    lk_free(host);
    if (!rc) rc = lk_embed(dev, a, &x, &u->add_embedding);
    lk_arena_release(&dev->arena, mark);
    return rc;
}

enum lk_code lk_unet_look_ahead(struct lk_device *dev, const struct lk_unet *u, const struct lk_unet_times *in) {
    struct lk_arena *arena = &dev->arena;
    const int64_t wide = u->time_embedding.linear_2.weight.shape[0];
    const enum lk_dtype dtype = in->times->dtype;
    const size_t mark = lk_arena_mark(arena);
    struct lk_tensor temb, added;
    LK_TRY(LK_NEW(arena, &temb, dtype, in->n_times, wide));
    LK_TRY(lk_embed_scalars(dev, &u->time_embedding, in->timesteps, 1.0f, &temb));
    if (u->config.addition_time_embed_dim) {
        LK_TRY(LK_NEW(arena, &added, dtype, 1, wide));
        LK_TRY(embed_addition(dev, u, in, &added));
    }
    for (int i = 0; i < in->n_times; i++) {
        struct lk_tensor row = lk_tensor_rows(&temb, i, 1);
        if (u->config.addition_time_embed_dim) LK_TRY(lk_add(dev, &(struct lk_add){.y = &row, .a = &row, .b = &added}));
        LK_TRY(lk_trace(dev, &row, "step.%d.%stemb", i, in->branch ? in->branch : ""));
    }
    LK_TRY(lk_activation(dev, &(struct lk_activation){.y = &temb, .x = &temb, .act = LK_ACT_SILU}));
    LK_TRY(each(dev, u, make_times, &(struct io){&temb, in->times}));
    lk_arena_release(arena, mark);
    return LK_OK;
}
