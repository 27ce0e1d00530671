/* t2i generate: the pictures of a prompt table by one model. What the command line says becomes a study of text to
 * image alone, and the study's runner makes it: the same pictures, journal and log, and a stopped run goes on. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "tools/cli/t2i/t2i.h"
#include "tools/cli/edit/job.h"
#include "tools/cli/study/runner.h"
#include "weights/lora/lora.h"

/* What names its pictures, one of the study's models by its key there, and whether it can do what is asked for: from
 * its configs alone. */
static enum lk_code check_model(const struct cli_arguments *a, char key[64]) {
    struct lk_pipeline *pipeline;
    struct lk_device *target = NULL;
    struct lk_job job = a->job;
    struct lk_plan plan;
    LK_TRY(lk_pipeline_open_configs(&pipeline, a->model, cli_dtype(&a->job.run)));
    cli_t2i_tag(lk_pipeline_family(pipeline), key);
    enum lk_code rc = lk_job_complete(&job, pipeline, NULL);
    job.request.prompt = "a person";
    if (!rc) rc = cli_plan_target(&job.run, &target);
    if (!rc) rc = cli_job_plan(pipeline, target, &job, &plan);
    if (target) lk_device_free(target);
    lk_pipeline_close(pipeline);
    return rc;
}

static enum lk_code check_values(const struct cli_t2i_arguments *t) {
    const char *colon = t->seeds ? strchr(t->seeds, ':') : NULL;
    int64_t first, last, max = (int64_t)1 << 53;
    double cfg;
    if (t->seeds && (!colon || lk_read_int("", t->seeds, (size_t)(colon - t->seeds), 0, max, &first) ||
                     lk_read_int("", colon + 1, strlen(colon + 1), first, max, &last)))
        return lk_fail(LK_E_USAGE, "--seeds: expected two whole numbers as 0:9, both included, got \"%.60s\"",
                       t->seeds);
    for (int i = 0; i < t->cfg.n; i++) LK_TRY(lk_read_number("--cfg", t->cfg.values[i], 0, 1000, &cfg));
    for (int i = 0; i < t->arms.n; i++) {
        const int arm = lk_t2i_arm_parse(t->arms.values[i]);
        if (arm < 0 || arm == LK_T2I_POST_FILTER)
            return lk_fail(LK_E_USAGE,
                           "--arm: expected none, rewrite, diversity, safety, embed_norm or fair, got \"%.60s\"",
                           t->arms.values[i]);
    }
    return LK_OK;
}

/* A path that does not depend on where the study lies; what is no path (ORG/NAME, the instruction gender) stays. */
static cJSON *place(const char *written) {
    char *whole = strcmp(written, "gender") ? realpath(written, NULL) : NULL;
    cJSON *text = cJSON_CreateString(whole ? whole : written);
    free(whole);
    return text;
}

/* FILE[=SCALE], each in its place. */
static bool add_loras(cJSON *entry, const struct lk_job_run *run) {
    cJSON *list = run->n_loras ? cJSON_AddArrayToObject(entry, "lora") : NULL;
    bool ok = list || !run->n_loras;
    for (int i = 0; i < run->n_loras && ok; i++) {
        size_t length;
        double scale;
        cJSON *one = cJSON_CreateObject();
        ok = cJSON_AddItemToArray(list, one) && !lk_lora_split(run->loras[i], &length, &scale);
        char *file = ok ? lk_strndup(run->loras[i], length) : NULL;
        ok = file && cJSON_AddItemToObject(one, "file", place(file)) && cJSON_AddNumberToObject(one, "scale", scale);
        lk_free(file);
    }
    return ok;
}

static cJSON *list_of(const struct cli_list *list) { return cJSON_CreateStringArray(list->values, list->n); }

static cJSON *model_entry(const struct cli_arguments *a) {
    cJSON *entry = cJSON_CreateObject();
    bool ok = cJSON_AddItemToObject(entry, "path", place(a->model));
    for (size_t i = 0; i < lk_n_parameters && ok; i++) {
        const struct lk_parameter *p = &lk_parameters[i];
        if (lk_job_given(&a->job, p) && !p->machine) ok = lk_parameter_write(p, &a->job, entry);
    }
    ok = ok && add_loras(entry, &a->job.run);
    if (ok && a->job.request.num_inference_steps) ok = cJSON_AddTrueToObject(entry, "allow_steps");
    ok = ok && cJSON_AddTrueToObject(entry, "allow_cut"); /* as others make these pictures; each cut is told */
    if (ok) return entry;
    cJSON_Delete(entry);
    return NULL;
}

/* A word of a file's name: "gpt-image-1_5". */
static void name_hosted(const char *model, char key[64]) {
    snprintf(key, 64, "%.40s", model);
    for (char *c = key; *c; c++)
        if (!lk_study_is_word(c, 1, 1)) *c = '_';
}

/* KEY=VALUE, as a number, true, false or a text. */
static bool add_setting(cJSON *set, const char *given) {
    const char *mark = strchr(given, '=');
    char *key = mark ? lk_strndup(given, (size_t)(mark - given)) : NULL;
    cJSON *value = mark ? cJSON_ParseWithOpts(mark + 1, NULL, true) : NULL; /* 64x64 is no number */
    if (mark && !cJSON_IsNumber(value) && !cJSON_IsBool(value)) {
        cJSON_Delete(value);
        value = cJSON_CreateString(mark + 1);
    }
    const bool ok = key && *key && cJSON_AddItemToObject(set, key, value);
    if (!ok) cJSON_Delete(value);
    lk_free(key);
    return ok;
}

/* A model behind the images API. NULL: a --set that is none, or memory is out. */
static cJSON *hosted_entry(const struct cli_arguments *a) {
    const struct cli_t2i_arguments *t = &a->t2i;
    cJSON *entry = cJSON_CreateObject(), *hosted = cJSON_AddObjectToObject(entry, "hosted"),
          *set = cJSON_AddObjectToObject(hosted, "set");
    bool ok = set && cJSON_AddStringToObject(entry, "label", a->model) &&
              cJSON_AddStringToObject(hosted, "images_url", t->images_url) &&
              cJSON_AddStringToObject(hosted, "model", a->model) &&
              cJSON_AddNumberToObject(hosted, "repeat_refused", (double)t->repeat_refused) &&
              cJSON_AddBoolToObject(hosted, "seed_field", t->seed_field) &&
              cJSON_AddBoolToObject(hosted, "fetch_urls", t->fetch_urls);
    if (ok && a->review.requests_per_minute > 0)
        ok = cJSON_AddNumberToObject(hosted, "requests_per_minute", a->review.requests_per_minute);
    for (int i = 0; i < t->set.n && ok; i++) ok = add_setting(set, t->set.values[i]);
    if (ok) return entry;
    cJSON_Delete(entry);
    return NULL;
}

enum lk_code cli_t2i_study(const struct cli_arguments *a, struct lk_study **out) {
    const struct cli_t2i_arguments *t = &a->t2i;
    char model[64];
    LK_TRY(check_values(t));
    for (int i = 0; i < t->set.n; i++)
        if (!strchr(t->set.values[i], '=') || t->set.values[i][0] == '=')
            return lk_fail(LK_E_USAGE, "--set: expected KEY=VALUE as quality=high, got \"%.60s\"", t->set.values[i]);
    if (t->images_url)
        name_hosted(a->model, model);
    else
        LK_TRY(check_model(a, model));
    cJSON *root = cJSON_CreateObject(), *models = cJSON_AddObjectToObject(root, "models");
    cJSON *t2i = cJSON_AddObjectToObject(cJSON_AddObjectToObject(root, "experiments"), "t2i");
    bool ok =
        t2i &&
        cJSON_AddNumberToObject(root, "schema",
                                t->images_url || lk_factor_parse(LK_FACTOR_MODEL, model, strlen(model)) < 0 ? 2 : 1) &&
        cJSON_AddStringToObject(root, "study", "t2i") &&
        cJSON_AddItemToObject(models, model, t->images_url ? hosted_entry(a) : model_entry(a)) &&
        cJSON_AddNumberToObject(t2i, "cue", (double)t->cue);
    if (ok && t->seeds) ok = cJSON_AddStringToObject(t2i, "seeds", t->seeds);
    if (ok && t->csv) ok = cJSON_AddItemToObject(t2i, "table", place(t->csv));
    if (ok && t->fair) ok = cJSON_AddItemToObject(t2i, "fair.file", place(t->fair));
    if (ok && t->fair_assign) ok = cJSON_AddStringToObject(t2i, "fair.assign", t->fair_assign);
    if (ok && t->normalize) ok = cJSON_AddStringToObject(t2i, "normalize", t->normalize);
    if (ok && t->cfg.n) ok = cJSON_AddItemToObject(t2i, "cfg", list_of(&t->cfg));
    if (ok && t->arms.n) ok = cJSON_AddItemToObject(t2i, "arms", list_of(&t->arms));
    if (ok && !t->arms.n && (t->fair || t->fair_assign))
        ok = cJSON_AddItemToObject(t2i, "arms", cJSON_CreateStringArray(&(const char *){"fair"}, 1));
    char *text = ok ? cJSON_PrintUnformatted(root) : NULL;
    enum lk_code rc = text ? lk_study_parse(out, text, strlen(text), ".") : lk_fail(LK_E_NOMEM, "t2i: out of memory");
    cJSON_free(text);
    cJSON_Delete(root);
    return rc;
}

enum lk_code cli_t2i_generate(const struct cli_arguments *arguments) {
    struct cli_arguments a = *arguments;
    struct lk_study *study;
    if (!a.model || !a.output) return lk_fail(LK_E_USAGE, "t2i generate: expected --model and --output DIR");
    if (a.t2i.post_filter) return cli_t2i_online(&a);
    if (a.t2i.target || a.t2i.attribute || a.t2i.labeler || a.t2i.classifier || a.report.faces || a.t2i.max_attempts)
        return lk_fail(LK_E_USAGE, "t2i generate: --target, --attribute, --labeler, --classifier, --faces and "
                                   "--max-attempts go with --post-filter online");
    LK_TRY(cli_t2i_study(&a, &study));
    a.study.devices = a.job.run.device;
    enum lk_code rc = study_run(&a, study);
    lk_study_close(study);
    return rc;
}

enum lk_code cli_t2i_ask(const struct cli_arguments *arguments) {
    struct cli_arguments a = *arguments;
    struct lk_study *study;
    LK_TRY(cli_t2i_study(&a, &study));
    a.study.devices = "cpu"; /* nothing is computed here */
    enum lk_code rc = study_run(&a, study);
    lk_study_close(study);
    return rc;
}
