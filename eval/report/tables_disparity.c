/* Disparities with both of their intervals (outputs taken as independent; the sources resampled), what the repeated
 * sources cost, effect sizes against White. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/report/build.h"
#include "eval/stats/resampling/bootstrap_rates.h"
#include "eval/stats/models/cluster_means.h"
#include "eval/stats/proportion.h"

enum by { BY_ALL, BY_RACE, BY_GENDER, BY_AGE_GROUP, BY_CATEGORY, BY_PROMPT, N_BY };
enum { N_SCOPES = 1 + LK_N_MODELS, RACE_GENDER = N_BY * N_SCOPES, RACE_CATEGORY, N_GROUPINGS };
static const int levels_of[N_BY] = {1, LK_N_RACES, LK_N_GENDERS, LK_N_AGE_GROUPS, 2, LK_N_EDIT_PROMPTS};

#define EXPANDED                                                                                                       \
    "Expanded: as wide as Student's t with the number of sources asks for, percentiles of few are too short."

/* Outputs of the baseline arm with every measure, and both resamplings. */
struct resampled {
    size_t n;
    double *values;   /* [n, LK_N_MEASURES] */
    int32_t *groups;  /* [N_GROUPINGS, n] */
    int32_t *sources; /* [n] */
    struct lk_rate_results *independent, *clustered;
};

static int grouping(enum by by, int scope) { return (int)by * N_SCOPES + scope; }

static int level_of(const struct lk_item *item, enum by by) {
    const int levels[N_BY] = {0, item->race, item->gender, lk_age_group(item->age), item->prompt / 10, item->prompt};
    return levels[by];
}

static void fill(const struct lk_report *report, struct resampled *r, size_t n_items) {
    const struct lk_group all = LK_GROUP_ANY;
    size_t n = 0;
    for (size_t i = 0; i < n_items; i++) {
        const struct lk_item *item = &report->data->items[i];
        if (!lk_group_has(&all, item)) continue;
        for (int m = 0; m < LK_N_MEASURES; m++) {
            int value = lk_measure_of(m, item->score, item->prompt, &report->options.thresholds);
            r->values[n * LK_N_MEASURES + (size_t)m] = value < 0 ? NAN : value;
        }
        r->groups[RACE_GENDER * r->n + n] = item->race * LK_N_GENDERS + item->gender;
        r->groups[RACE_CATEGORY * r->n + n] = item->race * 2 + item->prompt / 10;
        for (int g = 0; g < RACE_GENDER; g++) {
            int scope = g % N_SCOPES;
            bool inside = !scope || item->model == scope - 1;
            r->groups[(size_t)g * r->n + n] = inside ? level_of(item, g / N_SCOPES) : -1;
        }
        r->sources[n++] = item->source;
    }
}

static void resampled_free(struct resampled *r) {
    lk_free(r->values);
    lk_free(r->groups);
    lk_free(r->sources);
    lk_rate_results_free(r->independent);
    lk_rate_results_free(r->clustered);
}

static enum lk_code resample(const struct lk_report *report, struct resampled *r) {
    const struct lk_group all = LK_GROUP_ANY;
    memset(r, 0, sizeof *r);
    for (size_t i = 0; i < report->data->n_items; i++) r->n += lk_group_has(&all, &report->data->items[i]);
    r->values = lk_malloc(r->n * LK_N_MEASURES * sizeof *r->values);
    r->groups = lk_malloc(r->n * N_GROUPINGS * sizeof *r->groups);
    r->sources = lk_malloc(r->n * sizeof *r->sources);
    if (!r->values || !r->groups || !r->sources) return lk_fail(LK_E_NOMEM, "report: no memory for %zu outputs", r->n);
    fill(report, r, report->data->n_items);
    struct lk_grouping groupings[N_GROUPINGS];
    for (int g = 0; g < N_GROUPINGS; g++)
        groupings[g] = (struct lk_grouping){r->groups + (size_t)g * r->n,
                                            g < RACE_GENDER ? levels_of[g / N_SCOPES] : LK_N_RACES * 2};
    struct lk_rates rates = {r->n, LK_N_MEASURES, r->values, N_GROUPINGS, groupings};
    struct lk_resampling how = {report->options.study_seed, (int)report->options.n_bootstrap, 1 - report->options.alpha,
                                NULL, 0};
    LK_TRY(lk_bootstrap_rates(&rates, &how, &r->independent));
    how.clusters = r->sources;
    return lk_bootstrap_rates(&rates, &how, &r->clustered);
}

static const char *scope_name(int scope) {
    return scope ? lk_factor_display(LK_FACTOR_MODEL, scope - 1) : "All models";
}

static void level_cell(struct lk_report *report, struct lk_table *table, const struct resampled *r, int g, int level,
                       enum lk_measure measure) {
    static const enum lk_factor factors[N_BY] = {[BY_RACE] = LK_FACTOR_RACE,
                                                 [BY_GENDER] = LK_FACTOR_GENDER,
                                                 [BY_AGE_GROUP] = LK_FACTOR_AGE_GROUP,
                                                 [BY_CATEGORY] = LK_FACTOR_CATEGORY};
    enum by by = g / N_SCOPES;
    const struct lk_number *rate = lk_rate_of(r->independent, g, level, measure);
    int64_t tenths = lk_percent_tenths(llround(rate->value * (double)rate->n), (int64_t)rate->n);
    lk_table_text(table, "%s %lld.%lld%%",
                  by == BY_PROMPT ? report->prompts.edit[level].id : lk_factor_display(factors[by], level),
                  (long long)tenths / 10, (long long)tenths % 10);
    struct lk_group group = LK_GROUP_ANY;
    group.model = g % N_SCOPES - 1;
    if (by == BY_PROMPT)
        group.prompt = level;
    else
        group = lk_group_with(group, factors[by], level);
    if (tenths) lk_report_link(report, table, &group, measure, LK_SCORES_JUDGE);
}

static void disparity_row(struct lk_report *report, struct lk_table *table, const struct resampled *r, int g,
                          enum lk_measure measure) {
    const struct lk_disparity *independent = lk_disparity_of(r->independent, g, measure);
    const struct lk_disparity *clustered = lk_disparity_of(r->clustered, g, measure);
    lk_table_row(table);
    lk_table_text(table, "%s", lk_measure_name(measure));
    lk_table_count(table, (int64_t)independent->number.n);
    if (independent->number.undefined) {
        for (int c = 0; c < 4; c++) lk_table_none(table, independent->number.undefined);
        return;
    }
    lk_table_points(table, independent->number.value);
    lk_table_interval(table, independent->number.low, independent->number.high);
    lk_table_points(table, clustered->number.value);
    lk_table_interval(table, clustered->number.low, clustered->number.high);
    level_cell(report, table, r, g, independent->highest, measure);
    level_cell(report, table, r, g, independent->lowest, measure);
}

static enum lk_code table_disparities(struct lk_report *report, const struct resampled *r, int scope) {
    static const char *const headings[N_BY] = {"", "By race", "By gender", "By age group", "By category", "By prompt"};
    struct lk_table *table;
    char id[64], caption[128];
    snprintf(id, sizeof id, "disparities_%s", scope ? lk_factor_key(LK_FACTOR_MODEL, scope - 1) : "all");
    snprintf(caption, sizeof caption, "Disparities with both intervals: %s", scope_name(scope));
    LK_TRY(lk_table_new(&table, id, caption, "Measure|>N|>Disparity, outputs|>Disparity, sources|Highest|Lowest"));
    for (int by = BY_RACE; by < N_BY; by++) {
        lk_table_heading(table, headings[by]);
        for (int m = 0; m < LK_N_MEASURES; m++) disparity_row(report, table, r, grouping(by, scope), m);
    }
    lk_table_note(
        table,
        "Largest minus smallest rate, between unrounded rates. Intervals: %g%%, from %lld resamples of outputs, and of "
        "sources with all of their outputs. The lower end is the smallest disparity that the data do not contradict, "
        "the upper end the largest of the pairs' own: a disparity lies within its interval, and a lower end of 0 says "
        "that no two groups are told apart. Of 2,000 planted studies with 12 and with 3 sources a race the interval at "
        "95%% held the truth in 94 to 97%%. " EXPANDED " " LK_REPEATED_SOURCES,
        100 * (1 - report->options.alpha), (long long)report->options.n_bootstrap);
    table->no_data = lk_rate_of(r->independent, grouping(BY_ALL, scope), 0, LK_MEASURE_SUCCESS)->n == 0;
    return lk_report_add(report, LK_SECTION_DISPARITY, table);
}

static enum lk_code design_effect(const struct resampled *r, int scope, int measure, double *y, double confidence,
                                  struct lk_cluster_mean *mean) {
    const int32_t *in = r->groups + (size_t)grouping(BY_ALL, scope) * r->n;
    for (size_t i = 0; i < r->n; i++) y[i] = in[i] < 0 ? NAN : r->values[i * LK_N_MEASURES + (size_t)measure];
    return lk_cluster_mean(y, r->sources, r->n, confidence, mean);
}

static void rate_cell(struct lk_table *table, const struct lk_number *rate) {
    if (rate->undefined) {
        lk_table_none(table, rate->undefined);
        return;
    }
    lk_table_percent(table, llround(rate->value * (double)rate->n), (int64_t)rate->n);
    lk_table_interval(table, rate->low, rate->high);
}

static void interval_row(struct lk_report *report, struct lk_table *table, const struct resampled *r, int scope,
                         int measure, const struct lk_cluster_mean *mean) {
    const struct lk_number *rate = lk_rate_of(r->independent, grouping(BY_ALL, scope), 0, measure);
    struct lk_group group = LK_GROUP_ANY;
    group.model = scope - 1;
    lk_table_row(table);
    lk_table_text(table, "%s", lk_measure_name(measure));
    rate_cell(table, rate);
    if (!rate->undefined && rate->value > 0) lk_report_link(report, table, &group, measure, LK_SCORES_JUDGE);
    rate_cell(table, lk_rate_expanded_of(r->clustered, grouping(BY_ALL, scope), 0, measure));
    rate_cell(table, lk_rate_of(r->clustered, grouping(BY_ALL, scope), 0, measure));
    lk_report_number(table, &mean->design_effect, 2);
    lk_report_number(table, &mean->icc, 3);
    lk_report_number(table, &mean->kish, 2);
}

static enum lk_code table_intervals(struct lk_report *report, const struct resampled *r) {
    struct lk_table *table;
    double *y = lk_malloc(r->n * sizeof *y);
    if (!y) return lk_fail(LK_E_NOMEM, "report: no memory for %zu outputs", r->n);
    enum lk_code rc =
        lk_table_new(&table, "rate_intervals", "Rates by model with both intervals, and design effects",
                     "Measure|>Rate, outputs|>Rate, sources|>Percentiles, sources|>Design effect|>ICC|>Kish");
    if (rc) {
        lk_free(y);
        return rc;
    }
    for (int scope = 0; scope < N_SCOPES && !rc; scope++) {
        lk_table_heading(table, scope_name(scope));
        for (int m = 0; m < LK_N_MEASURES && !rc; m++) {
            struct lk_cluster_mean mean;
            rc = design_effect(r, scope, m, y, 1 - report->options.alpha, &mean);
            if (!rc) interval_row(report, table, r, scope, m, &mean);
        }
    }
    lk_free(y);
    if (rc) {
        lk_table_free(table);
        return rc;
    }
    lk_table_note(
        table, "Design effect: variance of the rate with clusters over that without (1: sources do not matter). "
               "ICC: correlation of outputs of one source. Kish: 1 + (mean size − 1) ICC. Intervals by outputs are "
               "percentiles "
               "of resamples, those of the rate by sources expanded percentiles, with the plain ones beside. " EXPANDED
               " " LK_REPEATED_SOURCES);
    table->no_data = lk_rate_of(r->independent, grouping(BY_ALL, 0), 0, LK_MEASURE_SUCCESS)->n == 0;
    return lk_report_add(report, LK_SECTION_DISPARITY, table);
}

/* Every rate by race and one more factor. */
static enum lk_code table_crossed(struct lk_report *report, const struct resampled *r, enum lk_factor factor) {
    struct lk_table *table;
    char id[64], caption[128];
    bool held = report->options.embed_images || report->options.audit_safe;
    const char *name = lk_factor_name(factor);
    snprintf(id, sizeof id, "rates_race_by_%s", name);
    snprintf(caption, sizeof caption, "All rates by race and %s, with both intervals", name);
    LK_TRY(lk_table_new(&table, id, caption, "Race|Group|>N|>Rate, outputs|>Rate, sources"));
    for (int m = 0; m < LK_N_MEASURES; m++) {
        lk_table_heading(table, lk_measure_name(m));
        for (int race = 0; race < LK_N_RACES; race++)
            for (int level = 0; level < lk_factor_levels(factor); level++) {
                bool model = factor == LK_FACTOR_MODEL;
                int g = model ? grouping(BY_RACE, 1 + level) : factor == LK_FACTOR_GENDER ? RACE_GENDER : RACE_CATEGORY;
                int group = model ? race : race * 2 + level;
                lk_table_row(table);
                lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_RACE, race));
                lk_table_text(table, "%s", lk_factor_display(factor, level));
                lk_table_count(table, (int64_t)lk_rate_of(r->independent, g, group, m)->n);
                const struct lk_group any = LK_GROUP_ANY;
                const struct lk_number *rate = lk_rate_of(r->independent, g, group, m);
                rate_cell(table, rate);
                struct lk_group behind = lk_group_with(any, LK_FACTOR_RACE, race);
                behind = lk_group_with(behind, factor, level);
                if (!rate->undefined && rate->value > 0 && !held)
                    lk_report_link(report, table, &behind, m, LK_SCORES_JUDGE);
                rate_cell(table, lk_rate_expanded_of(r->clustered, g, group, m));
            }
    }
    lk_table_note(
        table,
        "N: outputs with a valid score, baseline arm. Intervals: %g%% bootstrap, %lld resamples: percentiles by "
        "outputs, expanded percentiles by sources with all of their outputs. " EXPANDED " " LK_REPEATED_SOURCES,
        100 * (1 - report->options.alpha), (long long)report->options.n_bootstrap);
    table->no_data = lk_rate_of(r->independent, grouping(BY_ALL, 0), 0, LK_MEASURE_SUCCESS)->n == 0;
    return lk_report_add(report, LK_SECTION_DISPARITY, table);
}

static enum lk_code table_cohen_h(struct lk_report *report, const struct resampled *r) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "cohen_h", "Cohen's h of each race against White", "Race"));
    for (int scope = 0; scope < N_SCOPES; scope++)
        lk_table_column(table, scope ? lk_factor_short(LK_FACTOR_MODEL, scope - 1) : "All", LK_ALIGN_RIGHT);
    for (int m = 0; m < LK_N_MEASURES; m++) {
        lk_table_heading(table, lk_measure_name(m));
        for (int race = 1; race < LK_N_RACES; race++) {
            lk_table_row(table);
            lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_RACE, race));
            for (int scope = 0; scope < N_SCOPES; scope++) {
                const struct lk_number *white = lk_rate_of(r->independent, grouping(BY_RACE, scope), 0, m);
                const struct lk_number *other = lk_rate_of(r->independent, grouping(BY_RACE, scope), race, m);
                if (white->undefined || other->undefined) {
                    lk_table_none(table, "a race has no outputs");
                    continue;
                }
                double h = lk_cohen_h(other->value, white->value);
                lk_table_signed(table, h, 2);
                lk_table_remark(table, "%s", lk_cohen_h_label(h));
            }
        }
    }
    lk_table_note(table, "Positive: the rate is higher than White's. |h| 0.2 small, 0.5 medium, 0.8 large.");
    table->no_data = lk_rate_of(r->independent, grouping(BY_ALL, 0), 0, LK_MEASURE_SUCCESS)->n == 0;
    return lk_report_add(report, LK_SECTION_DISPARITY, table);
}

static enum lk_code resampled_tables(struct lk_report *report, const struct resampled *r) {
    for (int scope = 0; scope < N_SCOPES; scope++) LK_TRY(table_disparities(report, r, scope));
    LK_TRY(table_intervals(report, r));
    const enum lk_factor factors[] = {LK_FACTOR_MODEL, LK_FACTOR_CATEGORY, LK_FACTOR_GENDER};
    for (int f = 0; f < 3; f++) LK_TRY(table_crossed(report, r, factors[f]));
    return table_cohen_h(report, r);
}

enum lk_code lk_report_tables_disparity(struct lk_report *report) {
    struct resampled r;
    enum lk_code rc = resample(report, &r);
    if (!rc) rc = resampled_tables(report, &r);
    resampled_free(&r);
    return rc;
}
