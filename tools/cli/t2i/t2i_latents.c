#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/bf16.h"
#include "eval/document/files.h"
#include "eval/document/table_print.h"
#include "eval/scores/csv.h"
#include "eval/scores/dataset.h"
#include "eval/study/random.h"
#include "eval/t2i/rebalance.h"
#include "tools/cli/cli.h"
#include "tools/cli/t2i/t2i.h"
#include "weights/config_identity.h"
#include "weights/lora/lora.h"

enum { DEFAULT_SAMPLE = 100 };

static enum lk_code no_memory(void) { return lk_fail(LK_E_NOMEM, "t2i: out of memory"); }

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
    if (!s->of || !s->order || !s->shares || !s->quotas || !r->chosen) return no_memory();
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
        if (!name) return no_memory();
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

/* Features of a log's pictures for `t2i latents`: a sample is made again, and the latents after the last step are read,
 * as the mean of each channel over each quarter of the picture. */

enum { SIDE = 2 }; /* quarters */

struct final {
    float *values; /* [n, channels] of the step that was last */
    int64_t n, channels;
};

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "t2i latents: out of memory"); }

static enum lk_code take(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    struct final *f = context;
    const size_t n = strlen(name), ending = strlen(".latents");
    if (strncmp(name, "step.", 5) != 0 || n < ending || strcmp(name + n - ending, ".latents") != 0) return LK_OK;
    f->n = value->shape[0];
    f->channels = value->shape[1];
    float *values = lk_realloc(f->values, (size_t)lk_tensor_numel(value) * sizeof *values);
    if (!values) return out_of_memory();
    f->values = values;
    LK_TRY(lk_download(dev, values, value));
    for (int64_t i = lk_tensor_numel(value); value->dtype == LK_BF16 && i-- > 0;)
        values[i] = lk_bf16_to_f32(((const uint16_t *)values)[i]);
    return LK_OK;
}

/* The tokens' rows follow the picture's. */
static void features(const struct final *f, const struct lk_image *image, struct lk_text *out) {
    const int64_t across = llround(sqrt((double)f->n * image->width / image->height)), down = f->n / across;
    for (int64_t k = 0; k < (int64_t)SIDE * SIDE * f->channels; k++) {
        const int64_t field = k / f->channels, y = field / SIDE, x = field % SIDE;
        double sum = 0, n = 0;
        for (int64_t i = y * down / SIDE; i < (y + 1) * down / SIDE; i++)
            for (int64_t j = x * across / SIDE; j < (x + 1) * across / SIDE; j++, n++)
                sum += (double)f->values[(i * across + j) * f->channels + k % f->channels];
        lk_text_add(out, ",%.9g", sum / n);
    }
    lk_text_add(out, "\r\n");
}

/* Group of each line of the log: what --labels, or else the log, has in the column --by. log NULL: the file is checked
 * alone. */
static enum lk_code read_groups(const struct cli_arguments *a, const struct lk_t2i_images *log, const char **groups,
                                struct lk_store *store) {
    const char *file = a->t2i.labels.n ? a->t2i.labels.values[0] : a->t2i.log;
    struct lk_csv csv;
    char *text;
    size_t n;
    int path, by;
    LK_TRY(lk_read_file(file, LK_SCORES_MAX_BYTES, &text, &n));
    enum lk_code rc = lk_csv_open(&csv, text, n, file);
    if (!rc) {
        rc = lk_csv_require(&csv, "file_path", &path);
        if (!rc) rc = lk_csv_require(&csv, a->stats.by, &by);
        for (bool more = true; !rc && more;) {
            rc = lk_csv_next(&csv, &more);
            const char *name = !rc && more ? lk_csv_cell(&csv, path) : "";
            const int32_t at = log ? lk_names_find(&log->logged, name, strlen(name)) : -1;
            if (at >= 0 && !(groups[at] = lk_store_text(store, lk_csv_cell(&csv, by)))) rc = out_of_memory();
        }
        lk_csv_close(&csv);
    }
    lk_free(text);
    return rc;
}

static enum lk_code add_picture(struct cli_replay *r, size_t i, const char *group, struct lk_text *out) {
    struct final final = {0};
    struct lk_result result = {0};
    LK_TRY(cli_replay_job(r, i));
    r->device->trace = take;
    r->device->trace_context = &final;
    enum lk_code rc = lk_pipeline_edit(r->pipeline, r->device, &r->job.request, &result);
    r->device->trace = NULL;
    if (!rc) rc = cli_replay_compare(r, i, &result.image);
    if (!rc && !out->n) {
        lk_text_add(out, "file_path,");
        lk_print_csv_field(out, r->arguments->stats.by, "");
        for (int64_t k = 0; k < SIDE * SIDE * final.channels; k++) lk_text_add(out, ",latent_%lld", (long long)k);
        lk_text_add(out, "\r\n");
    }
    if (!rc) {
        lk_print_csv_field(out, r->log.logged.list[r->chosen[i]], "");
        lk_text_add(out, ",");
        lk_print_csv_field(out, group ? group : "", "");
        features(&final, &result.image, out);
    }
    lk_free(final.values);
    lk_result_free(&result);
    return rc ? rc : out->rc;
}

enum lk_code cli_t2i_features(const struct cli_arguments *a, const char *name) {
    struct cli_replay r;
    struct lk_store store = {0};
    struct lk_text text = {0};
    const char **groups = NULL;
    LK_TRY(read_groups(a, NULL, NULL, NULL));
    enum lk_code rc = cli_replay_open(&r, a, NULL, NULL);
    if (!rc && !(groups = lk_calloc(r.log.logged.n, sizeof *groups))) rc = out_of_memory();
    if (!rc) rc = read_groups(a, &r.log, groups, &store);
    for (size_t i = 0; i < r.n && !rc; i++) rc = add_picture(&r, i, groups[r.chosen[i]], &text);
    if (!rc) rc = lk_document_folder(a->output);
    if (!rc) rc = lk_document_file(a->output, name, ".csv", &text);
    cli_replay_close(&r);
    lk_store_free(&store);
    lk_free(groups);
    lk_text_free(&text);
    return rc;
}
