#include "tools/cli/t2i/t2i.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "eval/study/random.h"
#include "eval/t2i/rebalance.h"
#include "tools/cli/cli.h"
#include "weights/config_identity.h"
#include "weights/lora/lora.h"

enum { DEFAULT_SAMPLE = 100 };

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "t2i: out of memory"); }

/* Strata: [n_lines], number of each line's prompt or -1. */
struct strata {
    struct lk_names ids;
    int32_t *of;
    double *shares;
    int64_t *quotas;
    int32_t *order;
    size_t n; /* lines in all */
};

static enum lk_code stratify(struct cli_replay *r, const struct lk_t2i_prompts *prompts, const bool *wanted,
                             struct strata *s) {
    char tag[64];
    const size_t n = r->log.logged.n;
    cli_t2i_tag(lk_pipeline_family(r->pipeline), tag);
    s->of = lk_malloc((n + 1) * sizeof *s->of);
    s->order = lk_malloc((n + 1) * sizeof *s->order);
    s->shares = lk_calloc(n + 1, sizeof *s->shares);
    s->quotas = lk_calloc(n + 1, sizeof *s->quotas);
    r->chosen = lk_malloc((n + 1) * sizeof *r->chosen);
    if (!s->of || !s->order || !s->shares || !s->quotas || !r->chosen) return out_of_memory();
    for (size_t i = 0; i < n; i++) {
        const struct lk_t2i_logged *line = &r->log.log[i];
        const char *id = line->prompt_id;
        const int32_t prompt = prompts ? lk_names_find(&prompts->ids, id, strlen(id)) : 0;
        s->of[i] = -1;
        if (line->arm != LK_T2I_NONE || line->canvas || strcmp(tag, line->model_tag)) continue;
        if (prompt < 0 || (wanted && !wanted[prompt])) continue;
        LK_TRY(lk_names_number(&s->ids, id, strlen(id), &s->of[i]));
        s->shares[s->of[i]]++;
        s->n++;
    }
    if (s->n) return LK_OK;
    return lk_fail(LK_E_INPUT, "%s: expected pictures that %s made from text alone, of the base arm%s, got none",
                   r->arguments->t2i.log, tag, wanted ? " and of prompts with words of a group" : "");
}

/* Of each prompt's lines the first in the order of a stream of its own. */
static enum lk_code choose(struct cli_replay *r, struct strata *s) {
    const struct cli_arguments *a = r->arguments;
    const char *given = a->study.sample;
    int64_t wanted = DEFAULT_SAMPLE;
    if (given) LK_TRY(lk_read_int("--sample", given, strlen(given), 1, INT32_MAX, &wanted));
    if (wanted > (int64_t)s->n) wanted = (int64_t)s->n;
    for (size_t k = 0; k < s->ids.n; k++) s->shares[k] /= (double)s->n;
    lk_quotas(s->shares, (int)s->ids.n, wanted, s->quotas);
    for (size_t k = 0; k < s->ids.n; k++) {
        struct lk_stream stream;
        size_t n = 0;
        char *name = lk_format("probe|%s", s->ids.list[k]);
        if (!name) return out_of_memory();
        lk_stream_named(&stream, (uint64_t)a->report.study_seed, name);
        lk_free(name);
        for (size_t i = 0; i < r->log.logged.n; i++)
            if (s->of[i] == (int32_t)k) s->order[n++] = (int32_t)i;
        lk_stream_shuffle(&stream, s->order, n);
        for (size_t i = (size_t)s->quotas[k]; i < n; i++) s->of[s->order[i]] = -1;
    }
    for (size_t i = 0; i < r->log.logged.n; i++)
        if (s->of[i] >= 0) r->chosen[r->n++] = (int32_t)i;
    return LK_OK;
}

enum lk_code cli_replay_open(struct cli_replay *r, const struct cli_arguments *a, const struct lk_t2i_prompts *prompts,
                             const bool *wanted) {
    const struct lk_pipeline_options options = cli_pipeline_options(&a->job.run);
    struct strata strata = {0};
    size_t n_here = 0;
    *r = (struct cli_replay){.arguments = a};
    lk_t2i_images_init(&r->log);
    LK_TRY(cli_t2i_log(a, &r->log));
    for (size_t i = 0; i < r->log.logged.n; i++) n_here += cli_t2i_runs_here(r->log.log[i].model_tag);
    if (!n_here)
        return lk_fail(LK_E_INPUT,
                       "%s: its pictures are imported, of models that do not run here: attention and latents are seen "
                       "while a model paints, not in its pictures; of these, label and metrics tell more",
                       a->t2i.log);
    if (!a->model)
        return lk_fail(LK_E_USAGE,
                       "t2i %s: expected --model, which made the pictures here; of pictures that another program made "
                       "only label and metrics tell",
                       a->verb->name);
    LK_TRY(cli_device_open(&a->job.run, &r->device));
    LK_TRY(lk_pipeline_open_with(&r->pipeline, a->model, &options));
    enum lk_code rc = stratify(r, prompts, wanted, &strata);
    if (!rc) rc = choose(r, &strata);
    lk_names_free(&strata.ids);
    lk_free(strata.of);
    lk_free(strata.order);
    lk_free(strata.shares);
    lk_free(strata.quotas);
    if (rc) return rc;
    lk_log(LK_LOG_INFO, "%s in %s on %s: %zu of %zu pictures", lk_pipeline_family(r->pipeline), a->job.run.dtype,
           r->device->name, r->n, r->log.logged.n);
    cli_signals_install();
    return LK_OK;
}

static enum lk_code progress(void *context, const char *stage, int step, int n_steps) {
    (void)context;
    LK_TRY(cli_signals_check());
    lk_log_progress(stage, step, n_steps, lk_log_now());
    return LK_OK;
}

/* The adapters that the picture was made with, in their order. */
static enum lk_code check_loras(const struct cli_replay *r, const char *path) {
    const struct lk_loras *given = lk_pipeline_loras(r->pipeline);
    bool same = (given ? given->n : 0) == r->recipe.n_loras;
    for (int i = 0; i < r->recipe.n_loras && same; i++)
        same = !strcmp(given->list[i].sha256, r->recipe.loras[i].sha256) &&
               given->list[i].scale == r->recipe.loras[i].scale;
    if (same) return LK_OK;
    return lk_fail(LK_E_USAGE,
                   "%s: --lora: expected the recipe's files in their order with their scales, %d of them "
                   "(see: show)",
                   path, r->recipe.n_loras);
}

enum lk_code cli_replay_job(struct cli_replay *r, size_t i) {
    char weights[65], *path = cli_t2i_path(r->arguments, &r->log, (size_t)r->chosen[i]);
    if (!path) return LK_E_NOMEM;
    lk_recipe_free(&r->recipe);
    enum lk_code rc = lk_recipe_read(&r->recipe, path);
    if (!rc) rc = check_loras(r, path);
    if (!rc) cli_rerun_job(&r->job, &r->recipe, &r->arguments->job);
    if (!rc && (rc = lk_pipeline_weights_check(r->pipeline, r->recipe.weights_identity, weights)))
        rc = lk_fail_prefix(rc, "%s", path);
    if (!rc && r->recipe.configs)
        rc = lk_config_identity_check(path, lk_pipeline_folder(r->pipeline), r->recipe.configs,
                                      lk_pipeline_configs(r->pipeline), NULL);
    if (!rc) rc = lk_job_complete(&r->job, r->pipeline, path);
    r->job.request.progress = progress;
    lk_free(path);
    return rc;
}

enum lk_code cli_replay_compare(struct cli_replay *r, size_t i, const struct lk_image *image) {
    struct lk_image before = {0};
    char *path = cli_t2i_path(r->arguments, &r->log, (size_t)r->chosen[i]);
    if (!path) return LK_E_NOMEM;
    enum lk_code rc = lk_image_read(&before, path, 0, 0);
    const bool same =
        !rc && before.width == image->width && before.height == image->height && before.channels == image->channels &&
        !memcmp(before.pixels, image->pixels, (size_t)image->width * (size_t)image->height * (size_t)image->channels);
    if (!rc && !same && !strcmp(r->recipe.isa, r->device->architecture))
        rc = lk_fail(LK_E_CHANGED, "%s: made again from its recipe it has other pixels", path);
    r->n_other += !rc && !same;
    lk_image_free(&before);
    lk_free(path);
    return rc;
}

void cli_replay_close(struct cli_replay *r) {
    lk_log_progress_end();
    lk_recipe_free(&r->recipe);
    lk_pipeline_close(r->pipeline);
    lk_device_free(r->device);
    lk_t2i_images_free(&r->log);
    lk_free(r->chosen);
}
