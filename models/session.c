#include "models/session.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/store.h"

struct lk_session {
    char model[256], identity[65];
    struct lk_pipeline *pipeline;
    struct lk_device *device;
    struct lk_job job;              /* as it is set */
    struct lk_store options, texts; /* behind the job's texts: those of the run, those of the request */
    struct lk_image images[LK_MAX_REFERENCES];
    int n_images;
    struct lk_recipe_run run; /* names and digests of the images; the last run's when `made` */
    struct lk_job ran;
    struct lk_result result;
    bool made;
    char *recipe;
    void *png;
    lk_session_progress_fn *progress;
    void *context;
    lk_session_preview_fn *preview;
    void *preview_context;
};

static const struct lk_parameter *find(const char *name) {
    for (size_t i = 0; i < lk_n_parameters; i++)
        if (!strcmp(lk_parameters[i].key, name)) return &lk_parameters[i];
    return lk_parameter_named(name);
}

static enum lk_code set(struct lk_session *s, const char *name, const char *value, enum lk_parameter_place place) {
    const struct lk_parameter *p = find(name);
    if (!p || p->place != place)
        return lk_fail(LK_E_USAGE, "\"%.80s\": no such %s%s", name,
                       place == LK_IN_RUN ? "option of a session" : "parameter of a request",
                       !p                   ? ""
                       : place == LK_IN_RUN ? "; it is set for each run"
                                            : "; it is given when the session is opened");
    const char *kept = lk_store_text(place == LK_IN_RUN ? &s->options : &s->texts, value);
    return kept ? lk_parameter_parse(p, &s->job, p->key, kept) : lk_fail(LK_E_NOMEM, "%s: out of memory", p->key);
}

static enum lk_code open_device(const struct lk_job_run *run, struct lk_device **out) {
    int index = 0, length = 0;
    if (!strcmp(run->device, "cpu")) return lk_device_cpu_create(run->threads, out);
    if (strcmp(run->device, "cuda") &&
        (sscanf(run->device, "cuda:%4d%n", &index, &length) != 1 || run->device[length] || index < 0))
        return lk_fail(
            LK_E_USAGE,
            "device \"%.80s\": expected cpu, cuda or cuda:INDEX (plan and study plan also take sm_80, an A100, and the "
            "like)",
            run->device);
    LK_TRY(lk_device_cuda_create(index, out));
    (*out)->budget.bytes = run->vram;
    (*out)->budget.host_bytes = run->host_ram;
    return LK_OK;
}

static enum lk_code open_parts(struct lk_session *s, const char *model, const char *const *options) {
    struct lk_job_run *run = &s->job.run;
    lk_job_init(&s->job);
    for (; options && *options; options += 2) {
        if (!options[1]) return lk_fail(LK_E_USAGE, "\"%.80s\": expected a value", *options);
        LK_TRY(set(s, options[0], options[1], LK_IN_RUN));
    }
    if (strcmp(run->weights, "own") || !strcmp(run->quantize, "auto"))
        return lk_fail(LK_E_USAGE, "a session has its weights on one device, and quantize is none, q8 or nf4");
    LK_TRY(open_device(run, &s->device));
    LK_TRY(lk_pipeline_open_with(&s->pipeline, model,
                                 &(struct lk_pipeline_options){.compute = strcmp(run->dtype, "f32") ? LK_BF16 : LK_F32,
                                                               .quantize = lk_quantize_named(run->quantize),
                                                               .transformer = run->transformer,
                                                               .loras = run->loras,
                                                               .n_loras = run->n_loras,
                                                               .variant = run->variant}));
    lk_recipe_model_name(model, s->model);
    return lk_pipeline_weights_identity(s->pipeline, s->identity);
}

enum lk_code lk_session_open(struct lk_session **out, const char *model, const char *const *options) {
    struct lk_session *s = lk_calloc(1, sizeof *s);
    *out = NULL;
    if (!s) return lk_fail(LK_E_NOMEM, "%s: out of memory", model);
    enum lk_code rc = open_parts(s, model, options);
    if (rc)
        lk_session_close(s);
    else
        *out = s;
    return rc;
}

static void forget_picture(struct lk_session *s) {
    if (s->made) lk_result_free(&s->result);
    lk_free(s->recipe);
    lk_free(s->png);
    s->recipe = NULL;
    s->png = NULL;
    s->made = false;
}

void lk_session_clear(struct lk_session *s) {
    struct lk_job fresh;
    forget_picture(s);
    for (int i = 0; i < s->n_images; i++) lk_image_free(&s->images[i]);
    s->n_images = 0;
    lk_job_init(&fresh);
    for (size_t i = 0; i < lk_n_parameters; i++)
        if (lk_parameters[i].place == LK_IN_RUN) lk_parameter_copy(&lk_parameters[i], &fresh, &s->job);
    lk_job_free(&s->job);
    s->job = fresh;
    lk_store_free(&s->texts);
}

void lk_session_close(struct lk_session *s) {
    if (!s) return;
    lk_session_clear(s);
    lk_pipeline_close(s->pipeline);
    if (s->device) lk_device_free(s->device);
    lk_job_free(&s->job);
    lk_store_free(&s->options);
    lk_free(s);
}

const char *lk_session_family(const struct lk_session *s) { return lk_pipeline_family(s->pipeline); }
const char *lk_session_device(const struct lk_session *s) { return s->device->name; }

enum lk_code lk_session_set(struct lk_session *s, const char *name, const char *value) {
    return set(s, name, value, LK_IN_REQUEST);
}

static enum lk_code check_room(const struct lk_session *s) {
    return s->n_images < LK_MAX_REFERENCES
               ? LK_OK
               : lk_fail(LK_E_USAGE, "reference images: expected at most %d", LK_MAX_REFERENCES);
}

enum lk_code lk_session_image_file(struct lk_session *s, const char *path) {
    const int i = s->n_images;
    LK_TRY(check_room(s));
    LK_TRY(lk_recipe_image_read(path, NULL, s->job.run.exif_transpose, &s->images[i], s->run.image_names[i],
                                s->run.image_sha256[i]));
    s->n_images++;
    return LK_OK;
}

enum lk_code lk_session_image(struct lk_session *s, const unsigned char *pixels, int width, int height, int channels) {
    const int i = s->n_images;
    LK_TRY(check_room(s));
    LK_TRY(lk_image_new(&s->images[i], width, height, channels));
    const size_t n = (size_t)width * (size_t)height * (size_t)channels;
    memcpy(s->images[i].pixels, pixels, n);
    snprintf(s->run.image_names[i], sizeof s->run.image_names[i], "pixels");
    lk_sha256(pixels, n, s->run.image_sha256[i]);
    s->n_images++;
    return LK_OK;
}

static enum lk_code tell(void *context, const char *stage, int step, int n_steps) {
    struct lk_session *s = context;
    if (!s->progress || !s->progress(s->context, stage, step, n_steps)) return LK_OK;
    return lk_fail(LK_E_INTERRUPTED, "stopped by the caller");
}

static enum lk_code show(void *context, const struct lk_image *image, int step, int n_steps) {
    struct lk_session *s = context;
    const int stop = s->preview(s->preview_context, image->pixels, image->width, image->height, step, n_steps);
    return stop ? lk_fail(LK_E_INTERRUPTED, "stopped by the preview function in step %d of %d", step, n_steps) : LK_OK;
}

void lk_session_preview(struct lk_session *s, lk_session_preview_fn *preview, void *context) {
    s->preview = preview, s->preview_context = context;
}

enum lk_code lk_session_run(struct lk_session *s, lk_session_progress_fn *progress, void *context) {
    forget_picture(s);
    s->ran = s->job;
    s->progress = progress, s->context = context;
    LK_TRY(lk_job_complete(&s->ran, s->pipeline, NULL));
    struct lk_request *request = &s->ran.request;
    request->images = s->images;
    request->n_images = s->n_images;
    request->progress = tell;
    request->progress_context = s;
    request->preview = s->preview ? show : NULL;
    request->preview_context = s;
    LK_TRY(lk_pipeline_edit(s->pipeline, s->device, request, &s->result));
    s->made = true;
    s->run.model = s->model;
    s->run.weights_identity = s->identity;
    s->run.isa = s->device->architecture;
    s->run.pipeline = s->pipeline;
    s->run.job = &s->ran;
    s->run.result = &s->result;
    return LK_OK;
}

const unsigned char *lk_session_pixels(const struct lk_session *s, int *width, int *height) {
    *width = s->made ? s->result.image.width : 0;
    *height = s->made ? s->result.image.height : 0;
    return s->made ? s->result.image.pixels : NULL;
}

const char *lk_session_recipe(struct lk_session *s) {
    char *parameters = NULL;
    if (s->made && !s->recipe && lk_recipe_make(&s->run, &s->recipe, &parameters)) s->recipe = NULL;
    lk_free(parameters);
    return s->recipe;
}

static enum lk_code check_made(const struct lk_session *s) {
    return s->made ? LK_OK : lk_fail(LK_E_USAGE, "expected a picture, got none: call lk_session_run before");
}

enum lk_code lk_session_save(struct lk_session *s, const char *path) {
    LK_TRY(check_made(s));
    return lk_recipe_write(path, &s->run);
}

const void *lk_session_encode(struct lk_session *s, size_t *n_bytes) {
    *n_bytes = 0;
    if (check_made(s)) return NULL;
    lk_free(s->png);
    s->png = NULL;
    return lk_recipe_encode("picture", &s->run, &s->png, n_bytes) ? NULL : s->png;
}
