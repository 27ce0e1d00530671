#include "models/text/vlm.h"

#include "engine/base/alloc.h"
#include "engine/rope_table.h"

/* The features of image i, whose tokens begin at `at` of the prompt, to their rows of h. */
static enum lk_code insert_image(struct lk_device *dev, const struct lk_vlm_prompt *prompt, int64_t at, int64_t from,
                                 int64_t n, const struct lk_tensor *h) {
    struct lk_tensor y = lk_tensor_rows(h, at, n), x = lk_tensor_rows(prompt->features, from, n);
    return lk_copy(dev, &(struct lk_copy){.y = &y, .x = &x});
}

/* Rows of h at image tokens get the features of the images, run by run: a family may have other tokens between the rows
 * of an image. When planning, image tokens come first. */
static enum lk_code insert_features(struct lk_device *dev, const struct lk_vlm *m, const struct lk_vlm_prompt *prompt,
                                    int64_t first, const struct lk_tensor *h) {
    int64_t n_features = prompt->features ? prompt->features->shape[0] : 0, from = 0, n;
    if (!prompt->ids) return n_features ? insert_image(dev, prompt, 0, 0, n_features, h) : LK_OK;
    for (int64_t at = 0; at < prompt->n; at += n ? n : 1) {
        for (n = 0; at + n < prompt->n && prompt->ids[at + n] == m->image_token_id;) n++;
        if (n && at >= first) {
            if (from + n > n_features)
                return lk_fail(LK_E_INTERNAL, "prompt: more image tokens than the %lld rows of features",
                               (long long)n_features);
            LK_TRY(insert_image(dev, prompt, at - first, from, n, h));
            from += n;
        }
    }
    if (from == n_features) return LK_OK;
    return lk_fail(LK_E_INTERNAL, "prompt: %lld image tokens, expected %lld", (long long)from, (long long)n_features);
}

enum lk_code lk_vlm_embed(struct lk_device *dev, const struct lk_vlm *m, const struct lk_vlm_prompt *prompt,
                          int64_t first, const struct lk_tensor *h) {
    LK_TRY(lk_decoder_embed(dev, h, m->embed_tokens, prompt->ids ? prompt->ids + first : NULL));
    return insert_features(dev, m, prompt, first, h);
}

/* The rotation tables in the arena; positions NULL: planning, left empty. */
static enum lk_code make_rope(struct lk_device *dev, const struct lk_vlm *m, int64_t n, bool round_bf16,
                              const int32_t (*positions)[3], struct lk_tensor *cos, struct lk_tensor *sin) {
    int64_t half = m->head_dim / 2;
    LK_TRY(LK_NEW(&dev->arena, cos, LK_F32, n, half));
    LK_TRY(LK_NEW(&dev->arena, sin, LK_F32, n, half));
    if (!positions) return LK_OK;
    float *table = lk_malloc(2 * (size_t)(n * half) * sizeof *table);
    if (!table) return lk_fail(LK_E_NOMEM, "rope table: out of memory");
    lk_rope_table_mrope(positions[0], n, m->rope_sections, 3, (int)m->head_dim, m->rope_theta, round_bf16, table,
                        table + n * half);
    enum lk_code rc = lk_upload(dev, cos, table);
    if (!rc) rc = lk_upload(dev, sin, table + n * half);
    lk_free(table);
    return rc;
}

enum lk_code lk_vlm_layers(struct lk_device *dev, const struct lk_vlm *m, const struct lk_tensor *h,
                           const int32_t (*positions)[3], const struct lk_vlm_cache *cache,
                           const struct lk_decoder_rows *sequences, int n_sequences, const char *name) {
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor cos, sin;
    LK_TRY(make_rope(dev, m, h->shape[0], h->dtype == LK_BF16, positions, &cos, &sin));
    for (int64_t i = 0; i < m->n_layers; i++) {
        struct lk_decoder_layer layer;
        m->layer(m->model, i, &layer);
        struct lk_decoder_attention attention = {.h = h,
                                                 .norm = layer.input_norm,
                                                 .q = layer.q,
                                                 .k = layer.k,
                                                 .v = layer.v,
                                                 .o = layer.o,
                                                 .cos = &cos,
                                                 .sin = &sin,
                                                 .n_heads = m->n_heads,
                                                 .n_kv_heads = m->n_kv_heads,
                                                 .head_dim = m->head_dim,
                                                 .eps = m->eps,
                                                 .k_cache = cache ? &cache->k[i] : NULL,
                                                 .v_cache = cache ? &cache->v[i] : NULL,
                                                 .sequences = sequences,
                                                 .n_sequences = n_sequences};
        struct lk_decoder_mlp mlp = {
            .h = h, .norm = layer.post_norm, .gate = layer.gate, .up = layer.up, .down = layer.down, .eps = m->eps};
        if (name) LK_TRY(lk_trace(dev, h, "%s.text_encoder.hidden.%d", name, (int)i));
        LK_TRY(lk_decoder_attention(dev, &attention));
        LK_TRY(lk_decoder_mlp(dev, &mlp));
    }
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_vlm_logits(struct lk_device *dev, const struct lk_vlm *m, const struct lk_tensor *h,
                           const struct lk_tensor *logits) {
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor norm;
    LK_TRY(LK_NEW(&dev->arena, &norm, h->dtype, h->shape[0], m->hidden_size));
    LK_TRY(lk_decoder_norm(dev, &norm, h, m->norm, m->eps));
    LK_TRY(lk_linear(dev, &(struct lk_linear){.y = logits, .x = &norm, .w = m->lm_head}));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
