/* Finds the family of a model and hands everything to it. */
#include "models/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "engine/bf16.h"
#include "models/cascade/cascade.h"
#include "models/common/files.h"
#include "models/embeds.h"
#include "models/common/preview.h"
#include "models/family.h"
#include "models/parameters.h"
#include "models/common/queue.h"
#include "models/ranks.h"
#include "models/sd/single_file.h"
#include "weights/checkpoint.h"
#include "weights/config.h"
#include "weights/config_identity.h"

const struct lk_family *const lk_families[] = {&lk_family_flux2,
                                               &lk_family_qwen_edit,
                                               &lk_family_step1x,
                                               &lk_family_sd,
                                               &lk_family_sdxl,
                                               &lk_family_cascade,
                                               NULL};
#define N_FAMILIES (sizeof lk_families / sizeof *lk_families - 1)

/* The list's own copy of the name, NULL if it is not there. */
static const char *is_listed(const char *const list[LK_MAX_VARIANTS], const char *name) {
    for (int i = 0; i < LK_MAX_VARIANTS && list[i]; i++)
        if (!strcmp(list[i], name)) return list[i];
    return NULL;
}

static enum lk_code unknown_class(const char *path, const char *class_name) {
    char known[512] = "";
    for (size_t i = 0, used = 0; i < N_FAMILIES; i++)
        for (int j = 0; j < LK_MAX_VARIANTS && lk_families[i]->pipeline_classes[j] && used < sizeof known; j++)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                                     lk_families[i]->pipeline_classes[j]);
    return lk_fail(LK_E_MODEL_UNKNOWN, "%s: field \"_class_name\": expected one of %s, got %s", path, known,
                   class_name ? class_name : "nothing");
}

static enum lk_code family_of_folder(const char *folder, const struct lk_family **out) {
    char *path;
    struct lk_config *json;
    const char *class_name = NULL;
    LK_TRY(lk_model_path(folder, "model_index.json", &path));
    enum lk_code rc = lk_config_open(&json, path);
    if (!rc) {
        lk_config_string(json, "_class_name", &class_name);
        for (size_t i = 0; class_name && i < N_FAMILIES; i++)
            if (is_listed(lk_families[i]->pipeline_classes, class_name)) *out = lk_families[i];
        if (!*out) rc = unknown_class(path, class_name);
        lk_config_discard(json);
    }
    lk_free(path);
    return rc;
}

static enum lk_code open_family(struct lk_pipeline *p, const struct lk_pipeline_options *options) {
    if (!p->family) {
        LK_TRY(family_of_folder(p->folder, &p->family));
        p->name = p->family->names[0];
    }
    if (p->variant && !p->family->text_to_image)
        return lk_fail(LK_E_USAGE, "--variant: %s has none; leave it out", p->name);
    if (options->n_loras && p->family->text_to_image && !(p->family->bit & LK_FOR_BOTH_SD))
        return lk_fail(LK_E_USAGE, "lora: %s takes none yet: the editing models and Stable Diffusion do", p->name);
    if (options->n_loras)
        LK_TRY((p->family->bit & LK_FOR_BOTH_SD ? lk_loras_open_whole : lk_loras_open)(
            &p->loras, options->loras, options->n_loras, p->has_weights));
    return p->family->open(p, p->has_weights);
}

static bool is_single_file(const char *model) {
    static const char ending[] = ".safetensors";
    const size_t n = strlen(model), m = sizeof ending - 1;
    return n > m && !strcmp(model + n - m, ending);
}

/* All weights of a model in one file, which is Stable Diffusion's: of the others there are files of the transformer. */
static enum lk_code find_single_file(struct lk_pipeline *p, const char *path) {
    const char *slash = strrchr(path, '/');
    LK_TRY(lk_sd_single_file_family(path, &p->family));
    p->name = p->family->names[0];
    p->single_file = lk_strdup(path);
    p->folder = slash ? lk_format("%.*s", (int)(slash - path + (slash == path)), path) : lk_strdup(".");
    return p->single_file && p->folder ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", path);
}

/* The folder of a path or a repository; a released model's name stands for its repository, unless there is a folder of
 * that name. */
static enum lk_code find_folder(const char *model, char **out) {
    enum lk_code rc = lk_model_find(model, out);
    for (size_t f = 0; rc == LK_E_NOT_FOUND && f < N_FAMILIES; f++)
        for (int i = 0; i < LK_MAX_VARIANTS && lk_families[f]->names[i]; i++)
            if (!strcmp(lk_families[f]->names[i], model) && lk_families[f]->repositories[i])
                return lk_model_find(lk_families[f]->repositories[i], out);
    return rc;
}

/* With the identity of the configs that the family reads. */
static enum lk_code open_folder(struct lk_pipeline *p, const char *model, const struct lk_pipeline_options *options) {
    LK_TRY(is_single_file(model) ? find_single_file(p, model) : find_folder(model, &p->folder));
    if (!p->single_file) LK_TRY(lk_cascade_enter(&p->folder));
    LK_TRY(lk_config_identity_begin(p->folder));
    const enum lk_code opened = open_family(p, options), rc = lk_config_identity_end(opened, &p->configs);
    if (rc && !opened) p->family->close(p);
    return rc;
}

enum lk_code lk_pipeline_open_with(struct lk_pipeline **out, const char *model,
                                   const struct lk_pipeline_options *options) {
    const enum lk_dtype compute = options->compute;
    const bool with_weights = !options->configs;
    *out = NULL;
    if (compute != LK_F32 && compute != LK_BF16)
        return lk_fail(LK_E_USAGE, "dtype: expected f32 or bf16, got %s", lk_dtype_name(compute));
    struct lk_pipeline *p = lk_calloc(1, sizeof *p);
    if (!p) return lk_fail(LK_E_NOMEM, "%s: out of memory", model);
    p->compute = compute;
    p->quantize = options->quantize;
    p->transformer = options->transformer;
    p->variant = options->variant;
    p->prompt_embeds = options->prompt_embeds;
    p->has_weights = with_weights;
    for (size_t i = 0; !with_weights && i < N_FAMILIES; i++) {
        if ((p->name = is_listed(lk_families[i]->names, model))) {
            p->family = lk_families[i];
            break;
        }
    }
    enum lk_code rc = p->family ? open_family(p, options) : open_folder(p, model, options);
    p->transformer = p->variant = p->prompt_embeds = NULL;
    const bool editing = !rc && !p->family->text_to_image;
    if (editing && with_weights && (rc = lk_lora_merged(&p->family->checkpoints(p)[1].shards[0], &p->merged)))
        p->family->close(p);
    if (rc) {
        lk_free(p->configs);
        lk_loras_close(p->loras);
        lk_free(p->single_file);
        lk_free(p->folder);
        lk_free(p);
        return rc;
    }
    *out = p;
    return LK_OK;
}

enum lk_code lk_pipeline_open(struct lk_pipeline **out, const char *model, enum lk_dtype compute) {
    return lk_pipeline_open_with(out, model, &(struct lk_pipeline_options){.compute = compute});
}

enum lk_code lk_pipeline_open_configs(struct lk_pipeline **out, const char *model, enum lk_dtype compute) {
    return lk_pipeline_open_with(out, model, &(struct lk_pipeline_options){.compute = compute, .configs = true});
}

void lk_pipeline_close(struct lk_pipeline *pipeline) {
    if (!pipeline) return;
    pipeline->family->close(pipeline);
    lk_loras_close(pipeline->loras);
    lk_free(pipeline->merged);
    lk_free(pipeline->configs);
    lk_free(pipeline->single_file);
    lk_free(pipeline->folder);
    lk_free(pipeline);
}

bool lk_model_info(int i, struct lk_model_info *out) {
    for (int variant = 0; variant < LK_MAX_VARIANTS; variant++) {
        for (size_t f = 0; f < N_FAMILIES; f++) {
            if (!lk_families[f]->names[variant]) continue;
            if (i-- > 0) continue;
            *out = (struct lk_model_info){lk_families[f]->names[variant], lk_families[f]->repositories[variant],
                                          !variant && !lk_families[f]->text_to_image,
                                          lk_families[f]->only_planned &&
                                              !strcmp(lk_families[f]->only_planned, lk_families[f]->names[variant])};
            return true;
        }
    }
    return false;
}

void lk_pipeline_quantization(const struct lk_pipeline *pipeline, char out[96]) {
    const unsigned formats = pipeline->family->quantized(pipeline);
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < LK_DTYPE_COUNT - LK_FIRST_QUANTIZED && n < 96; i++)
        if (formats >> i & 1)
            n += (size_t)snprintf(out + n, 96 - n, "%s%s", n ? " " : "",
                                  lk_dtype_name((enum lk_dtype)(LK_FIRST_QUANTIZED + i)));
}

int lk_pipeline_made_for_steps(const struct lk_pipeline *p) { return p->family->made_for_steps; }
bool lk_pipeline_has_preview(const struct lk_pipeline *pipeline) {
    return lk_preview_map_of(pipeline->family->bit) != NULL;
}

const char *lk_pipeline_family(const struct lk_pipeline *pipeline) { return pipeline->name; }
bool lk_pipeline_takes_images(const struct lk_pipeline *pipeline) { return !pipeline->family->text_to_image; }
const char *lk_pipeline_folder(const struct lk_pipeline *pipeline) {
    return pipeline->single_file ? pipeline->single_file : pipeline->folder;
}
const struct lk_loras *lk_pipeline_loras(const struct lk_pipeline *pipeline) { return pipeline->loras; }
double lk_pipeline_weight_norm(const struct lk_pipeline *pipeline, const char *layer) {
    char *name = lk_format("%s.weight", layer);
    const struct lk_st_tensor *t = name ? lk_checkpoint_find(&pipeline->family->checkpoints(pipeline)[1], name) : NULL;
    double sum = 0;
    lk_free(name);
    if (!t || (t->tensor.dtype != LK_BF16 && t->tensor.dtype != LK_F32)) return 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int64_t i = 0; i < lk_tensor_numel(&t->tensor); i++) {
        float value;
        uint16_t half;
        if (t->tensor.dtype == LK_F32) {
            memcpy(&value, (const unsigned char *)t->tensor.data + 4 * i, sizeof value);
        } else {
            memcpy(&half, (const unsigned char *)t->tensor.data + 2 * i, sizeof half);
            value = lk_bf16_to_f32(half);
        }
        sum += (double)value * (double)value;
    }
    return sqrt(sum);
}

const char *lk_pipeline_merged(const struct lk_pipeline *pipeline) { return pipeline->merged; }
const char *lk_pipeline_configs(const struct lk_pipeline *pipeline) { return pipeline->configs; }

enum lk_code lk_pipeline_weights_identity(const struct lk_pipeline *pipeline, char out[65]) {
    out[0] = 0;
    if (!pipeline->has_weights)
        return lk_fail(LK_E_INTERNAL, "a pipeline opened for planning has no weights to identify");
    return lk_components_identity(pipeline->family->checkpoints(pipeline), lk_family_n_checkpoints(pipeline->family),
                                  pipeline->text_identity, lk_checkpoint_identity, out);
}

enum lk_code lk_pipeline_weights_check(const struct lk_pipeline *pipeline, const char *expected, char got[65]) {
    char of_cache[65];
    LK_TRY(lk_pipeline_weights_identity(pipeline, got));
    if (!strcmp(got, expected)) return LK_OK;
    LK_TRY(lk_components_identity(pipeline->family->checkpoints(pipeline), lk_family_n_checkpoints(pipeline->family),
                                  pipeline->text_identity, lk_checkpoint_identity_of_cache, of_cache));
    if (!strcmp(of_cache, expected)) return LK_OK;
    return lk_fail(LK_E_CHANGED, "%s: expected the weights %s, got %s", pipeline->folder, expected, got);
}

void lk_request_init(struct lk_request *request, const struct lk_pipeline *pipeline) {
    *request = (struct lk_request){0};
    const struct lk_family *family = pipeline->family;
    family->defaults(request);
    for (int i = 0; i < LK_MAX_VARIANTS && family->names[i]; i++)
        if (family->steps[i] && !strcmp(family->names[i], pipeline->name))
            request->num_inference_steps = family->steps[i];
}

static enum lk_code check_request(const struct lk_pipeline *pipeline, const struct lk_request *r) {
    if (r->n_images < 0 || r->n_images > LK_MAX_REFERENCES)
        return lk_fail(LK_E_USAGE, "reference images: expected 0 to %d, got %d", LK_MAX_REFERENCES, r->n_images);
    if (pipeline->text_identity[0] && !r->prompt_embeds)
        return lk_fail(LK_E_NOT_FOUND,
                       "%s/text_encoder: not there: without it each prompt must be in a file of `embed`, which "
                       "--prompt-embeds names",
                       pipeline->folder);
    return lk_request_check(r, pipeline);
}

enum lk_code lk_pipeline_plan(struct lk_pipeline *pipeline, const struct lk_device *target,
                              const struct lk_request *request, struct lk_plan *out) {
    LK_TRY(check_request(pipeline, request));
    if (target && target->budget.n_ranks) LK_TRY(lk_ranks_check(request));
    *out = (struct lk_plan){.family = pipeline->name};
    return lk_stages_plan(pipeline->family->stages, pipeline, target, request, out);
}

enum lk_code lk_pipeline_check(struct lk_pipeline *pipeline, const struct lk_request *request) {
    if (!pipeline->has_weights)
        return lk_fail(LK_E_INTERNAL, "a pipeline opened for planning has no tokenizer to check with");
    LK_TRY(check_request(pipeline, request));
    return lk_stages_check(pipeline->family->stages, pipeline, request);
}

static enum lk_code check_queue(const struct lk_pipeline *pipeline, const struct lk_queue *queue) {
    if (!pipeline->has_weights)
        return lk_fail(LK_E_INTERNAL, "a pipeline opened for planning has no weights to edit with");
    if (queue->jobs_per_visit < 1 || queue->jobs_per_visit > LK_MAX_JOBS_PER_VISIT)
        return lk_fail(LK_E_USAGE, "jobs_per_visit: expected 1 to %d, got %d", LK_MAX_JOBS_PER_VISIT,
                       queue->jobs_per_visit);
    return LK_OK;
}

enum lk_code lk_pipeline_edit_queue(struct lk_pipeline *pipeline, struct lk_device *dev, const struct lk_queue *queue) {
    int n_failed = 0;
    enum lk_code rc = check_queue(pipeline, queue);
    for (int i = 0; i < queue->n_jobs; i++) {
        struct lk_queued *job = queue->jobs[i];
        job->result = (struct lk_result){0};
        lk_error_get(&job->error, rc ? rc : check_request(pipeline, job->request));
        job->ended = job->error.code != LK_OK;
        if (!rc && job->ended && queue->done) queue->done(queue->context, job);
    }
    if (rc) return rc;
    const struct lk_family *f = pipeline->family;
    rc = f->edit ? f->edit(pipeline, dev, queue) : lk_stages_run(f->stages, pipeline, dev, queue);
    for (int i = 0; i < queue->n_jobs; i++) {
        struct lk_queued *job = queue->jobs[i];
        if (!job->ended) lk_result_free(&job->result);
        if (!job->ended) lk_error_get(&job->error, rc);
        n_failed += job->error.code != LK_OK;
    }
    if (rc) return rc;
    return n_failed ? lk_fail(LK_E_PARTIAL, "%d of %d jobs failed", n_failed, queue->n_jobs) : LK_OK;
}

enum lk_code lk_pipeline_edit(struct lk_pipeline *pipeline, struct lk_device *dev, const struct lk_request *request,
                              struct lk_result *result) {
    *result = (struct lk_result){0};
    struct lk_queued *job = lk_calloc(1, sizeof *job);
    if (!job) return lk_fail(LK_E_NOMEM, "edit: out of memory");
    job->request = request;
    enum lk_code rc =
        lk_pipeline_edit_queue(pipeline, dev, &(struct lk_queue){.jobs = &job, .n_jobs = 1, .jobs_per_visit = 1});
    if (rc) rc = lk_error_set(&job->error);
    *result = job->result;
    lk_free(job);
    return rc;
}

enum lk_code lk_pipeline_embed(struct lk_pipeline *pipeline, struct lk_device *dev, const struct lk_queue *queue,
                               const char *path) {
    struct lk_kept *embeds = NULL;
    struct lk_queue encode = *queue;
    encode.embeds = &embeds;
    encode.references = true;
    encode.cache = NULL;
    enum lk_code rc = lk_pipeline_edit_queue(pipeline, dev, &encode);
    for (int i = 0; rc == LK_E_PARTIAL && i < queue->n_jobs; i++)
        if (queue->jobs[i]->error.code) rc = lk_error_set(&queue->jobs[i]->error);
    if (!rc) rc = lk_embeds_write(path, pipeline, embeds, dev->architecture, queue->rewrites);
    lk_kept_free(&embeds);
    return rc;
}

void lk_result_free(struct lk_result *result) {
    lk_image_free(&result->image);
    for (int i = 0; i < result->n_rounds; i++) {
        lk_free(result->rounds[i].prompt);
        lk_free(result->rounds[i].reflection);
        lk_free(result->rounds[i].reason);
    }
    result->n_rounds = 0;
}
