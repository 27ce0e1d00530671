#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "eval/study/pairs500.h"
#include "eval/study/prompts.h"
#include "tools/cli/audit/audit.h"
#include "tools/cli/cli.h"

/* sample.json: what was drawn, from what, and how often each level of each factor came. */

struct cli_drawn {
    const struct lk_sample_item *item;
    const char *stratum;
    int pair; /* from 1; 0: no pair */
};

struct cli_sample_record {
    const char *design, *sampler;
    long long seed;
    const struct cli_pool *pool;
    const struct cli_drawn *items;
    size_t n;
    const struct lk_sample *sample; /* NULL: not of strata */
    int each;
};

/* Fewer than wanted. A run has no empty strata: nobody asked for these people. */
static bool is_short(const struct cli_pool *pool, const struct lk_stratum *stratum, int each) {
    return stratum->n < (size_t)each && (stratum->size || !pool->study);
}

/* Of prompts those alone that came. */
static bool add_column(cJSON *counts, const struct cli_sample_record *record, int column, int *n) {
    const struct lk_sample_column *c = &record->pool->columns[column];
    const bool all = strcmp(c->name, "prompt") != 0;
    cJSON *levels = cJSON_AddObjectToObject(counts, c->name);
    memset(n, 0, (size_t)c->n * sizeof *n);
    for (size_t i = 0; i < record->n; i++) {
        const int level = record->items[i].item->level[column];
        if (level >= 0) n[level]++;
    }
    for (int level = 0; level < c->n && levels; level++)
        if ((all || n[level]) && !cJSON_AddNumberToObject(levels, c->keys[level], n[level])) return false;
    return levels != NULL;
}

static bool add_counts(cJSON *root, const struct cli_sample_record *record) {
    cJSON *counts = cJSON_AddObjectToObject(root, "counts");
    size_t most = 1;
    for (int k = 0; k < record->pool->n_columns; k++)
        if ((size_t)record->pool->columns[k].n > most) most = (size_t)record->pool->columns[k].n;
    int *n = lk_malloc(most * sizeof *n);
    bool ok = counts && n;
    for (int k = 0; k < record->pool->n_columns && ok; k++) ok = add_column(counts, record, k, n);
    lk_free(n);
    return ok;
}

static cJSON *append_object(cJSON *array) {
    cJSON *object = cJSON_CreateObject();
    if (cJSON_AddItemToArray(array, object)) return object;
    cJSON_Delete(object);
    return NULL;
}

static bool add_items(cJSON *root, const struct cli_sample_record *record) {
    cJSON *items = cJSON_AddArrayToObject(root, "items");
    for (size_t i = 0; i < record->n && items; i++) {
        const struct cli_drawn *drawn = &record->items[i];
        cJSON *item = append_object(items);
        char pair[16];
        snprintf(pair, sizeof pair, "P%03d", drawn->pair);
        if (!item || (drawn->pair && !cJSON_AddStringToObject(item, "pair_id", pair)) ||
            !cJSON_AddStringToObject(item, "item_id", drawn->item->id) ||
            !cJSON_AddStringToObject(item, "stratum", drawn->stratum))
            return false;
    }
    return items != NULL;
}

static bool add_short(cJSON *root, const struct cli_sample_record *record) {
    cJSON *list = cJSON_AddArrayToObject(root, "short_strata");
    for (int i = 0; record->sample && i < record->sample->n_strata && list; i++) {
        const struct lk_stratum *stratum = &record->sample->strata[i];
        if (!is_short(record->pool, stratum, record->each)) continue;
        cJSON *object = append_object(list);
        if (!object || !cJSON_AddStringToObject(object, "stratum", stratum->name) ||
            !cJSON_AddNumberToObject(object, "n", (double)stratum->n) ||
            !cJSON_AddNumberToObject(object, "wanted", record->each))
            return false;
    }
    return list != NULL;
}

/* On stdout. LK_E_NOMEM. */
static enum lk_code sample_json(const struct cli_sample_record *record) {
    char seed[32]; /* a double does not hold every seed */
    snprintf(seed, sizeof seed, "%lld", record->seed);
    cJSON *root = cJSON_CreateObject();
    bool ok = root && cJSON_AddStringToObject(root, "design", record->design) &&
              cJSON_AddStringToObject(root, "sampler", record->sampler) && cJSON_AddRawToObject(root, "seed", seed) &&
              cJSON_AddStringToObject(root, "input_sha256", record->pool->sha256) &&
              cJSON_AddNumberToObject(root, "n_input", (double)record->pool->n) &&
              cJSON_AddNumberToObject(root, "n", (double)record->n) && add_counts(root, record) &&
              add_short(root, record) && add_items(root, record);
    char *text = ok ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    if (!text) return lk_fail(LK_E_NOMEM, "sample: out of memory");
    puts(text);
    cJSON_free(text);
    return LK_OK;
}

static enum lk_sampler sampler_of(const struct cli_arguments *a) {
    return strcmp(a->sampler, "pandas") ? LK_SAMPLER_STREAM : LK_SAMPLER_PANDAS;
}

/* As JSON, or a line each. */
static enum lk_code print(const struct cli_arguments *a, const struct cli_pool *pool, const struct cli_drawn *drawn,
                          size_t n, const struct lk_sample *sample, int each) {
    if (a->json)
        return sample_json(&(struct cli_sample_record){.design = a->more[0],
                                                       .sampler = a->sampler,
                                                       .seed = a->report.study_seed,
                                                       .pool = pool,
                                                       .items = drawn,
                                                       .n = n,
                                                       .sample = sample,
                                                       .each = each});
    struct lk_text text = {0};
    lk_text_add(&text, "item_id,stratum\n");
    for (size_t i = 0; i < n; i++) lk_text_add(&text, "%s,%s\n", drawn[i].item->id, drawn[i].stratum);
    if (!text.rc) fwrite(text.bytes, 1, text.n, stdout);
    return lk_text_free(&text);
}

static enum lk_code print_strata(const struct cli_arguments *a, const struct cli_pool *pool,
                                 const struct lk_sample *sample, const struct lk_sample_design *design) {
    struct cli_drawn *drawn = lk_malloc((sample->n + 1) * sizeof *drawn);
    if (!drawn) return lk_fail(LK_E_NOMEM, "sample: out of memory");
    if (design->sampler == LK_SAMPLER_PANDAS) fprintf(stderr, "%s\n", lk_sampler_pandas_warning);
    for (int s = 0; s < sample->n_strata; s++)
        if (is_short(pool, &sample->strata[s], design->each))
            fprintf(stderr, "short stratum %s: %zu of %d\n", sample->strata[s].name, sample->strata[s].n, design->each);
    fprintf(stderr, "%zu of %zu items from %d strata\n", sample->n, pool->n, sample->n_strata);
    for (size_t i = 0; i < sample->n; i++)
        drawn[i] = (struct cli_drawn){&pool->items[sample->items[i]], sample->strata[sample->stratum[i]].name, 0};
    enum lk_code rc = print(a, pool, drawn, sample->n, sample, design->each);
    lk_free(drawn);
    return rc;
}

/* The factors of a study's own: all attributes, and the model. */
static enum lk_code default_factors(const struct cli_pool *pool, int *by, int *n) {
    if (!pool->study)
        return lk_fail(LK_E_USAGE, "sample strata: expected --from RUN, or --by FACTOR,... of the portrait study");
    int n_attributes, n_model;
    const struct lk_attribute *attributes = lk_study_attributes(pool->study, &n_attributes);
    *n = 0;
    for (int i = 0; i < n_attributes; i++)
        if (!attributes[i].of) by[(*n)++] = i;
    LK_TRY(cli_pool_by(pool, "model", by + *n, &n_model));
    *n += n_model;
    return LK_OK;
}

static enum lk_code sample_strata(const struct cli_arguments *a, const char *factors, int each) {
    struct cli_pool pool;
    struct lk_sample sample = {.items = NULL};
    int by[CLI_POOL_MAX_COLUMNS], n = 0;
    enum lk_code rc = cli_pool_fill(&pool, &a->report, false);
    if (!rc) rc = factors ? cli_pool_by(&pool, factors, by, &n) : default_factors(&pool, by, &n);
    const struct lk_sample_design design = {
        .columns = pool.columns, .by = by, .n_by = n, .each = each, .sampler = sampler_of(a)};
    if (!rc) rc = lk_sample_strata(pool.items, pool.n, &design, (uint64_t)a->report.study_seed, &sample);
    if (!rc) rc = print_strata(a, &pool, &sample, &design);
    lk_sample_free(&sample);
    cli_pool_free(&pool);
    return rc;
}

static enum lk_code print_pairs_json(const struct cli_arguments *a, const struct lk_pair pairs[LK_N_PAIRS]) {
    struct cli_pool pool;
    struct cli_drawn drawn[LK_N_PAIRS];
    char(*cells)[48] = lk_malloc(LK_N_PAIRS * sizeof *cells);
    enum lk_code rc = cli_pool_fill(&pool, &a->report, false);
    if (!rc && !cells) rc = lk_fail(LK_E_NOMEM, "sample: out of memory");
    for (int i = 0; i < LK_N_PAIRS && !rc; i++) {
        const int at = (pairs[i].model * LK_N_SOURCES + pairs[i].source) * LK_N_EDIT_PROMPTS + pairs[i].prompt;
        lk_source_id(pairs[i].source, cells[i]);
        drawn[i] = (struct cli_drawn){&pool.items[at], cells[i], i + 1};
    }
    if (!rc) rc = print(a, &pool, drawn, LK_N_PAIRS, NULL, 0);
    lk_free(cells);
    cli_pool_free(&pool);
    return rc;
}

static enum lk_code print_pairs_csv(const struct lk_pair pairs[LK_N_PAIRS]) {
    char *text;
    size_t n;
    LK_TRY(lk_pairs500_csv(pairs, &text, &n));
    fwrite(text, 1, n, stdout);
    lk_free(text);
    return LK_OK;
}

static enum lk_code sample_pairs(const struct cli_arguments *a) {
    struct lk_pair pairs[LK_N_PAIRS];
    char sha256[65];
    lk_pairs500((uint64_t)a->report.study_seed, pairs);
    LK_TRY(lk_pairs500_sha256(pairs, sha256));
    LK_TRY(a->json ? print_pairs_json(a, pairs) : print_pairs_csv(pairs));
    fprintf(stderr, "500 pairs, seed %" PRId64 ", sha256 of the lines without ids %s\n", a->report.study_seed, sha256);
    return LK_OK;
}

/* Nothing is left out. */
static enum lk_code sample_all(const struct cli_arguments *a) {
    struct cli_pool pool;
    struct cli_drawn *drawn = NULL;
    enum lk_code rc = cli_pool_fill(&pool, &a->report, true);
    if (!rc) drawn = lk_malloc(pool.n * sizeof *drawn);
    if (!rc && !drawn) rc = lk_fail(LK_E_NOMEM, "sample: out of memory");
    for (size_t i = 0; i < pool.n && !rc; i++) drawn[i] = (struct cli_drawn){&pool.items[i], "all", 0};
    if (!rc) rc = print(a, &pool, drawn, pool.n, NULL, 0);
    lk_free(drawn);
    cli_pool_free(&pool);
    return rc;
}

enum lk_code cli_sample(const struct cli_arguments *a) {
    const char *design = a->more[0];
    const struct cli_report_arguments *r = &a->report;
    const bool strata = !strcmp(design, "strata"), pairs = !strcmp(design, "pairs500");
    if (!strata && (a->stats.by || a->each))
        return lk_fail(LK_E_USAGE, "sample: --by and --each go with strata; %.40s has its own", design);
    if (strata) return sample_strata(a, a->stats.by, a->each ? (int)a->each : 4);
    if (!strcmp(design, "strata126")) return sample_strata(a, "race,gender,age_group,model", 4);
    if (!strcmp(design, "strata42")) return sample_strata(a, "race,gender,age_group", 8);
    if (!pairs && strcmp(design, "all"))
        return lk_fail(LK_E_USAGE,
                       "sample: expected strata, all, or of the portrait study strata126, strata42 or "
                       "pairs500, got \"%s\"",
                       design);
    if (sampler_of(a) == LK_SAMPLER_PANDAS)
        return lk_fail(LK_E_USAGE, "sample: --sampler: %s draws nothing by it; leave it out", design);
    if (pairs && (r->scores || r->runs.n))
        return lk_fail(LK_E_USAGE, "sample: pairs500 is drawn from the whole design of the portrait study: leave "
                                   "--scores and --from out");
    return pairs ? sample_pairs(a) : sample_all(a);
}
