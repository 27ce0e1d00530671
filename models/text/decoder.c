#include "models/text/decoder.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"

enum lk_code lk_decoder_norm(struct lk_device *dev, const struct lk_tensor *y, const struct lk_tensor *x,
                             const struct lk_tensor *weight, double eps) {
    return lk_rms_norm(
        dev, &(struct lk_rms_norm){.y = y, .x = x, .w = weight, .eps = (float)eps, .round_before_weight = true});
}

static enum lk_code project(struct lk_device *dev, const struct lk_tensor *y, const struct lk_tensor *x,
                            const struct lk_projection *p, const struct lk_tensor *residual) {
    return lk_linear(dev, &(struct lk_linear){.y = y, .x = x, .w = p->weight, .bias = p->bias, .residual = residual});
}

static enum lk_code rotate(struct lk_device *dev, const struct lk_decoder_attention *op, const struct lk_tensor *x) {
    struct lk_norm_rope rope = {
        .x = x, .cos = op->cos, .sin = op->sin, .pairing = LK_ROPE_HALF, .round_products = true};
    return lk_norm_rope(dev, &rope);
}

/* Rows [from, from + n) of keys or values to the end of a sequence's part of the cache; *all gets what is there then.
 */
static enum lk_code keep(struct lk_device *dev, const struct lk_decoder_rows *s, const struct lk_tensor *cache,
                         const struct lk_tensor *rows, int64_t from, struct lk_tensor *all) {
    struct lk_tensor y = lk_tensor_rows(cache, s->first + s->n_past, s->n), x = lk_tensor_rows(rows, from, s->n);
    if (s->n_past + s->n > s->capacity || s->first + s->capacity > cache->shape[0])
        return lk_fail(LK_E_INTERNAL, "decoder: %lld rows after %lld do not fit a cache of %lld", (long long)s->n,
                       (long long)s->n_past, (long long)s->capacity);
    *all = lk_tensor_rows(cache, s->first, s->n_past + s->n);
    return lk_copy(dev, &(struct lk_copy){.y = &y, .x = &x});
}

static enum lk_code attend(struct lk_device *dev, const struct lk_decoder_attention *op, const struct lk_tensor *out,
                           const struct lk_tensor *q, const struct lk_tensor *k, const struct lk_tensor *v) {
    struct lk_attention attention = {
        .out = out, .q = q, .k = k, .v = v, .scale = 1.0f / sqrtf((float)op->head_dim), .causal = true};
    return lk_attention(dev, &attention);
}

/* Sequence by sequence, each with its own length: rows of q, k, v follow each other. */
static enum lk_code attend_cached(struct lk_device *dev, const struct lk_decoder_attention *op,
                                  const struct lk_tensor *out, const struct lk_tensor *q, const struct lk_tensor *k,
                                  const struct lk_tensor *v) {
    int64_t from = 0;
    for (int i = 0; i < op->n_sequences; i++) {
        const struct lk_decoder_rows *s = &op->sequences[i];
        struct lk_tensor keys, values;
        LK_TRY(keep(dev, s, op->k_cache, k, from, &keys));
        LK_TRY(keep(dev, s, op->v_cache, v, from, &values));
        struct lk_tensor rows = lk_tensor_rows(q, from, s->n), to = lk_tensor_rows(out, from, s->n);
        LK_TRY(attend(dev, op, &to, &rows, &keys, &values));
        from += s->n;
    }
    return LK_OK;
}

enum lk_code lk_decoder_attention(struct lk_device *dev, const struct lk_decoder_attention *op) {
    struct lk_arena *arena = &dev->arena;
    int64_t n = op->h->shape[0], heads = op->n_heads, kv_heads = op->n_kv_heads, hd = op->head_dim;
    enum lk_dtype dtype = op->h->dtype;
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor norm, q, k, v, out;
    LK_TRY(LK_NEW(arena, &norm, dtype, n, op->h->shape[1]));
    LK_TRY(LK_NEW(arena, &q, dtype, n, heads * hd));
    LK_TRY(LK_NEW(arena, &k, dtype, n, kv_heads * hd));
    LK_TRY(LK_NEW(arena, &v, dtype, n, kv_heads * hd));
    LK_TRY(LK_NEW(arena, &out, dtype, n, heads * hd));
    LK_TRY(lk_decoder_norm(dev, &norm, op->h, op->norm, op->eps));
    LK_TRY(project(dev, &q, &norm, &op->q, NULL));
    LK_TRY(project(dev, &k, &norm, &op->k, NULL));
    LK_TRY(project(dev, &v, &norm, &op->v, NULL));
    struct lk_tensor q3 = LK_VIEW(&q, n, heads, hd), out3 = LK_VIEW(&out, n, heads, hd);
    struct lk_tensor k3 = LK_VIEW(&k, n, kv_heads, hd), v3 = LK_VIEW(&v, n, kv_heads, hd);
    LK_TRY(rotate(dev, op, &q3));
    LK_TRY(rotate(dev, op, &k3));
    if (op->k_cache)
        LK_TRY(attend_cached(dev, op, &out3, &q3, &k3, &v3));
    else
        LK_TRY(attend(dev, op, &out3, &q3, &k3, &v3));
    LK_TRY(project(dev, op->h, &out, &op->o, op->h));
    lk_arena_release(arena, mark);
    return LK_OK;
}

enum lk_code lk_decoder_mlp(struct lk_device *dev, const struct lk_decoder_mlp *op) {
    struct lk_arena *arena = &dev->arena;
    int64_t n = op->h->shape[0], f = op->gate->shape[0];
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor norm, u, g;
    LK_TRY(LK_NEW(arena, &norm, op->h->dtype, n, op->h->shape[1]));
    LK_TRY(LK_NEW(arena, &u, op->h->dtype, n, 2 * f));
    LK_TRY(LK_NEW(arena, &g, op->h->dtype, n, f));
    LK_TRY(lk_decoder_norm(dev, &norm, op->h, op->norm, op->eps));
    struct lk_tensor gate = lk_tensor_cols(&u, 0, f), up = lk_tensor_cols(&u, f, f);
    LK_TRY(project(dev, &gate, &norm, &(struct lk_projection){op->gate, NULL}, NULL));
    LK_TRY(project(dev, &up, &norm, &(struct lk_projection){op->up, NULL}, NULL));
    LK_TRY(lk_gated_act(dev, &(struct lk_gated_act){.y = &g, .x = &u, .act = LK_ACT_SILU}));
    LK_TRY(project(dev, op->h, &g, &(struct lk_projection){op->down, NULL}, op->h));
    lk_arena_release(arena, mark);
    return LK_OK;
}

/* Rows ids[0..n) of the table, one after the other, in memory of their own. */
static enum lk_code gather(const struct lk_tensor *table, const int32_t *ids, int64_t n, unsigned char **out) {
    size_t bytes = (size_t)table->shape[1] * lk_dtype_size(table->dtype);
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= table->shape[0])
            return lk_fail(LK_E_INTERNAL, "embedding: ids[%lld]: expected 0 to %lld, got %d", (long long)i,
                           (long long)table->shape[0] - 1, (int)ids[i]);
    *out = lk_malloc((size_t)n * bytes);
    if (!*out) return lk_fail(LK_E_NOMEM, "embedding: out of memory");
    for (int64_t i = 0; i < n; i++)
        memcpy(*out + (size_t)i * bytes, (const unsigned char *)table->data + (size_t)ids[i] * bytes, bytes);
    return LK_OK;
}

enum lk_code lk_decoder_embed(struct lk_device *dev, const struct lk_tensor *y, const struct lk_tensor *table,
                              const int32_t *ids) {
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor rows;
    LK_TRY(LK_NEW(&dev->arena, &rows, table->dtype, y->shape[0], y->shape[1]));
    if (dev->kind != LK_DEVICE_PLAN) {
        unsigned char *host;
        LK_TRY(gather(table, ids, y->shape[0], &host));
        enum lk_code rc = lk_upload(dev, &rows, host);
        lk_free(host);
        if (rc) return rc;
    }
    LK_TRY(lk_copy(dev, &(struct lk_copy){.y = y, .x = &rows}));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
