#include "tools/cli/edit/job.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "engine/base/names.h"
#include "engine/device.h"
#include "models/embeds.h"
#include "models/recipe.h"
#include "tools/cli/cli.h"
#include "weights/config_identity.h"
#include "weights/safetensors.h"

/* What a preview could not be written for is told once; the picture is made all the same. */
static enum lk_code show(void *context, const struct lk_image *image, int step, int n_steps) {
    struct cli_preview *p = context;
    const int every = p->every ? p->every : 1;
    char text[48];
    const struct lk_png_text told = {"likeness preview", text};
    if (p->failed || (step % every && step < n_steps)) return LK_OK;
    snprintf(text, sizeof text, "step %d of %d", step, n_steps);
    if (lk_picture_write(p->file, image, LK_RECIPE_QUALITY, &told, 1)) {
        p->failed = true;
        lk_log(LK_LOG_WARNING, "--preview: %s; the pictures are made without", lk_error_text());
    }
    return LK_OK;
}

enum lk_code cli_preview_check(const char *file, bool overwrite) {
    struct stat st;
    struct lk_png_text *texts;
    bool ours = false;
    if (!file || overwrite || stat(file, &st) || !st.st_size) return LK_OK;
    if (!lk_picture_text_read(file, &texts)) {
        for (const struct lk_png_text *t = texts; t->key && !ours; t++) ours = !strncmp(t->key, "likeness", 8);
        lk_png_text_free(texts);
    }
    if (ours) return LK_OK;
    return lk_fail(LK_E_USAGE,
                   "--preview: %s: is there and is no result of likeness; name another file, or replace it with "
                   "--overwrite",
                   file);
}

enum lk_code cli_preview_attach(struct cli_preview *p, const struct lk_pipeline *pipeline, struct lk_request *request) {
    if (!p->file) return LK_OK;
    if (!lk_pipeline_has_preview(pipeline))
        return lk_fail(LK_E_USAGE, "--preview: %s has none; FLUX.2, Qwen-Image and Step1X-Edit have",
                       lk_pipeline_family(pipeline));
    request->preview = show;
    request->preview_context = p;
    return LK_OK;
}

/* --dump-steps: every named intermediate tensor of a run as NAME.safetensors, holding one tensor NAME. */

struct cli_dump {
    const char *folder;
    int n_written;
};

/* The folder is made if it is not there; LK_E_USAGE when it holds anything. */
static enum lk_code dump_open(struct cli_dump *dump, const char *folder) {
    *dump = (struct cli_dump){.folder = folder};
    if (mkdir(folder, 0777) == 0) return LK_OK;
    if (errno != EEXIST) return lk_fail_errno(errno, "--dump-steps: %s", folder);
    DIR *dir = opendir(folder);
    if (!dir) return lk_fail_errno(errno, "--dump-steps: %s", folder);
    int n = 0;
    while (readdir(dir)) n++; /* . and .. are always there */
    closedir(dir);
    if (n > 2) return lk_fail(LK_E_USAGE, "--dump-steps: %s: expected a new or empty folder", folder);
    return LK_OK;
}

/* The elements of a window lie apart on the device: they are fetched row by row. */
static enum lk_code fetch(struct lk_device *dev, const struct lk_tensor *value, unsigned char *host) {
    if (lk_tensor_is_dense(value)) return lk_download(dev, host, value);
    size_t row_bytes = (size_t)lk_tensor_row_numel(value) * lk_dtype_size(value->dtype);
    for (int64_t i = 0; i < value->shape[0]; i++) {
        struct lk_tensor row = lk_tensor_rows(value, i, 1);
        row.ld = lk_tensor_row_numel(value);
        enum lk_code rc = lk_download(dev, host + (size_t)i * row_bytes, &row);
        if (rc) return rc;
    }
    return LK_OK;
}

static enum lk_code write_tensor(void *context, struct lk_device *dev, const char *name,
                                 const struct lk_tensor *value) {
    struct cli_dump *dump = context;
    char safe[256], path[4096];
    snprintf(safe, sizeof safe, "%s", name);
    for (char *c = safe; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._-", *c)) *c = '_';
    snprintf(path, sizeof path, "%s/%s.safetensors", dump->folder, safe);
    for (int again = 2; access(path, F_OK) == 0; again++)
        snprintf(path, sizeof path, "%s/%s.%d.safetensors", dump->folder, safe, again);
    size_t bytes = lk_tensor_bytes(value);
    void *host = lk_malloc(bytes);
    if (!host) return lk_fail(LK_E_NOMEM, "%s: out of memory for %zu bytes", path, bytes);
    struct lk_st_named named = {name, lk_tensor_make(host, value->dtype, value->n_dims, value->shape)};
    enum lk_code rc = fetch(dev, value, host);
    if (!rc) rc = lk_safetensors_write(path, &named, 1, "{\"format\":\"pt\"}");
    lk_free(host);
    if (!rc) dump->n_written++;
    return rc;
}

/* Sets dev's trace function; `dump` must outlive the run. */
static void dump_attach(struct cli_dump *dump, struct lk_device *dev) {
    dev->trace = write_tensor;
    dev->trace_context = dump;
}

#define MOST_TOGETHER 128 /* jobs in a queue, whose pictures and embeddings are in memory at once */

struct item {
    struct lk_queued queued; /* first: the queue hands it back */
    struct cli_job *job;
    struct lk_image images[LK_MAX_REFERENCES];
    struct lk_recipe_run run;
};

/* What an open run holds. */
struct state {
    struct cli_jobs *jobs;
    struct item *items; /* of the jobs under way */
    struct lk_queued **queue;
    int n;
    struct lk_pipeline *pipeline;
    struct cli_devices devices;
    struct lk_device *device; /* the first of them */
    struct cli_dump dump;
    char model_name[256], weights_identity[65];
    int n_failed;
    bool told;                 /* which model is at work */
    struct lk_names looked_at; /* pictures of whose colours it was told */
    struct lk_error stop;      /* what keeps pictures from being written: no job after it can be done */
};

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

static enum lk_code progress(void *context, const char *stage, int step, int n_steps) {
    const struct state *s = context;
    enum lk_code rc = s->stop.code ? lk_error_set(&s->stop) : cli_signals_check();
    if (!rc) lk_log_progress(stage, step, n_steps, lk_log_now());
    return rc;
}

static enum lk_code choose_for(struct state *s, const struct cli_job *of, const char **chosen) {
    const struct cli_jobs *jobs = s->jobs;
    struct item *it = s->items;
    struct lk_job job = of->job;
    enum lk_code rc = LK_OK;
    for (int i = 0; i < of->n_images && !rc; i++)
        rc = lk_recipe_image_read(of->images[i], NULL, job.run.exif_transpose, &it->images[i], it->run.image_names[i],
                                  it->run.image_sha256[i]);
    job.request.images = it->images;
    job.request.n_images = of->n_images;
    const int together = jobs->n < jobs->jobs_per_visit ? jobs->n : jobs->jobs_per_visit;
    if (!rc) rc = cli_choose_quantize(jobs->model, &job, together, s->device, chosen);
    for (int i = 0; i < of->n_images; i++) lk_image_free(&it->images[i]);
    return rc;
}

/* By the first job that can be planned; what is wrong with others is told where they are done. */
static void choose_quantize(struct state *s) {
    struct cli_jobs *jobs = s->jobs;
    const char *chosen = NULL;
    for (int i = 0; i < jobs->n && !chosen; i++)
        if (choose_for(s, &jobs->list[i], &chosen)) chosen = NULL;
    for (int i = 0; i < jobs->n && chosen; i++) jobs->list[i].job.run.quantize = chosen;
}

static enum lk_code check_configs(const struct state *s) {
    const struct cli_jobs *jobs = s->jobs;
    enum lk_code rc = lk_config_identity_check(jobs->recipe, lk_pipeline_folder(s->pipeline), jobs->configs,
                                               lk_pipeline_configs(s->pipeline), NULL);
    if (rc != LK_E_CHANGED || !jobs->allow_other) return rc;
    lk_log(LK_LOG_WARNING, "%s", lk_error_text());
    return LK_OK;
}

/* A few-step LoRA with the model's own schedule makes noise. */
static void warn_of_schedule(const struct lk_loras *loras, const struct lk_request *r) {
    for (int i = 0; loras && i < loras->n && !r->input_sigmas && !r->scheduler && !r->flow_shift; i++) {
        const char *name = loras->list[i].name;
        if (!strstr(name, "ightning") && !strstr(name, "urbo")) continue;
        lk_log(LK_LOG_WARNING,
               "--lora: %s seems to be for a few steps, but the schedule is the model's own: --preset, --sigmas or "
               "--scheduler give another",
               name);
        return;
    }
}

static void warn_of_repeats(const struct lk_loras *loras) {
    for (int i = 1; loras && i < loras->n; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(loras->list[i].sha256, loras->list[k].sha256))
                lk_log(LK_LOG_WARNING, "--lora: %s is given twice: both count", loras->list[i].name);
}

static enum lk_code open_model(struct state *s) {
    const struct cli_jobs *jobs = s->jobs;
    struct lk_pipeline_options options = cli_pipeline_options(&jobs->list[0].job.run);
    options.prompt_embeds = jobs->embeds ? NULL : jobs->list[0].job.request.prompt_embeds;
    LK_TRY(lk_pipeline_open_with(&s->pipeline, jobs->model, &options));
    for (int i = 0; i < jobs->n; i++) {
        const char *output = jobs->embeds ? jobs->embeds : jobs->list[i].output;
        if (access(output, F_OK) == 0 && lies_in(output, lk_pipeline_folder(s->pipeline)))
            return lk_fail(LK_E_USAGE, "--output: %s: is a file of the model %s; name another file", output,
                           jobs->model);
    }
    if (jobs->weights_identity)
        LK_TRY(lk_pipeline_weights_check(s->pipeline, jobs->weights_identity, s->weights_identity));
    if (jobs->configs) LK_TRY(check_configs(s));
    warn_of_repeats(lk_pipeline_loras(s->pipeline));
    if (!jobs->list[0].job.request.preset) warn_of_schedule(lk_pipeline_loras(s->pipeline), &jobs->list[0].job.request);
    lk_recipe_model_name(jobs->model, s->model_name);
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

enum lk_code cli_job_check_steps(const struct lk_pipeline *pipeline, const struct lk_job *job) {
    const int steps = job->request.num_inference_steps, expected = lk_pipeline_made_for_steps(pipeline);
    if (!expected || steps == expected) return LK_OK;
    return lk_fail(LK_E_USAGE,
                   "num_inference_steps: expected %d, which %s is made for, got %d; --allow-steps runs it all the same",
                   expected, lk_pipeline_family(pipeline), steps);
}

static enum lk_code make_request(struct state *s, struct item *it) {
    struct lk_job *job = &it->job->job;
    const char *recipe = s->jobs->recipe;
    struct lk_plan plan;
    LK_TRY(lk_job_complete(job, s->pipeline, recipe));
    if (s->jobs->check_steps) LK_TRY(cli_job_check_steps(s->pipeline, job));
    job->request.images = it->images;
    job->request.n_images = it->job->n_images;
    job->request.progress = progress;
    job->request.progress_context = s;
    LK_TRY(cli_preview_attach(&s->jobs->preview, s->pipeline, &job->request));
    it->queued.request = &job->request;
    enum lk_code rc = cli_job_plan(s->pipeline, s->device, job, &plan);
    if (rc == LK_E_USAGE && recipe)
        return lk_fail_prefix(LK_E_METADATA, "%s: the recipe", recipe); /* no flag's fault */
    return rc;
}

static enum lk_code write_picture(struct state *s, struct item *it) {
    struct lk_recipe_run *run = &it->run;
    run->model = s->model_name;
    run->weights_identity = s->weights_identity;
    run->isa = s->device->architecture;
    run->pipeline = s->pipeline;
    run->job = &it->job->job;
    run->rewrite = it->job->rewrite.record;
    run->quality = it->job->quality;
    run->result = &it->queued.result;
    if (!s->weights_identity[0]) LK_TRY(lk_pipeline_weights_identity(s->pipeline, s->weights_identity));
    char *record = NULL; /* of a prompt that was rewritten when it was embedded */
    const struct lk_request *r = &it->job->job.request;
    if (!run->rewrite && r->prompt_embeds) LK_TRY(lk_embeds_rewrite(r->prompt_embeds, r->prompt, &record));
    if (record) run->rewrite = record;
    const enum lk_code rc = lk_recipe_write(it->job->output, run);
    if (record) run->rewrite = NULL;
    lk_free(record);
    return rc;
}

/* A job of a list that cannot be done: it is named, and the others go on. */
static void name_failed(struct state *s, const struct cli_job *job, const char *why) {
    lk_log(LK_LOG_ERROR, "%s: %s: %s", s->jobs->file, job->where, why);
    s->n_failed++;
}

/* A job has its picture, or an error of its own. */
static void done(void *context, struct lk_queued *queued) {
    struct state *s = context;
    struct item *it = (struct item *)queued;
    const struct lk_result *result = &queued->result;
    if (queued->error.code) {
        if (s->jobs->file) name_failed(s, it->job, queued->error.text);
        return;
    }
    if (s->stop.code) return;
    enum lk_code rc = cli_signals_check(); /* a stop asked for after the last step */
    lk_log_progress_end();
    if (!rc) rc = write_picture(s, it);
    if (rc) {
        lk_error_get(&s->stop, rc);
        return;
    }
    if (result->n_cut_ids)
        lk_log(LK_LOG_WARNING, "%s: the last %d tokens of a prompt were left out: the model does not read as many",
               it->job->output, result->n_cut_ids);
    if (result->mask_soft)
        lk_log(LK_LOG_WARNING,
               "%s: %lld pixels are neither black nor white: those from 128 on were edited, the others kept",
               it->job->job.request.mask, (long long)result->mask_soft);
    puts(it->job->output);
    if (s->jobs->file)
        lk_log(LK_LOG_INFO, "%s: %dx%d, %d steps", it->job->output, result->width, result->height, result->n_steps);
    lk_image_free(&queued->result.image);
}

/* Once for each file. */
static enum lk_code warn_of_colours(struct state *s, const char *path, bool as_stored) {
    char profile[LK_IMAGE_PROFILE_NAME];
    const size_t n = s->looked_at.n;
    int32_t ignored;
    LK_TRY(lk_names_number(&s->looked_at, path, strlen(path), &ignored));
    if (s->looked_at.n == n) return LK_OK;
    const char *unseen = lk_image_file_unseen(path);
    if (unseen) lk_log(LK_LOG_WARNING, "%s: has %s", path, unseen);
    if (lk_image_file_other_colours(path, profile))
        lk_log(
            LK_LOG_WARNING,
            as_stored
                ? "%s: has the colour profile \"%s\", which was not converted to sRGB when the recipe was written: the "
                  "model sees its numbers as sRGB again"
                : "%s: its colours are converted to sRGB from the profile \"%s\"",
            path, profile);
    return LK_OK;
}

static enum lk_code prepare(struct state *s, struct item *it) {
    const struct cli_job *job = it->job;
    for (int i = 0; i < job->n_images; i++) LK_TRY(warn_of_colours(s, job->images[i], job->as_stored[i]));
    if (job->rewrite.error.code) return lk_error_set(&job->rewrite.error);
    for (int i = 0; i < job->n_images; i++)
        LK_TRY(lk_recipe_image_read(job->images[i], job->image_sha256[i],
                                    job->job.run.exif_transpose | (job->as_stored[i] ? LK_IMAGE_AS_STORED : 0),
                                    &it->images[i], it->run.image_names[i], it->run.image_sha256[i]));
    return make_request(s, it);
}

/* Reads what jobs first to first + n need. */
static enum lk_code prepare_jobs(struct state *s, int first, int n) {
    s->n = 0;
    for (int i = 0; i < n; i++) {
        struct item *it = &s->items[s->n];
        memset(it, 0, sizeof *it);
        it->job = &s->jobs->list[first + i];
        enum lk_code rc = prepare(s, it);
        s->queue[s->n++] = &it->queued;
        if (!rc) continue;
        if (!s->jobs->file || rc / 100 > LK_E_INPUT / 100 || rc / 100 == LK_E_INTERNAL / 100) return rc;
        if (s->jobs->embeds) return lk_fail_prefix(rc, "%s: %s", s->jobs->file, it->job->where);
        name_failed(s, it->job, lk_error_text());
        for (int k = 0; k < LK_MAX_REFERENCES; k++) lk_image_free(&it->images[k]);
        s->n--;
    }
    return LK_OK;
}

/* How the prompts were rewritten, each once, for the file of their embeddings. */
static enum lk_code embed(struct state *s, struct lk_queue queue) {
    struct lk_text list = {0};
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        const char *record = s->items[i].job->rewrite.record;
        bool again = false;
        for (int k = 0; record && k < i; k++)
            again |= s->items[k].job->rewrite.record && !strcmp(record, s->items[k].job->rewrite.record);
        if (record && !again) lk_text_add(&list, "%s%s", n++ ? "," : "[", record);
    }
    if (n) lk_text_add(&list, "]");
    queue.rewrites = n ? list.bytes : NULL;
    const enum lk_code rc = list.rc ? list.rc : lk_pipeline_embed(s->pipeline, s->device, &queue, s->jobs->embeds);
    lk_text_free(&list);
    return rc;
}

static enum lk_code run_queue(struct state *s) {
    const struct lk_queue queue = {
        .jobs = s->queue, .n_jobs = s->n, .jobs_per_visit = s->jobs->jobs_per_visit, .done = done, .context = s};
    if (!s->n) return LK_OK;
    if (s->jobs->embeds) return embed(s, queue);
    enum lk_code rc = cli_devices_edit(s->pipeline, &s->devices, &queue);
    if (rc == LK_E_PARTIAL) rc = s->jobs->file ? LK_OK : lk_error_set(&s->queue[0]->error);
    return s->stop.code ? lk_error_set(&s->stop) : rc;
}

static enum lk_code run_all(struct state *s, int together) {
    for (int first = 0; first < s->jobs->n; first += together) {
        int n = s->jobs->n - first < together ? s->jobs->n - first : together;
        enum lk_code rc = prepare_jobs(s, first, n);
        if (!rc) {
            if (!s->told)
                lk_log(LK_LOG_INFO, "%s in %s on %s", lk_pipeline_family(s->pipeline), s->jobs->list[0].job.run.dtype,
                       s->device->name);
            s->told = true;
            rc = run_queue(s);
        }
        lk_log_progress_end();
        for (int i = 0; i < s->n; i++) {
            for (int k = 0; k < LK_MAX_REFERENCES; k++) lk_image_free(&s->items[i].images[k]);
            lk_result_free(&s->items[i].queued.result);
        }
        if (rc) return rc;
    }
    return LK_OK;
}

static enum lk_code run(struct state *s) {
    struct cli_jobs *jobs = s->jobs;
    int together = jobs->embeds || (jobs->n < MOST_TOGETHER && !jobs->next) ? jobs->n : MOST_TOGETHER;
    LK_TRY(cli_devices_open(&jobs->list[0].job.run, &s->devices));
    s->device = s->devices.list[0];
    for (int i = 0; i < jobs->n && s->devices.n > 1; i++) jobs->list[i].job.run.device = "cuda"; /* for the recipe */
    LK_TRY(cli_jobs_check(jobs));
    s->items = lk_calloc((size_t)together, sizeof *s->items);
    s->queue = lk_calloc((size_t)together, sizeof *s->queue);
    if (!s->items || !s->queue) return lk_fail(LK_E_NOMEM, "out of memory for %d jobs", together);
    if (jobs->auto_quantize) choose_quantize(s);
    LK_TRY(open_model(s));
    if (jobs->dump_steps) LK_TRY(dump_open(&s->dump, jobs->dump_steps));
    if (jobs->dump_steps) dump_attach(&s->dump, s->device);
    cli_signals_install();
    double started = lk_log_now();
    LK_TRY(run_all(s, together));
    while (jobs->next) {
        LK_TRY(jobs->next(jobs));
        if (!jobs->n) return LK_OK;
        LK_TRY(cli_jobs_check(jobs));
        LK_TRY(run_all(s, together));
    }
    char took[32];
    lk_log_duration(lk_log_now() - started, took);
    const struct lk_result *result = &s->items[0].queued.result;
    if (jobs->embeds)
        puts(jobs->embeds);
    else if (jobs->file)
        lk_log(LK_LOG_INFO, "%d of %d jobs, %s", jobs->n - s->n_failed, jobs->n, took);
    else
        lk_log(LK_LOG_INFO, "%dx%d, %d steps, %s", result->width, result->height, result->n_steps, took);
    if (jobs->dump_steps) lk_log(LK_LOG_INFO, "%d tensors in %s", s->dump.n_written, jobs->dump_steps);
    if (!s->n_failed) return LK_OK;
    return lk_fail(s->n_failed < jobs->n ? LK_E_PARTIAL : LK_E_INPUT, "%s: %d of %d jobs failed", jobs->file,
                   s->n_failed, jobs->n);
}

enum lk_code cli_jobs_run(struct cli_jobs *jobs) {
    struct state *s = lk_calloc(1, sizeof *s);
    if (!s) return lk_fail(LK_E_NOMEM, "out of memory");
    s->jobs = jobs;
    enum lk_code rc = run(s);
    lk_pipeline_close(s->pipeline);
    cli_devices_free(&s->devices);
    lk_names_free(&s->looked_at);
    lk_free(s->items);
    lk_free(s->queue);
    lk_free(s);
    return rc;
}
