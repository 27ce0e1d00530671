/* Mistral-Small-3: the Pixtral vision tower and the projector into the language model. */
#include <math.h>

#include "engine/base/alloc.h"
#include "engine/rope_table.h"
#include "models/text/mistral3.h"

#define EPS 1e-5 /* of every norm of the tower; not in the config */

/* One image. */
struct pass {
    struct lk_device *dev;
    const struct lk_mistral3 *m;
    const struct lk_vlm_image *image;
    int index;
    int64_t n;                 /* patches, row by row */
    struct lk_tensor z;        /* [n, hidden]: residual stream */
    struct lk_tensor cos, sin; /* f32 [n, head_dim / 2] */
};

static enum lk_code linear(const struct pass *p, const struct lk_tensor *y, const struct lk_tensor *x,
                           const struct lk_tensor *w, const struct lk_tensor *residual) {
    return lk_linear(p->dev, &(struct lk_linear){.y = y, .x = x, .w = w, .residual = residual});
}

/* The convolution over patches has its stride equal to its kernel, so it is one matrix product. */
static enum lk_code embed_patches(struct pass *p) {
    struct lk_arena *arena = &p->dev->arena;
    const struct lk_tensor *conv = &p->m->patch_conv;
    int64_t values = lk_tensor_row_numel(conv);
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor rows, x, y, w = LK_VIEW(conv, conv->shape[0], values);
    LK_TRY(LK_NEW(arena, &rows, LK_F32, p->n, values));
    if (p->image->rows) LK_TRY(lk_upload(p->dev, &rows, p->image->rows));
    LK_TRY(LK_NEW(arena, &x, p->z.dtype, p->n, values));
    LK_TRY(LK_NEW(arena, &y, p->z.dtype, p->n, conv->shape[0]));
    LK_TRY(lk_copy(p->dev, &(struct lk_copy){.y = &x, .x = &rows}));
    LK_TRY(linear(p, &y, &x, &w, NULL));
    LK_TRY(lk_trace(p->dev, &y, "vision.%d.patch_conv", p->index));
    LK_TRY(lk_decoder_norm(p->dev, &p->z, &y, &p->m->ln_pre, EPS));
    lk_arena_release(arena, mark);
    return lk_trace(p->dev, &p->z, "vision.%d.ln_pre", p->index);
}

static enum lk_code make_rope(struct pass *p) {
    const struct lk_pixtral_config *c = &p->m->config.vision;
    int head_dim = (int)(c->hidden_size / c->num_attention_heads);
    int64_t half = head_dim / 2;
    LK_TRY(LK_NEW(&p->dev->arena, &p->cos, LK_F32, p->n, half));
    LK_TRY(LK_NEW(&p->dev->arena, &p->sin, LK_F32, p->n, half));
    if (!p->image->rows) return LK_OK;
    float *table = lk_malloc(2 * (size_t)(p->n * half) * sizeof *table);
    if (!table) return lk_fail(LK_E_NOMEM, "image: out of memory");
    lk_rope_table_grid(p->image->grid_h, p->image->grid_w, head_dim, c->rope_theta, p->z.dtype == LK_BF16, table,
                       table + p->n * half);
    enum lk_code rc = lk_upload(p->dev, &p->cos, table);
    if (!rc) rc = lk_upload(p->dev, &p->sin, table + p->n * half);
    lk_free(table);
    return rc;
}

static enum lk_code rotate(const struct pass *p, const struct lk_tensor *x) {
    struct lk_norm_rope rope = {
        .x = x, .cos = &p->cos, .sin = &p->sin, .pairing = LK_ROPE_HALF, .round_products = true};
    return lk_norm_rope(p->dev, &rope);
}

/* z += o(attention(rope(q), rope(k), v)): every patch sees the whole image and no other. */
static enum lk_code attend(const struct pass *p, const struct lk_pixtral_layer *l) {
    const struct lk_pixtral_config *c = &p->m->config.vision;
    struct lk_arena *arena = &p->dev->arena;
    int64_t d = c->hidden_size, heads = c->num_attention_heads, head_dim = d / heads;
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor x, q, k, v;
    LK_TRY(LK_NEW(arena, &x, p->z.dtype, p->n, d));
    LK_TRY(LK_NEW(arena, &q, p->z.dtype, p->n, d));
    LK_TRY(LK_NEW(arena, &k, p->z.dtype, p->n, d));
    LK_TRY(LK_NEW(arena, &v, p->z.dtype, p->n, d));
    LK_TRY(lk_decoder_norm(p->dev, &x, &p->z, &l->attention_norm, EPS));
    LK_TRY(linear(p, &q, &x, &l->q_proj, NULL));
    LK_TRY(linear(p, &k, &x, &l->k_proj, NULL));
    LK_TRY(linear(p, &v, &x, &l->v_proj, NULL));
    struct lk_tensor q3 = LK_VIEW(&q, p->n, heads, head_dim), k3 = LK_VIEW(&k, p->n, heads, head_dim);
    struct lk_tensor v3 = LK_VIEW(&v, p->n, heads, head_dim), out = LK_VIEW(&x, p->n, heads, head_dim);
    LK_TRY(rotate(p, &q3));
    LK_TRY(rotate(p, &k3));
    float scale = 1.0f / sqrtf((float)head_dim);
    LK_TRY(lk_attention(p->dev, &(struct lk_attention){.out = &out, .q = &q3, .k = &k3, .v = &v3, .scale = scale}));
    LK_TRY(linear(p, &p->z, &x, &l->o_proj, &p->z));
    lk_arena_release(arena, mark);
    return LK_OK;
}

/* z += down(act(gate(n)) * up(n)). */
static enum lk_code feed_forward(const struct pass *p, const struct lk_pixtral_layer *l) {
    const struct lk_pixtral_config *c = &p->m->config.vision;
    struct lk_arena *arena = &p->dev->arena;
    int64_t f = c->intermediate_size;
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor x, u, g;
    LK_TRY(LK_NEW(arena, &x, p->z.dtype, p->n, c->hidden_size));
    LK_TRY(LK_NEW(arena, &u, p->z.dtype, p->n, 2 * f));
    LK_TRY(LK_NEW(arena, &g, p->z.dtype, p->n, f));
    LK_TRY(lk_decoder_norm(p->dev, &x, &p->z, &l->ffn_norm, EPS));
    struct lk_tensor gate = lk_tensor_cols(&u, 0, f), up = lk_tensor_cols(&u, f, f);
    LK_TRY(linear(p, &gate, &x, &l->gate_proj, NULL));
    LK_TRY(linear(p, &up, &x, &l->up_proj, NULL));
    LK_TRY(lk_gated_act(p->dev, &(struct lk_gated_act){.y = &g, .x = &u, .act = c->hidden_act}));
    LK_TRY(linear(p, &p->z, &g, &l->down_proj, &p->z));
    lk_arena_release(arena, mark);
    return LK_OK;
}

/* Squares of four patches become one token, channel slowest: 4 c + 2 dy + dx, as torch's unfold gives it. */
static enum lk_code project(const struct pass *p, const struct lk_tensor *features) {
    struct lk_arena *arena = &p->dev->arena;
    int64_t d = p->m->config.vision.hidden_size, n = features->shape[0];
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor x, merged, y, inner;
    LK_TRY(LK_NEW(arena, &x, p->z.dtype, p->n, d));
    LK_TRY(LK_NEW(arena, &merged, p->z.dtype, n, 4 * d));
    LK_TRY(LK_NEW(arena, &y, p->z.dtype, n, d));
    LK_TRY(LK_NEW(arena, &inner, p->z.dtype, n, features->shape[1]));
    LK_TRY(lk_decoder_norm(p->dev, &x, &p->z, &p->m->projector.norm, p->m->config.text.rms_norm_eps));
    struct lk_tensor grid = LK_VIEW(&x, p->image->grid_h, p->image->grid_w, d);
    LK_TRY(lk_pack_latents(p->dev, &(struct lk_pack_latents){.tokens = &merged, .latents = &grid}));
    LK_TRY(linear(p, &y, &merged, &p->m->projector.merging_layer, NULL));
    LK_TRY(lk_trace(p->dev, &y, "vision.%d.merged", p->index));
    LK_TRY(lk_project(p->dev, &inner, &y, &p->m->projector.linear_1, LK_ACT_GELU_ERF));
    LK_TRY(lk_project(p->dev, features, &inner, &p->m->projector.linear_2, LK_ACT_NONE));
    lk_arena_release(arena, mark);
    return lk_trace(p->dev, features, "vision.%d.features", p->index);
}

enum lk_code lk_mistral3_vision(struct lk_device *dev, const struct lk_mistral3 *m, const struct lk_vlm_image *image,
                                int index, const struct lk_tensor *features) {
    struct pass p = {.dev = dev, .m = m, .image = image, .index = index};
    size_t mark = lk_arena_mark(&dev->arena);
    if (image->grid_h < 1 || image->grid_w < 1 || image->grid_h % LK_MISTRAL3_MERGE ||
        image->grid_w % LK_MISTRAL3_MERGE)
        return lk_fail(LK_E_INTERNAL, "image %d: a grid of %d x %d patches, merged by %d", index, image->grid_h,
                       image->grid_w, LK_MISTRAL3_MERGE);
    p.n = (int64_t)image->grid_h * image->grid_w;
    LK_TRY(LK_NEW(&dev->arena, &p.z, features->dtype, p.n, m->config.vision.hidden_size));
    LK_TRY(make_rope(&p));
    LK_TRY(embed_patches(&p));
    for (int64_t i = 0; i < m->config.vision.num_hidden_layers; i++) {
        LK_TRY(attend(&p, &m->layers[i]));
        LK_TRY(feed_forward(&p, &m->layers[i]));
        LK_TRY(lk_trace(dev, &p.z, "vision.%d.layer.%d", index, (int)i));
    }
    LK_TRY(project(&p, features));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
