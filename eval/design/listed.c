/* Pairs of experiment 2 that a file names: a list, or the outputs of experiment 1 in which race or gender drifted. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/design/internal.h"
#include "eval/judge/ensemble.h"
#include "eval/scores/fields.h"
#include "eval/scores/long_table.h"

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
