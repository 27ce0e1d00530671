#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/design/internal.h"
#include "eval/judge/ensemble.h"
#include "eval/scores/fields.h"
#include "eval/scores/long_table.h"

/* Whether pairs find their other half: the output of an edit experiment that they are compared with. */

static bool is_reused(const struct lk_study_experiment *x) {
    return x->kind == LK_EXP2 && !strcmp(x->baseline, "reuse");
}

/* Whether the edit has one of the seeds that pairs of these have. */
static bool has_seed(const struct lk_study *s, const struct job_key *edit, const struct lk_study_seeds *of) {
    const struct lk_study_seeds *own = lk_study_seeds_of(s, edit->experiment, edit->model);
    if (edit->seed < 0 || !of->given) return edit->seed < 0 && !of->given;
    return own->first + edit->seed >= of->first && own->first + edit->seed <= of->last;
}

static void write_seeds(const struct lk_study_seeds *seeds, char out[60]) {
    if (seeds->given)
        snprintf(out, 60, "\"%lld:%lld\"", (long long)seeds->first, (long long)seeds->last);
    else
        snprintf(out, 60, "the model's one seed");
}

/* Which edit experiment has the cell, whatever its seeds; -1: none. */
static int edits_of(const struct lk_study *s, const struct job_key *pair) {
    for (size_t i = 0; i < s->n_jobs; i++) {
        const struct job_key *key = &s->jobs[i];
        if (s->experiments[key->experiment].kind == LK_EXP1 && key->model == pair->model &&
            key->source[0] == pair->source[0] && key->prompt == pair->prompt)
            return key->experiment;
    }
    return -1;
}

static enum lk_code tell(struct lk_study *s, const struct job_key *pair, size_t n) {
    const struct lk_study_experiment *x = &s->experiments[pair->experiment];
    const int edits = edits_of(s, pair);
    char field[100], expected[60], got[60], source[64];
    lk_study_name_source(s, pair->source[0], source);
    write_seeds(lk_study_seeds_of(s, pair->experiment, pair->model), got);
    snprintf(field, sizeof field, "experiments.%s.%s", x->key, edits < 0 ? "baseline" : "seeds");
    const char *lack = n == 1 ? "pair lacks its" : "pairs lack their";
    struct lk_text text = {0};
    if (edits >= 0) {
        write_seeds(lk_study_seeds_of(s, edits, pair->model), expected);
        lk_text_add(&text,
                    "expected seeds that its baseline, experiment \"%s\", has (%s), got %s: %zu %s other "
                    "half; give both experiments the same seeds, or say \"baseline\": \"make\"",
                    s->experiments[edits].key, expected, got, n, lack);
    } else {
        lk_text_add(&text,
                    "expected edits that an edit experiment of the study makes too, got %s of %s by %s: %zu %s "
                    "other half; add them to the edit experiment, or say \"baseline\": \"make\"",
                    s->prompts[pair->prompt].id, source, s->models[pair->model].key, n, lack);
    }
    enum lk_code rc = text.rc;
    if (!rc) {
        lk_study_bad(s, field, "%s", text.bytes);
        if (!s->unpaired) s->unpaired = lk_store_text(&s->store, lk_error_text());
        lk_text_add(&s->lacking, "%s\n", lk_error_text());
        s->n_lacking++;
        rc = s->unpaired ? s->lacking.rc : lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    }
    lk_text_free(&text);
    return rc;
}

/* n [lk_study_cell]: how many edits of a cell have seeds of experiment e. */
static enum lk_code check_experiment(struct lk_study *s, int e, int32_t *n) {
    const struct job_key *first = NULL;
    size_t n_lacking = 0;
    for (size_t i = 0; i < s->n_jobs; i++) {
        const struct job_key *key = &s->jobs[i];
        if (s->experiments[key->experiment].kind == LK_EXP1 && has_seed(s, key, lk_study_seeds_of(s, e, key->model)))
            n[lk_study_cell(s, key->model, key->source[0], key->prompt)]++;
    }
    for (size_t i = 0; i < s->n_jobs; i++) {
        const struct job_key *key = &s->jobs[i];
        if (key->experiment != e) continue;
        const struct lk_study_seeds *seeds = lk_study_seeds_of(s, e, key->model);
        const int32_t wanted = seeds->given ? (int32_t)(seeds->last - seeds->first + 1) : 1;
        const int32_t found = n[lk_study_cell(s, key->model, key->source[0], key->prompt)];
        if (found >= wanted || key->seed > 0) continue;
        n_lacking += (size_t)(wanted - found);
        if (!first) first = key;
    }
    return first ? tell(s, first, n_lacking) : LK_OK;
}

enum lk_code lk_study_find_unpaired(struct lk_study *s) {
    bool any = false;
    for (int e = 0; e < s->n_experiments; e++) any |= s->experiments[e].kind == LK_EXP1;
    for (int e = 0; e < s->n_experiments && any; e++) { /* without edits here the other half is of another run */
        if (!is_reused(&s->experiments[e])) continue;
        int32_t *n = lk_calloc((size_t)s->n_models * (size_t)s->n_sources * s->n_prompts + 1, sizeof *n);
        enum lk_code rc = n ? check_experiment(s, e, n) : lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
        lk_free(n);
        if (rc) return rc;
    }
    return LK_OK;
}

const char *lk_study_paired_elsewhere(const struct lk_study *s) {
    const char *key = NULL;
    for (int e = 0; e < s->n_experiments; e++) {
        if (s->experiments[e].kind == LK_EXP1) return NULL;
        if (is_reused(&s->experiments[e])) key = s->experiments[e].key;
    }
    return key;
}

const char *lk_study_unpaired(const struct lk_study *s) { return s->unpaired; }

/* Models of a study that are one and the same: every picture of theirs would be made twice. */

/* All that decides a model's pixels but the seed, which experiments may have. */
static enum lk_code describe(const struct lk_study *s, const struct lk_study_model *m, struct lk_text *out) {
    char whole[PATH_MAX];
    if (m->hosted.given) {
        lk_study_write_hosted(&m->hosted, true, out);
        return out->rc;
    }
    struct lk_job job = m->job;
    job.request.seed = 0;
    lk_text_add(out, "%s\n%s\n%s\n", realpath(m->path, whole) ? whole : m->path, m->family,
                m->weights_identity ? m->weights_identity : "");
    LK_TRY(lk_study_write_parameters(&job, lk_family_bit_of(m->family), false, out));
    lk_study_write_adapters(m, true, out);
    lk_study_write_mask(s, m, true, out);
    lk_study_write_rewrite(m, true, out);
    return out->rc;
}

static bool share_seed(const struct lk_study *s, int e, int a, int b) {
    struct lk_study_seeds range[2] = {*lk_study_seeds_of(s, e, a), *lk_study_seeds_of(s, e, b)};
    for (int k = 0; k < 2; k++)
        if (!range[k].given) range[k].first = range[k].last = (int64_t)s->models[k ? b : a].job.request.seed;
    return range[0].first <= range[1].last && range[1].first <= range[0].last;
}

static bool same_jobs(const struct lk_study *s, int a, int b) {
    for (int e = 0; e < s->n_experiments; e++)
        if (s->experiments[e].model[a] && s->experiments[e].model[b] && share_seed(s, e, a, b)) return true;
    return false;
}

enum lk_code lk_study_same_models(const struct lk_study *s, struct lk_text *out) {
    struct lk_text *texts = lk_calloc((size_t)s->n_models + 1, sizeof *texts);
    enum lk_code rc = texts ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    for (int b = 0; b < s->n_models && !rc; b++) {
        rc = describe(s, &s->models[b], &texts[b]);
        for (int a = 0; a < b && !rc; a++)
            if (texts[a].n == texts[b].n && !memcmp(texts[a].bytes, texts[b].bytes, texts[a].n) && same_jobs(s, a, b))
                lk_text_add(out,
                            "models.%s and models.%s are the same in all that decides the pixels (checkpoint, "
                            "parameters, seeds): each picture of theirs is made twice and no finding can tell them "
                            "apart; leave one out, or give it other parameters\n",
                            s->models[a].key, s->models[b].key);
    }
    for (int m = 0; m < s->n_models && texts; m++) lk_text_free(&texts[m]);
    lk_free(texts);
    return rc ? rc : out->rc;
}

/* Pairs of experiment 2 that a file names: a list, or the outputs of experiment 1 in which race or gender drifted. */

/* model, source and prompt, each in a field of its own. */
static enum lk_code choose_record(struct lk_study *s, const struct lk_fields *fields, const char *file, size_t line,
                                  int32_t *chosen) {
    const struct lk_field *model = lk_fields_find(fields, "model"), *source = lk_fields_find(fields, "source_id"),
                          *prompt = lk_fields_find(fields, "prompt_id");
    int m = model ? lk_study_find_model(s, model->text) : -1;
    int i = source ? lk_study_find_source(s, source->text, source->n) : -1;
    int32_t p = prompt ? lk_study_find_prompt(s, prompt->text) : -1;
    char expected[320] = "a prompt's id, ";
    lk_study_list_prompts(s, expected + strlen(expected));
    if (m < 0) return lk_field_wrong(file, line, "model", "a model of the study", model);
    if (i < 0) return lk_field_wrong(file, line, "source_id", "a source of the study", source);
    if (p < 0) return lk_field_wrong(file, line, "prompt_id", expected, prompt);
    int32_t *cell = &chosen[lk_study_cell(s, m, i, p)];
    if (*cell) return lk_field_wrong(file, line, "prompt_id", "each pair once", prompt);
    *cell = -1;
    return LK_OK;
}

static enum lk_code choose_list(struct lk_study *s, const char *text, size_t n, const char *file, int32_t *chosen) {
    struct lk_records records;
    bool more = false;
    enum lk_code rc = lk_records_open(&records, text, n, file);
    if (!rc) rc = lk_records_next_strict(&records, &more);
    while (!rc && more) {
        rc = lk_study_note(s, choose_record(s, &records.fields, file, records.line, chosen));
        if (!rc) rc = lk_records_next_strict(&records, &more);
    }
    lk_records_close(&records);
    return rc;
}

static int setting_number(const struct lk_study *s, const char *key) { return atoi(lk_study_setting(s, key)); }

/* The edits that the experiments before this one ask for, where their ids say nothing. */
static enum lk_code add_edits(const struct lk_study *s, int e, struct lk_dataset *data) {
    if (lk_study_is_documented(s)) return LK_OK;
    struct lk_study_job *job = lk_malloc(sizeof *job);
    enum lk_code rc = job ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    for (size_t i = 0; i < s->n_jobs && !rc; i++) {
        int32_t at;
        if (s->experiments[s->jobs[i].experiment].kind != LK_EXP1) continue;
        rc = lk_study_job(s, i, job);
        if (!rc) rc = lk_dataset_add(data, job->name, (int32_t)i, job->arm, &at);
    }
    lk_free(job);
    if (rc || data->n_items) return rc;
    return lk_fail(LK_E_CONFIG_VALUE, "%s: experiments.%s.preset: expected an experiment of edits before it, got none",
                   s->file, s->experiments[e].key);
}

static enum lk_code choose_item(struct lk_study *s, const struct lk_item *item, const char *file, int32_t *chosen) {
    const struct job_key *job = item->job >= 0 ? &s->jobs[item->job] : NULL;
    const int model = job ? job->model : lk_study_find_model(s, lk_factor_key(LK_FACTOR_MODEL, item->model));
    if (model < 0) return lk_fail(LK_E_INPUT, "%s: %s: expected a model of the study", file, item->id);
    chosen[lk_study_cell(s, model, job ? job->source[0] : item->source, job ? job->prompt : item->prompt)] = -1;
    return LK_OK;
}

/* Outputs of experiment 1 by the ensemble of the judges, with the study's own rounding and threshold. */
static enum lk_code choose_drifted(struct lk_study *s, int e, const char *text, size_t n, const char *file,
                                   int32_t *chosen) {
    struct lk_dataset data = {0};
    struct lk_long_report report;
    struct lk_ensemble ensemble = {.rounding = (enum lk_rounding)lk_rounding_parse(lk_study_setting(s, "rounding"))};
    int threshold = setting_number(s, "threshold.drift");
    enum lk_code rc = add_edits(s, e, &data);
    if (!rc) rc = lk_long_table_read(&data, text, n, file, &report);
    if (!rc) lk_ensemble_apply(&data, &ensemble, NULL);
    for (size_t i = 0; i < data.n_items && !rc; i++) {
        const struct lk_item *item = &data.items[i];
        bool drifted = item->score[LK_AXIS_RACE_DRIFT] >= threshold || item->score[LK_AXIS_GENDER_DRIFT] >= threshold;
        if (!drifted || item->arm != LK_ARM_EDITED || item->prompt >= LK_N_EDIT_PROMPTS) continue;
        rc = choose_item(s, item, file, chosen);
    }
    lk_dataset_free(&data);
    return rc;
}

enum lk_code lk_study_choose_listed(struct lk_study *s, int e, int32_t *chosen) {
    const struct lk_study_experiment *x = &s->experiments[e];
    bool drift = !strcmp(x->preset, "drift");
    const char *file = drift ? x->scores : x->list;
    char *text, field[100], preset[100];
    size_t n;
    snprintf(field, sizeof field, "experiments.%s.%s", x->key, drift ? "scores" : "list");
    snprintf(preset, sizeof preset, "experiments.%s.preset", x->key);
    if (!file)
        return lk_study_bad(s, field,
                            drift ? "expected the table of experiment 1's scores, got nothing"
                                  : "expected a table of model, source_id and prompt_id, got nothing");
    if (x->models.n + x->prompts.n)
        return lk_study_bad(s, preset, "expected grid where models or prompts are chosen, got \"%s\"", x->preset);
    LK_TRY(lk_study_read_file(s, field, file, &text, &n));
    enum lk_code rc = drift ? choose_drifted(s, e, text, n, file, chosen) : choose_list(s, text, n, file, chosen);
    lk_free(text);
    return rc;
}
