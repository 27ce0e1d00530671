#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "eval/study/pairs500.h"
#include "eval/study/prompts.h"
#include "tools/cli/audit/sample_json.h"
#include "tools/cli/audit/sample_pool.h"
#include "tools/cli/cli.h"

static enum lk_sampler sampler_of(const struct cli_arguments *a) {
    return strcmp(a->sampler, "pandas") ? LK_SAMPLER_STREAM : LK_SAMPLER_PANDAS;
}

/* As JSON, or a line each. */
static enum lk_code print(const struct cli_arguments *a, const struct cli_pool *pool, const struct cli_drawn *drawn,
                          size_t n, const struct lk_sample *sample, int each) {
    if (a->json)
        return cli_sample_json(&(struct cli_sample_record){.design = a->more[0],
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
        if (cli_is_short(pool, &sample->strata[s], design->each))
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
