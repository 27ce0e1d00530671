#include "eval/report/findings/outcomes.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/models/cluster_means.h"
#include "eval/stats/resampling/bootstrap_rates.h"
#include "eval/stats/special/special.h"
#include "eval/stats/tests/multiple.h"

const enum lk_factor lk_finding_factors[LK_N_FINDING_FACTORS] = {LK_FACTOR_RACE, LK_FACTOR_GENDER, LK_FACTOR_AGE_GROUP,
                                                                 LK_FACTOR_MODEL, LK_FACTOR_CATEGORY};
const enum lk_measure lk_outcomes[LK_N_OUTCOMES] = {LK_MEASURE_SOFT_ERASURE, LK_MEASURE_RACE_DRIFT,
                                                    LK_MEASURE_GENDER_DRIFT, LK_MEASURE_LIGHTENING,
                                                    LK_MEASURE_AGE_DRIFT};

/* Outputs of the baseline arm. */
struct outputs {
    size_t n;
    const struct lk_item **items;         /* [n] */
    double *values;                       /* [n, LK_N_OUTCOMES], NaN: no score */
    int32_t *source;                      /* [n] */
    int32_t *level[LK_N_FINDING_FACTORS]; /* [n] each */
    struct lk_rate_results *rates;
};

static int level_of(const struct lk_item *item, enum lk_factor factor) {
    switch (factor) {
    case LK_FACTOR_RACE:
        return item->race;
    case LK_FACTOR_GENDER:
        return item->gender;
    case LK_FACTOR_AGE_GROUP:
        return lk_age_group(item->age);
    case LK_FACTOR_MODEL:
        return item->model;
    default:
        return item->prompt / 10;
    }
}

static enum lk_code collect(const struct lk_dataset *data, const struct lk_report_options *options,
                            enum lk_score_source source, struct outputs *o) {
    const struct lk_group all = LK_GROUP_ANY;
    size_t n = data->n_items + 1;
    *o = (struct outputs){.items = lk_malloc(n * sizeof *o->items),
                          .values = lk_malloc(n * LK_N_OUTCOMES * sizeof *o->values),
                          .source = lk_malloc(n * (1 + LK_N_FINDING_FACTORS) * sizeof *o->source)};
    if (!o->items || !o->values || !o->source) return lk_fail(LK_E_NOMEM, "report: no memory for %zu outputs", n);
    for (int f = 0; f < LK_N_FINDING_FACTORS; f++) o->level[f] = o->source + (size_t)(f + 1) * n;
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        if (!lk_group_has(&all, item)) continue;
        for (int m = 0; m < LK_N_OUTCOMES; m++) {
            int value = lk_measure_of(lk_outcomes[m], lk_item_levels(item, source), item->prompt, &options->thresholds);
            o->values[o->n * LK_N_OUTCOMES + (size_t)m] = value < 0 ? NAN : value;
        }
        for (int f = 0; f < LK_N_FINDING_FACTORS; f++) o->level[f][o->n] = level_of(item, lk_finding_factors[f]);
        o->source[o->n] = item->source;
        o->items[o->n++] = item;
    }
    return LK_OK;
}

static void outputs_free(struct outputs *o) {
    lk_free(o->items);
    lk_free(o->values);
    lk_free(o->source);
    lk_rate_results_free(o->rates);
}

/* Which family of claims asks about the factor; NULL: none does. */
static const struct lk_claims_family *family_of(const struct lk_claims *claims, int factor) {
    for (int f = 0; f < claims->n_families; f++) {
        const struct lk_claims_family *family = &claims->families[f];
        if (lk_finding_factors[factor] == LK_FACTOR_MODEL ? family->family == LK_CLAIM_MODEL
            : lk_finding_factors[factor] == LK_FACTOR_CATEGORY
                ? family->family == LK_CLAIM_KIND && family->attribute == LK_KINDS
                : family->family == LK_CLAIM_GROUP && family->attribute == factor)
            return family;
    }
    return NULL;
}

/* The least p of an outcome's cells, and whether one of them is found. */
static void test_difference(const struct lk_claims *claims, int factor, int outcome, struct lk_finding *finding) {
    const struct lk_claims_family *family = family_of(claims, factor);
    finding->p = 1;
    for (size_t i = 0; i < claims->n_cells && family; i++) {
        const struct lk_claim_cell *c = &claims->cells[i];
        if (c->family != family->family || c->attribute != family->attribute || c->outcome != outcome) continue;
        finding->p = fmin(finding->p, c->p);
        finding->tested = true;
    }
    finding->adjusted = finding->p;
    for (size_t i = 0; i < claims->n_found && family; i++) {
        const struct lk_claim *c = &claims->list[i];
        finding->found |= c->family == family->family && c->attribute == family->attribute && c->outcome == outcome;
    }
}

/* The only level that has the rate, -1 when several do. */
static int only_level(const struct outputs *o, int factor, int outcome, int level) {
    double rate = lk_rate_of(o->rates, factor, level, outcome)->value;
    for (int l = 0; l < lk_factor_levels(lk_finding_factors[factor]); l++) {
        const struct lk_number *other = lk_rate_of(o->rates, factor, l, outcome);
        if (l != level && !other->undefined && fabs(other->value - rate) < 1e-12) return -1;
    }
    return level;
}

/* For people and prompts like these, where the claims' tables are complete enough; else the value has no interval. */
static void take_range(const struct lk_claims *claims, int factor, int outcome, struct lk_finding *finding) {
    const bool kinds = lk_finding_factors[factor] == LK_FACTOR_CATEGORY;
    const struct lk_crossed_range *range =
        lk_claims_range(claims, kinds ? LK_CLAIM_KIND : LK_CLAIM_GROUP, kinds ? 0 : factor, outcome, -1);
    if (!range || range->number.undefined) {
        finding->effect.low = finding->effect.high = finding->effect.value;
        finding->effect.no_interval = range ? range->number.undefined : "fewer than half of the outputs have a score";
        return;
    }
    finding->effect = range->number;
    finding->high = range->high, finding->low = range->low;
    finding->highest = range->highest, finding->lowest = range->lowest;
}

static void find_difference(const struct outputs *o, const struct lk_claims *claims, int factor, int outcome,
                            struct lk_finding *finding) {
    const struct lk_disparity *disparity = lk_disparity_of(o->rates, factor, outcome);
    finding->kind = LK_FINDING_DIFFERENCE;
    finding->factor = lk_finding_factors[factor];
    finding->outcome = lk_outcomes[outcome];
    finding->effect = disparity->number;
    finding->n_sources = (size_t)claims->n_sources;
    if (finding->effect.undefined) return;
    finding->high = lk_rate_of(o->rates, factor, disparity->highest, outcome)->value;
    finding->low = lk_rate_of(o->rates, factor, disparity->lowest, outcome)->value;
    finding->highest = only_level(o, factor, outcome, disparity->highest);
    finding->lowest = only_level(o, factor, outcome, disparity->lowest);
    if (lk_finding_factors[factor] != LK_FACTOR_MODEL) take_range(claims, factor, outcome, finding);
    test_difference(claims, factor, outcome, finding);
}

/* The mean of changes [n] (NaN: none) against 0. */
static enum lk_code find_change(const double *changes, const int32_t *source, size_t n, double alpha,
                                struct lk_finding *finding) {
    struct lk_cluster_mean mean;
    LK_TRY(lk_cluster_mean(changes, source, n, 1 - alpha, &mean));
    finding->effect = mean.cr2;
    finding->n_sources = mean.n_clusters;
    finding->highest = finding->lowest = -1;
    if (!mean.cr2.undefined && (mean.n_clusters < 2 || !(mean.cr2_error > 0)))
        finding->effect.undefined = "fewer than two sources, or no variance between them";
    if (!finding->effect.undefined) finding->p = lk_t_two_sided(mean.cr2.value / mean.cr2_error, mean.cr2_df);
    return LK_OK;
}

static void add_rates(struct lk_finding *finding, double *sums, double n) {
    finding->high = n > 0 ? sums[0] / n : 0;
    finding->low = n > 0 ? sums[1] / n : 0;
}

static enum lk_code find_changes(const struct lk_dataset *data, const struct lk_report_options *options,
                                 enum lk_score_source source, const struct outputs *o, struct lk_finding *skin,
                                 struct lk_finding *mitigation) {
    double *change = lk_malloc((o->n + 1) * sizeof *change), lighter[2] = {0}, drift[2] = {0}, n[2] = {0};
    if (!change) return lk_fail(LK_E_NOMEM, "report: no memory for %zu outputs", o->n);
    skin->kind = LK_FINDING_SKIN_TONE;
    skin->outcome = LK_MEASURE_LIGHTENING;
    mitigation->kind = LK_FINDING_MITIGATION;
    mitigation->outcome = LK_MEASURE_RACE_DRIFT;
    for (size_t i = 0; i < o->n; i++) {
        int tone = lk_item_levels(o->items[i], source)[LK_AXIS_SKIN_TONE];
        change[i] = tone ? (tone > 3) - (tone < 3) : NAN;
        lighter[0] += tone > 3;
        lighter[1] += tone && tone < 3;
        n[0] += tone > 0;
    }
    enum lk_code rc = find_change(change, o->source, o->n, options->alpha, skin);
    for (size_t i = 0; i < o->n; i++) {
        const struct lk_item *item = o->items[i], *other = item->partner < 0 ? NULL : &data->items[item->partner];
        int before =
            lk_measure_of(LK_MEASURE_RACE_DRIFT, lk_item_levels(item, source), item->prompt, &options->thresholds);
        int after = other ? lk_measure_of(LK_MEASURE_RACE_DRIFT, lk_item_levels(other, source), other->prompt,
                                          &options->thresholds)
                          : -1;
        bool pair = before >= 0 && after >= 0;
        change[i] = pair ? after - before : NAN;
        drift[0] += pair && before;
        drift[1] += pair && after;
        n[1] += pair;
    }
    if (!rc) rc = find_change(change, o->source, o->n, options->alpha, mitigation);
    add_rates(skin, lighter, n[0]);
    add_rates(mitigation, drift, n[1]);
    lk_free(change);
    return rc;
}

/* Skin tone and the mitigation are a family of their own. */
static enum lk_code correct(struct lk_findings *out) {
    double p[2];
    size_t n = 0;
    struct lk_finding *changes = &out->list[LK_N_FINDING_FACTORS * LK_N_OUTCOMES];
    for (int i = 0; i < 2; i++)
        if (!changes[i].effect.undefined) p[n++] = changes[i].p;
    LK_TRY(lk_adjust_p(p, n, LK_ADJUST_HOLM, p));
    n = 0;
    if (out->claims.family_alpha == 0) out->claims.family_alpha = out->alpha; /* the only family */
    for (int i = 0; i < 2; i++) {
        if (changes[i].effect.undefined) continue;
        changes[i].tested = true;
        changes[i].adjusted = p[n++];
        changes[i].found = changes[i].adjusted <= out->claims.family_alpha;
    }
    for (int i = 0; i < LK_N_FINDINGS; i++) {
        const struct lk_finding *finding = &out->list[i];
        if (finding->effect.undefined) continue;
        out->n_tested += finding->tested;
        out->n_found += finding->found;
        if (finding->n_sources > out->n_sources) out->n_sources = finding->n_sources;
    }
    return LK_OK;
}

/* What is found by default, and what becomes of it under the other conventions. */
static enum lk_code claim(const struct lk_dataset *data, const struct lk_report_options *options,
                          struct lk_findings *out) {
    struct lk_convention list[LK_N_CONVENTIONS];
    const struct lk_claims_options how = {.alpha = options->alpha,
                                          .seed = options->study_seed,
                                          .prompts_are_all = options->prompts_are_all,
                                          .n_families_beside = 1,
                                          .ranges = true};
    int n = 0;
    LK_TRY(lk_outcomes_make(out));
    out->y = lk_malloc(LK_N_CONVENTIONS * (size_t)LK_N_OUTCOME_CELLS * sizeof *out->y);
    if (!out->y) return lk_fail(LK_E_NOMEM, "report: out of memory");
    out->outcomes.y = out->y;
    if (!lk_outcomes_fill(data, options, out->source, LK_CONVENTION_DEFAULT, out->y)) return LK_OK;
    LK_TRY(lk_claims_of(&out->outcomes, &how, &out->claims));
    for (int c = LK_CONVENTION_DEFAULT + 1; c < LK_N_CONVENTIONS && out->claims.n_found; c++) {
        double *y = out->y + (size_t)c * LK_N_OUTCOME_CELLS;
        if (lk_outcomes_fill(data, options, out->source, (enum lk_convention_of_scores)c, y))
            list[n++] = (struct lk_convention){lk_convention_names[c], y};
    }
    return lk_claims_conventions(&out->outcomes, &how, list, n, &out->claims);
}

static enum lk_code find(const struct lk_dataset *data, const struct lk_report_options *options, struct outputs *o,
                         struct lk_findings *out) {
    struct lk_grouping groupings[LK_N_FINDING_FACTORS];
    for (int f = 0; f < LK_N_FINDING_FACTORS; f++)
        groupings[f] = (struct lk_grouping){o->level[f], lk_factor_levels(lk_finding_factors[f])};
    struct lk_rates rates = {o->n, LK_N_OUTCOMES, o->values, LK_N_FINDING_FACTORS, groupings};
    struct lk_resampling how = {options->study_seed, (int)options->n_bootstrap, 1 - options->alpha, o->source, 0};
    LK_TRY(lk_bootstrap_rates(&rates, &how, &o->rates));
    LK_TRY(claim(data, options, out));
    for (int m = 0; m < LK_N_OUTCOMES; m++)
        for (int f = 0; f < LK_N_FINDING_FACTORS; f++)
            find_difference(o, &out->claims, f, m, &out->list[m * LK_N_FINDING_FACTORS + f]);
    struct lk_finding *changes = &out->list[LK_N_FINDING_FACTORS * LK_N_OUTCOMES];
    LK_TRY(find_changes(data, options, out->source, o, changes, changes + 1));
    return correct(out);
}

enum lk_code lk_findings_of(const struct lk_dataset *data, const struct lk_report_options *options,
                            enum lk_score_source source, struct lk_findings *out) {
    struct outputs o;
    *out = (struct lk_findings){.source = source, .alpha = options->alpha, .prompts_are_all = options->prompts_are_all};
    enum lk_code rc = collect(data, options, source, &o);
    if (!rc) rc = find(data, options, &o, out);
    outputs_free(&o);
    return rc;
}

void lk_findings_free(struct lk_findings *findings) {
    lk_claims_free(&findings->claims);
    lk_free(findings->y);
    lk_free(findings->levels);
    findings->y = NULL, findings->levels = NULL;
}
