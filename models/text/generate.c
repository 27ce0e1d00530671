#include "models/text/generate.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "models/text/qwen25_vl_language.h"
#include "models/text/sampler.h"
#include "weights/mapped_file.h"

struct run {
    struct lk_device *dev;
    const struct lk_qwen25_vl *m;
    const struct lk_generate_request *request;
    struct lk_generation *out; /* NULL when planning */
    int64_t n_new;             /* at most */
    int64_t delta;             /* position of a generated token less the rows before it */
    struct lk_qwen25_vl_cache cache;
    struct lk_tensor row;    /* [1, hidden]: the last token's state */
    struct lk_tensor logits; /* [1, vocab] */
    struct lk_sampler sampler;
    float *host_logits; /* [vocab] */
};

int64_t lk_generate_limit(const struct lk_generation_config *config, int64_t n_prompt) {
    if (config->max_new_tokens) return config->max_new_tokens;
    if (!config->max_length) return LK_DEFAULT_NEW_TOKENS;
    return config->max_length > n_prompt ? config->max_length - n_prompt : 1;
}

static bool planning(const struct run *r) { return r->dev->kind == LK_DEVICE_PLAN; }

static enum lk_code allocate(struct run *r) {
    const struct lk_qwen25_vl_config *c = &r->m->config;
    struct lk_arena *arena = &r->dev->arena;
    enum lk_dtype dtype = r->row.dtype;
    int64_t capacity = r->request->n_ids + r->n_new;
    for (int64_t i = 0; i < c->num_hidden_layers; i++) {
        LK_TRY(LK_NEW(arena, &r->cache.k[i], dtype, capacity, c->num_key_value_heads, c->head_dim));
        LK_TRY(LK_NEW(arena, &r->cache.v[i], dtype, capacity, c->num_key_value_heads, c->head_dim));
    }
    LK_TRY(LK_NEW(arena, &r->row, dtype, 1, c->hidden_size));
    return LK_NEW(arena, &r->logits, dtype, 1, c->vocab_size);
}

/* Features of all images, in the arena. */
static enum lk_code see_images(const struct run *r, struct lk_tensor *features) {
    const struct lk_generate_request *q = r->request;
    int64_t n = 0, first = 0;
    for (int i = 0; i < q->n_images; i++) n += lk_qwen25_vl_image_tokens(&r->m->config, &q->images[i]);
    LK_TRY(LK_NEW(&r->dev->arena, features, r->row.dtype, n, r->m->config.vision.out_hidden_size));
    for (int i = 0; i < q->n_images; i++) {
        int64_t rows = lk_qwen25_vl_image_tokens(&r->m->config, &q->images[i]);
        struct lk_tensor part = lk_tensor_rows(features, first, rows);
        LK_TRY(lk_qwen25_vl_vision(r->dev, r->m, &q->images[i], i, &part));
        first += rows;
    }
    return LK_OK;
}

/* The prompt into the cache; its last state to r->row. */
static enum lk_code read_prompt(struct run *r) {
    const struct lk_generate_request *q = r->request;
    struct lk_arena *arena = &r->dev->arena;
    size_t mark = lk_arena_mark(arena);
    struct lk_tensor features, h;
    struct lk_qwen25_vl_prompt prompt = {.name = "generate",
                                         .ids = planning(r) ? NULL : q->ids,
                                         .n = q->n_ids,
                                         .images = q->images,
                                         .n_images = q->n_images,
                                         .uncounted_id = -1};
    if (q->n_images) {
        LK_TRY(see_images(r, &features));
        prompt.features = &features;
    }
    LK_TRY(LK_NEW(arena, &h, r->row.dtype, q->n_ids, r->m->config.hidden_size));
    LK_TRY(lk_qwen25_vl_prefill(r->dev, r->m, &prompt, &r->cache, &h));
    struct lk_tensor last = lk_tensor_rows(&h, q->n_ids - 1, 1);
    LK_TRY(lk_copy(r->dev, &(struct lk_copy){.y = &r->row, .x = &last}));
    lk_arena_release(arena, mark);
    return LK_OK;
}

static enum lk_code download_logits(const struct run *r) {
    int64_t n = r->m->config.vocab_size;
    if (r->logits.dtype == LK_F32) return lk_download(r->dev, r->host_logits, &r->logits);
    /* The upper half of the same memory takes the bf16 values; each is read before its place is written. */
    uint16_t *half = (uint16_t *)r->host_logits + n;
    LK_TRY(lk_download(r->dev, half, &r->logits));
    for (int64_t i = 0; i < n; i++) {
        float value = lk_bf16_to_f32(half[i]);
        memcpy(&r->host_logits[i], &value, sizeof value);
    }
    return LK_OK;
}

static bool is_stop(const struct lk_generation_config *c, int32_t id) {
    for (size_t i = 0; i < c->n_stop_ids; i++)
        if (c->stop_ids[i] == id) return true;
    return false;
}

/* Logits of r->row, and the id that they give. */
static enum lk_code choose(struct run *r) {
    struct lk_generation *out = r->out;
    LK_TRY(lk_qwen25_vl_logits(r->dev, r->m, &r->row, &r->logits));
    if (planning(r)) return LK_OK;
    LK_TRY(lk_trace(r->dev, &r->logits, "generate.%d.logits", (int)out->n));
    LK_TRY(download_logits(r));
    LK_TRY(lk_mapped_check(NULL));
    LK_TRY(lk_sampler_process(&r->sampler, r->host_logits));
    int32_t id = lk_sampler_pick(&r->sampler);
    out->ids[out->n++] = id;
    out->stopped = is_stop(&r->request->config, id);
    if (!r->request->token) return LK_OK;
    return r->request->token(r->request->token_context, id, out->n);
}

static enum lk_code stages(struct run *r) {
    LK_TRY(allocate(r));
    LK_TRY(read_prompt(r));
    LK_TRY(choose(r));
    if (planning(r)) {
        if (r->n_new == 1) return LK_OK;
        r->cache.n += r->n_new - 2; /* the last step reads the most rows */
        LK_TRY(lk_qwen25_vl_decode(r->dev, r->m, 0, 0, &r->cache, &r->row));
        return choose(r);
    }
    while (!r->out->stopped && r->out->n < r->n_new) {
        int32_t id = r->out->ids[r->out->n - 1], position = (int32_t)(r->cache.n + r->delta);
        LK_TRY(lk_qwen25_vl_decode(r->dev, r->m, id, position, &r->cache, &r->row));
        LK_TRY(choose(r));
    }
    return LK_OK;
}

/* The dtype of activations is that of the state row, which has no memory yet. */
static enum lk_code begin(struct run *r, struct lk_device *dev, const struct lk_qwen25_vl *m,
                          const struct lk_generate_request *request) {
    size_t n_layers = (size_t)m->config.num_hidden_layers;
    *r = (struct run){.dev = dev, .m = m, .request = request, .row = {.dtype = request->compute}};
    if (request->n_ids < 1) return lk_fail(LK_E_USAGE, "generate: expected a prompt of at least one token");
    LK_TRY(lk_generation_config_check(&request->config));
    r->n_new = lk_generate_limit(&request->config, request->n_ids);
    r->cache.k = lk_calloc(2 * n_layers, sizeof *r->cache.k);
    if (!r->cache.k) return lk_fail(LK_E_NOMEM, "generate: out of memory");
    r->cache.v = r->cache.k + n_layers;
    return LK_OK;
}

/* show: NULL, or the target, which then gets to know its weights. */
static enum lk_code plan_run(const struct lk_qwen25_vl *m, const struct lk_device *target, struct lk_device *show,
                             const struct lk_generate_request *request, uint64_t *arena_bytes) {
    struct run r;
    struct lk_device *dev;
    LK_TRY(lk_device_plan_create(target, &dev));
    enum lk_code rc = begin(&r, dev, m, request);
    if (!rc) rc = stages(&r);
    if (!rc && show) rc = lk_device_plan_show(dev, show);
    *arena_bytes = dev->arena.peak;
    lk_free(r.cache.k);
    lk_device_free(dev);
    return rc;
}

/* Positions of the tokens to come, and what the host needs. */
static enum lk_code prepare(struct run *r) {
    const struct lk_generate_request *q = r->request;
    struct lk_qwen25_vl_prompt prompt = {
        .ids = q->ids, .n = q->n_ids, .images = q->images, .n_images = q->n_images, .uncounted_id = -1};
    int64_t vocab = r->m->config.vocab_size;
    int32_t next;
    int32_t(*positions)[3] = lk_malloc((size_t)q->n_ids * sizeof *positions);
    r->host_logits = lk_malloc((size_t)vocab * sizeof *r->host_logits);
    r->out->ids = lk_malloc((size_t)r->n_new * sizeof *r->out->ids);
    enum lk_code rc = LK_OK;
    if (!positions || !r->host_logits || !r->out->ids) rc = lk_fail(LK_E_NOMEM, "generate: out of memory");
    if (!rc) rc = lk_qwen25_vl_positions(&r->m->config, &prompt, positions, &next);
    if (!rc) r->delta = next - q->n_ids;
    lk_free(positions);
    if (rc) return rc;
    LK_TRY(lk_sampler_init(&r->sampler, &q->config, vocab, q->n_valid_ids, q->seed));
    lk_sampler_see(&r->sampler, q->ids, q->n_ids);
    return LK_OK;
}

enum lk_code lk_generate(struct lk_device *dev, const struct lk_qwen25_vl *m, const struct lk_generate_request *request,
                         struct lk_generation *out) {
    struct run r;
    uint64_t arena_bytes;
    *out = (struct lk_generation){0};
    LK_TRY(plan_run(m, dev, dev, request, &arena_bytes));
    enum lk_code rc = begin(&r, dev, m, request);
    r.out = out;
    if (!rc) rc = prepare(&r);
    if (!rc) rc = lk_device_prepare(dev, arena_bytes);
    if (!rc) rc = stages(&r);
    out->peak_bytes = dev->arena.peak;
    lk_arena_release(&dev->arena, 0);
    lk_sampler_free(&r.sampler);
    lk_free(r.host_logits);
    lk_free(r.cache.k);
    return rc;
}

void lk_generation_free(struct lk_generation *generation) {
    lk_free(generation->ids);
    *generation = (struct lk_generation){0};
}
