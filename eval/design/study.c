#include "eval/design/study.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/file.h"
#include "eval/data/data.h"
#include "eval/design/internal.h"

static const char *const experiment_keys[LK_N_EXPERIMENTS] = {"exp1", "exp2", "exp3", "t2i"};
/* Of the model that the study means, in the order of LK_FACTOR_MODEL. */
static const char *const families[LK_N_MODELS] = {"flux2-dev", "step1x-v1p2", "qwen-edit-2511"};
static const char *const repositories[LK_N_MODELS] = {"black-forest-labs/FLUX.2-dev", "stepfun-ai/Step1X-Edit-v1p2",
                                                      "Qwen/Qwen-Image-Edit-2511"};
enum { STEP1X = 1, STEP1X_STEPS = 28 };

const char *lk_experiment_key(int experiment) { return experiment_keys[experiment]; }
const char *lk_study_family(int model) { return families[model]; }

const char *lk_study_resolve(struct lk_study *s, const char *written) {
    if (*written == '/') return lk_store_copy(&s->store, written, strlen(written));
    char *joined = lk_format("%s/%s", s->folder, written);
    const char *kept = joined ? lk_store_copy(&s->store, joined, strlen(joined)) : NULL;
    lk_free(joined);
    if (!kept) lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    return kept;
}

enum lk_code lk_study_read_file(struct lk_study *s, const char *field, const char *written, char **out, size_t *n) {
    const char *path = lk_study_resolve(s, written);
    if (!path) return LK_E_NOMEM;
    enum lk_code rc = lk_read_file(path, LK_STUDY_MAX_BYTES, out, n);
    return rc ? lk_fail_prefix(rc, "%s: field \"%s\"", s->file, field) : LK_OK;
}

enum lk_code lk_study_read_optional(struct lk_study *s, const char *field, const char *written, char **out, size_t *n) {
    *out = NULL;
    enum lk_code rc = lk_study_read_file(s, field, written, out, n);
    if (rc != LK_E_NOT_FOUND) return rc;
    lk_text_add(&s->lacking, "%s\n", lk_error_text());
    s->n_lacking++;
    return s->lacking.rc;
}

/* A folder beside the study file, or what was written: another folder, or ORG/NAME. */
static enum lk_code set_path(struct lk_study *s, int model) {
    struct lk_study_model *m = &s->models[model];
    if (!m->written) m->written = repositories[model];
    const char *beside = lk_study_resolve(s, m->written);
    if (!beside) return LK_E_NOMEM;
    char *real = realpath(beside, NULL);
    m->path = real ? beside : m->written;
    free(real);
    return LK_OK;
}

/* Defaults for what was not given, from the family that the model is of. */
static enum lk_code complete_model(struct lk_study *s, int model) {
    struct lk_study_model *m = &s->models[model];
    struct lk_pipeline *pipeline;
    LK_TRY(set_path(s, model));
    LK_TRY(lk_pipeline_open_configs(&pipeline, families[model], LK_BF16));
    enum lk_code rc = lk_job_complete(&m->job, pipeline, NULL);
    lk_pipeline_close(pipeline);
    if (rc) return rc;
    int steps = m->job.request.num_inference_steps;
    if (model == STEP1X && steps != STEP1X_STEPS && !m->allow_steps)
        return lk_study_bad(s, "models.step1x.num_inference_steps",
                            "expected 28, which this model is made for, got %d; \"allow_steps\": true runs it all the "
                            "same",
                            steps);
    return LK_OK;
}

static enum lk_code fill(struct lk_study *s, const char *text, size_t n) {
    LK_TRY(lk_study_settings_read(s, text, n));
    LK_TRY(lk_prompts_load(&s->builtin));
    if (!strcmp(s->experiments[LK_EXP1].preset, "legacy")) s->prompt_scheme = "legacy";
    for (int m = 0; m < LK_N_MODELS; m++)
        if (s->models[m].given) LK_TRY(complete_model(s, m));
    LK_TRY(lk_study_read_sources(s));
    LK_TRY(lk_study_read_prompts(s));
    LK_TRY(lk_study_expand(s));
    return lk_study_settings_write(s);
}

enum lk_code lk_study_parse(struct lk_study **out, const char *text, size_t n, const char *path) {
    char whole[PATH_MAX];
    *out = NULL;
    struct lk_study *s = lk_calloc(1, sizeof *s);
    enum lk_code rc = LK_OK;
    if (!s || !(s->file = lk_strdup(path))) rc = lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    if (!rc && !realpath(path, whole)) rc = lk_fail(LK_E_NOT_FOUND, "%s: not found", path);
    if (!rc) {
        char *slash = strrchr(whole, '/');
        slash[slash == whole] = 0;
        if (!(s->folder = lk_strdup(whole))) rc = lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    }
    if (!rc) rc = fill(s, text, n);
    if (rc)
        lk_study_close(s);
    else
        *out = s;
    return rc;
}

enum lk_code lk_study_open(struct lk_study **out, const char *path) {
    char *text;
    size_t n;
    *out = NULL;
    LK_TRY(lk_data_check(NULL));
    LK_TRY(lk_read_file(path, LK_STUDY_MAX_BYTES, &text, &n));
    enum lk_code rc = lk_study_parse(out, text, n, path);
    lk_free(text);
    return rc;
}

void lk_study_close(struct lk_study *s) {
    if (!s) return;
    lk_prompts_free(&s->builtin);
    lk_feature_prompts_free(&s->features);
    lk_text_free(&s->asked);
    lk_text_free(&s->resolved);
    lk_text_free(&s->lacking);
    lk_free(s->prompts);
    lk_free(s->jobs);
    lk_free(s->file);
    lk_free(s->folder);
    lk_store_free(&s->store);
    lk_free(s);
}

const char *lk_study_name(const struct lk_study *s) { return s->name; }
const char *lk_study_folder(const struct lk_study *s) { return s->folder; }
const char *lk_study_resolved(const struct lk_study *s) { return s->resolved.bytes; }
const char *lk_study_hash(const struct lk_study *s) { return s->hash; }
const struct lk_study_source *lk_study_source(const struct lk_study *s, int source) { return &s->sources[source]; }
const char *lk_study_model_path(const struct lk_study *s, int model) {
    return s->models[model].given ? s->models[model].path : NULL;
}
const struct lk_study_prompt *lk_study_own_prompts(const struct lk_study *s, size_t *n) {
    *n = (s->first_t2i ? s->first_t2i : s->n_prompts) - LK_N_EDIT_PROMPTS - LK_N_W_PROMPTS;
    return s->prompts + LK_N_EDIT_PROMPTS + LK_N_W_PROMPTS;
}
size_t lk_study_n_jobs(const struct lk_study *s) { return s->n_jobs; }
