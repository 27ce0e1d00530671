#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/rewrite.h"

/* FILE_s7.png of FILE.png. */
static char *name_seed(const char *output, uint64_t seed) {
    const char *slash = strrchr(output, '/'), *dot = strrchr(slash ? slash : output, '.');
    const size_t n = dot ? (size_t)(dot - output) : strlen(output);
    return lk_format("%.*s_s%" PRIu64 "%s", (int)n, output, seed, output + n);
}

static void free_seeds(struct cli_jobs *jobs) {
    for (int i = 0; i < jobs->n; i++) lk_free((char *)(uintptr_t)jobs->list[i].output);
    lk_free(jobs->list);
}

/* The same job with one seed after another, as a list. */
static enum lk_code make_seeds(struct cli_jobs *jobs, const struct cli_job *job, int n) {
    if (!job->output) return lk_fail(LK_E_USAGE, "--output: missing: the pictures' file");
    if (jobs->dump_steps) return lk_fail(LK_E_USAGE, "--dump-steps: is of one edit; leave it out");
    if (job->job.request.seed > (uint64_t)(INT64_MAX - n))
        return lk_fail(LK_E_USAGE, "--num-images: expected a seed that %d can follow, got %" PRIu64, n - 1,
                       job->job.request.seed);
    if (!(jobs->list = lk_calloc((size_t)n, sizeof *jobs->list))) return lk_fail(LK_E_NOMEM, "edit: out of memory");
    jobs->file = "edit";
    for (int i = 0; i < n; i++) {
        struct cli_job *to = &jobs->list[jobs->n++];
        *to = *job;
        to->job.request.seed += (uint64_t)i;
        snprintf(to->where, sizeof to->where, "seed %" PRIu64, to->job.request.seed);
        if (!(to->output = name_seed(job->output, to->job.request.seed)))
            return lk_fail(LK_E_NOMEM, "edit: out of memory");
    }
    return LK_OK;
}

static int n_seeds(const struct cli_arguments *a) { return (int)(a->n_seeds ? a->n_seeds : a->num_images); }

/* What `edit` and `embed` are told: one job, or a list of them. */
static enum lk_code run(const struct cli_arguments *a, struct cli_jobs *jobs) {
    struct cli_job job = {.job = a->job, .n_images = a->n_images, .output = a->output, .quality = (int)a->quality};
    memcpy(job.images, a->images, sizeof job.images);
    jobs->model = a->model;
    jobs->file = a->jobs;
    jobs->jobs_per_visit = (int)a->jobs_per_visit;
    jobs->auto_quantize = a->auto_quantize;
    const bool seeds = n_seeds(a) > 1;
    if (!jobs->file && !seeds) {
        jobs->list = &job;
        jobs->n = 1;
    }
    enum lk_code rc = seeds ? make_seeds(jobs, &job, n_seeds(a)) : jobs->file ? cli_jobs_read(jobs, &job) : LK_OK;
    if (!rc && a->rewrite.prompts) rc = cli_rewrite_jobs(a, jobs);
    if (!rc) rc = cli_jobs_run(jobs);
    cli_rewrite_jobs_free(jobs);
    if (seeds)
        free_seeds(jobs);
    else if (jobs->file)
        cli_jobs_free(jobs);
    return rc;
}

enum lk_code cli_edit(const struct cli_arguments *a) {
    struct cli_jobs jobs = {.dump_steps = a->dump_steps,
                            .preview = {a->preview, (int)a->preview_every, false},
                            .overwrite = a->overwrite,
                            .check_steps = !a->allow_steps};
    if (a->jobs && (a->output || a->dump_steps || a->preview))
        return lk_fail(LK_E_USAGE, "--%s: is of one edit; with --jobs %s",
                       a->output       ? "output"
                       : a->dump_steps ? "dump-steps"
                                       : "preview",
                       a->output ? "each line has its own \"output\"" : "leave it out");
    if (a->n_seeds && a->num_images)
        return lk_fail(LK_E_USAGE, "--num-images: --seed is a range already; leave one of them out");
    if (a->jobs && n_seeds(a))
        return lk_fail(LK_E_USAGE, "--%s: each line of --jobs has its own seed; leave one of them out",
                       a->n_seeds ? "seed" : "num-images");
    return run(a, &jobs);
}

enum lk_code cli_embed(const struct cli_arguments *a) {
    struct cli_jobs jobs = {.embeds = a->output};
    return run(a, &jobs);
}
