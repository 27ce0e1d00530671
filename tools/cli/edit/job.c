#include "tools/cli/edit/job.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/base/utf8.h"
#include "kernels/cuda/runtime/rivals.h"
#include "tools/cli/edit/dump.h"
#include "tools/cli/edit/recipe.h"
#include "tools/cli/core/signals.h"
#include "weights/mapped_file.h"
#include "engine/base/digest.h"

#define MAX_IMAGE_BYTES ((size_t)512 << 20)

/* What an open job holds. */
struct state {
    const struct cli_job *job;
    struct lk_image images[LK_MAX_REFERENCES];
    struct lk_pipeline *pipeline;
    struct lk_device *device;
    struct lk_request request;
    struct lk_result result;
    struct cli_dump dump;
    struct cli_run run;
    char model_name[256], weights_identity[65];
};

/* "cuda" or "cuda:INDEX". */
static bool parse_cuda(const char *name, int *index) {
    char rest;
    *index = 0;
    if (!strcmp(name, "cuda")) return true;
    return name[4] == ':' && name[5] >= '0' && name[5] <= '9' && strlen(name) < 9 &&
           sscanf(name, "cuda:%d%c", index, &rest) == 1;
}

enum lk_code cli_device_open(const char *name, int threads, struct lk_device **out) {
    int index;
    *out = NULL;
    if (!strcmp(name, "cpu")) return lk_device_cpu_create(threads, out);
    if (strncmp(name, "cuda", 4) || !parse_cuda(name, &index))
        return lk_fail(LK_E_USAGE, "--device %s: expected cpu, cuda or cuda:INDEX", name);
    enum lk_code rc = lk_device_cuda_create(index, out);
    return rc ? lk_fail_prefix(rc, "--device %s", name) : LK_OK;
}

enum lk_code cli_device_choose(struct lk_device *dev, const char *gemm, const char *conv) {
    enum lk_code rc = lk_cuda_choose(dev, gemm, NULL);
    if (rc) return lk_fail_prefix(rc, "--gemm %s", gemm);
    rc = lk_cuda_choose(dev, NULL, conv);
    return rc ? lk_fail_prefix(rc, "--conv %s", conv) : LK_OK;
}

/* The last part of a path, without its folder. */
static void base_name(const char *path, char *out, size_t size) {
    char *copy = lk_strdup(path);
    snprintf(out, size, "%s", copy ? basename(copy) : "");
    lk_free(copy);
}

/* Found out before the long run: a place that cannot be written to. */
static enum lk_code check_output(const char *path) {
    struct stat s;
    if (stat(path, &s) == 0 && S_ISDIR(s.st_mode))
        return lk_fail(LK_E_USAGE, "--output: %s: is a folder; name a file in it", path);
    char *copy = lk_strdup(path);
    if (!copy) return lk_fail(LK_E_NOMEM, "--output: out of memory");
    const char *folder = dirname(copy);
    enum lk_code rc = LK_OK;
    if (stat(folder, &s) || !S_ISDIR(s.st_mode))
        rc = lk_fail(LK_E_NOT_FOUND, "--output: %s: no such folder", folder);
    else if (access(folder, W_OK))
        rc = lk_fail(LK_E_IO, "--output: %s: the folder cannot be written to", folder);
    lk_free(copy);
    return rc;
}

/* Digest and pixels from the same bytes. */
static enum lk_code read_image(struct state *s, int i) {
    const char *path = s->job->images[i], *expected = s->job->image_sha256[i];
    char *bytes;
    size_t n_bytes;
    enum lk_code rc = lk_read_file(path, MAX_IMAGE_BYTES, &bytes, &n_bytes);
    if (rc) return rc;
    lk_sha256(bytes, n_bytes, s->run.image_sha256[i]);
    base_name(path, s->run.image_names[i], sizeof s->run.image_names[i]);
    if (expected && strcmp(expected, s->run.image_sha256[i]))
        rc = lk_fail(LK_E_CHANGED, "%s: expected the image with SHA-256 %s, got %s", path, expected,
                     s->run.image_sha256[i]);
    if (!rc) rc = lk_image_decode(&s->images[i], bytes, n_bytes, path, s->job->exif_transpose, 0);
    lk_free(bytes);
    return rc;
}

static enum lk_code progress(void *context, const char *stage, int step, int n_steps) {
    (void)context;
    enum lk_code rc = cli_signals_check();
    if (!rc) lk_log_progress(stage, step, n_steps, lk_log_now());
    return rc;
}

static enum lk_code open_model(struct state *s) {
    const struct cli_job *job = s->job;
    enum lk_code rc = lk_pipeline_open(&s->pipeline, job->model, job->dtype);
    if (rc) return rc;
    if (job->weights_identity) {
        rc = lk_pipeline_weights_identity(s->pipeline, s->weights_identity);
        if (rc) return rc;
        if (strcmp(job->weights_identity, s->weights_identity))
            return lk_fail(LK_E_CHANGED, "%s: expected the weights %s, got %s", job->model, job->weights_identity,
                           s->weights_identity);
    }
    /* A folder is recorded by its own name, a repository as it was written. */
    struct stat st;
    char *real = stat(job->model, &st) == 0 ? realpath(job->model, NULL) : NULL;
    base_name(real ? real : job->model, s->model_name, sizeof s->model_name);
    if (!real) snprintf(s->model_name, sizeof s->model_name, "%s", job->model);
    free(real);
    return LK_OK;
}

/* What was asked for and the model does not have. */
static enum lk_code check_options(const struct state *s) {
    const struct cli_job *job = s->job;
    const struct lk_request *r = &s->request;
    const struct {
        const char *option;
        bool given, has;
    } options[] = {
        {"--guidance-scale", job->guidance_scale >= 0, r->guidance_scale != 0},
        {"--true-cfg-scale", job->true_cfg_scale >= 0, r->true_cfg_scale != 0},
        {"--negative-prompt", job->negative_prompt != NULL, r->true_cfg_scale != 0},
        {"--size-level", job->size_level != 0, r->size_level != 0},
        {"--thinking-mode", job->thinking_mode, r->max_try_cnt != 0},
        {"--reflection-mode", job->reflection_mode, r->max_try_cnt != 0},
        {"--max-try-cnt", job->max_try_cnt != 0, r->max_try_cnt != 0},
        {"--prompts-file", job->prompts_file != NULL, r->max_try_cnt != 0},
        {"--text-encoder-out-layers", job->n_out_layers != 0, r->n_text_encoder_out_layers != 0},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given && !options[i].has)
            return lk_fail(LK_E_USAGE, "%s: %s has no such parameter; leave it out", options[i].option,
                           lk_pipeline_family(s->pipeline));
    return LK_OK;
}

static enum lk_code make_request(struct state *s) {
    const struct cli_job *job = s->job;
    struct lk_request *r = &s->request;
    lk_request_init(r, s->pipeline);
    LK_TRY(check_options(s));
    r->images = s->images;
    r->n_images = job->n_images;
    r->prompt = job->prompt;
    if (job->negative_prompt) r->negative_prompt = job->negative_prompt;
    if (job->seed >= 0) r->seed = (uint64_t)job->seed;
    if (job->true_cfg_scale >= 0) r->true_cfg_scale = job->true_cfg_scale;
    if (job->size_level) r->size_level = job->size_level;
    r->vae_tiling = job->vae_tiling;
    r->thinking_mode = job->thinking_mode;
    r->reflection_mode = job->reflection_mode;
    r->prompts_file = job->prompts_file;
    if (job->max_try_cnt) r->max_try_cnt = job->max_try_cnt;
    r->width = job->width;
    r->height = job->height;
    r->progress = progress;
    if (job->num_inference_steps) r->num_inference_steps = job->num_inference_steps;
    if (job->max_sequence_length) r->max_sequence_length = job->max_sequence_length;
    if (job->guidance_scale >= 0) r->guidance_scale = job->guidance_scale;
    if (job->n_out_layers) {
        memcpy(r->text_encoder_out_layers, job->out_layers, sizeof job->out_layers);
        r->n_text_encoder_out_layers = job->n_out_layers;
    }
    return LK_OK;
}

static enum lk_code write_picture(struct state *s) {
    const struct cli_job *job = s->job;
    struct cli_run *run = &s->run;
    run->model = s->model_name;
    run->family = lk_pipeline_family(s->pipeline);
    run->weights_identity = s->weights_identity;
    run->dtype = lk_dtype_name(job->dtype);
    run->device = job->device;
    run->isa = s->device->architecture;
    run->gemm = strcmp(job->gemm, "own") ? job->gemm : NULL;
    run->conv = strcmp(job->conv, "own") ? job->conv : NULL;
    run->rng = job->rng;
    run->exif_transpose = job->exif_transpose;
    run->request = &s->request;
    run->result = &s->result;
    char *json, *parameters;
    enum lk_code rc = LK_OK;
    if (!s->weights_identity[0]) rc = lk_pipeline_weights_identity(s->pipeline, s->weights_identity);
    if (!rc) rc = cli_recipe_make(run, &json, &parameters);
    if (rc) return rc;
    const struct lk_png_text texts[] = {{"parameters", parameters}, {"likeness", json}};
    rc = lk_png_write(job->output, &s->result.image, texts, 2);
    lk_free(json);
    lk_free(parameters);
    return rc;
}

/* Before the weights are opened: the tokenizer would find it later. */
static enum lk_code check_prompt(const char *option, const char *prompt) {
    if (!prompt) return LK_OK;
    size_t length = strlen(prompt), valid = lk_utf8_valid_prefix(prompt, length);
    if (valid == length) return LK_OK;
    return lk_fail(LK_E_PROMPT, "%s: byte %zu: expected UTF-8, got 0x%02x; convert the text to UTF-8", option, valid,
                   (unsigned char)prompt[valid]);
}

static enum lk_code run(struct state *s) {
    const struct cli_job *job = s->job;
    enum lk_code rc = cli_device_open(job->device, job->threads, &s->device);
    if (!rc) rc = cli_device_choose(s->device, job->gemm, job->conv);
    if (!rc) rc = check_prompt("--prompt", job->prompt);
    if (!rc) rc = check_prompt("--negative-prompt", job->negative_prompt);
    if (!rc) rc = check_output(job->output);
    for (int i = 0; i < job->n_images && !rc; i++) rc = read_image(s, i);
    if (!rc) rc = open_model(s);
    if (!rc && job->dump_steps) rc = cli_dump_open(&s->dump, job->dump_steps);
    if (rc) return rc;
    if (job->dump_steps) cli_dump_attach(&s->dump, s->device);
    LK_TRY(make_request(s));
    cli_signals_install();
    lk_log(LK_LOG_INFO, "%s in %s on %s", lk_pipeline_family(s->pipeline), lk_dtype_name(job->dtype), s->device->name);
    double started = lk_log_now();
    rc = lk_pipeline_edit(s->pipeline, s->device, &s->request, &s->result);
    if (!rc) rc = cli_signals_check(); /* a stop asked for after the last step */
    lk_log_progress_end();
    if (!rc) rc = write_picture(s);
    if (rc) return rc;
    char took[32];
    lk_log_duration(lk_log_now() - started, took);
    lk_log(LK_LOG_INFO, "%dx%d, %d steps, %s", s->result.width, s->result.height, s->result.n_steps, took);
    if (job->dump_steps) lk_log(LK_LOG_INFO, "%d tensors in %s", s->dump.n_written, job->dump_steps);
    puts(job->output);
    return LK_OK;
}

enum lk_code cli_job_run(const struct cli_job *job) {
    struct state *s = lk_calloc(1, sizeof *s);
    if (!s) return lk_fail(LK_E_NOMEM, "out of memory");
    s->job = job;
    enum lk_code rc = run(s);
    lk_result_free(&s->result);
    lk_pipeline_close(s->pipeline);
    if (s->device) lk_device_free(s->device);
    for (int i = 0; i < LK_MAX_REFERENCES; i++) lk_image_free(&s->images[i]);
    lk_free(s);
    return rc;
}
