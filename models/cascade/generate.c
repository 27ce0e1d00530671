#include "models/cascade/generate.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "models/cascade/sampler.h"

#define MOST_STEPS 1000

enum { POSITIVE, NEGATIVE, BRANCHES };

struct run {
    struct lk_device *dev;
    const struct lk_cascade_models *models;
    const struct lk_cascade_request *request;
    enum lk_dtype dtype;
    bool planning;
    int64_t h, w; /* of stage C's latents */
    float *prior; /* those at the end, channels last */
};

/* One of the two diffusions. */
struct stage {
    const char *name;
    const struct lk_cascade_unet *unet;
    int64_t h, w, channels;
    int n_steps;
    double guidance;
    struct lk_tensor x, prediction, clip[BRANCHES], effnet[BRANCHES];
    float *latents, *noise, *predictions[BRANCHES]; /* on the host, channels last */
};

static enum lk_code upload(const struct run *r, const struct lk_tensor *t, const float *values) {
    const size_t n = (size_t)lk_tensor_numel(t);
    if (r->planning) return LK_OK;
    if (t->dtype == LK_F32) return lk_upload(r->dev, t, values);
    uint16_t *half = lk_malloc(n * sizeof *half);
    if (!half) return lk_fail(LK_E_NOMEM, "Stable Cascade: out of memory");
    for (size_t i = 0; i < n; i++) half[i] = lk_f32_to_bf16(values[i]);
    const enum lk_code rc = lk_upload(r->dev, t, half);
    lk_free(half);
    return rc;
}

static enum lk_code download(const struct run *r, const struct lk_tensor *t, float *out) {
    if (r->planning) return LK_OK;
    LK_TRY(lk_download(r->dev, out, t));
    if (t->dtype == LK_BF16)
        for (int64_t i = lk_tensor_numel(t); i-- > 0;) out[i] = lk_bf16_to_f32(((const uint16_t *)out)[i]);
    return LK_OK;
}

/* Noise as torch.randn draws it, [C, h, w], in the run's dtype; out has channels last. */
static enum lk_code draw(const struct run *r, const struct stage *s, float *out) {
    const int64_t n = s->h * s->w, all = n * s->channels;
    if (r->planning) return LK_OK;
    float *drawn = lk_malloc((size_t)all * sizeof *drawn);
    if (!drawn) return lk_fail(LK_E_NOMEM, "Stable Cascade: out of memory");
    if (r->dtype == LK_BF16) {
        lk_rng_normal_bf16(r->request->rng, (uint16_t *)drawn, (size_t)all);
        for (int64_t i = all; i-- > 0;) drawn[i] = lk_bf16_to_f32(((const uint16_t *)drawn)[i]);
    } else {
        lk_rng_normal_f32(r->request->rng, drawn, (size_t)all);
    }
    for (int64_t i = 0; i < all; i++) out[i % n * s->channels + i / n] = drawn[i];
    lk_free(drawn);
    return LK_OK;
}

static int n_branches(const struct stage *s) { return s->guidance > 1 ? BRANCHES : 1; }

static enum lk_code condition(const struct run *r, struct stage *s) {
    const struct lk_cascade_config *c = &s->unet->config;
    const struct lk_cascade_prompt *prompts[] = {&r->request->positive, &r->request->negative};
    struct lk_arena *arena = &r->dev->arena;
    for (int b = 0; b < n_branches(s); b++) {
        const int64_t n = c->text_dim ? r->request->n_text : 0;
        struct lk_tensor text, pooled;
        LK_TRY(LK_NEW(arena, &s->clip[b], r->dtype, lk_cascade_clip_rows(s->unet, n), c->conditioning_dim));
        const size_t mark = lk_arena_mark(arena);
        LK_TRY(LK_NEW(arena, &pooled, r->dtype, 1, c->pooled_dim));
        LK_TRY(upload(r, &pooled, prompts[b]->pooled));
        if (n) LK_TRY(LK_NEW(arena, &text, r->dtype, n, c->text_dim));
        if (n) LK_TRY(upload(r, &text, prompts[b]->text));
        LK_TRY(lk_cascade_condition(r->dev, s->unet, n ? &text : NULL, &pooled, &s->clip[b]));
        lk_arena_release(arena, mark);
    }
    return LK_OK;
}

/* Stage B is told stage C's latents, enlarged; the second branch zeros. */
static enum lk_code enlarge(const struct run *r, struct stage *s) {
    const int64_t patch = s->unet->config.patch_size;
    const struct lk_cascade_sizes z = {r->h, r->w, s->h / patch, s->w / patch, s->unet->config.effnet_dim};
    float *large = lk_calloc((size_t)(z.to_h * z.to_w * z.channels), sizeof *large);
    enum lk_code rc = large ? LK_OK : lk_fail(LK_E_NOMEM, "Stable Cascade: out of memory");
    for (int b = n_branches(s) - 1; b >= 0 && !rc; b--) {
        if (b == POSITIVE && !r->planning) lk_cascade_enlarge(r->prior, &z, large);
        rc = LK_NEW(&r->dev->arena, &s->effnet[b], r->dtype, z.to_h * z.to_w, z.channels);
        if (!rc) rc = upload(r, &s->effnet[b], large);
    }
    lk_free(large);
    return rc;
}

static enum lk_code step(const struct run *r, const struct stage *s, int i, const float *times) {
    const int64_t n = s->h * s->w * s->channels;
    const bool bf16 = r->dtype == LK_BF16;
    LK_TRY(upload(r, &s->x, s->latents));
    for (int b = 0; b < n_branches(s); b++) {
        struct lk_cascade_pass pass = {.x = &s->x, .time = times[i], .clip = &s->clip[b], .y = &s->prediction};
        pass.effnet = s->unet->config.effnet_dim ? &s->effnet[b] : NULL;
        LK_TRY(lk_cascade_forward(r->dev, s->unet, &pass));
        LK_TRY(download(r, &s->prediction, s->predictions[b]));
    }
    LK_TRY(draw(r, s, s->noise));
    if (r->planning) return LK_OK;
    if (n_branches(s) > 1)
        lk_cascade_guide(s->predictions[POSITIVE], s->predictions[NEGATIVE], (float)s->guidance, bf16, n,
                         s->predictions[POSITIVE]);
    lk_cascade_advance(
        &(struct lk_cascade_step){s->latents, s->predictions[POSITIVE], s->noise, n, times[i], times[i + 1], bf16});
    LK_TRY(upload(r, &s->x, s->latents));
    return lk_trace(r->dev, &s->x, "%s.%d.latents", s->name, i);
}

/* The latents of a stage, to be freed, at the end of its steps. */
static enum lk_code diffuse(const struct run *r, struct stage *s, float **out) {
    float times[MOST_STEPS + 1];
    const size_t n = (size_t)(s->h * s->w * s->channels), mark = lk_arena_mark(&r->dev->arena);
    struct lk_arena *arena = &r->dev->arena;
    LK_TRY(lk_cascade_times(s->n_steps, r->dtype == LK_BF16, times));
    *out = s->latents = lk_malloc(4 * n * sizeof(float));
    if (!s->latents) return lk_fail(LK_E_NOMEM, "Stable Cascade: out of memory");
    s->noise = s->latents + n;
    s->predictions[POSITIVE] = s->noise + n;
    s->predictions[NEGATIVE] = s->predictions[POSITIVE] + n;
    LK_TRY(LK_NEW(arena, &s->x, r->dtype, s->h, s->w, s->channels));
    LK_TRY(LK_NEW(arena, &s->prediction, r->dtype, s->h, s->w, s->channels));
    LK_TRY(condition(r, s));
    if (s->unet->config.effnet_dim) LK_TRY(enlarge(r, s));
    LK_TRY(draw(r, s, s->latents));
    for (int i = 0; i < (r->planning ? 1 : s->n_steps); i++) LK_TRY(step(r, s, i, times));
    lk_arena_release(arena, mark);
    return LK_OK;
}

static enum lk_code decode(const struct run *r, const struct stage *b, float *picture) {
    const size_t n = (size_t)(b->h * b->w * b->channels), mark = lk_arena_mark(&r->dev->arena);
    struct lk_tensor latents, decoded;
    LK_TRY(LK_NEW(&r->dev->arena, &latents, r->dtype, b->h, b->w, b->channels));
    LK_TRY(LK_NEW(&r->dev->arena, &decoded, r->dtype, 4 * b->h, 4 * b->w, 3));
    for (size_t i = 0; i < n && !r->planning; i++) b->latents[i] *= (float)r->models->vqgan->config.scale_factor;
    LK_TRY(upload(r, &latents, b->latents));
    LK_TRY(lk_paella_decode(r->dev, r->models->vqgan, &latents, &decoded));
    LK_TRY(lk_trace(r->dev, &decoded, "decoded"));
    LK_TRY(download(r, &decoded, picture));
    for (int64_t i = 0; i < lk_tensor_numel(&decoded) && !r->planning; i++)
        picture[i] = picture[i] < 0 ? 0 : picture[i] > 1 ? 1 : picture[i];
    lk_arena_release(&r->dev->arena, mark);
    return LK_OK;
}

enum lk_code lk_cascade_generate(struct lk_device *dev, const struct lk_cascade_models *models, enum lk_dtype compute,
                                 const struct lk_cascade_request *q, float *picture) {
    struct run r = {.dev = dev, .models = models, .request = q, .dtype = compute};
    if (q->width < LK_CASCADE_GRAIN || q->height < LK_CASCADE_GRAIN || q->width % LK_CASCADE_GRAIN ||
        q->height % LK_CASCADE_GRAIN)
        return lk_fail(LK_E_USAGE, "output size: expected sides that are multiples of %d, got %dx%d", LK_CASCADE_GRAIN,
                       q->width, q->height);
    r.planning = dev->kind == LK_DEVICE_PLAN;
    r.h = q->height / LK_CASCADE_GRAIN * 3;
    r.w = q->width / LK_CASCADE_GRAIN * 3;
    struct stage c = {.name = "prior", .unet = models->prior, .h = r.h, .w = r.w, .n_steps = q->prior_steps};
    struct stage b = {.name = "decoder", .unet = models->decoder, .n_steps = q->decoder_steps};
    c.channels = models->prior->config.in_channels;
    c.guidance = q->prior_guidance;
    b.h = q->height / 4;
    b.w = q->width / 4;
    b.channels = models->decoder->config.in_channels;
    b.guidance = q->decoder_guidance;
    float *ends[2] = {NULL, NULL};
    enum lk_code rc = diffuse(&r, &c, &ends[0]);
    r.prior = ends[0];
    if (!rc) rc = diffuse(&r, &b, &ends[1]);
    if (!rc) rc = decode(&r, &b, picture);
    lk_free(ends[0]);
    lk_free(ends[1]);
    return rc;
}
