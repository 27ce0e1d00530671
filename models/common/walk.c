#include "models/common/walk.h"
#include "models/common/mask.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "engine/flow_match.h"
#include "models/placement.h"
#include "models/schedule.h"
#include "weights/mapped_file.h"
#include "engine/base/digest.h"

pthread_mutex_t lk_walk_telling = PTHREAD_MUTEX_INITIALIZER;

static enum lk_code tell(const struct lk_walk *w, const char *stage, int step) {
    const struct lk_request *q = w->request;
    if (lk_walk_planning(w) || !q->progress) return LK_OK;
    pthread_mutex_lock(&lk_walk_telling);
    enum lk_code rc = q->progress(q->progress_context, stage, step, lk_walk_calls(w));
    pthread_mutex_unlock(&lk_walk_telling);
    return rc;
}

enum lk_code lk_walk_cut(const struct lk_walk *walk, int64_t n) {
    if (n <= 0 || !walk->result) return LK_OK;
    if (walk->request->whole_prompt)
        return lk_fail(
            LK_E_PROMPT,
            "prompt: %lld of its tokens are more than the model reads (max_sequence_length); shorten it, read "
            "more where the model can, or cut it by the study's \"allow_cut\"",
            (long long)n);
    if (n > walk->result->n_cut_ids) walk->result->n_cut_ids = (int)n;
    return LK_OK;
}

enum lk_code lk_walk_begin(struct lk_walk *w, const char *name, struct lk_cost *before) {
    *before = w->dev->cost;
    if (w->dev->arena.peak > *w->peak_bytes) *w->peak_bytes = w->dev->arena.peak;
    LK_TRY(lk_device_stage(w->dev, name));
    w->dev->arena.peak = w->dev->arena.used;
    return tell(w, name, 0);
}

void lk_walk_note(struct lk_walk *w, const char *name, const struct lk_bind_totals *totals, int calls,
                  const struct lk_cost *before) {
    if (!w->plan) return;
    struct lk_plan_stage *s = w->plan->stages, *end = s + w->plan->n_stages;
    while (s < end && s->name != name && strcmp(s->name, name)) s++;
    if (s == end) {
        w->plan->n_stages++;
        *s = (struct lk_plan_stage){.name = name};
    }
    s->weight_bytes = lk_device_plan_stage_bytes(w->dev, &s->parameters);
    if (totals) s->parameters = totals->parameters;
    s->flops = w->dev->cost.flops - before->flops;
    s->bytes = w->dev->cost.bytes - before->bytes;
    if (w->dev->arena.peak > s->peak_bytes) s->peak_bytes = w->dev->arena.peak;
    s->calls += calls;
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
static void draw(const struct lk_walk *w, const float *latents, void *drawn, size_t n) {
    if (latents && w->dtype == LK_BF16) {
        for (size_t i = 0; i < n; i++) ((uint16_t *)drawn)[i] = lk_f32_to_bf16(latents[i]);
    } else if (latents) {
        memcpy(drawn, latents, n * sizeof(float));
    } else if (w->dtype == LK_BF16) {
        lk_rng_normal_bf16(w->rng, drawn, n);
    } else {
        lk_rng_normal_f32(w->rng, drawn, n);
    }
}

enum lk_code lk_walk_noise(struct lk_walk *w, const struct lk_tensor *rows, bool latents) {
    int64_t channels = rows->shape[rows->n_dims - 1], n = lk_tensor_numel(rows) / channels;
    size_t size = lk_dtype_size(w->dtype), bytes = (size_t)(n * channels) * size;
    if (lk_walk_planning(w)) return LK_OK;
    unsigned char *drawn = lk_malloc(2 * bytes);
    if (!drawn) return lk_fail(LK_E_NOMEM, "noise: out of memory for %zu bytes", 2 * bytes);
    unsigned char *packed = drawn + bytes;
    draw(w, latents ? w->request->latents : w->request->posterior_noise, drawn, (size_t)(n * channels));
    if (latents) lk_sha256(drawn, bytes, w->result->noise_sha256);
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < n; i++)
            memcpy(packed + (size_t)(i * channels + c) * size, drawn + (size_t)(c * n + i) * size, size);
    enum lk_code rc = lk_upload(w->dev, rows, packed);
    lk_free(drawn);
    return rc;
}

enum lk_code lk_walk_keep(const struct lk_walk *w, const char *key, const struct lk_tensor *t, struct lk_kept **out) {
    LK_TRY(lk_kept_add(w->kept, key, t, !lk_walk_planning(w), out));
    return lk_walk_planning(w) ? LK_OK : lk_download(w->dev, (*out)->tensor.data, t);
}

enum lk_code lk_walk_give_back(const struct lk_walk *w, const struct lk_kept *kept, const struct lk_tensor *t) {
    if (lk_tensor_bytes(&kept->tensor) != lk_tensor_bytes(t) || kept->tensor.dtype != t->dtype)
        return lk_fail(LK_E_INTERNAL, "what a stage left is not what the next one takes");
    return lk_walk_planning(w) ? LK_OK : lk_upload(w->dev, t, kept->tensor.data);
}

enum lk_code lk_walk_find_prompt(const struct lk_walk *w, char key[65], const char *prompt, int64_t rows, int64_t width,
                                 struct lk_kept **out) {
    const char *file = w->request->prompt_embeds;
    const struct lk_tensor shape = lk_tensor_make(NULL, w->dtype, 2, (const int64_t[]){rows, width});
    if (file && !w->result) return lk_kept_add(w->kept, "", &shape, false, out);
    if (file && *key) lk_key_add(key, file, strlen(file));
    *out = lk_kept_find(*w->kept, key);
    if (!file) return LK_OK;
    if (!*out)
        return lk_fail(
            LK_E_NOT_FOUND,
            "%s: nothing of the prompt \"%.80s\" with these pictures and options; make the file with `embed` "
            "and what the edit is given",
            file, prompt ? prompt : "");
    if (memcmp((*out)->tensor.shape, shape.shape, 2 * sizeof *shape.shape) != 0)
        return lk_fail(LK_E_INPUT, "%s: expected [%lld, %lld] of the prompt \"%.80s\", got [%lld, %lld]", file,
                       (long long)rows, (long long)width, prompt ? prompt : "", (long long)(*out)->tensor.shape[0],
                       (long long)(*out)->tensor.shape[1]);
    return LK_OK;
}

enum lk_code lk_walk_schedule(struct lk_walk *w, const struct lk_flow_match_config *scheduler, double mu) {
    const char *given = w->request->input_sigmas;
    int n = w->request->num_inference_steps;
    float input[LK_MAX_STEPS];
    if (given) LK_TRY(lk_sigmas_read("input_sigmas", given, input, &n));
    LK_TRY(lk_flow_match_sigmas(scheduler, n, given ? input : NULL, mu, w->sigmas, w->timesteps));
    const int first = lk_mask_first_step(n, w->request->strength);
    w->n_calls = n -= first;
    memmove(w->sigmas, w->sigmas + first, (size_t)(n + 1) * sizeof *w->sigmas);
    memmove(w->timesteps, w->timesteps + first, (size_t)n * sizeof *w->timesteps);
    if (w->result) {
        w->result->n_steps = n;
        memcpy(w->result->sigmas, w->sigmas, (size_t)(n + 1) * sizeof *w->sigmas);
    }
    LK_TRY(lk_walk_trace_host(w, "sigmas", w->sigmas, LK_F32, n + 1));
    return lk_walk_trace_host(w, "timesteps", w->timesteps, LK_F32, n);
}

bool lk_walk_same_schedule(const struct lk_walk *a, const struct lk_walk *b) {
    int n = lk_walk_calls(a);
    return n == lk_walk_calls(b) && !memcmp(a->timesteps, b->timesteps, (size_t)n * sizeof *a->timesteps);
}

enum lk_code lk_walk_step_done(const struct lk_walk *w, const char *stage, int i) { return tell(w, stage, i + 1); }

enum lk_code lk_walk_pixels(const struct lk_walk *w, struct lk_image *rgb, const struct lk_tensor *pixels) {
    size_t mark = lk_arena_mark(&w->dev->arena);
    struct lk_tensor bytes;
    enum lk_code rc = LK_NEW(&w->dev->arena, &bytes, LK_U8, pixels->shape[0], pixels->shape[1], 3);
    if (!lk_walk_planning(w)) {
        if (!rc) rc = lk_upload(w->dev, &bytes, rgb->pixels);
        lk_image_free(rgb);
    }
    if (!rc) rc = lk_pixels(w->dev, &(struct lk_pixels){.y = pixels, .x = &bytes});
    lk_arena_release(&w->dev->arena, mark);
    return rc;
}

enum lk_code lk_walk_decoded(const struct lk_walk *w, const struct lk_tensor *decoded, const struct lk_tensor *bytes,
                             const char *name) {
    LK_TRY(lk_walk_check_finite(w, decoded, "VAE decode", -1));
    LK_TRY(lk_trace(w->dev, decoded, "decoded"));
    LK_TRY(lk_pixels(w->dev, &(struct lk_pixels){.y = bytes, .x = decoded}));
    return lk_trace(w->dev, bytes, "%s", name);
}

enum lk_code lk_walk_download(const struct lk_walk *w, const struct lk_tensor *bytes) {
    if (lk_walk_planning(w)) return LK_OK;
    struct lk_image *image = &w->result->image;
    LK_TRY(lk_image_new(image, (int)bytes->shape[1], (int)bytes->shape[0], 3));
    return lk_download(w->dev, image->pixels, bytes);
}
