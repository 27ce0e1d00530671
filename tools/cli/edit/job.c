#include "tools/cli/edit/job.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
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
#define LEFT_FREE ((uint64_t)1 << 30) /* of a GPU's memory, or an eighth if that is less */

struct state {
    struct cli_job *job;
    struct lk_image images[LK_MAX_REFERENCES];
    struct lk_pipeline *pipeline;
    struct lk_device *device;
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

enum lk_dtype cli_dtype(const struct lk_job_run *run) { return strcmp(run->dtype, "f32") ? LK_BF16 : LK_F32; }

struct lk_pipeline_options cli_pipeline_options(const struct lk_job_run *run) {
    return (struct lk_pipeline_options){
        .compute = cli_dtype(run), .quantize = lk_quantize_named(run->quantize), .transformer = run->transformer};
}

static enum lk_code open_device(const struct lk_job_run *run, struct lk_device **out) {
    int index;
    *out = NULL;
    if (!strcmp(run->device, "cpu")) return lk_device_cpu_create(run->threads, out);
    if (strncmp(run->device, "cuda", 4) || !parse_cuda(run->device, &index))
        return lk_fail(LK_E_USAGE, "--device %s: expected cpu, cuda or cuda:INDEX", run->device);
    enum lk_code rc = lk_device_cuda_create(index, out);
    return rc ? lk_fail_prefix(rc, "--device %s", run->device) : LK_OK;
}

/* What was asked for, or what is free but for what others may come to want. */
static enum lk_code set_budget(const struct lk_job_run *run, struct lk_device *dev) {
    struct lk_device_room room;
    if (!dev->memory->place) {
        if (!run->vram) return LK_OK;
        return lk_fail(
            LK_E_USAGE,
            "--vram: --device %s computes in the machine's memory, of which weights take what is free; leave "
            "it out, or use --device cuda (of plan also sm_80 or sm_90, GPUs that need not be there)",
            run->device);
    }
    dev->budget.bytes = run->vram;
    if (run->vram) return LK_OK;
    LK_TRY(dev->memory->room(dev, 0, &room));
    dev->budget.bytes = room.bytes + room.needed_beside - (room.bytes / 8 < LEFT_FREE ? room.bytes / 8 : LEFT_FREE);
    return LK_OK;
}

enum lk_code cli_device_open(const struct lk_job_run *run, struct lk_device **out) {
    LK_TRY(open_device(run, out));
    enum lk_code rc = set_budget(run, *out);
    if (!rc && (rc = lk_cuda_choose(*out, run->gemm, NULL))) rc = lk_fail_prefix(rc, "--gemm %s", run->gemm);
    if (!rc) {
        rc = lk_cuda_choose(*out, NULL, run->conv);
        if (rc) rc = lk_fail_prefix(rc, "--conv %s", run->conv);
    }
    if (rc) {
        lk_device_free(*out);
        *out = NULL;
    }
    return rc;
}

/* The last part of a path, without its folder. */
static void base_name(const char *path, char *out, size_t size) {
    char *copy = lk_strdup(path);
    snprintf(out, size, "%s", copy ? basename(copy) : "");
    lk_free(copy);
}

static bool same_file(const char *path, const struct stat *s) {
    struct stat other;
    return stat(path, &other) == 0 && other.st_dev == s->st_dev && other.st_ino == s->st_ino;
}

/* Whether an existing file lies in a folder or below it, by the place where it is named. */
static bool lies_in(const char *path, const char *folder) {
    char *copy = lk_strdup(path), *place = copy ? realpath(dirname(copy), NULL) : NULL, *real = realpath(folder, NULL);
    size_t n = real ? strlen(real) : 0;
    bool inside = place && real && !strncmp(place, real, n) && (place[n] == '/' || !place[n]);
    free(place);
    free(real);
    lk_free(copy);
    return inside;
}

/* An existing file that the run reads. */
static enum lk_code check_overwrite(const struct cli_job *job, const struct stat *existing) {
    const char *output = job->output;
    for (int i = 0; i < job->n_images; i++)
        if (same_file(job->images[i], existing))
            return lk_fail(LK_E_USAGE, "--output: %s: is the image %s itself; name another file", output,
                           job->images[i]);
    if (job->recipe && same_file(job->recipe, existing))
        return lk_fail(LK_E_USAGE, "--output: %s: is the picture to make again; name another file", output);
    return LK_OK;
}

/* Found out before the long run: a name that is none, a file that is needed, a place that cannot be written to. */
static enum lk_code check_output(const struct cli_job *job) {
    struct stat s;
    const char *path = job->output, *dot = strrchr(path, '.');
    if (!strcmp(path, "-"))
        return lk_fail(LK_E_USAGE, "--output: expected a file's name: a picture is not written to standard output");
    bool exists = stat(path, &s) == 0;
    if (exists && S_ISDIR(s.st_mode)) return lk_fail(LK_E_USAGE, "--output: %s: is a folder; name a file in it", path);
    if (!dot || strcasecmp(dot, ".png"))
        return lk_fail(LK_E_USAGE, "--output: %s: expected a name that ends in .png, the format that is written", path);
    if (exists) LK_TRY(check_overwrite(job, &s));
    char *copy = lk_strdup(path);
    if (!copy) return lk_fail(LK_E_NOMEM, "--output: out of memory");
    const char *folder = dirname(copy);
    enum lk_code rc = LK_OK;
    if (stat(folder, &s) || !S_ISDIR(s.st_mode))
        rc = lk_fail(LK_E_NOT_FOUND, "--output: %s: no such folder", folder);
    else if (access(folder, W_OK))
        rc = lk_fail(LK_E_IO, "--output: %s: the folder cannot be written to", folder);
    else if (lstat(path, &s) && errno == ENAMETOOLONG)
        rc = lk_fail(LK_E_IO, "--output: %.64s...: the name is too long for its folder (%zu bytes); name it shorter",
                     path, strlen(path));
    lk_free(copy);
    return rc;
}

/* Digest and pixels from the same bytes. */
enum lk_code cli_image_read(const char *path, const char *expected, bool exif_transpose, struct lk_image *out,
                            char name[256], char sha256[65]) {
    char *bytes;
    size_t n_bytes;
    enum lk_code rc = lk_read_file(path, MAX_IMAGE_BYTES, &bytes, &n_bytes);
    if (rc) return rc;
    lk_sha256(bytes, n_bytes, sha256);
    base_name(path, name, 256);
    if (expected && strcmp(expected, sha256))
        rc = lk_fail(LK_E_CHANGED, "%s: expected the image with SHA-256 %s, got %s", path, expected, sha256);
    if (!rc) rc = lk_image_decode(out, bytes, n_bytes, path, exif_transpose, 0);
    lk_free(bytes);
    return rc;
}

static enum lk_code progress(void *context, const char *stage, int step, int n_steps) {
    (void)context;
    enum lk_code rc = cli_signals_check();
    if (!rc) lk_log_progress(stage, step, n_steps, lk_log_now());
    return rc;
}

void cli_model_name(const char *model, char out[256]) {
    struct stat st;
    char *real = stat(model, &st) == 0 ? realpath(model, NULL) : NULL;
    if (real) base_name(real, out, 256);
    if (!real) snprintf(out, 256, "%s", model);
    free(real);
}

static enum lk_code open_model(struct state *s) {
    const struct cli_job *job = s->job;
    const struct lk_pipeline_options options = cli_pipeline_options(&job->job.run);
    enum lk_code rc = lk_pipeline_open_with(&s->pipeline, job->model, &options);
    if (rc) return rc;
    if (access(job->output, F_OK) == 0 && lies_in(job->output, lk_pipeline_folder(s->pipeline)))
        return lk_fail(LK_E_USAGE, "--output: %s: is a file of the model %s; name another file", job->output,
                       job->model);
    if (job->weights_identity) {
        rc = lk_pipeline_weights_identity(s->pipeline, s->weights_identity);
        if (rc) return rc;
        if (strcmp(job->weights_identity, s->weights_identity))
            return lk_fail(LK_E_CHANGED, "%s: expected the weights %s, got %s", job->model, job->weights_identity,
                           s->weights_identity);
    }
    cli_model_name(job->model, s->model_name);
    return LK_OK;
}

/* A side that was asked for and would be rounded is refused: nobody asks for 17 to get 16. */
static enum lk_code check_side(const char *name, int asked, const struct lk_plan *plan) {
    int below = asked / plan->multiple * plan->multiple;
    if (asked == below) return LK_OK;
    return lk_fail(LK_E_USAGE, "%s: expected a multiple of %d, got %d; %d is the next", name, plan->multiple, asked,
                   below + plan->multiple);
}

enum lk_code cli_job_plan(struct lk_pipeline *pipeline, const struct lk_device *target, const struct lk_job *job,
                          struct lk_plan *out) {
    LK_TRY(lk_pipeline_plan(pipeline, target, &job->request, out));
    LK_TRY(check_side("width", job->request.width, out));
    return check_side("height", job->request.height, out);
}

static enum lk_code make_request(struct state *s) {
    struct lk_job *job = &s->job->job;
    LK_TRY(lk_job_complete(job, s->pipeline, s->job->recipe));
    job->request.images = s->images;
    job->request.n_images = s->job->n_images;
    job->request.progress = progress;
    struct lk_plan plan;
    enum lk_code rc = cli_job_plan(s->pipeline, s->device, job, &plan);
    if (rc == LK_E_USAGE && s->job->recipe) /* not the fault of a flag */
        return lk_fail_prefix(LK_E_METADATA, "%s: the recipe", s->job->recipe);
    return rc;
}

enum lk_code cli_picture_write(const char *path, const struct cli_run *run) {
    struct lk_job job = *run->job;
    struct cli_run made = *run;
    char *json, *parameters;
    job.request.width = run->result->width;
    job.request.height = run->result->height;
    made.job = &job;
    LK_TRY(cli_recipe_make(&made, &json, &parameters));
    const struct lk_png_text texts[] = {{"parameters", parameters}, {"likeness", json}};
    enum lk_code rc = lk_png_write(path, &run->result->image, texts, 2);
    lk_free(json);
    lk_free(parameters);
    return rc;
}

static enum lk_code write_picture(struct state *s) {
    struct cli_run *run = &s->run;
    run->model = s->model_name;
    run->weights_identity = s->weights_identity;
    run->isa = s->device->architecture;
    run->pipeline = s->pipeline;
    run->job = &s->job->job;
    run->result = &s->result;
    if (!s->weights_identity[0]) LK_TRY(lk_pipeline_weights_identity(s->pipeline, s->weights_identity));
    return cli_picture_write(s->job->output, run);
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
    const struct lk_request *request = &job->job.request;
    LK_TRY(cli_device_open(&job->job.run, &s->device));
    LK_TRY(check_prompt("--prompt", request->prompt));
    LK_TRY(check_prompt("--negative-prompt", request->negative_prompt));
    LK_TRY(check_output(job));
    for (int i = 0; i < job->n_images; i++)
        LK_TRY(cli_image_read(job->images[i], job->image_sha256[i], job->job.run.exif_transpose, &s->images[i],
                              s->run.image_names[i], s->run.image_sha256[i]));
    LK_TRY(open_model(s));
    if (job->dump_steps) LK_TRY(cli_dump_open(&s->dump, job->dump_steps));
    if (job->dump_steps) cli_dump_attach(&s->dump, s->device);
    LK_TRY(make_request(s));
    cli_signals_install();
    lk_log(LK_LOG_INFO, "%s in %s on %s", lk_pipeline_family(s->pipeline), job->job.run.dtype, s->device->name);
    double started = lk_log_now();
    enum lk_code rc = lk_pipeline_edit(s->pipeline, s->device, request, &s->result);
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

enum lk_code cli_job_run(struct cli_job *job) {
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
