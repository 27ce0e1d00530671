
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/file.h"
#include "engine/base/text.h"
#include "eval/scores/long_table.h"
#include "eval/study/prompts.h"
#include "tools/cli/audit/audit.h"

enum { ID_BYTES = 128 };

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "sample: out of memory"); }

void cli_pool_free(struct cli_pool *pool) {
    for (int i = 0; i < pool->n_columns; i++) lk_free(pool->keys[i]);
    lk_names_free(&pool->categories);
    lk_names_free(&pool->prompts);
    lk_free(pool->items);
    lk_free(pool->levels);
    lk_dataset_free(&pool->data);
    lk_study_close(pool->study);
}

static void add_column(struct cli_pool *pool, const char *name, int n, const char *const *keys, bool ordered) {
    pool->columns[pool->n_columns++] = (struct lk_sample_column){name, n, keys, ordered};
}

/* A column whose keys are written now. */
static const char **add_own_column(struct cli_pool *pool, const char *name, int n, bool ordered) {
    const char **keys = lk_malloc(((size_t)n + 1) * sizeof *keys);
    pool->keys[pool->n_columns] = keys;
    add_column(pool, name, keys ? n : 0, keys, ordered);
    return keys;
}

static enum lk_code make_room(struct cli_pool *pool, size_t n) {
    pool->items = lk_malloc((n + 1) * sizeof *pool->items);
    pool->levels = lk_malloc((n * (size_t)pool->n_columns + 1) * sizeof *pool->levels);
    return pool->items && pool->levels ? LK_OK : out_of_memory();
}

static int16_t *add_item(struct cli_pool *pool, const char *id) {
    int16_t *level = pool->levels + pool->n * (size_t)pool->n_columns;
    pool->items[pool->n++] = (struct lk_sample_item){id, level};
    return level;
}

/* --- the documents' study --- */

/* All but the prompt is in lower case. */
static enum lk_code add_id(struct lk_dataset *data, const char *person, const char *prompt) {
    char id[ID_BYTES];
    int32_t at;
    const int n = snprintf(id, sizeof id, "%s", person);
    for (int i = 0; i < n; i++)
        if (id[i] >= 'A' && id[i] <= 'Z') id[i] = (char)(id[i] - 'A' + 'a');
    snprintf(id + n, sizeof id - (size_t)n, "_%s", prompt);
    return lk_dataset_item(data, id, strlen(id), &at);
}

/* Every output of the baseline arm: 84 sources x 20 prompts x 3 models, in canonical order. */
static enum lk_code nominal_items(struct lk_dataset *data) {
    for (int model = 0; model < LK_N_MODELS; model++)
        for (int source = 0; source < LK_N_SOURCES; source++)
            for (int prompt = 0; prompt < LK_N_EDIT_PROMPTS; prompt++) {
                char person[ID_BYTES];
                int race, gender, age;
                lk_source_factors(source, &race, &gender, &age);
                snprintf(person, sizeof person, "%s_%s_%s_%s", lk_factor_key(LK_FACTOR_MODEL, model),
                         lk_factor_key(LK_FACTOR_AGE, age), lk_factor_key(LK_FACTOR_GENDER, gender),
                         lk_factor_key(LK_FACTOR_RACE, race));
                LK_TRY(add_id(data, person, lk_prompt_id(prompt)));
            }
    return LK_OK;
}

/* Experiment 3: FLUX and Qwen put a man and a woman of one race and age into one picture for each of 50 sentences. */
static enum lk_code nominal_composites(struct lk_dataset *data) {
    static const char *const models[] = {"flux", "qwen"};
    for (int m = 0; m < 2; m++)
        for (int k = 0; k < LK_N_W_PROMPTS; k++) {
            char people[ID_BYTES];
            snprintf(people, sizeof people, "%s_pair_%s_%s", models[m], lk_factor_key(LK_FACTOR_RACE, k % LK_N_RACES),
                     lk_factor_key(LK_FACTOR_AGE, k % LK_N_AGES));
            LK_TRY(add_id(data, people, lk_prompt_id(LK_N_EDIT_PROMPTS + k)));
        }
    return LK_OK;
}

static enum lk_code read_scores(struct lk_dataset *data, const char *path) {
    struct lk_long_report report;
    char *text;
    size_t n;
    LK_TRY(lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n));
    enum lk_code rc = lk_long_table_read(data, text, n, path, &report);
    lk_free(text);
    return rc;
}

static bool is_scored(const struct lk_item *item) {
    for (int judge = 0; judge < LK_N_JUDGES; judge++)
        if (item->judge[judge][LK_AXIS_EDIT_SUCCESS] || item->judge_role[judge] != LK_ROLE_NONE) return true;
    return false;
}

static enum lk_code fill_portraits(struct cli_pool *pool, const char *scores, bool roles) {
    static const enum lk_factor factors[] = {LK_FACTOR_RACE,      LK_FACTOR_GENDER, LK_FACTOR_AGE,
                                             LK_FACTOR_AGE_GROUP, LK_FACTOR_MODEL,  LK_FACTOR_CATEGORY};
    enum { N_FACTORS = sizeof factors / sizeof *factors, N_PROMPTS = LK_N_EDIT_PROMPTS + LK_N_W_PROMPTS };
    for (int f = 0; f < N_FACTORS; f++) {
        const int n = lk_factor_levels(factors[f]);
        const char **keys = add_own_column(pool, lk_factor_name(factors[f]), n, factors[f] == LK_FACTOR_AGE_GROUP);
        for (int i = 0; keys && i < n; i++) keys[i] = lk_factor_key(factors[f], i);
        if (!keys) return out_of_memory();
    }
    const char **prompts = add_own_column(pool, "prompt", N_PROMPTS, false);
    for (int i = 0; prompts && i < N_PROMPTS; i++) prompts[i] = lk_prompt_id(i);
    if (!prompts) return out_of_memory();
    LK_TRY(scores  ? read_scores(&pool->data, scores)
           : roles ? nominal_composites(&pool->data)
                   : nominal_items(&pool->data));
    LK_TRY(make_room(pool, pool->data.n_items));
    for (size_t i = 0; i < pool->data.n_items; i++) {
        const struct lk_item *item = &pool->data.items[i];
        if (item->arm != LK_ARM_EDITED || (item->prompt >= LK_N_EDIT_PROMPTS) != roles || (scores && !is_scored(item)))
            continue;
        const int levels[N_FACTORS + 1] = {item->race,  item->gender,
                                           item->age,   item->age < 0 ? -1 : lk_age_group(item->age),
                                           item->model, lk_prompt_category(item->prompt),
                                           item->prompt};
        int16_t *level = add_item(pool, item->id);
        for (int f = 0; f <= N_FACTORS; f++) level[f] = (int16_t)levels[f];
    }
    return LK_OK;
}

/* --- a study's run --- */

static enum lk_code add_columns(struct cli_pool *pool) {
    int n;
    const struct lk_attribute *attributes = lk_study_attributes(pool->study, &n);
    for (int i = 0; i < n; i++)
        add_column(pool, attributes[i].name, attributes[i].n, attributes[i].keys, attributes[i].ordered);
    if (lk_study_is_portrait(pool->study)) {
        const char **groups = add_own_column(pool, "age_group", LK_N_AGE_GROUPS, true);
        for (int i = 0; groups && i < LK_N_AGE_GROUPS; i++) groups[i] = lk_factor_key(LK_FACTOR_AGE_GROUP, i);
        if (!groups) return out_of_memory();
    }
    const int n_models = lk_study_n_models(pool->study);
    const char **models = add_own_column(pool, "model", n_models, false);
    for (int i = 0; models && i < n_models; i++) models[i] = lk_study_model_key(pool->study, i);
    add_column(pool, "category", 0, NULL, false); /* whose levels come with the jobs */
    add_column(pool, "prompt", 0, NULL, false);
    return models ? LK_OK : out_of_memory();
}

static enum lk_code add_job(struct cli_pool *pool, const char *run, const struct lk_study_job *job, bool scored) {
    int32_t at, category, prompt;
    if (job->arm != LK_ARM_EDITED || !job->n_sources || !cli_known_is_made(run, job)) return LK_OK;
    LK_TRY(lk_dataset_item(&pool->data, job->name, strlen(job->name), &at));
    if (scored && !is_scored(&pool->data.items[at])) return LK_OK;
    LK_TRY(lk_names_number(&pool->categories, job->prompt->category, strlen(job->prompt->category), &category));
    LK_TRY(lk_names_number(&pool->prompts, job->prompt->id, strlen(job->prompt->id), &prompt));
    int16_t *level = add_item(pool, pool->data.items[at].id);
    int n_attributes;
    lk_study_attributes(pool->study, &n_attributes);
    for (int k = 0; k < n_attributes; k++) *level++ = lk_study_source(pool->study, job->sources[0])->level[k];
    if (lk_study_is_portrait(pool->study)) {
        int race, gender, age;
        lk_source_factors(job->sources[0], &race, &gender, &age);
        *level++ = (int16_t)lk_age_group(age);
    }
    *level++ = (int16_t)job->model;
    *level++ = (int16_t)category;
    *level = (int16_t)prompt;
    return LK_OK;
}

static enum lk_code fill_run(struct cli_pool *pool, const char *run, const char *scores, bool roles) {
    const size_t n = lk_study_n_jobs(pool->study);
    struct lk_study_job *job = lk_malloc(sizeof *job);
    enum lk_code rc = job ? add_columns(pool) : out_of_memory();
    if (!rc) rc = make_room(pool, n);
    if (!rc) rc = cli_known_items(&pool->data, pool->study);
    if (!rc && scores) rc = read_scores(&pool->data, scores);
    for (size_t i = 0; i < n && !rc; i++) {
        rc = lk_study_job(pool->study, i, job);
        if (!rc && (roles || job->n_sources == 1)) rc = add_job(pool, run, job, scores != NULL);
    }
    lk_free(job);
    const struct lk_names *const levels[] = {&pool->categories, &pool->prompts};
    for (int k = 0; k < 2 && !rc; k++) {
        struct lk_sample_column *column = &pool->columns[pool->n_columns - 2 + k];
        column->n = (int)levels[k]->n;
        column->keys = levels[k]->list;
    }
    return rc;
}

static enum lk_code hash_ids(struct cli_pool *pool) {
    struct lk_text ids = {0};
    lk_text_add(&ids, "%s", "");
    for (size_t i = 0; i < pool->n; i++) lk_text_add(&ids, "%s\n", pool->items[i].id);
    if (!ids.rc) lk_sha256(ids.bytes, ids.n, pool->sha256);
    return lk_text_free(&ids);
}

enum lk_code cli_pool_fill(struct cli_pool *pool, const struct cli_report_arguments *a, bool roles) {
    *pool = (struct cli_pool){.n = 0};
    lk_dataset_init(&pool->data);
    if (a->runs.n > 1) return lk_fail(LK_E_USAGE, "sample: expected one --from RUN, got %d", a->runs.n);
    LK_TRY(cli_known_study(&pool->study, a));
    LK_TRY(pool->study ? fill_run(pool, a->runs.values[0], a->scores, roles) : fill_portraits(pool, a->scores, roles));
    if (!pool->n)
        return lk_fail(LK_E_INPUT, "%s: expected %s%s, got none", a->scores ? a->scores : a->runs.values[0],
                       pool->study ? "edits that are made"
                       : roles     ? "outputs of experiment 3"
                                   : "outputs of the baseline arm",
                       a->scores ? " with a judge's score" : "");
    return hash_ids(pool);
}

enum lk_code cli_pool_by(const struct cli_pool *pool, const char *names, int by[CLI_POOL_MAX_COLUMNS], int *n) {
    struct lk_text known = {0};
    *n = 0;
    for (const char *at = names;; at++) {
        const size_t length = strcspn(at, ",");
        int column = 0;
        while (column < pool->n_columns &&
               (strlen(pool->columns[column].name) != length || memcmp(pool->columns[column].name, at, length) != 0))
            column++;
        if (column == pool->n_columns || *n == CLI_POOL_MAX_COLUMNS) {
            for (int i = 0; i < pool->n_columns; i++) lk_text_add(&known, "%s%s", i ? ", " : "", pool->columns[i].name);
            lk_fail(LK_E_USAGE, "sample: expected factors of %s, got \"%.*s\"", known.rc ? "the study" : known.bytes,
                    length > 60 ? 60 : (int)length, at);
            lk_text_free(&known);
            return LK_E_USAGE;
        }
        for (int i = 0; i < *n; i++)
            if (by[i] == column)
                return lk_fail(LK_E_USAGE, "sample: --by: \"%s\" is named twice", pool->columns[column].name);
        by[(*n)++] = column;
        at += length;
        if (!*at) return LK_OK;
    }
}
