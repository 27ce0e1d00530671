#include <string.h>

#include "engine/base/log.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"
#include "tools/cli/edit/recipe.h"

/* Whether this build can be expected to give the recorded bits at all. */
static enum lk_code check(const struct cli_recipe *r, const struct cli_arguments *a) {
    if (r->numerics_version != CLI_NUMERICS_VERSION)
        lk_log(LK_LOG_WARNING, "made with numerics version %lld, this is %d: the bits may differ",
               (long long)r->numerics_version, CLI_NUMERICS_VERSION);
    if (!r->configs)
        lk_log(
            LK_LOG_WARNING,
            "made by version %s, which did not record the model's configs: a scheduler or tokenizer that was changed "
            "since shows only in the values below, or in the pixels",
            r->version);
    if (r->text_encoder_isa && !a->job.request.prompt_embeds)
        lk_log(LK_LOG_WARNING,
               "its prompts were encoded on %s, by `embed`: without that file (--prompt-embeds) the bits "
               "will differ",
               r->text_encoder_isa);
    if (r->n_images != a->n_images)
        return lk_fail(LK_E_USAGE, "--image: expected the recipe's images, %d of them in its order (see: show), got %d",
                       r->n_images, a->n_images);
    return LK_OK;
}

/* What computed then, where it can again: NVIDIA's libraries need a cuda device. */
static void choose_library(const char **library, const struct cli_recipe *r, const struct lk_job *given) {
    if (!strcmp(*library, "own") || !strncmp(given->run.device, "cuda", 4)) return;
    lk_log(LK_LOG_WARNING, "made on %s with %s, this is %s: the bits will differ", r->job.run.device, *library,
           given->run.device);
    *library = "own";
}

void cli_rerun_job(struct lk_job *job, const struct cli_recipe *r, const struct lk_job *given) {
    *job = *given;
    for (size_t i = 0; i < lk_n_parameters; i++)
        if (!lk_parameters[i].machine) lk_parameter_copy(&lk_parameters[i], job, &r->job);
    choose_library(&job->run.gemm, r, given);
    choose_library(&job->run.conv, r, given);
}

enum lk_code cli_rerun(const struct cli_arguments *a) {
    struct cli_recipe r;
    enum lk_code rc = cli_recipe_read(&r, a->positional);
    if (rc) return rc;
    rc = check(&r, a);
    if (!rc) {
        struct cli_job job = {.n_images = a->n_images, .output = a->output};
        struct cli_jobs jobs = {.list = &job,
                                .n = 1,
                                .model = a->model,
                                .jobs_per_visit = 1,
                                .overwrite = a->overwrite,
                                .recipe = a->positional,
                                .weights_identity = r.weights_identity,
                                .configs = r.configs,
                                .allow_other = a->allow_other};
        cli_rerun_job(&job.job, &r, &a->job);
        for (int i = 0; i < a->n_images; i++) {
            job.images[i] = a->images[i];
            job.image_sha256[i] = r.images[i].sha256;
        }
        rc = cli_jobs_run(&jobs);
        if (!rc) rc = cli_recipe_compare(&r, a->positional, a->output);
        if (rc == LK_E_CONFLICT && a->allow_other) rc = LK_OK;
    }
    cli_recipe_free(&r);
    return rc;
}
