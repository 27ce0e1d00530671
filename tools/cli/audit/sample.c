#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "eval/scores/long_table.h"
#include "eval/study/pairs500.h"
#include "eval/study/prompts.h"
#include "eval/study/sampling.h"
#include "tools/cli/cli.h"
#include "tools/cli/audit/sample_json.h"
#include "engine/base/digest.h"

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

enum { ID_BYTES = 128 };

/* All but the prompt is in lower case. */
static void write_id(char id[ID_BYTES], int model, int source, int prompt) {
    int race, gender, age;
    lk_source_factors(source, &race, &gender, &age);
    snprintf(id, ID_BYTES, "%s_%s_%s_%s_%s", lk_factor_key(LK_FACTOR_MODEL, model), lk_factor_key(LK_FACTOR_AGE, age),
             lk_factor_key(LK_FACTOR_GENDER, gender), lk_factor_key(LK_FACTOR_RACE, race), lk_prompt_id(prompt));
    for (char *c = id; *c && *c != '-'; c++)
        if (*c >= 'A' && *c <= 'Z' && c[1] != '-') *c = (char)(*c - 'A' + 'a');
}

/* Every output of the baseline arm: 84 sources x 20 prompts x 3 models, in canonical order. */
static enum lk_code nominal_items(struct lk_dataset *data) {
    for (int model = 0; model < LK_N_MODELS; model++)
        for (int source = 0; source < LK_N_SOURCES; source++)
            for (int prompt = 0; prompt < LK_N_EDIT_PROMPTS; prompt++) {
                int32_t at;
                char id[ID_BYTES];
                write_id(id, model, source, prompt);
                LK_TRY(lk_dataset_item(data, id, strlen(id), &at));
            }
    return LK_OK;
}

/* Experiment 3: FLUX and Qwen put a man and a woman of one race and age into one picture for each of 50 sentences. */
static enum lk_code nominal_composites(struct lk_dataset *data) {
    static const char *const models[] = {"flux", "qwen"};
    for (int m = 0; m < 2; m++)
        for (int k = 0; k < LK_N_W_PROMPTS; k++) {
            int32_t at;
            char id[ID_BYTES];
            int n = snprintf(id, sizeof id, "%s_pair_%s_%s_", models[m], lk_factor_key(LK_FACTOR_RACE, k % LK_N_RACES),
                             lk_factor_key(LK_FACTOR_AGE, k % LK_N_AGES));
            for (int i = 0; i < n; i++)
                if (id[i] >= 'A' && id[i] <= 'Z') id[i] = (char)(id[i] - 'A' + 'a');
            snprintf(id + n, sizeof id - (size_t)n, "%s", lk_prompt_id(LK_N_EDIT_PROMPTS + k));
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

static bool is_scored(const struct lk_item *item) {
    for (int judge = 0; judge < LK_N_JUDGES; judge++)
        if (item->judge[judge][LK_AXIS_EDIT_SUCCESS] || item->judge_role[judge] != LK_ROLE_NONE) return true;
    return false;
}

static bool can_be_drawn(const struct lk_item *item, bool scored, bool roles) {
    if (item->arm != LK_ARM_EDITED || (item->prompt >= LK_N_EDIT_PROMPTS) != roles) return false;
    return !scored || is_scored(item);
}

/* roles: of experiment 3 instead of 1. */
static enum lk_code pool_fill(struct pool *pool, const char *scores, bool roles) {
    LK_TRY(scores  ? scored_items(&pool->data, scores)
           : roles ? nominal_composites(&pool->data)
                   : nominal_items(&pool->data));
    pool->items = lk_malloc(pool->data.n_items * sizeof *pool->items);
    if (!pool->items) return lk_fail(LK_E_NOMEM, "sample: out of memory");
    size_t bytes = 0, at = 0;
    for (size_t i = 0; i < pool->data.n_items; i++) {
        const struct lk_item *item = &pool->data.items[i];
        if (!can_be_drawn(item, scores != NULL, roles)) continue;
        pool->items[pool->n++] = (struct lk_sample_item){item->id, item->race, item->gender, item->age, item->model};
        bytes += strlen(item->id) + 1;
    }
    char *list = lk_malloc(bytes + 1);
    if (!list) return lk_fail(LK_E_NOMEM, "sample: out of memory");
    for (size_t i = 0; i < pool->n; i++) at += (size_t)sprintf(list + at, "%s\n", pool->items[i].id);
    lk_sha256(list, bytes, pool->sha256);
    lk_free(list);
    if (!pool->n)
        return lk_fail(LK_E_INPUT, "%s: expected outputs of %s with a judge's score, got none", scores,
                       roles ? "experiment 3" : "the baseline arm");
    return LK_OK;
}

static void print_csv(const struct lk_sample *sample, const struct pool *pool) {
    puts("item_id,stratum");
    for (size_t i = 0; i < sample->n; i++)
        printf("%s,%s\n", pool->items[sample->items[i]].id, sample->strata[sample->stratum[i]].name);
}

static struct cli_sample_record record_of(const struct cli_arguments *arguments, const struct pool *pool) {
    return (struct cli_sample_record){.design = arguments->positional,
                                      .sampler = arguments->sampler,
                                      .seed = arguments->report.study_seed,
                                      .input_sha256 = pool->sha256,
                                      .n_input = pool->n};
}

static enum lk_code print_json(const struct cli_arguments *arguments, const struct lk_sample *sample,
                               const struct lk_sample_design *design, const struct pool *pool) {
    struct cli_sample_record record = record_of(arguments, pool);
    struct cli_drawn *drawn = lk_malloc((sample->n + 1) * sizeof *drawn);
    record.short_strata = lk_malloc(((size_t)sample->n_strata + 1) * sizeof *record.short_strata);
    enum lk_code rc = drawn && record.short_strata ? LK_OK : lk_fail(LK_E_NOMEM, "sample: out of memory");
    for (size_t i = 0; i < sample->n && !rc; i++)
        drawn[i] = (struct cli_drawn){pool->items[sample->items[i]].id, sample->strata[sample->stratum[i]].name, 0};
    for (int s = 0; s < sample->n_strata && !rc; s++)
        if (sample->strata[s].n < (size_t)design->per_stratum)
            record.short_strata[record.n_short++] =
                (struct cli_short){sample->strata[s].name, sample->strata[s].n, (size_t)design->per_stratum};
    record.items = drawn;
    record.n = sample->n;
    if (!rc) rc = cli_sample_json(&record);
    lk_free(record.short_strata);
    lk_free(drawn);
    return rc;
}

static enum lk_code sample_strata(const struct cli_arguments *arguments, const struct lk_sample_design *design) {
    struct pool pool = {.items = NULL};
    struct lk_sample sample = {.items = NULL};
    lk_dataset_init(&pool.data);
    enum lk_code rc = pool_fill(&pool, arguments->report.scores, false);
    if (!rc) rc = lk_sample_strata(pool.items, pool.n, design, (uint64_t)arguments->report.study_seed, &sample);
    if (!rc) {
        if (design->sampler == LK_SAMPLER_PANDAS) fprintf(stderr, "%s\n", lk_sampler_pandas_warning);
        for (int s = 0; s < sample.n_strata; s++)
            if (sample.strata[s].n < (size_t)design->per_stratum)
                fprintf(stderr, "short stratum %s: %zu of %d\n", sample.strata[s].name, sample.strata[s].n,
                        design->per_stratum);
        fprintf(stderr, "%zu of %zu items from %d strata\n", sample.n, pool.n, sample.n_strata);
        if (arguments->json)
            rc = print_json(arguments, &sample, design, &pool);
        else
            print_csv(&sample, &pool);
        lk_sample_free(&sample);
    }
    pool_free(&pool);
    return rc;
}

struct pair_texts {
    char id[ID_BYTES], source[48];
};

static enum lk_code print_pairs_json(const struct cli_arguments *arguments, const struct lk_pair pairs[LK_N_PAIRS]) {
    struct pool pool = {.items = NULL};
    struct cli_drawn drawn[LK_N_PAIRS];
    struct pair_texts *texts = lk_malloc(LK_N_PAIRS * sizeof *texts);
    lk_dataset_init(&pool.data);
    enum lk_code rc = texts ? pool_fill(&pool, NULL, false) : lk_fail(LK_E_NOMEM, "sample: out of memory");
    if (!rc) {
        struct cli_sample_record record = record_of(arguments, &pool);
        for (int i = 0; i < LK_N_PAIRS; i++) {
            write_id(texts[i].id, pairs[i].model, pairs[i].source, pairs[i].prompt);
            lk_source_id(pairs[i].source, texts[i].source);
            drawn[i] = (struct cli_drawn){texts[i].id, texts[i].source, i + 1};
        }
        record.items = drawn;
        record.n = LK_N_PAIRS;
        rc = cli_sample_json(&record);
    }
    lk_free(texts);
    pool_free(&pool);
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

static enum lk_code sample_pairs(const struct cli_arguments *arguments) {
    struct lk_pair pairs[LK_N_PAIRS];
    char sha256[65];
    lk_pairs500((uint64_t)arguments->report.study_seed, pairs);
    LK_TRY(lk_pairs500_sha256(pairs, sha256));
    LK_TRY(arguments->json ? print_pairs_json(arguments, pairs) : print_pairs_csv(pairs));
    fprintf(stderr, "500 pairs, seed %" PRId64 ", sha256 of the lines without ids %s\n", arguments->report.study_seed,
            sha256);
    return LK_OK;
}

/* Experiment 3: nothing is left out. */
static enum lk_code sample_all(const struct cli_arguments *arguments) {
    struct pool pool = {.items = NULL};
    struct cli_drawn *drawn = NULL;
    lk_dataset_init(&pool.data);
    enum lk_code rc = pool_fill(&pool, arguments->report.scores, true);
    if (!rc) drawn = lk_malloc(pool.n * sizeof *drawn);
    if (!rc && !drawn) rc = lk_fail(LK_E_NOMEM, "sample: out of memory");
    for (size_t i = 0; i < pool.n && !rc; i++) drawn[i] = (struct cli_drawn){pool.items[i].id, "all", 0};
    if (!rc && arguments->json) {
        struct cli_sample_record record = record_of(arguments, &pool);
        record.items = drawn;
        record.n = pool.n;
        rc = cli_sample_json(&record);
    } else if (!rc) {
        puts("item_id,stratum");
        for (size_t i = 0; i < pool.n; i++) printf("%s,%s\n", drawn[i].item_id, drawn[i].stratum);
    }
    lk_free(drawn);
    pool_free(&pool);
    return rc;
}

enum lk_code cli_sample(const struct cli_arguments *arguments) {
    const char *design = arguments->positional;
    bool pandas = !strcmp(arguments->sampler, "pandas");
    enum lk_sampler sampler = pandas ? LK_SAMPLER_PANDAS : LK_SAMPLER_STREAM;
    if (!strcmp(design, "strata126")) return sample_strata(arguments, &(struct lk_sample_design){true, 4, sampler});
    if (!strcmp(design, "strata42")) return sample_strata(arguments, &(struct lk_sample_design){false, 8, sampler});
    if (!strcmp(design, "all") && !pandas) return sample_all(arguments);
    if (strcmp(design, "pairs500") && strcmp(design, "all"))
        return lk_fail(LK_E_USAGE, "sample: expected strata126, strata42, pairs500 or all, got \"%s\"", design);
    if (pandas || arguments->report.scores)
        return lk_fail(LK_E_USAGE, "sample: pairs500 is drawn from the whole design by the study's own generator, and "
                                   "all draws nothing: leave --scores (of pairs500) and --sampler out");
    return sample_pairs(arguments);
}
