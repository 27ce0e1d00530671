/* Qwen2.5-VL: the vision tower. */
#include "models/text/qwen25_vl.h"

#include <math.h>

#include "engine/base/alloc.h"
#include "engine/rope_table.h"

#define EPS 1e-6f /* of every norm of the tower; not in the config */

/* One image. All rows between patch embedding and merger are in window order: merge blocks of a window after each
 * other, windows row by row, so that a window's attention reads consecutive rows. */
struct pass {
    struct lk_device *dev;
    const struct lk_qwen25_vl *m;
    const struct lk_vlm_image *image;
    int index;
    int64_t n, n_blocks; /* patches, merge blocks */
    int64_t unit;        /* patches of a merge block */
    int32_t *order;      /* host [n_blocks]: the block of the image that stands at i */
    int32_t *ends;       /* host [n_windows]: patches up to a window's end */
    int64_t n_windows;
    struct lk_tensor z;        /* [n, hidden]: residual stream */
    struct lk_tensor cos, sin; /* f32 [n, head_dim / 2] */
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void order_windows(struct pass *p) {
    const struct lk_qwen25_vl_vision_config *c = &p->m->config.vision;
    int64_t height = p->image->grid_h / c->spatial_merge_size, width = p->image->grid_w / c->spatial_merge_size;
    int64_t side = c->window_size / c->spatial_merge_size / c->patch_size, n = 0;
    for (int64_t top = 0; top < height; top += side) {
        for (int64_t left = 0; left < width; left += side) {
            for (int64_t y = top; y < least(top + side, height); y++)
                for (int64_t x = left; x < least(left + side, width); x++) p->order[n++] = (int32_t)(y * width + x);
            p->ends[p->n_windows++] = (int32_t)(n * p->unit);
        }
    }
}

/* How many blocks from position i on follow each other in the image too. */
static int64_t run_length(const struct pass *p, int64_t i) {
    int64_t n = 1;
    while (i + n < p->n_blocks && p->order[i + n] == p->order[i] + n) n++;
    return n;
}

static enum lk_code linear(const struct pass *p, const struct lk_tensor *y, const struct lk_tensor *x,
                           const struct lk_layer *l, enum lk_act act, const struct lk_tensor *residual) {
    struct lk_linear op = {.y = y, .x = x, .w = &l->weight, .bias = &l->bias, .act = act, .residual = residual};
    return lk_linear(p->dev, &op);
}

static enum lk_code rms_norm(const struct pass *p, const struct lk_tensor *y, const struct lk_tensor *w) {
    struct lk_rms_norm op = {.y = y, .x = &p->z, .w = w, .eps = EPS, .round_before_weight = true};
    return lk_rms_norm(p->dev, &op);
}

/* The convolution over patches has its stride equal to its kernel, so it is one matrix product. */
static enum lk_code embed_patches(struct pass *p) {
    struct lk_arena *arena = &p->dev->arena;
    const struct lk_tensor *conv = &p->m->patch_embed;
    int64_t hidden = p->m->config.vision.hidden_size, values = lk_tensor_row_numel(conv);
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor rows, x, w = LK_VIEW(conv, hidden, values);
    LK_TRY(LK_NEW(arena, &rows, LK_F32, p->n, values));
    for (int64_t i = 0, n; i < p->n_blocks && p->image->rows; i += n) {
        n = run_length(p, i);
        struct lk_tensor part = lk_tensor_rows(&rows, i * p->unit, n * p->unit);
        LK_TRY(lk_upload(p->dev, &part, p->image->rows + p->order[i] * p->unit * values));
    }
    LK_TRY(LK_NEW(arena, &x, p->z.dtype, p->n, values));
    LK_TRY(lk_copy(p->dev, &(struct lk_copy){.y = &x, .x = &rows}));
    LK_TRY(lk_linear(p->dev, &(struct lk_linear){.y = &p->z, .x = &x, .w = &w}));
    lk_arena_release(arena, mark);
    return lk_trace(p->dev, &p->z, "vision.%d.patch_embed", p->index);
}

/* (y, x) of every patch, in window order, into the rotation table. */
static enum lk_code make_rope(struct pass *p) {
    const struct lk_qwen25_vl_vision_config *c = &p->m->config.vision;
    int64_t merge = c->spatial_merge_size, width = p->image->grid_w / merge, half = c->hidden_size / c->num_heads / 2;
    LK_TRY(LK_NEW(&p->dev->arena, &p->cos, LK_F32, p->n, half));
    LK_TRY(LK_NEW(&p->dev->arena, &p->sin, LK_F32, p->n, half));
    int32_t *ids = lk_malloc(2 * (size_t)p->n * sizeof *ids);
    float *table = lk_malloc(2 * (size_t)(p->n * half) * sizeof *table);
    enum lk_code rc = ids && table ? LK_OK : lk_fail(LK_E_NOMEM, "text encoder: out of memory");
    if (!rc) {
        for (int64_t i = 0; i < p->n; i++) {
            int64_t block = p->order[i / p->unit], inner = i % p->unit;
            ids[2 * i] = (int32_t)(block / width * merge + inner / merge);
            ids[2 * i + 1] = (int32_t)(block % width * merge + inner % merge);
        }
        lk_rope_table_f32(ids, p->n, (int[]){(int)half, (int)half}, 2, LK_QWEN25_VL_VISION_THETA, table,
                          table + p->n * half);
        rc = lk_upload(p->dev, &p->cos, table);
        if (!rc) rc = lk_upload(p->dev, &p->sin, table + p->n * half);
    }
    lk_free(ids);
    lk_free(table);
    return rc;
}

static enum lk_code rope(const struct pass *p, const struct lk_tensor *x) {
    return lk_norm_rope(p->dev,
                        &(struct lk_norm_rope){.x = x, .cos = &p->cos, .sin = &p->sin, .pairing = LK_ROPE_HALF});
}

/* Patches see their window, or with `full` the whole image. */
static enum lk_code attention(const struct pass *p, const struct lk_tensor *out, const struct lk_tensor *qkv,
                              bool full) {
    const struct lk_qwen25_vl_vision_config *c = &p->m->config.vision;
    int64_t d = c->hidden_size, heads = c->num_heads, head_dim = d / heads;
    struct lk_tensor parts[3], all_out = LK_VIEW(out, p->n, heads, head_dim);
    for (int i = 0; i < 3; i++) {
        struct lk_tensor part = lk_tensor_cols(qkv, i * d, d);
        parts[i] = LK_VIEW(&part, p->n, heads, head_dim);
    }
    LK_TRY(rope(p, &parts[0]));
    LK_TRY(rope(p, &parts[1]));
    for (int64_t i = 0, first = 0, end; first < p->n; i++, first = end) {
        end = full ? p->n : p->ends[i];
        struct lk_tensor q = lk_tensor_rows(&parts[0], first, end - first);
        struct lk_tensor k = lk_tensor_rows(&parts[1], first, end - first);
        struct lk_tensor v = lk_tensor_rows(&parts[2], first, end - first);
        struct lk_tensor o = lk_tensor_rows(&all_out, first, end - first);
        float scale = 1.0f / sqrtf((float)head_dim);
        LK_TRY(lk_attention(p->dev, &(struct lk_attention){.out = &o, .q = &q, .k = &k, .v = &v, .scale = scale}));
    }
    return LK_OK;
}

/* z += proj(attention(norm1(z))); z += down(silu(gate(norm2(z))) * up(norm2(z))). */
static enum lk_code block(const struct pass *p, int i) {
    const struct lk_qwen25_vl_vision_block *l = &p->m->blocks[i];
    int64_t d = p->m->config.vision.hidden_size, f = p->m->config.vision.intermediate_size;
    struct lk_arena *arena = &p->dev->arena;
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor x, qkv, inner, activated;
    LK_TRY(LK_NEW(arena, &x, p->z.dtype, p->n, d));
    size_t inner_mark = lk_arena_mark(arena);
    LK_TRY(LK_NEW(arena, &qkv, p->z.dtype, p->n, 3 * d));
    LK_TRY(rms_norm(p, &x, &l->norm1));
    LK_TRY(linear(p, &qkv, &x, &l->qkv, LK_ACT_NONE, NULL));
    LK_TRY(attention(p, &x, &qkv, p->m->config.vision.full_attention[i]));
    LK_TRY(linear(p, &p->z, &x, &l->proj, LK_ACT_NONE, &p->z));
    lk_arena_release(arena, inner_mark);
    LK_TRY(LK_NEW(arena, &inner, p->z.dtype, p->n, 2 * f));
    LK_TRY(LK_NEW(arena, &activated, p->z.dtype, p->n, f));
    LK_TRY(rms_norm(p, &x, &l->norm2));
    struct lk_tensor gate = lk_tensor_cols(&inner, 0, f), up = lk_tensor_cols(&inner, f, f);
    LK_TRY(linear(p, &gate, &x, &l->gate_proj, LK_ACT_NONE, NULL));
    LK_TRY(linear(p, &up, &x, &l->up_proj, LK_ACT_NONE, NULL));
    LK_TRY(lk_gated_act(p->dev, &(struct lk_gated_act){.y = &activated, .x = &inner, .act = LK_ACT_SILU}));
    LK_TRY(linear(p, &p->z, &activated, &l->down_proj, LK_ACT_NONE, &p->z));
    lk_arena_release(arena, mark);
    return lk_trace(p->dev, &p->z, "vision.%d.block.%d", p->index, i);
}

/* The patches of a merge block become one token; tokens go back to the image's order. */
static enum lk_code merge(const struct pass *p, const struct lk_tensor *features) {
    struct lk_arena *arena = &p->dev->arena;
    int64_t d = p->m->config.vision.hidden_size;
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor x, h, tokens;
    LK_TRY(LK_NEW(arena, &x, p->z.dtype, p->n, d));
    LK_TRY(LK_NEW(arena, &h, p->z.dtype, p->n_blocks, p->unit * d));
    LK_TRY(LK_NEW(arena, &tokens, p->z.dtype, p->n_blocks, features->shape[1]));
    LK_TRY(rms_norm(p, &x, &p->m->merger.ln_q));
    struct lk_tensor blocks = LK_VIEW(&x, p->n_blocks, p->unit * d);
    LK_TRY(linear(p, &h, &blocks, &p->m->merger.mlp_0, LK_ACT_GELU_ERF, NULL));
    LK_TRY(linear(p, &tokens, &h, &p->m->merger.mlp_2, LK_ACT_NONE, NULL));
    for (int64_t i = 0, n; i < p->n_blocks; i += n) {
        n = run_length(p, i);
        struct lk_tensor from = lk_tensor_rows(&tokens, i, n), to = lk_tensor_rows(features, p->order[i], n);
        LK_TRY(lk_copy(p->dev, &(struct lk_copy){.y = &to, .x = &from}));
    }
    lk_arena_release(arena, mark);
    return lk_trace(p->dev, features, "vision.%d.features", p->index);
}

static enum lk_code forward(struct pass *p, const struct lk_tensor *features) {
    size_t mark = lk_arena_mark(&p->dev->arena);
    LK_TRY(LK_NEW(&p->dev->arena, &p->z, features->dtype, p->n, p->m->config.vision.hidden_size));
    LK_TRY(make_rope(p));
    LK_TRY(embed_patches(p));
    for (int i = 0; i < p->m->config.vision.depth; i++) LK_TRY(block(p, i));
    LK_TRY(merge(p, features));
    lk_arena_release(&p->dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_qwen25_vl_vision(struct lk_device *dev, const struct lk_qwen25_vl *m, const struct lk_vlm_image *image,
                                 int index, const struct lk_tensor *features) {
    int64_t merge_size = m->config.vision.spatial_merge_size, h = image->grid_h, w = image->grid_w;
    if (h < 1 || w < 1 || h % merge_size || w % merge_size || h * w > INT32_MAX / 2)
        return lk_fail(LK_E_INTERNAL, "text encoder: image %d: a grid of %lld x %lld patches, merged by %lld", index,
                       (long long)h, (long long)w, (long long)merge_size);
    struct pass p = {.dev = dev, .m = m, .image = image, .index = index};
    p.n = h * w;
    p.n_blocks = lk_qwen25_vl_image_tokens(&m->config, image);
    p.unit = merge_size * merge_size;
    p.order = lk_malloc((size_t)p.n_blocks * sizeof *p.order);
    p.ends = lk_malloc((size_t)p.n_blocks * sizeof *p.ends);
    enum lk_code rc = p.order && p.ends ? LK_OK : lk_fail(LK_E_NOMEM, "text encoder: out of memory");
    if (!rc) {
        order_windows(&p);
        rc = forward(&p, features);
    }
    lk_free(p.order);
    lk_free(p.ends);
    return rc;
}
