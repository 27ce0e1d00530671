#include "models/common/walk.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "engine/flow_match.h"
#include "models/placement.h"
#include "weights/mapped_file.h"
#include "engine/base/digest.h"

enum lk_code lk_walk_begin(struct lk_walk *w, const char *name, struct lk_cost *before) {
    *before = w->dev->cost;
    if (w->result && w->dev->arena.peak > w->result->peak_bytes) w->result->peak_bytes = w->dev->arena.peak;
    LK_TRY(lk_device_stage(w->dev, name));
    w->dev->arena.peak = w->dev->arena.used;
    if (lk_walk_planning(w) || !w->request->progress) return LK_OK;
    return w->request->progress(w->request->progress_context, name, 0, w->request->num_inference_steps);
}

void lk_walk_note(struct lk_walk *w, const char *name, const struct lk_bind_totals *totals, int calls,
                  const struct lk_cost *before) {
    if (!w->plan) return;
    struct lk_plan_stage *s = &w->plan->stages[w->plan->n_stages++];
    *s = (struct lk_plan_stage){.name = name, .parameters = totals->parameters, .weight_bytes = totals->weight_bytes};
    s->flops = w->dev->cost.flops - before->flops;
    s->bytes = w->dev->cost.bytes - before->bytes;
    s->peak_bytes = w->dev->arena.peak;
    s->calls = calls;
    if (w->dev->arena.peak > w->plan->arena_bytes) w->plan->arena_bytes = w->dev->arena.peak;
}

enum lk_code lk_walk_check_finite(const struct lk_walk *w, const struct lk_tensor *t, const char *stage, int step) {
    int64_t n = 0;
    LK_TRY(lk_nonfinite(w->dev, &(struct lk_nonfinite){.x = t, .count = &n}));
    LK_TRY(lk_mapped_check(NULL));
    if (!n) return LK_OK;
    char at[32] = "";
    if (step >= 0) snprintf(at, sizeof at, ", step %d", step + 1);
    return lk_fail(
        LK_E_NONFINITE,
        "%s%s: %lld values are NaN or Inf; the weights or the dtype are at fault: run `verify`, try --dtype f32", stage,
        at, (long long)n);
}

enum lk_code lk_walk_trace_host(const struct lk_walk *w, const char *name, const void *values, enum lk_dtype dtype,
                                int64_t n) {
    if (!w->dev->trace) return LK_OK;
    size_t mark = lk_arena_mark(&w->dev->arena);
    struct lk_tensor t;
    LK_TRY(LK_NEW(&w->dev->arena, &t, dtype, n));
    LK_TRY(lk_upload(w->dev, &t, values));
    LK_TRY(lk_trace(w->dev, &t, "%s", name));
    lk_arena_release(&w->dev->arena, mark);
    return LK_OK;
}

/* n values in the compute dtype: the caller's latents, or the generator's normals. */
static void draw(const struct lk_walk *w, struct lk_rng *rng, const float *latents, void *drawn, size_t n) {
    if (latents && w->dtype == LK_BF16) {
        for (size_t i = 0; i < n; i++) ((uint16_t *)drawn)[i] = lk_f32_to_bf16(latents[i]);
    } else if (latents) {
        memcpy(drawn, latents, n * sizeof(float));
    } else if (w->dtype == LK_BF16) {
        lk_rng_normal_bf16(rng, drawn, n);
    } else {
        lk_rng_normal_f32(rng, drawn, n);
    }
}

enum lk_code lk_walk_noise(struct lk_walk *w, struct lk_rng *rng, const struct lk_tensor *rows, bool latents) {
    int64_t channels = rows->shape[rows->n_dims - 1], n = lk_tensor_numel(rows) / channels;
    size_t size = lk_dtype_size(w->dtype), bytes = (size_t)(n * channels) * size;
    if (lk_walk_planning(w)) return LK_OK;
    unsigned char *drawn = lk_malloc(2 * bytes);
    if (!drawn) return lk_fail(LK_E_NOMEM, "noise: out of memory for %zu bytes", 2 * bytes);
    unsigned char *packed = drawn + bytes;
    draw(w, rng, latents ? w->request->latents : w->request->posterior_noise, drawn, (size_t)(n * channels));
    if (latents) lk_sha256(drawn, bytes, w->result->noise_sha256);
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < n; i++)
            memcpy(packed + (size_t)(i * channels + c) * size, drawn + (size_t)(c * n + i) * size, size);
    enum lk_code rc = lk_upload(w->dev, rows, packed);
    lk_free(drawn);
    return rc;
}

enum lk_code lk_walk_schedule(struct lk_walk *w, const struct lk_flow_match_config *scheduler, double mu) {
    int n = w->request->num_inference_steps;
    LK_TRY(lk_flow_match_sigmas(scheduler, n, mu, w->sigmas, w->timesteps));
    LK_TRY(lk_walk_trace_host(w, "sigmas", w->sigmas, LK_F32, n + 1));
    return lk_walk_trace_host(w, "timesteps", w->timesteps, LK_F32, n);
}

enum lk_code lk_walk_step_done(const struct lk_walk *w, int i) {
    const struct lk_request *q = w->request;
    if (lk_walk_planning(w) || !q->progress) return LK_OK;
    return q->progress(q->progress_context, "transformer", i + 1, q->num_inference_steps);
}

enum lk_code lk_walk_download(const struct lk_walk *w, const struct lk_tensor *bytes, struct lk_image *image) {
    if (lk_walk_planning(w)) return LK_OK;
    LK_TRY(lk_image_new(image, (int)bytes->shape[1], (int)bytes->shape[0], 3));
    return lk_download(w->dev, image->pixels, bytes);
}

/* *out gets the plan device, for what it has learnt. */
static enum lk_code plan_walk(struct lk_walk *w, const struct lk_device *target, lk_walk_fn *stages, void *run,
                              struct lk_plan *plan, struct lk_device **out) {
    struct lk_device *real = w->dev;
    struct lk_result *result = w->result;
    LK_TRY(lk_device_plan_create(target, out));
    w->dev = *out;
    w->plan = plan;
    w->result = NULL;
    enum lk_code rc = stages(run);
    w->dev = real;
    w->plan = NULL;
    w->result = result;
    return rc;
}

enum lk_code lk_walk_plan(struct lk_walk *w, const struct lk_device *target, lk_walk_fn *stages, void *run,
                          struct lk_plan *plan) {
    struct lk_device *dev = NULL;
    enum lk_code rc = plan_walk(w, target, stages, run, plan, &dev);
    if (!rc) plan->device_bytes = plan->least_bytes = lk_device_plan_footprint(dev, plan->arena_bytes);
    if (!rc && target->memory->place) rc = lk_placement_least(dev, target, &plan->least_bytes);
    lk_device_free(dev);
    return rc;
}

enum lk_code lk_walk_run(struct lk_walk *w, lk_walk_fn *stages, void *run) {
    struct lk_plan plan = {0};
    struct lk_device *dev = NULL;
    enum lk_code rc = plan_walk(w, w->dev, stages, run, &plan, &dev);
    if (!rc) rc = lk_placement_prepare(w->dev, dev, plan.arena_bytes);
    lk_device_free(dev);
    if (rc) return rc;
    rc = stages(run);
    if (!rc) {
        w->result->n_steps = w->request->num_inference_steps;
        memcpy(w->result->sigmas, w->sigmas, (size_t)(w->result->n_steps + 1) * sizeof *w->sigmas);
        if (w->dev->arena.peak > w->result->peak_bytes) w->result->peak_bytes = w->dev->arena.peak;
    }
    lk_arena_release(&w->dev->arena, 0);
    return rc;
}
