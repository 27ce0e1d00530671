/* Step1X-Edit's connector: a mean of the text that joins the time embedding, and a few gated transformer blocks over
 * the text's tokens. */
#include <math.h>

#include "models/step1x/transformer.h"

#define NORM_EPS 1e-6f

static enum lk_code norm(struct lk_device *dev, const struct lk_tensor *y, const struct lk_tensor *x,
                         const struct lk_layer *w) {
    struct lk_layer_norm op = {.y = y, .x = x, .weight = &w->weight, .bias = &w->bias, .eps = NORM_EPS};
    return lk_layer_norm(dev, &op);
}

/* h += gate * proj(attention(norm1(h))): no rotation, no norm of q and k. */
static enum lk_code attend(struct lk_device *dev, const struct lk_tensor *h, const struct lk_step1x_refiner_block *w,
                           int64_t n_heads, const struct lk_tensor *gate) {
    int64_t n = h->shape[0], c = h->shape[1], head_dim = c / n_heads;
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor u, qkv, parts[3]; /* u: the norm's output, then the attention's */
    LK_TRY(LK_NEW(&dev->arena, &u, h->dtype, n, c));
    LK_TRY(LK_NEW(&dev->arena, &qkv, h->dtype, n, 3 * c));
    LK_TRY(norm(dev, &u, h, &w->norm1));
    LK_TRY(lk_project(dev, &qkv, &u, &w->self_attn_qkv, LK_ACT_NONE));
    for (int i = 0; i < 3; i++) {
        struct lk_tensor part = lk_tensor_cols(&qkv, i * c, c);
        parts[i] = LK_VIEW(&part, n, n_heads, head_dim);
    }
    struct lk_tensor out = LK_VIEW(&u, n, n_heads, head_dim);
    struct lk_attention op = {.out = &out, .q = &parts[0], .k = &parts[1], .v = &parts[2]};
    op.scale = 1.0f / sqrtf((float)head_dim);
    LK_TRY(lk_attention(dev, &op));
    LK_TRY(lk_project_onto(dev, h, &u, &w->self_attn_proj, gate));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

/* h += gate * fc2(silu(fc1(norm2(h)))). */
static enum lk_code feed_forward(struct lk_device *dev, const struct lk_tensor *h,
                                 const struct lk_step1x_refiner_block *w, const struct lk_tensor *gate) {
    int64_t n = h->shape[0];
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor u, inner;
    LK_TRY(LK_NEW(&dev->arena, &u, h->dtype, n, h->shape[1]));
    LK_TRY(LK_NEW(&dev->arena, &inner, h->dtype, n, w->mlp_fc1.weight.shape[0]));
    LK_TRY(norm(dev, &u, h, &w->norm2));
    LK_TRY(lk_project(dev, &inner, &u, &w->mlp_fc1, LK_ACT_SILU));
    LK_TRY(lk_project_onto(dev, h, &inner, &w->mlp_fc2, gate));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

/* silu(t_embedder(sinusoids) + c_embedder(mean)), which all blocks' gates are made of. */
static enum lk_code make_silu_c(struct lk_device *dev, const struct lk_step1x_connector *w,
                                const struct lk_tensor *sinusoids, const struct lk_tensor *mean,
                                const struct lk_tensor *silu_c) {
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor time;
    LK_TRY(LK_NEW(&dev->arena, &time, silu_c->dtype, 1, silu_c->shape[1]));
    LK_TRY(lk_embed(dev, &time, sinusoids, &w->t_embedder));
    LK_TRY(lk_embed(dev, silu_c, mean, &w->c_embedder));
    LK_TRY(lk_add(dev, &(struct lk_add){.y = silu_c, .a = &time, .b = silu_c}));
    lk_arena_release(&dev->arena, mark);
    return lk_activation(dev, &(struct lk_activation){.y = silu_c, .x = silu_c, .act = LK_ACT_SILU});
}

enum lk_code lk_step1x_connect(struct lk_device *dev, const struct lk_step1x_transformer *t,
                               const struct lk_tensor *hidden, const struct lk_tensor *sinusoids,
                               const struct lk_tensor *refined) {
    const struct lk_step1x_connector *w = &t->connector;
    int64_t c = t->config.connector_hidden_size;
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor mean, silu_c, gates;
    LK_TRY(LK_NEW(&dev->arena, &mean, hidden->dtype, 1, hidden->shape[1]));
    LK_TRY(LK_NEW(&dev->arena, &silu_c, hidden->dtype, 1, c));
    LK_TRY(LK_NEW(&dev->arena, &gates, hidden->dtype, 1, 2 * c));
    LK_TRY(lk_mean_rows(dev, &(struct lk_mean_rows){.y = &mean, .x = hidden}));
    LK_TRY(make_silu_c(dev, w, sinusoids, &mean, &silu_c));
    LK_TRY(lk_project(dev, refined, hidden, &w->input_embedder, LK_ACT_NONE));
    for (int i = 0; i < t->config.connector_depth; i++) {
        LK_TRY(lk_project(dev, &gates, &silu_c, &w->blocks[i].adaln_modulation, LK_ACT_NONE));
        struct lk_tensor attention = lk_tensor_cols(&gates, 0, c), mlp = lk_tensor_cols(&gates, c, c);
        attention = LK_VIEW(&attention, c);
        mlp = LK_VIEW(&mlp, c);
        LK_TRY(attend(dev, refined, &w->blocks[i], t->config.connector_heads_num, &attention));
        LK_TRY(feed_forward(dev, refined, &w->blocks[i], &mlp));
    }
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_step1x_pool(struct lk_device *dev, const struct lk_step1x_transformer *t,
                            const struct lk_tensor *hidden, const struct lk_tensor *pooled) {
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor mean;
    LK_TRY(LK_NEW(&dev->arena, &mean, hidden->dtype, 1, hidden->shape[1]));
    LK_TRY(lk_mean_rows(dev, &(struct lk_mean_rows){.y = &mean, .x = hidden}));
    LK_TRY(lk_project(dev, pooled, &mean, &t->connector.global_proj_out, LK_ACT_NONE));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
