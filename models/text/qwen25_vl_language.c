#include "models/text/qwen25_vl_language.h"

#include "engine/base/alloc.h"
#include "engine/rope_table.h"
#include "models/text/decoder.h"

#define AXES 3

int64_t lk_qwen25_vl_image_tokens(const struct lk_qwen25_vl_config *config, const struct lk_qwen25_vl_image *image) {
    int64_t merge = config->vision.spatial_merge_size;
    return image->grid_h / merge * (image->grid_w / merge);
}

/* The tokens of one image from `at`, which must all be there. */
static enum lk_code place_image(const struct lk_qwen25_vl_config *config, const struct lk_qwen25_vl_prompt *prompt,
                                int image, int64_t at, int32_t (*positions)[AXES], int32_t *counter) {
    const struct lk_qwen25_vl_image *g = &prompt->images[image];
    int32_t merge = (int32_t)config->vision.spatial_merge_size, w = g->grid_w / merge, h = g->grid_h / merge;
    int64_t n = lk_qwen25_vl_image_tokens(config, g);
    for (int64_t i = 0; i < n; i++) {
        if (at + i == prompt->n || prompt->ids[at + i] != config->image_token_id)
            return lk_fail(LK_E_INTERNAL, "prompt: image %d has %lld tokens, expected %lld", image + 1, (long long)i,
                           (long long)n);
        positions[at + i][0] = *counter;
        positions[at + i][1] = *counter + (int32_t)(i / w);
        positions[at + i][2] = *counter + (int32_t)(i % w);
    }
    *counter += h > w ? h : w;
    return LK_OK;
}

enum lk_code lk_qwen25_vl_positions(const struct lk_qwen25_vl_config *config, const struct lk_qwen25_vl_prompt *prompt,
                                    int32_t (*positions)[AXES], int32_t *next) {
    int image = 0;
    int32_t counter = 0;
    for (int64_t i = 0; i < prompt->n; i++) {
        if (prompt->ids[i] == config->image_token_id) {
            if (image == prompt->n_images)
                return lk_fail(LK_E_INTERNAL, "prompt: image token at %lld, after the last of %d images", (long long)i,
                               prompt->n_images);
            LK_TRY(place_image(config, prompt, image, i, positions, &counter));
            i += lk_qwen25_vl_image_tokens(config, &prompt->images[image++]) - 1;
        } else {
            int32_t position = prompt->ids[i] == prompt->uncounted_id ? 1 : counter++;
            for (int axis = 0; axis < AXES; axis++) positions[i][axis] = position;
        }
    }
    if (image < prompt->n_images)
        return lk_fail(LK_E_INTERNAL, "prompt: tokens of %d images, expected %d", image, prompt->n_images);
    *next = counter;
    return LK_OK;
}

/* Some tokens on their way through the layers. */
struct pass {
    struct lk_device *dev;
    const struct lk_qwen25_vl *m;
    const char *name;                 /* of the traces, NULL: none */
    struct lk_tensor h;               /* [n, hidden] */
    struct lk_tensor cos, sin;        /* [n, head_dim / 2] */
    struct lk_qwen25_vl_cache *cache; /* NULL: none */
};

static enum lk_code upload_rope(const struct pass *p, const int32_t (*positions)[AXES]) {
    const struct lk_qwen25_vl_config *c = &p->m->config;
    int64_t n = p->h.shape[0], half = c->head_dim / 2;
    float *table = lk_malloc(2 * (size_t)(n * half) * sizeof *table);
    if (!table) return lk_fail(LK_E_NOMEM, "rope table: out of memory");
    lk_rope_table_mrope(positions[0], n, c->mrope_section, AXES, (int)c->head_dim, c->rope_theta, p->h.dtype == LK_BF16,
                        table, table + n * half);
    enum lk_code rc = lk_upload(p->dev, &p->cos, table);
    if (!rc) rc = lk_upload(p->dev, &p->sin, table + n * half);
    lk_free(table);
    return rc;
}

/* The rotation tables in the arena; positions NULL: planning, left empty. */
static enum lk_code make_rope(struct pass *p, const int32_t (*positions)[AXES]) {
    int64_t n = p->h.shape[0], half = p->m->config.head_dim / 2;
    LK_TRY(LK_NEW(&p->dev->arena, &p->cos, LK_F32, n, half));
    LK_TRY(LK_NEW(&p->dev->arena, &p->sin, LK_F32, n, half));
    return positions ? upload_rope(p, positions) : LK_OK;
}

static enum lk_code layer(const struct pass *p, int64_t i) {
    const struct lk_qwen25_vl_config *c = &p->m->config;
    const struct lk_qwen25_vl_layer *l = &p->m->layers[i];
    struct lk_decoder_attention attention = {.h = &p->h,
                                             .norm = &l->input_layernorm,
                                             .q = {&l->q_proj.weight, &l->q_proj.bias},
                                             .k = {&l->k_proj.weight, &l->k_proj.bias},
                                             .v = {&l->v_proj.weight, &l->v_proj.bias},
                                             .o = {&l->o_proj, NULL},
                                             .cos = &p->cos,
                                             .sin = &p->sin,
                                             .n_heads = c->num_attention_heads,
                                             .n_kv_heads = c->num_key_value_heads,
                                             .head_dim = c->head_dim,
                                             .eps = c->rms_norm_eps,
                                             .k_cache = p->cache ? &p->cache->k[i] : NULL,
                                             .v_cache = p->cache ? &p->cache->v[i] : NULL,
                                             .n_past = p->cache ? p->cache->n : 0};
    struct lk_decoder_mlp mlp = {.h = &p->h,
                                 .norm = &l->post_attention_layernorm,
                                 .gate = &l->gate_proj,
                                 .up = &l->up_proj,
                                 .down = &l->down_proj,
                                 .eps = c->rms_norm_eps};
    LK_TRY(lk_decoder_attention(p->dev, &attention));
    return lk_decoder_mlp(p->dev, &mlp);
}

static enum lk_code trace(const struct pass *p, int64_t n_layers) {
    if (!p->name) return LK_OK;
    return lk_trace(p->dev, &p->h, "%s.text_encoder.hidden.%d", p->name, (int)n_layers);
}

/* All layers over h; the last one's state is left for the caller to trace. */
static enum lk_code layers(const struct pass *p) {
    for (int64_t i = 0; i < p->m->config.num_hidden_layers; i++) {
        LK_TRY(trace(p, i));
        LK_TRY(layer(p, i));
    }
    if (p->cache) p->cache->n += p->h.shape[0];
    return LK_OK;
}

/* Rows of h at image tokens get the features of the images. When planning, image tokens come first. */
static enum lk_code insert_features(const struct pass *p, const struct lk_qwen25_vl_prompt *prompt) {
    int64_t from = 0, at = 0;
    for (int i = 0; i < prompt->n_images; i++) {
        int64_t n = lk_qwen25_vl_image_tokens(&p->m->config, &prompt->images[i]);
        while (prompt->ids && prompt->ids[at] != p->m->config.image_token_id) at++;
        struct lk_tensor y = lk_tensor_rows(&p->h, at, n), x = lk_tensor_rows(prompt->features, from, n);
        LK_TRY(lk_copy(p->dev, &(struct lk_copy){.y = &y, .x = &x}));
        from += n;
        at += n;
    }
    return LK_OK;
}

/* Embeddings and layers of a whole prompt. */
static enum lk_code run_prompt(struct pass *p, const struct lk_qwen25_vl_prompt *prompt,
                               const struct lk_tensor *embeds) {
    int32_t(*positions)[AXES] = NULL, next;
    enum lk_code rc = LK_OK;
    if (prompt->ids) {
        positions = lk_malloc((size_t)prompt->n * sizeof *positions);
        if (!positions) return lk_fail(LK_E_NOMEM, "positions: out of memory");
        rc = lk_qwen25_vl_positions(&p->m->config, prompt, positions, &next);
    }
    if (!rc) rc = make_rope(p, (const int32_t(*)[AXES])positions);
    lk_free(positions);
    if (rc) return rc;
    LK_TRY(lk_decoder_embed(p->dev, &p->h, &p->m->embed_tokens, prompt->ids));
    LK_TRY(insert_features(p, prompt));
    if (embeds) LK_TRY(lk_copy(p->dev, &(struct lk_copy){.y = embeds, .x = &p->h}));
    return layers(p);
}

enum lk_code lk_qwen25_vl_hidden_states(struct lk_device *dev, const struct lk_qwen25_vl *m,
                                        const struct lk_qwen25_vl_prompt *prompt, const struct lk_tensor *hidden,
                                        const struct lk_tensor *embeds) {
    size_t mark = lk_arena_mark(&dev->arena);
    struct pass p = {.dev = dev, .m = m, .name = prompt->name, .h = *hidden};
    LK_TRY(run_prompt(&p, prompt, embeds));
    LK_TRY(lk_decoder_norm(dev, hidden, hidden, &m->norm, m->config.rms_norm_eps));
    LK_TRY(trace(&p, m->config.num_hidden_layers));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_qwen25_vl_prefill(struct lk_device *dev, const struct lk_qwen25_vl *m,
                                  const struct lk_qwen25_vl_prompt *prompt, struct lk_qwen25_vl_cache *cache,
                                  const struct lk_tensor *h) {
    size_t mark = lk_arena_mark(&dev->arena);
    struct pass p = {.dev = dev, .m = m, .name = prompt->name, .h = *h, .cache = cache};
    cache->n = 0;
    LK_TRY(run_prompt(&p, prompt, NULL));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_qwen25_vl_decode(struct lk_device *dev, const struct lk_qwen25_vl *m, int32_t id, int32_t position,
                                 struct lk_qwen25_vl_cache *cache, const struct lk_tensor *h) {
    const int32_t positions[1][AXES] = {{position, position, position}};
    size_t mark = lk_arena_mark(&dev->arena);
    struct pass p = {.dev = dev, .m = m, .h = *h, .cache = cache};
    LK_TRY(make_rope(&p, positions));
    LK_TRY(lk_decoder_embed(p.dev, &p.h, &m->embed_tokens, &id));
    LK_TRY(layers(&p));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_qwen25_vl_logits(struct lk_device *dev, const struct lk_qwen25_vl *m, const struct lk_tensor *h,
                                 const struct lk_tensor *logits) {
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor norm;
    LK_TRY(LK_NEW(&dev->arena, &norm, h->dtype, 1, m->config.hidden_size));
    LK_TRY(lk_decoder_norm(dev, &norm, h, &m->norm, m->config.rms_norm_eps));
    LK_TRY(lk_linear(dev, &(struct lk_linear){.y = logits, .x = &norm, .w = &m->lm_head}));
    lk_arena_release(&dev->arena, mark);
    return LK_OK;
}
