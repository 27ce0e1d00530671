#include "eval/design/study.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "eval/data/data.h"
#include "eval/design/internal.h"

static const struct {
    const char *key, *kind;
} experiments[LK_N_EXPERIMENTS] = {{"exp1", "edit"}, {"exp2", "pair"}, {"exp3", "composite"}, {"t2i", "t2i"}};
/* The models that the study means, in the order of LK_FACTOR_MODEL. */
static const struct {
    const char *family, *repository;
} presets[LK_N_MODELS] = {{"flux2-dev", "black-forest-labs/FLUX.2-dev"},
                          {"step1x-v1p2", "stepfun-ai/Step1X-Edit-v1p2"},
                          {"qwen-edit-2511", "Qwen/Qwen-Image-Edit-2511"}};
enum { MAX_SEEDS = 100000, MAX_FAULTS = 10000 };

const char *lk_experiment_key(int kind) { return experiments[kind].key; }
const char *lk_experiment_kind(int kind) { return experiments[kind].kind; }
const char *lk_preset_family(int model) { return presets[model].family; }

int lk_study_preset_model(const char *key) {
    for (int i = 0; i < LK_N_MODELS; i++)
        if (!strcmp(lk_factor_key(LK_FACTOR_MODEL, i), key)) return i;
    return -1;
}

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

const char *lk_study_found(struct lk_study *s, const char *written) {
    const char *beside = lk_study_resolve(s, written);
    struct stat st;
    /* What lies in the folder that the program was started in is not meant: the name is of a cache, or of nothing. */
    return !beside || !stat(beside, &st) || !stat(written, &st) ? beside : written;
}

/* Of a model that is here, what it is; else what is released under its name. */
static enum lk_code find_family(struct lk_study *s, struct lk_study_model *m) {
    struct lk_pipeline *pipeline;
    struct lk_model_info info;
    enum lk_code rc = lk_pipeline_open_configs(&pipeline, m->path, LK_BF16);
    if (!rc) m->family = lk_store_text(&s->store, lk_pipeline_family(pipeline));
    if (!rc) lk_pipeline_close(pipeline);
    if (rc == LK_E_NOMEM || (!rc && !m->family)) return lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    for (int i = 0; rc && !m->family && lk_model_info(i, &info); i++)
        if (info.repository && !strcmp(info.repository, m->written)) m->family = info.name;
    return LK_OK;
}

static bool is_family(const char *name) {
    struct lk_model_info info;
    for (int i = 0; lk_model_info(i, &info); i++)
        if (!strcmp(info.name, name)) return true;
    return false;
}

enum lk_code lk_study_complete_names(struct lk_study *s, struct lk_study_model *m) {
    const int preset = lk_study_preset_model(m->key);
    char field[100];
    if (m->hosted.given) return lk_study_complete_hosted(s, m);
    snprintf(field, sizeof field, "models.%s.path", m->key);
    if (!m->written && preset < 0)
        return lk_study_bad(s, field, "expected the model's folder, or ORG/NAME of a repository, got nothing");
    const bool released = !m->written;
    if (released) m->written = presets[preset].repository;
    if (!(m->path = lk_study_found(s, m->written))) return LK_E_NOMEM;
    snprintf(field, sizeof field, "models.%s.family", m->key);
    if (m->family && !is_family(m->family))
        return lk_study_bad(s, field, "expected a name that 'likeness models' lists, got \"%.60s\"", m->family);
    if (!m->family && preset >= 0 && (released || s->schema == 1)) m->family = presets[preset].family;
    if (!m->family) LK_TRY(find_family(s, m));
    if (!m->family && preset >= 0) m->family = presets[preset].family;
    if (!m->family) {
        snprintf(field, sizeof field, "models.%s.path", m->key);
        return lk_study_bad(s, field,
                            "expected a model that is here, got %s: no such folder and no repository in the cache; to "
                            "plan without it say its \"family\", as \"flux2-dev\" ('likeness models' lists them)",
                            m->written);
    }
    if (!m->label) m->label = preset >= 0 ? lk_factor_display(LK_FACTOR_MODEL, preset) : m->key;
    return LK_OK;
}

/* Defaults for what was not given, from the family that the model is of. */
static enum lk_code complete_model(struct lk_study *s, struct lk_study_model *m) {
    struct lk_pipeline *pipeline;
    char field[100];
    snprintf(field, sizeof field, "models.%s.label", m->key);
    for (const struct lk_study_model *other = s->models; other < m; other++)
        if (!strcmp(other->label, m->label)) /* a table would have one column for both */
            return lk_study_bad(s, field, "expected a name that no other model has, got \"%.60s\", which is %s's",
                                m->label, other->key);
    snprintf(field, sizeof field, "models.%s.seeds", m->key);
    if (m->hosted.given) return m->seeds ? lk_study_read_seeds(s, field, m->seeds, &m->range) : LK_OK;
    LK_TRY(lk_pipeline_open_configs(&pipeline, m->family, LK_BF16));
    enum lk_code rc = lk_job_complete(&m->job, pipeline, NULL);
    const int expected = lk_pipeline_made_for_steps(pipeline), steps = m->job.request.num_inference_steps;
    lk_pipeline_close(pipeline);
    if (rc) return lk_fail_prefix(LK_E_CONFIG_VALUE, "%s: field \"models.%s\"", s->file, m->key);
    m->job.request.whole_prompt = !m->allow_cut; /* with a feature prompt in front it is the edit that would be cut */
    snprintf(field, sizeof field, "models.%s.num_inference_steps", m->key);
    if (expected && steps != expected && !m->allow_steps)
        return lk_study_bad(s, field,
                            "expected %d, which this model is made for, got %d; \"allow_steps\": true runs it all the "
                            "same",
                            expected, steps);
    snprintf(field, sizeof field, "models.%s.seeds", m->key);
    return m->seeds ? lk_study_read_seeds(s, field, m->seeds, &m->range) : LK_OK;
}

enum lk_code lk_study_read_seeds(const struct lk_study *s, const char *field, const char *text,
                                 struct lk_study_seeds *out) {
    const char *colon = strchr(text, ':'), *last = colon ? colon + 1 : text;
    const int64_t max = (int64_t)1 << 53;
    if (lk_read_int("", text, colon ? (size_t)(colon - text) : strlen(text), 0, max, &out->first) ||
        lk_read_int("", last, strlen(last), out->first, out->first + MAX_SEEDS - 1, &out->last))
        return lk_study_bad(s, field,
                            "expected a whole number, or two as 0:9, both included and at most 100,000 of them, got "
                            "\"%.60s\"",
                            text);
    out->given = true;
    return LK_OK;
}

static int find_key(const struct lk_study *s, const char *key) {
    for (int m = 0; m < s->n_models; m++)
        if (!strcmp(s->models[m].key, key)) return m;
    return -1;
}

int lk_study_find_model(const struct lk_study *s, const char *key) {
    const int model = find_key(s, key);
    if (model >= 0 || s->schema != 1) return model;
    const int preset = lk_factor_parse(LK_FACTOR_MODEL, key, strlen(key)); /* by any name of the documents */
    return preset < 0 ? -1 : find_key(s, lk_factor_key(LK_FACTOR_MODEL, preset));
}

int32_t lk_study_find_source(const struct lk_study *s, const char *id, size_t n) {
    return s->portrait ? lk_source_parse(id, n) : lk_names_find(&s->source_ids, id, n);
}

/* Version 1 has its models and experiments in the order of the documents, whatever the file's is. */
void lk_study_order_version_1(struct lk_study *s) {
    struct lk_study_model models[LK_N_MODELS];
    struct lk_study_experiment experiments[LK_N_EXPERIMENTS];
    int n = 0;
    memcpy(models, s->models, (size_t)s->n_models * sizeof *models);
    for (int preset = 0; preset < LK_N_MODELS; preset++)
        for (int m = 0; m < s->n_models; m++)
            if (lk_study_preset_model(models[m].key) == preset) s->models[n++] = models[m];
    n = 0;
    memcpy(experiments, s->experiments, (size_t)s->n_experiments * sizeof *experiments);
    for (int kind = 0; kind < LK_N_EXPERIMENTS; kind++)
        for (int e = 0; e < s->n_experiments; e++)
            if ((int)experiments[e].kind == kind) s->experiments[n++] = experiments[e];
}

enum lk_code lk_study_note(struct lk_study *s, enum lk_code rc) {
    if (!rc || rc == LK_E_NOMEM || rc == LK_E_INTERNAL) return rc;
    const size_t n = strlen(lk_error_text()), at = s->faults.n > n ? s->faults.n - n - 1 : 0;
    if (s->n_faults && !strncmp(s->faults.bytes + at, lk_error_text(), n)) return LK_OK; /* of each record the same */
    if (!s->n_faults++) s->fault = rc;
    if (s->n_faults <= MAX_FAULTS) lk_text_add(&s->faults, "%s\n", lk_error_text());
    return s->faults.rc;
}

/* What was noted as one failure: the first, and how many more there are. */
static enum lk_code faulty(const struct lk_study *s) {
    if (!s->n_faults) return LK_OK;
    const int n = (int)strcspn(s->faults.bytes, "\n");
    if (s->n_faults == 1) return lk_fail(s->fault, "%.*s", n, s->faults.bytes);
    return lk_fail(s->fault, "%.*s; and %zu more, which 'likeness study check' lists", n, s->faults.bytes,
                   s->n_faults - 1);
}

static enum lk_code fill(struct lk_study *s, const char *text, size_t n) {
    LK_TRY(lk_study_settings_read(s, text, n));
    LK_TRY(lk_prompts_load(&s->builtin));
    LK_TRY(lk_study_note(s, lk_study_read_attributes(s)));
    for (int e = 0; e < s->n_experiments; e++) {
        struct lk_study_experiment *x = &s->experiments[e];
        if (x->kind == LK_EXP2 && !x->preset) x->preset = s->portrait ? "pairs500" : "grid";
        if (x->kind == LK_EXP1 && !strcmp(x->preset, "legacy")) s->prompt_scheme = "legacy";
    }
    for (int m = 0; m < s->n_models; m++) LK_TRY(lk_study_note(s, complete_model(s, &s->models[m])));
    LK_TRY(lk_study_note(s, lk_study_read_sources(s)));
    LK_TRY(lk_study_note(s, lk_study_find_masks(s)));
    LK_TRY(lk_study_note(s, lk_study_read_prompts(s)));
    LK_TRY(faulty(s)); /* what follows would only be what follows from these */
    LK_TRY(lk_study_read_rewrites(s));
    LK_TRY(lk_study_keep_parameters(s));
    LK_TRY(lk_study_expand(s));
    LK_TRY(faulty(s));
    return lk_study_settings_write(s);
}

/* problems: NULL, or gets what is wrong with a study that cannot be opened, a line each. */
static enum lk_code parse(struct lk_study **out, const char *text, size_t n, const char *path, struct lk_text *problems,
                          size_t *n_problems) {
    char whole[PATH_MAX];
    *out = NULL;
    struct lk_study *s = lk_calloc(1, sizeof *s);
    enum lk_code rc = LK_OK;
    if (!s || !(s->file = lk_strdup(path))) rc = lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    if (!rc && !realpath(path, whole)) rc = lk_fail(LK_E_NOT_FOUND, "%s: not found", path);
    if (!rc) {
        struct stat st;
        char *slash = strrchr(whole, '/');
        if (stat(whole, &st) || !S_ISDIR(st.st_mode)) slash[slash == whole] = 0; /* of options alone it is a folder */
        if (!(s->folder = lk_strdup(whole))) rc = lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    }
    if (!rc) rc = fill(s, text, n);
    if (rc && problems && s && s->n_faults) {
        struct lk_error error;
        lk_error_get(&error, rc);
        *n_problems = 0;
        rc = lk_study_check(s, problems, n_problems); /* of what was read, whatever else is wrong */
        if (!rc) rc = lk_error_set(&error);
    }
    if (rc)
        lk_study_close(s);
    else
        *out = s;
    return rc;
}

enum lk_code lk_study_parse(struct lk_study **out, const char *text, size_t n, const char *path) {
    return parse(out, text, n, path, NULL, NULL);
}

enum lk_code lk_study_open_listing(struct lk_study **out, const char *path, struct lk_text *problems,
                                   size_t *n_problems) {
    char *text;
    size_t n;
    *out = NULL;
    LK_TRY(lk_data_check(NULL));
    LK_TRY(lk_read_file(path, LK_STUDY_MAX_BYTES, &text, &n));
    enum lk_code rc = parse(out, text, n, path, problems, n_problems);
    lk_free(text);
    return rc;
}

enum lk_code lk_study_open(struct lk_study **out, const char *path) {
    return lk_study_open_listing(out, path, NULL, NULL);
}

void lk_study_close(struct lk_study *s) {
    if (!s) return;
    lk_prompts_free(&s->builtin);
    if (s->fair) lk_fair_free(s->fair);
    lk_free(s->fair);
    for (int e = 0; e < s->n_experiments; e++) lk_feature_prompts_free(&s->experiments[e].features);
    lk_text_free(&s->asked);
    lk_text_free(&s->resolved);
    lk_text_free(&s->lacking);
    lk_text_free(&s->faults);
    lk_free(s->prompts);
    lk_free(s->sources);
    lk_names_free(&s->source_ids);
    lk_names_free(&s->own_ids);
    lk_names_free(&s->rewrites.keys);
    lk_free(s->rewrites.list);
    lk_free(s->jobs);
    lk_free(s->file);
    lk_free(s->folder);
    lk_store_free(&s->store);
    lk_free(s);
}

const char *lk_study_name(const struct lk_study *s) { return s->name; }
const char *lk_study_resolved(const struct lk_study *s) { return s->resolved.bytes; }
const char *lk_study_hash(const struct lk_study *s) { return s->hash; }
const struct lk_study_source *lk_study_source(const struct lk_study *s, int source) { return &s->sources[source]; }
int lk_study_n_sources(const struct lk_study *s) { return s->n_sources; }
const struct lk_attribute *lk_study_attributes(const struct lk_study *s, int *n) {
    *n = s->n_attributes;
    return s->attributes;
}
bool lk_study_is_portrait(const struct lk_study *s) { return s->portrait; }
int lk_study_n_models(const struct lk_study *s) { return s->n_models; }
const struct lk_study_hosted *lk_study_model_hosted(const struct lk_study *s, int model) {
    return s->models[model].hosted.given ? &s->models[model].hosted : NULL;
}
const struct lk_study_rewriter *lk_study_model_rewriter(const struct lk_study *s, int model) {
    return s->models[model].rewriter.prompts ? &s->models[model].rewriter : NULL;
}
uint64_t lk_study_seed(const struct lk_study *s) { return (uint64_t)s->study_seed; }
const char *lk_study_model_path(const struct lk_study *s, int model) { return s->models[model].path; }
const char *lk_study_model_key(const struct lk_study *s, int model) { return s->models[model].key; }
const char *lk_study_model_family(const struct lk_study *s, int model) { return s->models[model].family; }
const char *lk_study_model_label(const struct lk_study *s, int model) { return s->models[model].label; }
int lk_study_n_experiments(const struct lk_study *s) { return s->n_experiments; }
const char *lk_study_experiment_key(const struct lk_study *s, int e) { return s->experiments[e].key; }
const struct lk_study_prompt *lk_study_own_prompts(const struct lk_study *s, size_t *n) {
    *n = (s->first_t2i ? s->first_t2i : s->n_prompts) - LK_N_EDIT_PROMPTS - LK_N_W_PROMPTS;
    return s->prompts + LK_N_EDIT_PROMPTS + LK_N_W_PROMPTS;
}
size_t lk_study_n_jobs(const struct lk_study *s) { return s->n_jobs; }
enum lk_experiment lk_study_experiment_kind(const struct lk_study *s, int e) { return s->experiments[e].kind; }

bool lk_study_is_documented(const struct lk_study *s) {
    size_t n_own;
    lk_study_own_prompts(s, &n_own);
    bool documented = s->portrait && !n_own && !lk_study_has_seeds(s);
    for (int m = 0; m < s->n_models; m++) {
        documented = documented && lk_study_preset_model(s->models[m].key) >= 0;
        documented = documented && !s->models[m].hosted.given; /* refusals are none of its outcomes */
        documented = documented && !s->models[m].rewriter.prompts && !s->models[m].mask;
        documented = documented && !s->models[m].drawn.recipe.what;
    }
    for (int e = 0; e < s->n_experiments; e++)
        documented = documented && !strcmp(s->experiments[e].key, lk_experiment_key(s->experiments[e].kind));
    return documented;
}

bool lk_study_has_seeds(const struct lk_study *s) {
    bool any = false;
    for (int m = 0; m < s->n_models; m++) any |= s->models[m].range.given;
    for (int e = 0; e < s->n_experiments; e++)
        any |= s->experiments[e].kind != LK_EXP_T2I && s->experiments[e].range.given;
    return any;
}
