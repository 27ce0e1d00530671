#include "models/common/queue.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "models/common/cache.h"
#include "models/common/mask.h"
#include "models/common/preview.h"
#include "models/embeds.h"
#include "models/placement.h"

/* What the stages of each diffusion are called. */
static const struct diffusion {
    const char *prepare, *steps, *traces;
} diffusions[] = {{"conditioning", "transformer", ""}, {"decoder_setup", "decoder", "decoder."}};

struct queue {
    const struct lk_stages *stages, *diffusing; /* the latter of the diffusion that is under way */
    const struct lk_queue *given;               /* NULL when one job is only planned */
    struct lk_device *dev;
    void **runs; /* of each job; NULL: done or failed */
    int n;
    int most; /* jobs in a visit */
    struct lk_kept *kept;
    size_t peak_bytes;
};

static void end_run(struct queue *q, int i) {
    if (q->runs[i]) q->stages->end(q->runs[i]);
    if (q->runs[i]) lk_mask_end(q->runs[i]);
    if (q->runs[i]) lk_cache_end_walk(q->runs[i]);
    lk_free(q->runs[i]);
    q->runs[i] = NULL;
}

enum lk_code lk_queued_end(const struct lk_queue *queue, struct lk_queued *job, enum lk_code rc) {
    bool own = rc / 100 == LK_E_USAGE / 100 || rc / 100 == LK_E_INPUT / 100 || rc == LK_E_NONFINITE;
    if (rc && (!own || rc == LK_E_CHANGED)) return rc;
    lk_error_get(&job->error, rc);
    if (rc) lk_result_free(&job->result);
    job->ended = true;
    if (queue->done) queue->done(queue->context, job);
    return LK_OK;
}

/* What a stage of job i returned: a job that cannot be done leaves the queue. */
static enum lk_code settle(struct queue *q, int i, enum lk_code rc) {
    if (!rc || !q->given) return rc;
    LK_TRY(lk_queued_end(q->given, q->given->jobs[i], rc));
    end_run(q, i);
    return LK_OK;
}

static enum lk_code each(struct queue *q, enum lk_code (*stage)(void *run)) {
    for (int i = 0; stage && i < q->n; i++)
        if (q->runs[i]) LK_TRY(settle(q, i, stage(q->runs[i])));
    return LK_OK;
}

/* All that decides what the VAE makes of reference i; empty when planning. */
static void reference_key(const struct lk_walk *w, int i, char key[65]) {
    const struct lk_reference_size *s = &w->sizes[i];
    key[0] = 0;
    if (!w->request->images[i].pixels) return;
    lk_key_begin(key, "reference");
    lk_key_add_image(key, &w->request->images[i]);
    lk_key_add(key, s, offsetof(struct lk_reference_size, converted_from)); /* the pixels have the colours */
}

/* In the request's file of embeddings, or among what was made before. */
static struct lk_kept *find_reference(const struct lk_walk *w, const char *key) {
    const char *file = w->request->prompt_embeds;
    struct lk_kept *found = NULL;
    char in_file[65];
    if (file && *key) {
        strcpy(in_file, key);
        lk_key_add(in_file, file, strlen(file));
        found = lk_kept_find(*w->kept, in_file);
    }
    return found ? found : lk_kept_find(*w->kept, key);
}

static enum lk_code encode_references(const struct queue *q, struct lk_walk *w) {
    struct lk_cost before;
    int n_made = 0;
    for (int i = 0; i < w->request->n_images; i++) {
        char key[65];
        reference_key(w, i, key);
        w->references[i] = find_reference(w, key);
        if (w->references[i]) continue;
        if (!n_made++) LK_TRY(lk_walk_begin(w, "vae_encode", &before));
        LK_TRY(q->stages->encode_reference(w, i, key));
        w->references[i]->reference = true;
    }
    if (n_made) lk_walk_note(w, "vae_encode", w->vae, 1, &before);
    return LK_OK;
}

static const struct diffusion *names_of(const struct queue *q) { return &diffusions[q->diffusing != q->stages]; }

/* The end of step i: the latents go along the velocity. */
static enum lk_code advance(const struct queue *q, struct lk_walk *w, int i) {
    struct lk_euler_step step = {.x = &w->latents, .v = &w->velocity, .dt = w->sigmas[i + 1] - w->sigmas[i]};
    const struct diffusion *names = names_of(q);
    LK_TRY(lk_trace(w->dev, &w->velocity, "%sstep.%d.velocity", names->traces, i));
    LK_TRY(q->diffusing->advance ? q->diffusing->advance(w, i) : lk_euler_step(w->dev, &step));
    LK_TRY(lk_mask_blend(w, i));
    LK_TRY(lk_trace(w->dev, &w->latents, "%sstep.%d.latents", names->traces, i));
    LK_TRY(lk_walk_check_finite(w, &w->latents, names->steps, i));
    LK_TRY(lk_walk_step_done(w, names->steps, i));
    LK_TRY(lk_preview_step(w, i));
    bool last = i + 1 == lk_walk_calls(w) || lk_walk_planning(w);
    return last ? lk_walk_keep(w, "", &w->latents, &w->final) : LK_OK;
}

/* Jobs at[0..n) step by step; each has as many steps as it wants. */
static enum lk_code denoise(struct queue *q, const int *at, int n) {
    void *active[LK_MAX_JOBS_PER_VISIT];
    for (int step = 0;; step++) {
        int n_active = 0;
        for (int k = 0; k < n; k++) {
            const struct lk_walk *w = q->runs[at[k]];
            if (w && step < (lk_walk_planning(w) ? 1 : lk_walk_calls(w))) active[n_active++] = q->runs[at[k]];
        }
        if (!n_active) return LK_OK;
        LK_TRY(q->diffusing->predict(active, n_active, step));
        for (int k = 0; k < n; k++) {
            struct lk_walk *w = q->runs[at[k]];
            if (w && step < lk_walk_calls(w)) LK_TRY(settle(q, at[k], advance(q, w, step)));
        }
    }
}

/* Prepares jobs at[0..n) and takes those out that cannot be. Returns in *n_left how many are left. */
static enum lk_code prepare(struct queue *q, int *at, int n, int *n_left) {
    void *ready[LK_MAX_JOBS_PER_VISIT];
    struct lk_cost before;
    *n_left = 0;
    for (int k = 0; k < n; k++) {
        struct lk_walk *w = ready[*n_left] = q->runs[at[k]];
        LK_TRY(lk_walk_begin(w, names_of(q)->prepare, &before));
        LK_TRY(settle(q, at[k], q->diffusing->prepare(ready, *n_left)));
        if (!q->runs[at[k]]) continue;
        at[(*n_left)++] = at[k];
        lk_walk_note(w, names_of(q)->prepare, NULL, 1, &before);
    }
    return LK_OK;
}

/* What one forward costs: of both branches' the mean. */
static void note_steps(const struct queue *q, struct lk_walk *w, struct lk_cost *before) {
    uint64_t n = (uint64_t)q->diffusing->forwards(w);
    const struct lk_cost *now = &q->dev->cost;
    before->flops = now->flops - (now->flops - before->flops) / n;
    before->bytes = now->bytes - (now->bytes - before->bytes) / n;
    int steps = q->diffusing->whole_steps ? q->diffusing->whole_steps(w) : lk_walk_calls(w);
    lk_walk_note(w, names_of(q)->steps, NULL, steps * (int)n, before);
}

/* Some jobs from their noise to the latents at a diffusion's end. */
static enum lk_code visit(struct queue *q, int *at, int n) {
    struct lk_cost before;
    size_t mark = lk_arena_mark(&q->dev->arena);
    LK_TRY(prepare(q, at, n, &n));
    for (int k = 0; k < n; k++) LK_TRY(lk_walk_begin(q->runs[at[k]], names_of(q)->steps, &before));
    LK_TRY(denoise(q, at, n));
    if (n && q->runs[at[0]]) note_steps(q, q->runs[at[0]], &before);
    lk_arena_release(&q->dev->arena, mark);
    return LK_OK;
}

static enum lk_code transform(struct queue *q, const struct lk_stages *diffusing) {
    int at[LK_MAX_JOBS_PER_VISIT], n = 0;
    q->diffusing = diffusing;
    for (int i = 0; i < q->n; i++) {
        if (q->runs[i]) at[n++] = i;
        if (n < q->most && i + 1 < q->n) continue;
        if (n) LK_TRY(visit(q, at, n));
        n = 0;
    }
    return LK_OK;
}

static enum lk_code stages(struct queue *q) {
    LK_TRY(each(q, q->stages->see));
    LK_TRY(each(q, q->stages->encode));
    const bool embeds = q->given && q->given->embeds;
    if (embeds && !q->given->references) return LK_OK;
    for (int i = 0; i < q->n; i++)
        if (q->runs[i]) LK_TRY(settle(q, i, encode_references(q, q->runs[i])));
    if (embeds) return LK_OK;
    LK_TRY(transform(q, q->stages));
    return q->stages->second ? transform(q, q->stages->second) : LK_OK;
}

/* Checks that the files are still those that were opened, and fills in the result. */
static enum lk_code record(const struct queue *q, struct lk_walk *w) {
    struct lk_result *out = w->result;
    const int n_checkpoints = w->n_checkpoints ? w->n_checkpoints : 3;
    for (int i = 0; i < n_checkpoints; i++) LK_TRY(lk_checkpoint_check(&w->checkpoints[i]));
    out->width = out->image.width;
    out->height = out->image.height;
    const double scale = w->request->true_cfg_scale > 0 ? w->request->true_cfg_scale : w->request->guidance_scale;
    out->cfg_scale = q->stages->forwards(w) > 1 ? scale : 1;
    out->n_references = w->request->n_images;
    memcpy(out->references, w->sizes, sizeof out->references);
    return LK_OK;
}

static enum lk_code decode(struct queue *q, int i) {
    struct lk_walk *w = q->runs[i];
    LK_TRY(q->stages->decode(w));
    LK_TRY(record(q, w));
    LK_TRY(lk_mask_finish(w));
    lk_cache_record(w);
    w->result->peak_bytes = q->dev->arena.peak > q->peak_bytes ? q->dev->arena.peak : q->peak_bytes;
    return LK_OK;
}

/* All stages on a device that counts for `target`; *dev gets it, for what it has learnt. */
static enum lk_code plan(struct queue *q, const struct lk_device *target, struct lk_plan *out, struct lk_device **dev) {
    LK_TRY(lk_device_plan_create(target, dev));
    for (int i = 0; i < q->n; i++) {
        struct lk_walk *w = q->runs[i];
        if (!w) continue;
        w->dev = *dev;
        w->plan = out;
    }
    q->dev = *dev;
    struct lk_kept *given = q->kept;
    enum lk_code rc = stages(q);
    if (!rc && !(q->given && q->given->embeds)) rc = each(q, q->stages->decode);
    out->arena_bytes = (*dev)->arena.peak > q->peak_bytes ? (*dev)->arena.peak : q->peak_bytes;
    out->weight_bytes = lk_device_plan_weight_bytes(*dev);
    lk_kept_cut(&q->kept, given);
    return rc;
}

static enum lk_code begin(struct queue *q, int i, struct lk_pipeline *pipeline, const struct lk_request *request,
                          struct lk_queued *job) {
    struct lk_walk *w = q->runs[i] = lk_calloc(1, q->stages->run_bytes);
    if (!w) return lk_fail(LK_E_NOMEM, "edit: out of memory");
    w->request = request;
    w->family_bit = pipeline->family->bit;
    w->dtype = pipeline->compute;
    w->result = job ? &job->result : NULL;
    lk_rng_seed(&w->own_rng, request->seed);
    w->rng = job && job->rng ? job->rng : &w->own_rng;
    w->kept = &q->kept;
    w->peak_bytes = &q->peak_bytes;
    for (int k = 0; k < request->n_images && k < LK_MAX_REFERENCES; k++) {
        w->sizes[k].source_width = request->images[k].width;
        memcpy(w->sizes[k].converted_from, request->images[k].converted_from, sizeof w->sizes[k].converted_from);
        w->sizes[k].source_height = request->images[k].height;
    }
    LK_TRY(lk_mask_begin(w));
    LK_TRY(lk_cache_begin_walk(w, pipeline));
    return q->stages->begin(w, pipeline);
}

enum lk_code lk_stages_check(const struct lk_stages *stages, struct lk_pipeline *pipeline,
                             const struct lk_request *request) {
    void *run = NULL;
    struct queue q = {.stages = stages, .n = 1, .most = 1, .runs = &run};
    struct lk_queued *job = lk_calloc(1, sizeof *job);
    enum lk_code rc = job ? begin(&q, 0, pipeline, request, job) : lk_fail(LK_E_NOMEM, "edit: out of memory");
    end_run(&q, 0);
    lk_free(job);
    return rc;
}

/* Slices and bands, which change no bit, for jobs that do not fit without. */
static void be_sparing(struct queue *q) {
    for (int i = 0; i < q->n; i++)
        if (q->runs[i]) ((struct lk_walk *)q->runs[i])->sparing = true;
}

static enum lk_code plan_and_place(struct queue *q, const struct lk_device *target, struct lk_plan *out) {
    struct lk_device *dev = NULL;
    q->peak_bytes = 0;
    enum lk_code rc = plan(q, target, out, &dev);
    if (!rc) out->device_bytes = out->least_bytes = lk_device_plan_footprint(dev, out->arena_bytes);
    if (!rc && target->memory->place) rc = lk_placement_describe(dev, target, out);
    lk_kept_free(&q->kept);
    lk_device_free(dev);
    return rc;
}

enum lk_code lk_stages_plan(const struct lk_stages *stages, struct lk_pipeline *pipeline,
                            const struct lk_device *target, const struct lk_request *request, struct lk_plan *out) {
    void *run = NULL;
    struct queue q = {.stages = stages, .runs = &run, .n = 1, .most = 1};
    enum lk_code rc = begin(&q, 0, pipeline, request, NULL);
    if (!rc) {
        stages->describe(run, out);
        out->n_references = request->n_images;
        out->n_steps = request->num_inference_steps;
        struct lk_plan sparing = *out;
        rc = plan_and_place(&q, target, out);
        if (!rc && target->memory->place) {
            be_sparing(&q);
            rc = plan_and_place(&q, target, &sparing);
            sparing.sparing = true;
            if (!out->fits) *out = sparing;
            if (sparing.least_bytes < out->least_bytes) out->least_bytes = sparing.least_bytes;
        }
    }
    end_run(&q, 0);
    return rc;
}

static enum lk_code prepare_device(struct queue *q, struct lk_device *dev) {
    struct lk_plan planned = {0};
    struct lk_device *counted = NULL;
    q->peak_bytes = 0;
    enum lk_code rc = plan(q, dev, &planned, &counted);
    if (!rc) rc = lk_placement_prepare(dev, counted, planned.arena_bytes);
    lk_device_free(counted);
    return rc;
}

static enum lk_code run(struct queue *q, struct lk_device *dev) {
    enum lk_code rc = prepare_device(q, dev);
    for (; rc / 100 == LK_E_FIT / 100 && q->most > 1; rc = prepare_device(q, dev)) q->most /= 2;
    if (rc == LK_E_FIT) {
        be_sparing(q);
        rc = prepare_device(q, dev);
    }
    if (rc || q->given->only_placed) return rc;
    q->dev = dev;
    q->peak_bytes = 0;
    for (int i = 0; i < q->n; i++) {
        struct lk_walk *w = q->runs[i];
        if (!w) continue;
        w->dev = dev;
        w->plan = NULL;
    }
    LK_TRY(stages(q));
    for (int i = 0; i < q->n; i++) {
        if (!q->runs[i] || q->given->embeds) continue;
        LK_TRY(lk_queued_end(q->given, q->given->jobs[i], decode(q, i)));
        end_run(q, i);
    }
    return LK_OK;
}

/* The file of embeddings that job i names, once for all jobs that name it. */
static enum lk_code give_embeds(struct queue *q, int i, const struct lk_pipeline *pipeline) {
    struct lk_queued *job = q->given->jobs[i];
    const char *file = job->request->prompt_embeds;
    for (int j = 0; file && j < i; j++) {
        const struct lk_queued *other = q->given->jobs[j];
        if (!*other->result.embeds_isa || strcmp(other->request->prompt_embeds, file)) continue;
        strcpy(job->result.embeds_isa, other->result.embeds_isa);
        return LK_OK;
    }
    return file ? lk_embeds_read(file, pipeline, &q->kept, job->result.embeds_isa) : LK_OK;
}

enum lk_code lk_stages_run(const struct lk_stages *stages, struct lk_pipeline *pipeline, struct lk_device *dev,
                           const struct lk_queue *queue) {
    struct queue q = {.stages = stages, .given = queue, .n = queue->n_jobs, .most = queue->jobs_per_visit};
    q.runs = lk_calloc((size_t)q.n + 1, sizeof *q.runs);
    if (queue->cache) q.kept = *queue->cache;
    enum lk_code rc = q.runs ? LK_OK : lk_fail(LK_E_NOMEM, "edit: out of memory");
    int n_live = 0;
    for (int i = 0; !rc && i < q.n; i++) {
        struct lk_queued *job = queue->jobs[i];
        if (job->ended) continue;
        rc = give_embeds(&q, i, pipeline);
        rc = settle(&q, i, rc ? rc : begin(&q, i, pipeline, job->request, job));
        n_live += q.runs[i] != NULL;
    }
    if (!rc && n_live) rc = run(&q, dev);
    if (n_live) lk_device_rest(dev);
    if (n_live) lk_arena_release(&dev->arena, 0);
    for (int i = 0; q.runs && i < q.n; i++) end_run(&q, i);
    if (queue->embeds) {
        *queue->embeds = q.kept;
        q.kept = NULL;
    }
    lk_kept_trim(&q.kept, queue->cache ? queue->cache_bytes : 0);
    if (queue->cache) *queue->cache = q.kept;
    lk_free(q.runs);
    return rc;
}
