/* The experiments as jobs, in canonical order. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/design/internal.h"
#include "eval/study/pairs500.h"

enum { STEP1X = 1 };

enum lk_code lk_study_add_job(struct lk_study *s, const struct job_key *key) {
    LK_TRY(lk_grow(&s->jobs, &s->jobs_capacity, s->n_jobs + 1, sizeof *s->jobs));
    s->jobs[s->n_jobs++] = *key;
    return LK_OK;
}

static struct job_key edit_of(int experiment, int model, int source, int32_t prompt) {
    return (struct job_key){.experiment = (int8_t)experiment,
                            .model = (int8_t)model,
                            .source = {(int16_t)source, -1},
                            .prompt = prompt,
                            .pair = -1,
                            .seed = -1,
                            .cfg = -1,
                            .mitigation = -1};
}

static const char *field_of(int e, const char *key, char out[64]) {
    snprintf(out, 64, "experiments.%s.%s", lk_experiment_key(e), key);
    return out;
}

enum lk_code lk_study_take_models(struct lk_study *s, int e, const char *otherwise) {
    struct lk_study_experiment *x = &s->experiments[e];
    char field[64];
    field_of(e, "models", field);
    for (size_t i = 0; i < x->models.n; i++) {
        const char *name = x->models.values[i];
        int model = lk_factor_parse(LK_FACTOR_MODEL, name, strlen(name));
        if (model < 0) return lk_study_bad(s, field, "expected flux, step1x or qwen, got \"%.60s\"", name);
        if (x->model[model]) return lk_study_bad(s, field, "expected each model once, got %s twice", name);
        if (!s->models[model].given)
            return lk_study_bad(s, field, "expected a model that \"models\" has, got \"%.60s\"", name);
        x->model[model] = true;
    }
    for (int m = 0; m < LK_N_MODELS && !x->models.n; m++)
        x->model[m] = s->models[m].given && strstr(otherwise, lk_factor_key(LK_FACTOR_MODEL, m));
    for (int m = 0; m < LK_N_MODELS; m++)
        if (x->model[m]) return LK_OK;
    return lk_study_bad(s, field, "expected one of %s, but \"models\" has none of them", otherwise);
}

static enum lk_code take_prompts(struct lk_study *s, int e, bool *chosen) {
    const struct lk_study_experiment *x = &s->experiments[e];
    char field[64];
    field_of(e, "prompts", field);
    for (size_t i = 0; i < x->prompts.n; i++) {
        int32_t prompt = lk_study_find_prompt(s, x->prompts.values[i]);
        if (prompt < 0)
            return lk_study_bad(s, field,
                                "expected a prompt's id as O-01, catB_001 or one of the file in \"prompts\", got "
                                "\"%.60s\"",
                                x->prompts.values[i]);
        if (chosen[prompt])
            return lk_study_bad(s, field, "expected each prompt once, got %s twice", s->prompts[prompt].id);
        chosen[prompt] = true;
    }
    for (int i = 0; i < LK_N_EDIT_PROMPTS && !x->prompts.n; i++) chosen[i] = true;
    return LK_OK;
}

static enum lk_code take_sources(struct lk_study *s, int e, bool chosen[LK_N_SOURCES]) {
    const struct lk_study_experiment *x = &s->experiments[e];
    char field[64];
    field_of(e, "sources", field);
    for (size_t i = 0; i < x->sources.n; i++) {
        const char *id = x->sources.values[i];
        int source = lk_source_parse(id, strlen(id));
        if (source < 0) return lk_study_bad(s, field, "expected a source such as Black_Male_40s, got \"%.60s\"", id);
        if (chosen[source]) return lk_study_bad(s, field, "expected each source once, got %s twice", id);
        chosen[source] = true;
    }
    for (int i = 0; i < LK_N_SOURCES && !x->sources.n; i++) chosen[i] = true;
    return LK_OK;
}

static enum lk_code expand_exp1(struct lk_study *s, bool *prompts) {
    const struct lk_study_experiment *x = &s->experiments[LK_EXP1];
    bool sources[LK_N_SOURCES] = {false};
    if (strcmp(x->preset, "custom") && x->sources.n + x->prompts.n)
        return lk_study_bad(s, "experiments.exp1.preset",
                            "expected \"custom\" where sources or prompts are chosen, got \"%s\"", x->preset);
    LK_TRY(lk_study_take_models(s, LK_EXP1, "flux, step1x, qwen"));
    LK_TRY(take_sources(s, LK_EXP1, sources));
    LK_TRY(take_prompts(s, LK_EXP1, prompts));
    for (int m = 0; m < LK_N_MODELS; m++)
        for (int i = 0; i < LK_N_SOURCES && x->model[m]; i++)
            for (size_t p = 0; p < s->n_prompts && sources[i]; p++) {
                struct job_key key = edit_of(LK_EXP1, m, i, (int32_t)p);
                if (prompts[p]) LK_TRY(lk_study_add_job(s, &key));
            }
    return LK_OK;
}

/* Both arms differ in prompt, arm, paths, hashes and times only: they are the same key but for the arm. */
static enum lk_code add_pair(struct lk_study *s, struct job_key key) {
    if (!strcmp(s->experiments[LK_EXP2].baseline, "make")) LK_TRY(lk_study_add_job(s, &key));
    key.arm = LK_ARM_PRESERVED;
    LK_TRY(lk_study_make_prompt(s, &key));
    return lk_study_add_job(s, &key);
}

size_t lk_study_cell(const struct lk_study *s, int model, int source, int32_t prompt) {
    return ((size_t)model * LK_N_SOURCES + (size_t)source) * s->n_prompts + (size_t)prompt;
}

static enum lk_code choose_pairs500(struct lk_study *s, int32_t *chosen) {
    struct lk_pair pairs[LK_N_PAIRS];
    for (int m = 0; m < LK_N_MODELS; m++)
        if (!s->models[m].given)
            return lk_study_bad(s, "experiments.exp2.preset",
                                "pairs500 is balanced over flux, step1x and qwen, but \"models\" lacks %s",
                                lk_factor_key(LK_FACTOR_MODEL, m));
    if (s->experiments[LK_EXP2].models.n + s->experiments[LK_EXP2].prompts.n)
        return lk_study_bad(s, "experiments.exp2.preset",
                            "expected grid336 or list where models or prompts are chosen, got \"pairs500\"");
    lk_pairs500((uint64_t)s->study_seed, pairs);
    for (int i = 0; i < LK_N_PAIRS; i++)
        chosen[lk_study_cell(s, pairs[i].model, pairs[i].source, pairs[i].prompt)] = i + 1;
    return LK_OK;
}

static enum lk_code choose_grid336(struct lk_study *s, int32_t *chosen, bool *prompts) {
    const struct lk_study_experiment *x = &s->experiments[LK_EXP2];
    if (x->prompts.n != 4)
        return lk_study_bad(s, "experiments.exp2.prompts",
                            "expected the four prompts of grid336, which the study's documents do not name, got %zu",
                            x->prompts.n);
    LK_TRY(lk_study_take_models(s, LK_EXP2, "flux, step1x, qwen"));
    LK_TRY(take_prompts(s, LK_EXP2, prompts));
    for (int m = 0; m < LK_N_MODELS; m++)
        for (int i = 0; i < LK_N_SOURCES && x->model[m]; i++)
            for (size_t p = 0; p < s->n_prompts; p++)
                if (prompts[p]) chosen[lk_study_cell(s, m, i, (int32_t)p)] = -1;
    return LK_OK;
}

static enum lk_code read_features(struct lk_study *s) {
    const struct lk_study_experiment *x = &s->experiments[LK_EXP2];
    char *text;
    size_t n;
    if (!x->feature_prompts) return LK_OK;
    if (!strcmp(x->preserve_with, "generic"))
        return lk_study_bad(s, "experiments.exp2.feature_prompts", "generic has none: leave it out");
    LK_TRY(lk_study_read_optional(s, "experiments.exp2.feature_prompts", x->feature_prompts, &text, &n));
    enum lk_code rc = !text ? LK_OK : lk_feature_prompts_read(&s->features, text, n, x->feature_prompts);
    lk_free(text);
    return rc;
}

static enum lk_code expand_exp2(struct lk_study *s, bool *prompts) {
    const char *preset = s->experiments[LK_EXP2].preset;
    LK_TRY(read_features(s));
    int32_t *chosen = lk_calloc((size_t)LK_N_MODELS * LK_N_SOURCES * s->n_prompts, sizeof *chosen);
    if (!chosen) return lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    enum lk_code rc = !strcmp(preset, "pairs500")  ? choose_pairs500(s, chosen)
                      : !strcmp(preset, "grid336") ? choose_grid336(s, chosen, prompts)
                                                   : lk_study_choose_listed(s, chosen);
    for (int m = 0; m < LK_N_MODELS; m++)
        for (int i = 0; i < LK_N_SOURCES; i++)
            for (int32_t p = 0; p < (int32_t)s->n_prompts && !rc; p++) {
                struct job_key key = edit_of(LK_EXP2, m, i, p);
                int32_t number = chosen[lk_study_cell(s, m, i, p)];
                key.pair = number > 0 ? number - 1 : -1;
                if (number) rc = add_pair(s, key);
            }
    lk_free(chosen);
    return rc;
}

/* Sentence k is about two people of one race and age who differ in gender. */
static enum lk_code add_composites(struct lk_study *s, int model) {
    bool both = !strcmp(s->experiments[LK_EXP3].order, "both");
    for (int swapped = 0; swapped <= (both ? 1 : 0); swapped++)
        for (int k = 0; k < LK_N_W_PROMPTS; k++) {
            int race = k % LK_N_RACES, age = k % LK_N_AGES;
            struct job_key key = edit_of(LK_EXP3, model, lk_source(race, swapped, age), LK_N_EDIT_PROMPTS + k);
            key.source[1] = (int16_t)lk_source(race, !swapped, age);
            key.swapped = (int8_t)swapped;
            LK_TRY(lk_study_add_job(s, &key));
        }
    return LK_OK;
}

static enum lk_code add_separate(struct lk_study *s, int model) {
    for (int i = 0; i < LK_N_SOURCES; i++) {
        int race, gender, age;
        lk_source_factors(i, &race, &gender, &age);
        for (int k = 0; k < LK_N_W_PROMPTS; k++) {
            struct job_key key = edit_of(LK_EXP3, model, i, LK_N_EDIT_PROMPTS + k);
            if (k % LK_N_RACES == race && k % LK_N_AGES == age) LK_TRY(lk_study_add_job(s, &key));
        }
    }
    return LK_OK;
}

static enum lk_code expand_exp3(struct lk_study *s) {
    struct lk_study_experiment *x = &s->experiments[LK_EXP3];
    bool separate = !strcmp(x->preset, "separate");
    int n = 0;
    LK_TRY(lk_study_take_models(s, LK_EXP3, separate ? "flux, step1x, qwen" : "flux, qwen"));
    if (!separate && x->model[STEP1X])
        return lk_study_bad(s, "experiments.exp3.models",
                            "Step1X-Edit takes one picture, a composite is made from two; use the preset \"separate\", "
                            "or leave step1x out");
    if (separate && strcmp(x->order, "male_first"))
        return lk_study_bad(s, "experiments.exp3.order", "separate has one picture in each request: leave it out");
    for (int m = 0; m < LK_N_MODELS; m++) n += x->model[m];
    if (!strcmp(x->preset, "composite1") && n > 1) {
        if (x->models.n) return lk_study_bad(s, "experiments.exp3.models", "composite1 takes one model, got %d", n);
        for (int m = LK_N_MODELS; m-- > 0 && n > 1;)
            if (x->model[m]) x->model[m] = false, n--;
    }
    for (int m = 0; m < LK_N_MODELS; m++)
        if (x->model[m]) LK_TRY(separate ? add_separate(s, m) : add_composites(s, m));
    return LK_OK;
}

enum lk_code lk_study_expand(struct lk_study *s) {
    bool *prompts = lk_calloc(2 * s->n_prompts, sizeof *prompts);
    if (!prompts) return lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    enum lk_code rc = LK_OK;
    if (s->experiments[LK_EXP1].given) rc = expand_exp1(s, prompts);
    if (!rc && s->experiments[LK_EXP2].given) rc = expand_exp2(s, prompts + s->n_prompts);
    if (!rc && s->experiments[LK_EXP3].given) rc = expand_exp3(s);
    lk_free(prompts);
    if (!rc && s->experiments[LK_EXP_T2I].given) rc = lk_study_expand_t2i(s);
    return rc;
}
