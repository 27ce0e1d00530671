#include <string.h>

#include "tools/cli/cli.h"
#include "tools/cli/edit/rewrite.h"

/* What `edit` and `embed` are told: one job, or a list of them. */
static enum lk_code run(const struct cli_arguments *a, struct cli_jobs *jobs) {
    struct cli_job job = {.job = a->job, .n_images = a->n_images, .output = a->output, .quality = (int)a->quality};
    memcpy(job.images, a->images, sizeof job.images);
    jobs->model = a->model;
    jobs->file = a->jobs;
    jobs->jobs_per_visit = (int)a->jobs_per_visit;
    jobs->auto_quantize = a->auto_quantize;
    if (!jobs->file) {
        jobs->list = &job;
        jobs->n = 1;
    }
    enum lk_code rc = jobs->file ? cli_jobs_read(jobs, &job) : LK_OK;
    if (!rc && a->rewrite.prompts) rc = cli_rewrite_jobs(a, jobs);
    if (!rc) rc = cli_jobs_run(jobs);
    cli_rewrite_jobs_free(jobs);
    if (jobs->file) cli_jobs_free(jobs);
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
    return run(a, &jobs);
}

enum lk_code cli_embed(const struct cli_arguments *a) {
    struct cli_jobs jobs = {.embeds = a->output};
    return run(a, &jobs);
}
