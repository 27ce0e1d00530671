/* The experiments as jobs, in canonical order. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/design/internal.h"
#include "eval/study/pairs500.h"

enum lk_code lk_study_add_job(struct lk_study *s, const struct job_key *key) {
    LK_TRY(lk_grow(&s->jobs, &s->jobs_capacity, s->n_jobs + 1, sizeof *s->jobs));
    s->jobs[s->n_jobs++] = *key;
    return LK_OK;
}

static struct job_key edit_of(int experiment, int model, int source, int32_t prompt) {
    return (struct job_key){.experiment = (int8_t)experiment,
                            .model = (int8_t)model,
                            .source = {source, -1},
                            .prompt = prompt,
                            .pair = -1,
                            .seed = -1,
                            .cfg = -1,
                            .mitigation = -1};
}

static const char *field_of(const struct lk_study *s, int e, const char *key, char out[100]) {
    snprintf(out, 100, "experiments.%s.%s", s->experiments[e].key, key);
    return out;
}

/* "flux, step1x" */
static void list_models(const struct lk_study *s, unsigned families, char out[300]) {
    *out = 0;
    for (int m = 0; m < s->n_models; m++) {
        const size_t used = strlen(out);
        if (families & lk_family_bit_of(s->models[m].family))
            snprintf(out + used, 300 - used, "%s%s", used ? ", " : "", s->models[m].key);
    }
}

enum lk_code lk_study_take_models(struct lk_study *s, int e, unsigned families) {
    struct lk_study_experiment *x = &s->experiments[e];
    char field[100], known[300];
    field_of(s, e, "models", field);
    for (size_t i = 0; i < x->models.n; i++) {
        const char *name = x->models.values[i];
        const int model = lk_study_find_model(s, name);
        list_models(s, LK_FOR_ALL, known);
        if (model < 0)
            LK_TRY(lk_study_note(
                s, lk_study_bad(s, field, "expected a model that \"models\" has (%s), got \"%.60s\"", known, name)));
        else if (x->model[model])
            LK_TRY(lk_study_note(s, lk_study_bad(s, field, "expected each model once, got %s twice", name)));
        else
            x->model[model] = true;
    }
    for (int m = 0; m < s->n_models && !x->models.n; m++)
        x->model[m] = (families & lk_family_bit_of(s->models[m].family)) != 0;
    for (int m = 0; m < s->n_models; m++)
        if (x->model[m] || s->n_faults) return LK_OK;
    return lk_study_bad(s, field, "expected a model that can make this experiment's pictures, but \"models\" has none");
}

void lk_study_list_prompts(const struct lk_study *s, char out[300]) {
    enum { SHOWN = 4 };
    size_t n;
    const struct lk_study_prompt *own = lk_study_own_prompts(s, &n);
    int used = snprintf(out, 300, "%s", s->portrait || !n ? "O-01 to V-10 or catB_001" : "");
    for (size_t i = 0; i < n && i < SHOWN; i++)
        used += snprintf(out + used, 300 - (size_t)used, "%s%s", used ? ", " : "", own[i].id);
    if (n > SHOWN) snprintf(out + used, 300 - (size_t)used, " and %zu more", n - SHOWN);
}

/* Those listed; else the user's own in a study that has its own, else the twenty of the portrait study. */
static enum lk_code take_prompts(struct lk_study *s, int e, bool *chosen) {
    const struct lk_study_experiment *x = &s->experiments[e];
    char field[100];
    char known[300];
    lk_study_list_prompts(s, known);
    field_of(s, e, "prompts", field);
    for (size_t i = 0; i < x->prompts.n; i++) {
        int32_t prompt = lk_study_find_prompt(s, x->prompts.values[i]);
        if (prompt < 0)
            LK_TRY(lk_study_note(
                s, lk_study_bad(s, field, "expected a prompt's id, %s, got \"%.60s\"", known, x->prompts.values[i])));
        else if (chosen[prompt])
            LK_TRY(lk_study_note(
                s, lk_study_bad(s, field, "expected each prompt once, got %s twice", s->prompts[prompt].id)));
        else
            chosen[prompt] = true;
    }
    const size_t n_builtin = LK_N_EDIT_PROMPTS + LK_N_W_PROMPTS;
    const bool own = !s->portrait && s->n_prompts > n_builtin;
    const size_t from = own ? n_builtin : 0, to = own ? s->n_prompts : LK_N_EDIT_PROMPTS;
    for (size_t i = from; i < to && !x->prompts.n; i++) chosen[i] = true;
    return LK_OK;
}

static enum lk_code take_sources(struct lk_study *s, int e, bool *chosen) {
    const struct lk_study_experiment *x = &s->experiments[e];
    char field[100];
    field_of(s, e, "sources", field);
    for (size_t i = 0; i < x->sources.n; i++) {
        const char *id = x->sources.values[i];
        const int32_t source = lk_study_find_source(s, id, strlen(id));
        if (source < 0)
            LK_TRY(lk_study_note(
                s, lk_study_bad(s, field, "expected a source%s, got \"%.60s\"",
                                s->portrait ? " such as Black_Male_40s" : "'s id of the table in \"sources\"", id)));
        else if (chosen[source])
            LK_TRY(lk_study_note(s, lk_study_bad(s, field, "expected each source once, got %s twice", id)));
        else
            chosen[source] = true;
    }
    for (int i = 0; i < s->n_sources && !x->sources.n; i++) chosen[i] = true;
    return LK_OK;
}

/* What an experiment is made of: its models are in the experiment itself. */
struct taken {
    bool *sources, *prompts;
};

static enum lk_code take(struct lk_study *s, int e, struct taken *out) {
    struct lk_study_experiment *x = &s->experiments[e];
    char field[100];
    out->sources = lk_calloc((size_t)s->n_sources + 1, sizeof *out->sources);
    out->prompts = lk_calloc(s->n_prompts + 1, sizeof *out->prompts);
    if (!out->sources || !out->prompts) return lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    if (!s->n_sources) return lk_study_bad(s, "sources", "expected a table with a source or more, got none");
    if (x->seeds) LK_TRY(lk_study_read_seeds(s, field_of(s, e, "seeds", field), x->seeds, &x->range));
    LK_TRY(lk_study_take_models(s, e, LK_FOR_ALL));
    LK_TRY(take_sources(s, e, out->sources));
    return take_prompts(s, e, out->prompts);
}

static void taken_free(struct taken *taken) {
    lk_free(taken->sources);
    lk_free(taken->prompts);
}

/* The seeds of a model's jobs; one that the model itself has where none are given. */
static int count_seeds(const struct lk_study *s, const struct lk_study_experiment *x, int model) {
    const struct lk_study_seeds *range = lk_study_seeds_of(s, (int)(x - s->experiments), model);
    return range->given ? (int)(range->last - range->first + 1) : 0;
}

/* The job of every seed. */
static enum lk_code add_seeds(struct lk_study *s, struct job_key key) {
    const int n = count_seeds(s, &s->experiments[key.experiment], key.model);
    if (!n) return lk_study_add_job(s, &key);
    for (key.seed = 0; key.seed < n; key.seed++) LK_TRY(lk_study_add_job(s, &key));
    return LK_OK;
}

static enum lk_code add_edits(struct lk_study *s, int e, const struct taken *taken) {
    const struct lk_study_experiment *x = &s->experiments[e];
    for (int m = 0; m < s->n_models; m++)
        for (int i = 0; i < s->n_sources && x->model[m]; i++)
            for (size_t p = 0; p < s->n_prompts && taken->sources[i]; p++)
                if (taken->prompts[p]) LK_TRY(add_seeds(s, edit_of(e, m, i, (int32_t)p)));
    return LK_OK;
}

static enum lk_code expand_exp1(struct lk_study *s, int e) {
    const struct lk_study_experiment *x = &s->experiments[e];
    struct taken taken = {0};
    char field[100];
    if (s->schema == 1 && strcmp(x->preset, "custom") && x->sources.n + x->prompts.n)
        return lk_study_bad(s, field_of(s, e, "preset", field),
                            "expected \"custom\" where sources or prompts are chosen, got \"%s\"", x->preset);
    enum lk_code rc = take(s, e, &taken);
    if (!rc) rc = add_edits(s, e, &taken);
    taken_free(&taken);
    return rc;
}

/* Both arms differ in prompt, arm, paths, hashes and times only: they are the same key but for the arm. */
static enum lk_code add_pair(struct lk_study *s, struct job_key key) {
    if (!strcmp(s->experiments[key.experiment].baseline, "make")) LK_TRY(add_seeds(s, key));
    key.arm = LK_ARM_PRESERVED;
    LK_TRY(lk_study_make_prompt(s, &key));
    return add_seeds(s, key);
}

size_t lk_study_cell(const struct lk_study *s, int model, int source, int32_t prompt) {
    return ((size_t)model * (size_t)s->n_sources + (size_t)source) * s->n_prompts + (size_t)prompt;
}

/* pairs500's model of each of the three, by its key. */
static enum lk_code find_three(const struct lk_study *s, int e, int models[LK_N_MODELS]) {
    char field[100];
    field_of(s, e, "preset", field);
    if (!s->portrait)
        return lk_study_bad(s, field, "pairs500 is drawn from the 84 sources of the portrait study; use grid or list");
    for (int m = 0; m < LK_N_MODELS; m++)
        if ((models[m] = lk_study_find_model(s, lk_factor_key(LK_FACTOR_MODEL, m))) < 0)
            return lk_study_bad(s, field, "pairs500 is balanced over flux, step1x and qwen, but \"models\" lacks %s",
                                lk_factor_key(LK_FACTOR_MODEL, m));
    const struct lk_study_experiment *x = &s->experiments[e];
    if (x->models.n + x->prompts.n + x->sources.n)
        return lk_study_bad(s, field,
                            "expected grid or list where models, sources or prompts are chosen, got "
                            "\"pairs500\"");
    return LK_OK;
}

static enum lk_code choose_pairs500(struct lk_study *s, int e, int32_t *chosen) {
    struct lk_pair pairs[LK_N_PAIRS];
    int models[LK_N_MODELS];
    LK_TRY(find_three(s, e, models));
    lk_pairs500((uint64_t)s->study_seed, pairs);
    for (int i = 0; i < LK_N_PAIRS; i++)
        chosen[lk_study_cell(s, models[pairs[i].model], pairs[i].source, pairs[i].prompt)] = i + 1;
    return LK_OK;
}

/* Every pair of what is chosen; grid336 is that of four prompts. */
static enum lk_code choose_grid(struct lk_study *s, int e, int32_t *chosen) {
    const struct lk_study_experiment *x = &s->experiments[e];
    struct taken taken = {0};
    char field[100];
    if (!strcmp(x->preset, "grid336") && x->prompts.n != 4)
        return lk_study_bad(s, field_of(s, e, "prompts", field),
                            "expected the four prompts of grid336, which the study's documents do not name, got %zu",
                            x->prompts.n);
    enum lk_code rc = take(s, e, &taken);
    for (int m = 0; m < s->n_models && !rc; m++)
        for (int i = 0; i < s->n_sources && x->model[m]; i++)
            for (size_t p = 0; p < s->n_prompts && taken.sources[i]; p++)
                if (taken.prompts[p]) chosen[lk_study_cell(s, m, i, (int32_t)p)] = -1;
    taken_free(&taken);
    return rc;
}

static int32_t find_source(const void *study, const char *id, size_t n) { return lk_study_find_source(study, id, n); }

static enum lk_code read_features(struct lk_study *s, int e) {
    struct lk_study_experiment *x = &s->experiments[e];
    char *text, field[100];
    size_t n;
    if (!x->feature_prompts) return LK_OK;
    field_of(s, e, "feature_prompts", field);
    if (!strcmp(x->preserve_with, "generic")) return lk_study_bad(s, field, "generic has none: leave it out");
    LK_TRY(lk_study_read_optional(s, field, x->feature_prompts, &text, &n));
    const struct lk_source_ids ids = {s->n_sources, find_source, s};
    enum lk_code rc = !text ? LK_OK
                            : lk_feature_prompts_read(&x->features, text, n, x->feature_prompts,
                                                      s->portrait ? &lk_portrait_ids : &ids);
    lk_free(text);
    return rc;
}

static enum lk_code expand_exp2(struct lk_study *s, int e) {
    const char *preset = s->experiments[e].preset;
    char field[100];
    LK_TRY(read_features(s, e));
    if (s->experiments[e].seeds)
        LK_TRY(
            lk_study_read_seeds(s, field_of(s, e, "seeds", field), s->experiments[e].seeds, &s->experiments[e].range));
    int32_t *chosen = lk_calloc((size_t)s->n_models * (size_t)s->n_sources * s->n_prompts + 1, sizeof *chosen);
    if (!chosen) return lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    enum lk_code rc = !strcmp(preset, "pairs500")   ? choose_pairs500(s, e, chosen)
                      : !strncmp(preset, "grid", 4) ? choose_grid(s, e, chosen)
                                                    : lk_study_choose_listed(s, e, chosen);
    for (int m = 0; m < s->n_models; m++)
        for (int i = 0; i < s->n_sources; i++)
            for (int32_t p = 0; p < (int32_t)s->n_prompts && !rc; p++) {
                struct job_key key = edit_of(e, m, i, p);
                int32_t number = chosen[lk_study_cell(s, m, i, p)];
                key.pair = number > 0 ? number - 1 : -1;
                if (number) rc = add_pair(s, key);
            }
    lk_free(chosen);
    return rc;
}

/* Sentence k is about two people of one race and age who differ in gender. */
static enum lk_code add_composites(struct lk_study *s, int e, int model) {
    bool both = !strcmp(s->experiments[e].order, "both");
    for (int swapped = 0; swapped <= (both ? 1 : 0); swapped++)
        for (int k = 0; k < LK_N_W_PROMPTS; k++) {
            int race = k % LK_N_RACES, age = k % LK_N_AGES;
            struct job_key key = edit_of(e, model, lk_source(race, swapped, age), LK_N_EDIT_PROMPTS + k);
            key.source[1] = lk_source(race, !swapped, age);
            key.swapped = (int8_t)swapped;
            LK_TRY(lk_study_add_job(s, &key));
        }
    return LK_OK;
}

static enum lk_code add_separate(struct lk_study *s, int e, int model) {
    for (int i = 0; i < LK_N_SOURCES; i++) {
        int race, gender, age;
        lk_source_factors(i, &race, &gender, &age);
        for (int k = 0; k < LK_N_W_PROMPTS; k++) {
            struct job_key key = edit_of(e, model, i, LK_N_EDIT_PROMPTS + k);
            if (k % LK_N_RACES == race && k % LK_N_AGES == age) LK_TRY(lk_study_add_job(s, &key));
        }
    }
    return LK_OK;
}

static enum lk_code expand_exp3(struct lk_study *s, int e) {
    struct lk_study_experiment *x = &s->experiments[e];
    const bool separate = !strcmp(x->preset, "separate");
    const unsigned one_picture = lk_family_bit_of(lk_preset_family(1));
    char field[100];
    int n = 0;
    if (!s->portrait)
        return lk_study_bad(s, field_of(s, e, "preset", field),
                            "its fifty sentences are about the 84 sources of the portrait study, and this study has "
                            "attributes of its own; leave the experiment out");
    LK_TRY(lk_study_take_models(s, e, separate ? LK_FOR_ALL : LK_FOR_ALL & ~one_picture));
    for (int m = 0; m < s->n_models; m++)
        if (!separate && x->model[m] && !s->models[m].hosted.given &&
            lk_family_bit_of(s->models[m].family) & one_picture)
            return lk_study_bad(s, field_of(s, e, "models", field),
                                "Step1X-Edit takes one picture, a composite is made from two; use the preset "
                                "\"separate\", or leave %s out",
                                s->models[m].key);
    if (separate && strcmp(x->order, "male_first"))
        return lk_study_bad(s, field_of(s, e, "order", field),
                            "separate has one picture in each request: leave it out");
    for (int m = 0; m < s->n_models; m++) n += x->model[m];
    if (!strcmp(x->preset, "composite1") && n > 1) {
        if (x->models.n)
            return lk_study_bad(s, field_of(s, e, "models", field), "composite1 takes one model, got %d", n);
        for (int m = s->n_models; m-- > 0 && n > 1;)
            if (x->model[m]) x->model[m] = false, n--;
    }
    for (int m = 0; m < s->n_models; m++)
        if (x->model[m]) LK_TRY(separate ? add_separate(s, e, m) : add_composites(s, e, m));
    return LK_OK;
}

/* An item has one name, so two experiments of a kind must not ask for the same. */
static enum lk_code check_names(struct lk_study *s) {
    struct lk_names names = {0};
    struct lk_study_job *job = lk_malloc(sizeof *job);
    int of_kind[LK_N_EXPERIMENTS] = {0}, most = 0;
    enum lk_code rc = job ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    for (int e = 0; e < s->n_experiments; e++) {
        const int n = ++of_kind[s->experiments[e].kind];
        most = n > most ? n : most;
    }
    for (size_t i = 0; i < s->n_jobs && most > 1 && !rc; i++) {
        int32_t number;
        rc = lk_study_job(s, i, job);
        if (!rc) rc = lk_names_number(&names, job->name, strlen(job->name), &number);
        if (!rc && (size_t)number != i)
            rc = lk_study_bad(s, "experiments", "%s is an output of %s and of %s: what is made once can be in one",
                              job->name, s->experiments[s->jobs[number].experiment].key, job->experiment);
    }
    lk_names_free(&names);
    lk_free(job);
    return rc;
}

enum lk_code lk_study_expand(struct lk_study *s) {
    static enum lk_code (*const expand[])(struct lk_study *, int) = {
        [LK_EXP1] = expand_exp1, [LK_EXP2] = expand_exp2, [LK_EXP3] = expand_exp3, [LK_EXP_T2I] = lk_study_expand_t2i};
    for (int pass = 0; pass < 2; pass++) /* prompts of pictures from text come behind all others */
        for (int e = 0; e < s->n_experiments; e++)
            if ((s->experiments[e].kind == LK_EXP_T2I) == pass)
                LK_TRY(lk_study_note(s, expand[s->experiments[e].kind](s, e)));
    if (s->n_faults) return LK_OK;
    LK_TRY(check_names(s));
    return lk_study_find_unpaired(s);
}
