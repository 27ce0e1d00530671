#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/alloc.h"
#include "engine/file.h"
#include "eval/scores/long_table.h"
#include "eval/study/pairs500.h"
#include "eval/study/prompts.h"
#include "eval/study/sampling.h"
#include "tools/cli/cli.h"
#include "weights/verify.h"

/* The items that there are to choose from. */
struct pool {
    struct lk_dataset data;
    struct lk_sample_item *items;
    size_t n;
    char sha256[65]; /* of the list of ids, one a line */
};

static void pool_free(struct pool *pool) {
    lk_free(pool->items);
    lk_dataset_free(&pool->data);
}

/* Every output of the baseline arm: 84 sources x 20 prompts x 3 models, in canonical order. */
static enum lk_code nominal_items(struct lk_dataset *data) {
    for (int model = 0; model < LK_N_MODELS; model++)
        for (int source = 0; source < LK_N_SOURCES; source++)
            for (int prompt = 0; prompt < LK_N_EDIT_PROMPTS; prompt++) {
                int race, gender, age;
                int32_t at;
                char id[128];
                lk_source_factors(source, &race, &gender, &age);
                snprintf(id, sizeof id, "%s_%s_%s_%s_%s", lk_factor_key(LK_FACTOR_MODEL, model),
                         lk_factor_key(LK_FACTOR_AGE, age), lk_factor_key(LK_FACTOR_GENDER, gender),
                         lk_factor_key(LK_FACTOR_RACE, race), lk_prompt_id(prompt));
                for (char *c = id; *c && *c != '-'; c++) /* all but the prompt is in lower case */
                    if (*c >= 'A' && *c <= 'Z' && c[1] != '-') *c = (char)(*c - 'A' + 'a');
                LK_TRY(lk_dataset_item(data, id, strlen(id), &at));
            }
    return LK_OK;
}

static enum lk_code scored_items(struct lk_dataset *data, const char *path) {
    struct lk_long_report report;
    char *text;
    size_t n;
    LK_TRY(lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n));
    enum lk_code rc = lk_long_table_read(data, text, n, path, &report);
    lk_free(text);
    return rc;
}

static bool can_be_drawn(const struct lk_item *item, bool scored) {
    if (item->arm != LK_ARM_EDITED || item->prompt < 0 || item->prompt >= LK_N_EDIT_PROMPTS) return false;
    if (!scored) return true;
    for (int judge = 0; judge < LK_N_JUDGES; judge++)
        if (item->judge[judge][LK_AXIS_EDIT_SUCCESS]) return true;
    return false;
}

static enum lk_code pool_fill(struct pool *pool, const char *scores) {
    LK_TRY(scores ? scored_items(&pool->data, scores) : nominal_items(&pool->data));
    pool->items = lk_malloc(pool->data.n_items * sizeof *pool->items);
    if (!pool->items) return lk_fail(LK_E_NOMEM, "sample: out of memory");
    size_t bytes = 0, at = 0;
    for (size_t i = 0; i < pool->data.n_items; i++) {
        const struct lk_item *item = &pool->data.items[i];
        if (!can_be_drawn(item, scores != NULL)) continue;
        pool->items[pool->n++] = (struct lk_sample_item){item->id, item->race, item->gender, item->age, item->model};
        bytes += strlen(item->id) + 1;
    }
    char *list = lk_malloc(bytes + 1);
    if (!list) return lk_fail(LK_E_NOMEM, "sample: out of memory");
    for (size_t i = 0; i < pool->n; i++) at += (size_t)sprintf(list + at, "%s\n", pool->items[i].id);
    lk_sha256(list, bytes, pool->sha256);
    lk_free(list);
    if (!pool->n)
        return lk_fail(LK_E_INPUT, "%s: expected outputs of the baseline arm with a judge's score, got none", scores);
    return LK_OK;
}

static void print_csv(const struct lk_sample *sample, const struct pool *pool) {
    puts("item_id,stratum");
    for (size_t i = 0; i < sample->n; i++)
        printf("%s,%s\n", pool->items[sample->items[i]].id, sample->strata[sample->stratum[i]].name);
}

static bool add_counts(cJSON *root, const struct lk_sample *sample, const struct pool *pool) {
    const enum lk_factor factors[] = {LK_FACTOR_RACE, LK_FACTOR_GENDER, LK_FACTOR_AGE, LK_FACTOR_MODEL};
    cJSON *counts = cJSON_AddObjectToObject(root, "counts");
    for (int f = 0; f < 4 && counts; f++) {
        cJSON *levels = cJSON_AddObjectToObject(counts, lk_factor_name(factors[f]));
        for (int level = 0; level < lk_factor_levels(factors[f]); level++) {
            int n = 0;
            for (size_t i = 0; i < sample->n; i++) {
                const struct lk_sample_item *item = &pool->items[sample->items[i]];
                const int8_t of[] = {item->race, item->gender, item->age, item->model};
                n += of[f] == level;
            }
            if (!cJSON_AddNumberToObject(levels, lk_factor_key(factors[f], level), n)) return false;
        }
    }
    return counts != NULL;
}

static bool add_items(cJSON *root, const struct lk_sample *sample, const struct pool *pool) {
    cJSON *items = cJSON_AddArrayToObject(root, "items");
    for (size_t i = 0; i < sample->n; i++) {
        cJSON *item = cJSON_CreateObject();
        if (!cJSON_AddItemToArray(items, item)) {
            cJSON_Delete(item);
            return false;
        }
        if (!cJSON_AddStringToObject(item, "item_id", pool->items[sample->items[i]].id) ||
            !cJSON_AddStringToObject(item, "stratum", sample->strata[sample->stratum[i]].name))
            return false;
    }
    return items != NULL;
}

static enum lk_code print_json(const struct cli_arguments *arguments, const struct lk_sample *sample,
                               const struct pool *pool) {
    cJSON *root = cJSON_CreateObject();
    bool ok = root && cJSON_AddStringToObject(root, "design", arguments->positional) &&
              cJSON_AddStringToObject(root, "sampler", arguments->sampler) &&
              cJSON_AddNumberToObject(root, "seed", (double)arguments->report.study_seed) &&
              cJSON_AddStringToObject(root, "input_sha256", pool->sha256) && add_counts(root, sample, pool) &&
              add_items(root, sample, pool);
    char *text = ok ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    if (!text) return lk_fail(LK_E_NOMEM, "sample: out of memory");
    puts(text);
    cJSON_free(text);
    return LK_OK;
}

static enum lk_code sample_strata(const struct cli_arguments *arguments, const struct lk_sample_design *design) {
    struct pool pool = {.items = NULL};
    struct lk_sample sample = {.items = NULL};
    lk_dataset_init(&pool.data);
    enum lk_code rc = pool_fill(&pool, arguments->report.scores);
    if (!rc) rc = lk_sample_strata(pool.items, pool.n, design, (uint64_t)arguments->report.study_seed, &sample);
    if (!rc) {
        if (design->sampler == LK_SAMPLER_PANDAS) fprintf(stderr, "%s\n", lk_sampler_pandas_warning);
        for (int s = 0; s < sample.n_strata; s++)
            if (sample.strata[s].n < (size_t)design->per_stratum)
                fprintf(stderr, "short stratum %s: %zu of %d\n", sample.strata[s].name, sample.strata[s].n,
                        design->per_stratum);
        fprintf(stderr, "%zu of %zu items from %d strata\n", sample.n, pool.n, sample.n_strata);
        if (arguments->json)
            rc = print_json(arguments, &sample, &pool);
        else
            print_csv(&sample, &pool);
        lk_sample_free(&sample);
    }
    pool_free(&pool);
    return rc;
}

static enum lk_code sample_pairs(const struct cli_arguments *arguments) {
    struct lk_pair pairs[LK_N_PAIRS];
    char *text, sha256[65];
    size_t n;
    lk_pairs500((uint64_t)arguments->report.study_seed, pairs);
    LK_TRY(lk_pairs500_sha256(pairs, sha256));
    LK_TRY(lk_pairs500_csv(pairs, &text, &n));
    fwrite(text, 1, n, stdout);
    lk_free(text);
    fprintf(stderr, "500 pairs, seed %" PRId64 ", sha256 of the lines without ids %s\n", arguments->report.study_seed,
            sha256);
    return LK_OK;
}

enum lk_code cli_sample(const struct cli_arguments *arguments) {
    const char *design = arguments->positional;
    enum lk_sampler sampler = strcmp(arguments->sampler, "pandas") ? LK_SAMPLER_STREAM : LK_SAMPLER_PANDAS;
    if (!strcmp(design, "strata126")) return sample_strata(arguments, &(struct lk_sample_design){true, 4, sampler});
    if (!strcmp(design, "strata42")) return sample_strata(arguments, &(struct lk_sample_design){false, 8, sampler});
    if (strcmp(design, "pairs500"))
        return lk_fail(LK_E_USAGE, "sample: expected strata126, strata42 or pairs500, got \"%s\"", design);
    if (arguments->report.scores || arguments->json || sampler == LK_SAMPLER_PANDAS)
        return lk_fail(LK_E_USAGE,
                       "sample: pairs500 is drawn from the whole design by the study's own generator: leave "
                       "--scores, --json and --sampler out");
    return sample_pairs(arguments);
}
