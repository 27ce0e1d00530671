#include "models/text/generate.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "models/pipeline.h"
#include "models/placement.h"
#include "models/text/sampler.h"
#include "weights/mapped_file.h"

/* A reply under way, in a slot. */
struct sequence {
    const struct lk_generate_request *request; /* NULL: the slot is free */
    struct lk_generation *out;
    int64_t n_new;     /* at most */
    int64_t n_past;    /* rows in the cache */
    int64_t delta;     /* position of a token of the reply less the rows before it */
    int64_t n_pending; /* tokens at the end of out->ids whose rows are not in the cache */
    struct lk_sampler sampler;
};

struct run {
    struct lk_device *dev;
    const struct lk_vlm *m;
    enum lk_dtype dtype;
    const struct lk_generate_request *requests;
    struct lk_generation *out; /* NULL when planning */
    int n_requests, n_slots;
    int64_t capacity;        /* rows of a slot */
    int64_t shared_capacity; /* rows of the shared beginning, behind the slots */
    int64_t max_step;        /* rows of a slot in one step */
    uint64_t shared_key;     /* whose rows are there; 0: nobody's */
    struct lk_vlm_cache cache;
    struct lk_tensor rows;      /* [n_slots, hidden]: the last tokens' states */
    struct lk_tensor logits;    /* [n_slots, vocab] */
    struct sequence *sequences; /* [n_slots] */
    float *host_logits;         /* [vocab] */
    int32_t (*positions)[3];    /* host: of the longest prompt, or of all rows of a step */
    int32_t *step_ids;          /* host [n_slots * max_step] */
    size_t peak_bytes;          /* of the arena in the stages before */
};

int64_t lk_generate_limit(const struct lk_generation_config *config, int64_t n_prompt) {
    if (config->max_new_tokens) return config->max_new_tokens;
    if (!config->max_length) return LK_DEFAULT_NEW_TOKENS;
    return config->max_length > n_prompt ? config->max_length - n_prompt : 1;
}

static bool planning(const struct run *r) { return r->dev->kind == LK_DEVICE_PLAN; }

static int64_t shared_rows(const struct lk_generate_request *q) { return q->shared_key ? q->n_shared : 0; }

/* A stage begins, whose weights and activations are placed by themselves; its peak of the arena is measured afresh. */
static enum lk_code enter(struct run *r, const char *stage) {
    struct lk_arena *arena = &r->dev->arena;
    if (arena->peak > r->peak_bytes) r->peak_bytes = arena->peak;
    LK_TRY(lk_device_stage(r->dev, stage));
    arena->peak = arena->used;
    return LK_OK;
}

static enum lk_code allocate(struct run *r) {
    struct lk_arena *arena = &r->dev->arena;
    LK_TRY(enter(r, "generate"));
    int64_t n = r->n_slots * r->capacity + r->shared_capacity;
    for (int64_t i = 0; i < r->m->n_layers; i++) {
        LK_TRY(LK_NEW(arena, &r->cache.k[i], r->dtype, n, r->m->n_kv_heads, r->m->head_dim));
        LK_TRY(LK_NEW(arena, &r->cache.v[i], r->dtype, n, r->m->n_kv_heads, r->m->head_dim));
    }
    LK_TRY(LK_NEW(arena, &r->rows, r->dtype, r->n_slots, r->m->hidden_size));
    return LK_NEW(arena, &r->logits, r->dtype, r->n_slots, r->m->vocab_size);
}

/* Features of the images from number `first` on, n of them, in the arena. */
static enum lk_code see_images(const struct run *r, const struct lk_generate_request *q, int first, int n,
                               struct lk_tensor *features) {
    int64_t rows = 0, at = 0;
    for (int i = first; i < first + n; i++) rows += r->m->image_tokens(r->m->model, &q->images[i]);
    LK_TRY(LK_NEW(&r->dev->arena, features, r->dtype, rows, r->m->hidden_size));
    for (int i = first; i < first + n; i++) {
        int64_t part_rows = r->m->image_tokens(r->m->model, &q->images[i]);
        struct lk_tensor part = lk_tensor_rows(features, at, part_rows);
        LK_TRY(r->m->vision(r->dev, r->m->model, &q->images[i], i, &part));
        at += part_rows;
    }
    return LK_OK;
}

/* Tokens [from, to) of a prompt into the cache's part that begins at row `first`, whose images are n_images from number
 * `image` on; the state of the last to `row` unless that is NULL. */
static enum lk_code read_prompt(struct run *r, const struct lk_generate_request *q, int64_t from, int64_t to, int image,
                                int n_images, struct lk_decoder_rows rows, const struct lk_tensor *row) {
    size_t mark = lk_arena_mark(&r->dev->arena);
    const char *name = r->n_requests == 1 ? "generate" : NULL;
    struct lk_tensor features, h;
    struct lk_vlm_prompt prompt = {.ids = planning(r) ? NULL : q->ids,
                                   .n = to,
                                   .images = n_images ? q->images + image : NULL,
                                   .n_images = n_images};
    if (n_images) {
        LK_TRY(enter(r, "vision"));
        LK_TRY(see_images(r, q, image, n_images, &features));
        LK_TRY(enter(r, "generate"));
        prompt.features = &features;
    }
    rows.n = to - from;
    rows.n_past = from;
    LK_TRY(LK_NEW(&r->dev->arena, &h, r->dtype, rows.n, r->m->hidden_size));
    LK_TRY(lk_vlm_embed(r->dev, r->m, &prompt, from, &h));
    LK_TRY(lk_vlm_layers(r->dev, r->m, &h, planning(r) ? NULL : (const int32_t(*)[3])r->positions + from, &r->cache,
                         &rows, 1, name));
    struct lk_tensor last = lk_tensor_rows(&h, rows.n - 1, 1);
    if (row) LK_TRY(lk_copy(r->dev, &(struct lk_copy){.y = row, .x = &last}));
    lk_arena_release(&r->dev->arena, mark);
    return LK_OK;
}

/* The shared beginning to where it is kept, unless it is there, and from there to the slot. */
static enum lk_code share(struct run *r, const struct lk_generate_request *q, int64_t first) {
    struct lk_decoder_rows shared = {.first = r->n_slots * r->capacity, .capacity = r->shared_capacity};
    if (planning(r) || r->shared_key != q->shared_key) {
        r->shared_key = 0;
        LK_TRY(read_prompt(r, q, 0, q->n_shared, 0, q->n_shared_images, shared, NULL));
        r->shared_key = q->shared_key;
    }
    for (int64_t i = 0; i < 2 * r->m->n_layers; i++) {
        const struct lk_tensor *all = i % 2 ? &r->cache.v[i / 2] : &r->cache.k[i / 2];
        struct lk_tensor x = lk_tensor_rows(all, shared.first, q->n_shared),
                         y = lk_tensor_rows(all, first, q->n_shared);
        LK_TRY(lk_copy(r->dev, &(struct lk_copy){.y = &y, .x = &x}));
    }
    return LK_OK;
}

/* The prompt into slot i of the cache; its last state to r->rows. */
static enum lk_code prefill(struct run *r, const struct lk_generate_request *q, int i) {
    struct lk_decoder_rows rows = {.first = i * r->capacity, .capacity = r->capacity};
    struct lk_tensor row = lk_tensor_rows(&r->rows, i, 1);
    int64_t n = shared_rows(q);
    int n_images = n ? q->n_shared_images : 0;
    if (n) LK_TRY(share(r, q, rows.first));
    return read_prompt(r, q, n, q->n_ids, n_images, q->n_images - n_images, rows, &row);
}

static enum lk_code download_logits(const struct run *r, const struct lk_tensor *logits) {
    int64_t n = r->m->vocab_size;
    if (logits->dtype == LK_F32) return lk_download(r->dev, r->host_logits, logits);
    /* The upper half of the same memory takes the bf16 values; each is read before its place is written. */
    uint16_t *half = (uint16_t *)r->host_logits + n;
    LK_TRY(lk_download(r->dev, half, logits));
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

/* What the guide says to a choice: tokens that follow, or the end. */
static enum lk_code follow(const struct run *r, struct sequence *s, int32_t id) {
    const struct lk_guide *guide = s->request->guide;
    const int32_t *forced = NULL;
    int64_t n = 0;
    bool end = false;
    LK_TRY(guide->chosen(guide->context, id, r->host_logits, r->m->vocab_size, &forced, &n, &end));
    if (n > guide->max_forced) return lk_fail(LK_E_INTERNAL, "generate: %lld tokens forced at once", (long long)n);
    for (int64_t i = 0; i < n && s->out->n < s->n_new; i++) {
        s->out->ids[s->out->n++] = forced[i];
        s->n_pending++;
    }
    if (end) s->out->stopped = true;
    return LK_OK;
}

/* The next id of a sequence from its logits [1, vocab]. */
static enum lk_code choose(struct run *r, struct sequence *s, const struct lk_tensor *logits) {
    const struct lk_generate_request *q = s->request;
    if (r->n_requests == 1) LK_TRY(lk_trace(r->dev, logits, "generate.%d.logits", (int)s->out->n));
    LK_TRY(download_logits(r, logits));
    LK_TRY(lk_mapped_check(NULL));
    LK_TRY(lk_sampler_process(&s->sampler, r->host_logits));
    if (q->guide && q->guide->allow) q->guide->allow(q->guide->context, s->sampler.scores, r->m->vocab_size);
    int32_t id = lk_sampler_pick(&s->sampler);
    s->out->ids[s->out->n++] = id;
    s->n_pending = 1;
    s->out->stopped = is_stop(&q->config, id);
    if (q->guide && !s->out->stopped) LK_TRY(follow(r, s, id));
    return q->token ? q->token(q->token_context, id, s->out->n) : LK_OK;
}

static void finish(struct sequence *s) {
    lk_sampler_free(&s->sampler);
    *s = (struct sequence){0};
}

static void finish_if_done(struct sequence *s) {
    if (s->out->stopped || s->out->n >= s->n_new) finish(s);
}

/* Positions of the prompt, and what the host needs for its reply. */
static enum lk_code begin_sequence(struct run *r, struct sequence *s, const struct lk_generate_request *q,
                                   struct lk_generation *out) {
    struct lk_vlm_prompt prompt = {
        .ids = q->ids, .n = q->n_ids, .images = q->images, .n_images = q->n_images, .uncounted_id = -1};
    int32_t next;
    s->request = q;
    s->out = out;
    s->n_new = lk_generate_limit(&q->config, q->n_ids);
    s->n_past = q->n_ids;
    out->ids = lk_malloc((size_t)s->n_new * sizeof *out->ids);
    if (!out->ids) return lk_fail(LK_E_NOMEM, "generate: out of memory");
    LK_TRY(r->m->positions(r->m->model, &prompt, r->positions, &next));
    s->delta = next - q->n_ids;
    LK_TRY(lk_sampler_init(&s->sampler, &q->config, r->m->vocab_size, q->n_valid_ids, q->seed));
    lk_sampler_see(&s->sampler, q->ids, q->n_ids);
    return LK_OK;
}

static enum lk_code start(struct run *r, int slot, int request) {
    struct sequence *s = &r->sequences[slot];
    LK_TRY(begin_sequence(r, s, &r->requests[request], &r->out[request]));
    LK_TRY(prefill(r, s->request, slot));
    struct lk_tensor row = lk_tensor_rows(&r->rows, slot, 1), logits = lk_tensor_rows(&r->logits, slot, 1);
    LK_TRY(lk_vlm_logits(r->dev, r->m, &row, &logits));
    LK_TRY(choose(r, s, &logits));
    finish_if_done(s);
    return LK_OK;
}

/* New rows of n sequences through all layers; the last states of each to r->rows [0, n), their logits. ids, positions
 * NULL: planning. */
static enum lk_code step(struct run *r, const struct lk_decoder_rows *rows, int n, const int32_t *ids,
                         const int32_t (*positions)[3]) {
    size_t mark = lk_arena_mark(&r->dev->arena);
    int64_t total = 0, at = 0;
    struct lk_tensor h;
    for (int i = 0; i < n; i++) total += rows[i].n;
    LK_TRY(LK_NEW(&r->dev->arena, &h, r->dtype, total, r->m->hidden_size));
    LK_TRY(lk_decoder_embed(r->dev, &h, r->m->embed_tokens, ids));
    LK_TRY(lk_vlm_layers(r->dev, r->m, &h, positions, &r->cache, rows, n, NULL));
    for (int i = 0; i < n; i++) {
        at += rows[i].n;
        struct lk_tensor x = lk_tensor_rows(&h, at - 1, 1), y = lk_tensor_rows(&r->rows, i, 1);
        LK_TRY(lk_copy(r->dev, &(struct lk_copy){.y = &y, .x = &x}));
    }
    lk_arena_release(&r->dev->arena, mark);
    struct lk_tensor last = lk_tensor_rows(&r->rows, 0, n), logits = lk_tensor_rows(&r->logits, 0, n);
    return lk_vlm_logits(r->dev, r->m, &last, &logits);
}

/* One step of all sequences under way. */
static enum lk_code advance(struct run *r) {
    struct lk_decoder_rows rows[LK_VLM_MAX_SEQUENCES];
    struct sequence *active[LK_VLM_MAX_SEQUENCES];
    int n = 0;
    int64_t at = 0;
    for (int i = 0; i < r->n_slots; i++) {
        struct sequence *s = &r->sequences[i];
        if (!s->request) continue;
        rows[n] = (struct lk_decoder_rows){s->n_pending, i * r->capacity, s->n_past, r->capacity};
        active[n++] = s;
        for (int64_t j = 0; j < s->n_pending; j++, at++) {
            int32_t position = (int32_t)(s->n_past + j + s->delta);
            r->step_ids[at] = s->out->ids[s->out->n - s->n_pending + j];
            for (int axis = 0; axis < 3; axis++) r->positions[at][axis] = position;
        }
        s->n_past += s->n_pending;
    }
    LK_TRY(step(r, rows, n, r->step_ids, (const int32_t(*)[3])r->positions));
    for (int i = 0; i < n; i++) {
        struct lk_tensor logits = lk_tensor_rows(&r->logits, i, 1);
        LK_TRY(choose(r, active[i], &logits));
        finish_if_done(active[i]);
    }
    return LK_OK;
}

static enum lk_code run_all(struct run *r) {
    int next = 0, n_active;
    LK_TRY(allocate(r));
    do {
        n_active = 0;
        for (int i = 0; i < r->n_slots; i++) {
            while (!r->sequences[i].request && next < r->n_requests) LK_TRY(start(r, i, next++));
            n_active += r->sequences[i].request != NULL;
        }
        if (n_active) LK_TRY(advance(r));
    } while (n_active);
    return LK_OK;
}

/* Every prompt, and the step with the most rows after the most. */
static enum lk_code plan_all(struct run *r) {
    struct lk_decoder_rows rows[LK_VLM_MAX_SEQUENCES];
    bool steps = false;
    LK_TRY(allocate(r));
    for (int i = 0; i < r->n_requests; i++) {
        struct lk_tensor row = lk_tensor_rows(&r->rows, 0, 1), logits = lk_tensor_rows(&r->logits, 0, 1);
        LK_TRY(prefill(r, &r->requests[i], 0));
        LK_TRY(lk_vlm_logits(r->dev, r->m, &row, &logits));
        steps |= lk_generate_limit(&r->requests[i].config, r->requests[i].n_ids) > 1;
    }
    for (int i = 0; i < r->n_slots; i++)
        rows[i] = (struct lk_decoder_rows){r->max_step, i * r->capacity, r->capacity - r->max_step, r->capacity};
    return steps ? step(r, rows, r->n_slots, NULL, NULL) : LK_OK;
}

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Sizes that all requests together ask for. A token's row enters the cache when the next one is chosen, so the last of
 * a reply never does. */
static enum lk_code begin(struct run *r) {
    size_t n_layers = (size_t)r->m->n_layers;
    if (r->n_slots < 1 || r->n_slots > LK_VLM_MAX_SEQUENCES)
        return lk_fail(LK_E_USAGE, "generate: expected 1 to %d replies together, got %d", LK_VLM_MAX_SEQUENCES,
                       r->n_slots);
    if (r->n_slots > r->n_requests) r->n_slots = r->n_requests;
    r->max_step = 1;
    for (int i = 0; i < r->n_requests; i++) {
        const struct lk_generate_request *q = &r->requests[i];
        if (q->n_ids < 1) return lk_fail(LK_E_USAGE, "generate: expected a prompt of at least one token");
        if (q->n_ids <= shared_rows(q))
            return lk_fail(LK_E_INTERNAL, "generate: %lld of %lld tokens shared", (long long)q->n_shared,
                           (long long)q->n_ids);
        LK_TRY(lk_generation_config_check(&q->config));
        int64_t n_new = lk_generate_limit(&q->config, q->n_ids);
        int64_t forced = q->guide ? q->guide->max_forced : 0, step_rows = 1 + (forced < n_new ? forced : n_new - 1);
        r->capacity = most(r->capacity, q->n_ids + n_new - 1);
        r->max_step = most(r->max_step, step_rows);
        r->shared_capacity = most(r->shared_capacity, shared_rows(q));
    }
    r->capacity = most(r->capacity, r->max_step);
    r->cache.k = lk_calloc(2 * n_layers, sizeof *r->cache.k);
    if (!r->cache.k) return lk_fail(LK_E_NOMEM, "generate: out of memory");
    r->cache.v = r->cache.k + n_layers;
    return LK_OK;
}

/* Memory of `dev` for weights and activations, by what a plan's run has met. */
static enum lk_code prepare(struct run r, struct lk_device *dev) {
    LK_TRY(lk_device_plan_create(dev, &r.dev));
    enum lk_code rc = begin(&r);
    if (!rc) rc = plan_all(&r);
    size_t peak = r.dev->arena.peak > r.peak_bytes ? r.dev->arena.peak : r.peak_bytes;
    if (!rc) rc = lk_placement_prepare(dev, r.dev, peak);
    lk_free(r.cache.k);
    lk_device_free(r.dev);
    return rc;
}

enum lk_code lk_generate_plan(const struct lk_device *target, const struct lk_vlm *m, enum lk_dtype compute,
                              const struct lk_generate_request *requests, int n, int n_slots, struct lk_plan *out) {
    struct run r = {.m = m, .dtype = compute, .requests = requests, .n_requests = n, .n_slots = n_slots};
    struct lk_plan_stage *s = &out->stages[0];
    *out = (struct lk_plan){.n_stages = 1};
    LK_TRY(lk_device_plan_create(target, &r.dev));
    enum lk_code rc = begin(&r);
    if (!rc) rc = plan_all(&r);
    out->arena_bytes = r.dev->arena.peak > r.peak_bytes ? r.dev->arena.peak : r.peak_bytes;
    out->weight_bytes = lk_device_plan_weight_bytes(r.dev);
    *s = (struct lk_plan_stage){.name = "rewrite", .peak_bytes = out->arena_bytes, .calls = 1};
    lk_device_plan_stage_bytes(r.dev, &s->parameters);
    s->weight_bytes = out->weight_bytes;
    s->flops = r.dev->cost.flops;
    s->bytes = r.dev->cost.bytes;
    out->n_tokens = requests[0].n_ids;
    out->device_bytes = lk_device_plan_footprint(r.dev, out->arena_bytes);
    if (!rc && target->memory->place) rc = lk_placement_describe(r.dev, target, out);
    lk_free(r.cache.k);
    lk_device_free(r.dev);
    return rc;
}

static enum lk_code host_memory(struct run *r) {
    int64_t n_step = r->n_slots * r->max_step, n = n_step;
    for (int i = 0; i < r->n_requests; i++) n = most(n, r->requests[i].n_ids);
    r->sequences = lk_calloc((size_t)r->n_slots, sizeof *r->sequences);
    r->host_logits = lk_malloc((size_t)r->m->vocab_size * sizeof *r->host_logits);
    r->positions = lk_malloc((size_t)n * sizeof *r->positions);
    r->step_ids = lk_malloc((size_t)n_step * sizeof *r->step_ids);
    if (r->sequences && r->host_logits && r->positions && r->step_ids) return LK_OK;
    return lk_fail(LK_E_NOMEM, "generate: out of memory");
}

enum lk_code lk_generate(struct lk_device *dev, const struct lk_vlm *m, enum lk_dtype compute,
                         const struct lk_generate_request *requests, int n, int n_slots, struct lk_generation *out) {
    struct run r = {
        .dev = dev, .m = m, .dtype = compute, .requests = requests, .out = out, .n_requests = n, .n_slots = n_slots};
    for (int i = 0; i < n; i++) out[i] = (struct lk_generation){0};
    if (!n) return LK_OK;
    enum lk_code rc = prepare(r, dev);
    if (!rc) rc = begin(&r);
    if (!rc) rc = host_memory(&r);
    if (!rc) rc = run_all(&r);
    if (dev->arena.peak > r.peak_bytes) r.peak_bytes = dev->arena.peak;
    for (int i = 0; i < n; i++) out[i].peak_bytes = r.peak_bytes;
    lk_device_rest(dev);
    lk_arena_release(&dev->arena, 0);
    for (int i = 0; r.sequences && i < r.n_slots; i++) finish(&r.sequences[i]);
    lk_free(r.sequences);
    lk_free(r.host_logits);
    lk_free(r.positions);
    lk_free(r.step_ids);
    lk_free(r.cache.k);
    return rc;
}

void lk_generation_free(struct lk_generation *generation) {
    lk_free(generation->ids);
    *generation = (struct lk_generation){0};
}
