#include "tools/cli/edit/job.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "tools/cli/cli.h"

enum lk_code cli_rewriter_open(struct cli_rewriter *out, const struct cli_arguments *a, const char *model) {
    *out = (struct cli_rewriter){0};
    LK_TRY(cli_devices_open(&a->job.run, &out->devices));
    LK_TRY(lk_rewriter_open(&out->rewriter, a->rewrite.model ? a->rewrite.model : model, a->rewrite.prompts,
                            cli_dtype(&a->job.run), out->devices.list[0]));
    out->rewriter.temperature = a->rewrite.temperature;
    out->rewriter.seed = a->job.request.seed;
    lk_log(LK_LOG_INFO, "prompts are rewritten by %s in style %s", out->rewriter.name, out->rewriter.texts.style);
    return LK_OK;
}

void cli_rewriter_close(struct cli_rewriter *r) {
    lk_rewriter_close(&r->rewriter);
    cli_devices_free(&r->devices);
}

/* Some jobs' pictures, while they are asked about. */
struct batch {
    struct lk_rewrite jobs[LK_REWRITE_SLOTS];
    struct lk_image images[LK_REWRITE_SLOTS][LK_MAX_REFERENCES];
    struct cli_job *of[LK_REWRITE_SLOTS];
    int n;
};

static enum lk_code read_pictures(struct lk_image *out, const char *const *paths, int n, bool exif_transpose) {
    for (int i = 0; i < n; i++) LK_TRY(lk_image_read(&out[i], paths[i], exif_transpose, 0));
    return LK_OK;
}

static void batch_free(struct batch *b) {
    for (int i = 0; i < b->n; i++) {
        lk_rewrite_free(&b->jobs[i]);
        for (int k = 0; k < LK_MAX_REFERENCES; k++) lk_image_free(&b->images[i][k]);
    }
    b->n = 0;
}

static enum lk_code set_prompt(struct cli_job *job, const char *record, const char *text) {
    job->rewrite.record = lk_strdup(record);
    job->rewrite.text = lk_strdup(text);
    if (!job->rewrite.record || !job->rewrite.text) return lk_fail(LK_E_NOMEM, "rewrite: out of memory");
    return lk_parameter_parse(lk_parameter_named("prompt"), &job->job, "", job->rewrite.text);
}

static enum lk_code finish(const struct lk_rewriter *r, const struct lk_rewrite *made, struct cli_job *job) {
    struct lk_text record = {0};
    if (!made->text) {
        lk_error_get(&job->rewrite.error, lk_fail(LK_E_INPUT, "prompt: %s", made->error));
        return LK_OK;
    }
    lk_rewrite_record(r, made, &record);
    enum lk_code rc = record.rc ? record.rc : set_prompt(job, record.bytes, made->text);
    lk_text_free(&record);
    return rc;
}

static enum lk_code run_batch(const struct lk_rewriter *r, struct batch *b) {
    enum lk_code rc = lk_rewrite(r, b->jobs, b->n, cli_signals_check);
    for (int i = 0; i < b->n && !rc; i++) rc = finish(r, &b->jobs[i], b->of[i]);
    batch_free(b);
    return rc;
}

/* The job before this one that asks for the same. */
static int same_before(const struct cli_jobs *jobs, int i) {
    const struct cli_job *job = &jobs->list[i];
    for (int k = 0; k < i; k++) {
        const struct cli_job *other = &jobs->list[k];
        bool same = other->n_images == job->n_images && !strcmp(other->rewrite.original, job->rewrite.original) &&
                    other->job.run.exif_transpose == job->job.run.exif_transpose;
        for (int m = 0; same && m < job->n_images; m++) same = !strcmp(other->images[m], job->images[m]);
        if (same) return k;
    }
    return -1;
}

static enum lk_code ask_all(struct cli_rewriter *r, struct cli_jobs *jobs, struct batch *b) {
    for (int i = 0; i < jobs->n; i++) {
        struct cli_job *job = &jobs->list[i];
        if (!(job->rewrite.original = lk_strdup(job->job.request.prompt)))
            return lk_fail(LK_E_NOMEM, "rewrite: out of memory");
        if (same_before(jobs, i) >= 0) continue;
        const int at = b->n++;
        b->of[at] = job;
        enum lk_code rc = read_pictures(b->images[at], job->images, job->n_images, job->job.run.exif_transpose);
        b->jobs[at] =
            (struct lk_rewrite){.images = b->images[at], .n_images = job->n_images, .prompt = job->rewrite.original};
        if (rc == LK_E_NOMEM || (rc && !jobs->file)) return rc;
        if (rc) { /* the edit names it again */
            lk_error_get(&job->rewrite.error, rc);
            for (int k = 0; k < LK_MAX_REFERENCES; k++) lk_image_free(&b->images[at][k]);
            b->n--;
        }
        if (b->n == LK_REWRITE_SLOTS) LK_TRY(run_batch(&r->rewriter, b));
    }
    LK_TRY(run_batch(&r->rewriter, b));
    for (int i = 0; i < jobs->n; i++) {
        struct cli_job *job = &jobs->list[i];
        const struct cli_job *from = same_before(jobs, i) < 0 ? NULL : &jobs->list[same_before(jobs, i)];
        if (from && from->rewrite.error.code) job->rewrite.error = from->rewrite.error;
        if (from && from->rewrite.text) LK_TRY(set_prompt(job, from->rewrite.record, from->rewrite.text));
    }
    return LK_OK;
}

enum lk_code cli_rewrite_jobs(const struct cli_arguments *a, struct cli_jobs *jobs) {
    struct cli_rewriter r;
    struct batch *b = lk_calloc(1, sizeof *b);
    if (!b) return lk_fail(LK_E_NOMEM, "rewrite: out of memory");
    cli_signals_install();
    enum lk_code rc = cli_rewriter_open(&r, a, jobs->model);
    if (!rc) rc = ask_all(&r, jobs, b);
    batch_free(b);
    lk_free(b);
    cli_rewriter_close(&r);
    return rc;
}

void cli_rewrite_jobs_free(struct cli_jobs *jobs) {
    for (int i = 0; i < jobs->n; i++) {
        lk_free(jobs->list[i].rewrite.original);
        lk_free(jobs->list[i].rewrite.record);
        lk_free(jobs->list[i].rewrite.text);
        jobs->list[i].rewrite.original = jobs->list[i].rewrite.record = jobs->list[i].rewrite.text = NULL;
    }
}

/* One prompt, as `likeness rewrite` has it. */
static enum lk_code rewrite_one(const struct cli_arguments *a, struct lk_rewriter *r, const char *prompt,
                                struct lk_rewrite *out) {
    struct lk_image images[LK_MAX_REFERENCES] = {0};
    enum lk_code rc = read_pictures(images, a->images, a->n_images, a->job.run.exif_transpose);
    *out = (struct lk_rewrite){.images = images, .n_images = a->n_images, .prompt = prompt};
    if (!rc) rc = lk_rewrite(r, out, 1, cli_signals_check);
    out->images = NULL;
    for (int i = 0; i < LK_MAX_REFERENCES; i++) lk_image_free(&images[i]);
    if (!rc && !out->text) rc = lk_fail(LK_E_INPUT, "prompt: %s", out->error);
    return rc;
}

enum lk_code cli_rewrite(const struct cli_arguments *a) {
    struct cli_rewriter r;
    struct lk_rewrite made = {0};
    struct lk_text record = {0};
    if (!a->rewrite.prompts) return lk_fail(LK_E_USAGE, "--rewrite-prompts: missing: the file of the authors' texts");
    cli_signals_install();
    enum lk_code rc = cli_rewriter_open(&r, a, a->model);
    if (!rc) rc = rewrite_one(a, &r.rewriter, a->job.request.prompt, &made);
    if (!rc && a->json) lk_rewrite_record(&r.rewriter, &made, &record);
    if (!rc) rc = record.rc;
    if (!rc) puts(a->json ? record.bytes : made.text);
    lk_text_free(&record);
    lk_rewrite_free(&made);
    cli_rewriter_close(&r);
    return rc;
}

enum lk_code cli_rewrite_again(const struct cli_arguments *a, const struct lk_recipe *recipe) {
    struct cli_rewriter r;
    struct lk_rewrite made = {0};
    if (!recipe->rewrite)
        return lk_fail(LK_E_USAGE, "--rewrite-prompts: %s: its prompt was not rewritten; leave it out", a->positional);
    cJSON *record = cJSON_Parse(recipe->rewrite);
    const char *original = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(record, "original"));
    const cJSON *seed = cJSON_GetObjectItemCaseSensitive(record, "seed"),
                *temperature = cJSON_GetObjectItemCaseSensitive(record, "temperature");
    enum lk_code rc = original && cJSON_IsNumber(seed) && cJSON_IsNumber(temperature)
                          ? LK_OK
                          : lk_fail(LK_E_METADATA, "%s: the recipe's \"rewrite\" is damaged", a->positional);
    cli_signals_install();
    if (!rc)
        rc = cli_rewriter_open(&r, a, a->model);
    else
        r = (struct cli_rewriter){0};
    if (!rc) {
        r.rewriter.seed = (uint64_t)seed->valuedouble;
        r.rewriter.temperature = temperature->valuedouble;
        rc = rewrite_one(a, &r.rewriter, original, &made);
    }
    if (!rc && strcmp(made.text, recipe->job.request.prompt))
        rc = lk_fail(LK_E_CONFLICT, "%s: rewritten again, its prompt is \"%.200s\" instead of \"%.200s\"",
                     a->positional, made.text, recipe->job.request.prompt);
    lk_rewrite_free(&made);
    cli_rewriter_close(&r);
    cJSON_Delete(record);
    return rc;
}
