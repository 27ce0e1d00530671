/* Disparities with both of their intervals (outputs taken as independent; the 84 sources resampled), what the repeated
 * sources cost, effect sizes against White, and the mixed design. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/alloc.h"
#include "eval/report/build.h"
#include "eval/report/observations.h"
#include "eval/stats/bootstrap_rates.h"
#include "eval/stats/cluster_means.h"
#include "eval/stats/linear_model.h"
#include "eval/stats/proportion.h"
#include "eval/stats/special.h"

enum by { BY_ALL, BY_RACE, BY_GENDER, BY_AGE_GROUP, BY_CATEGORY, BY_PROMPT, N_BY };
enum { N_SCOPES = 1 + LK_N_MODELS, RACE_GENDER = N_BY * N_SCOPES, RACE_CATEGORY, N_GROUPINGS };
static const int levels_of[N_BY] = {1, LK_N_RACES, LK_N_GENDERS, LK_N_AGE_GROUPS, 2, LK_N_EDIT_PROMPTS};

#define REPEATED                                                                                                       \
    "84 sources repeat across prompts and models, so that outputs of one source are not independent. The study's own " \
    "tests treat outputs as independent; both are reported."

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

static void level_cell(const struct lk_report *report, struct lk_table *table, const struct resampled *r, int g,
                       int level, enum lk_measure measure) {
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
}

static void disparity_row(const struct lk_report *report, struct lk_table *table, const struct resampled *r, int g,
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
    LK_TRY(lk_table_new(&table, id, caption));
    const char *const columns[] = {"Measure", "N", "Disparity, outputs", "Disparity, sources", "Highest", "Lowest"};
    for (int c = 0; c < 6; c++) lk_table_column(table, columns[c], c >= 1 && c <= 3 ? LK_ALIGN_RIGHT : LK_ALIGN_LEFT);
    for (int by = BY_RACE; by < N_BY; by++) {
        lk_table_heading(table, headings[by]);
        for (int m = 0; m < LK_N_MEASURES; m++) disparity_row(report, table, r, grouping(by, scope), m);
    }
    lk_table_note(
        table,
        "Largest minus smallest rate, between unrounded rates; intervals: %g%% percentile bootstrap, %lld "
        "resamples of outputs, or of sources with all of their outputs. " REPEATED
        " A disparity is never below 0 and the largest of noisy rates is too large, in resamples even more: an "
        "interval above 0 is no test, and it may lie above the value.",
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

/* The same rate with the interval of either resampling. */
static void both_intervals(struct lk_table *table, const struct resampled *r, int g, int group, int measure) {
    const struct lk_rate_results *const results[2] = {r->independent, r->clustered};
    for (int c = 0; c < 2; c++) {
        const struct lk_number *rate = lk_rate_of(results[c], g, group, measure);
        if (rate->undefined) {
            lk_table_none(table, rate->undefined);
            continue;
        }
        lk_table_percent(table, llround(rate->value * (double)rate->n), (int64_t)rate->n);
        lk_table_interval(table, rate->low, rate->high);
    }
}

static void interval_row(struct lk_table *table, const struct resampled *r, int scope, int measure,
                         const struct lk_cluster_mean *mean) {
    lk_table_row(table);
    lk_table_text(table, "%s", lk_measure_name(measure));
    both_intervals(table, r, grouping(BY_ALL, scope), 0, measure);
    lk_table_number(table, &mean->design_effect, 2);
    lk_table_number(table, &mean->icc, 3);
    lk_table_number(table, &mean->kish, 2);
}

static enum lk_code table_intervals(struct lk_report *report, const struct resampled *r) {
    struct lk_table *table;
    double *y = lk_malloc(r->n * sizeof *y);
    if (!y) return lk_fail(LK_E_NOMEM, "report: no memory for %zu outputs", r->n);
    enum lk_code rc = lk_table_new(&table, "rate_intervals", "Rates by model with both intervals, and design effects");
    if (rc) {
        lk_free(y);
        return rc;
    }
    const char *const columns[] = {"Measure", "Rate, outputs", "Rate, sources", "Design effect", "ICC", "Kish"};
    for (int c = 0; c < 6; c++) lk_table_column(table, columns[c], c ? LK_ALIGN_RIGHT : LK_ALIGN_LEFT);
    for (int scope = 0; scope < N_SCOPES && !rc; scope++) {
        lk_table_heading(table, scope_name(scope));
        for (int m = 0; m < LK_N_MEASURES && !rc; m++) {
            struct lk_cluster_mean mean;
            rc = design_effect(r, scope, m, y, 1 - report->options.alpha, &mean);
            if (!rc) interval_row(table, r, scope, m, &mean);
        }
    }
    lk_free(y);
    if (rc) {
        lk_table_free(table);
        return rc;
    }
    lk_table_note(table,
                  "Design effect: variance of the rate with clusters over that without (1: sources do not matter). "
                  "ICC: correlation of outputs of one source. Kish: 1 + (mean size − 1) ICC. " REPEATED);
    table->no_data = lk_rate_of(r->independent, grouping(BY_ALL, 0), 0, LK_MEASURE_SUCCESS)->n == 0;
    return lk_report_add(report, LK_SECTION_DISPARITY, table);
}

/* Every rate by race and one more factor. */
static enum lk_code table_crossed(struct lk_report *report, const struct resampled *r, enum lk_factor factor) {
    struct lk_table *table;
    char id[64], caption[128];
    const char *name = lk_factor_name(factor);
    snprintf(id, sizeof id, "rates_race_by_%s", name);
    snprintf(caption, sizeof caption, "All rates by race and %s, with both intervals", name);
    LK_TRY(lk_table_new(&table, id, caption));
    const char *const columns[] = {"Race", "Group", "N", "Rate, outputs", "Rate, sources"};
    for (int c = 0; c < 5; c++) lk_table_column(table, columns[c], c > 1 ? LK_ALIGN_RIGHT : LK_ALIGN_LEFT);
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
                both_intervals(table, r, g, group, m);
            }
    }
    lk_table_note(table,
                  "N: outputs with a valid score, baseline arm. Intervals: %g%% percentile bootstrap, %lld resamples "
                  "of outputs, or of sources with all of their outputs. " REPEATED,
                  100 * (1 - report->options.alpha), (long long)report->options.n_bootstrap);
    table->no_data = lk_rate_of(r->independent, grouping(BY_ALL, 0), 0, LK_MEASURE_SUCCESS)->n == 0;
    return lk_report_add(report, LK_SECTION_DISPARITY, table);
}

static enum lk_code table_cohen_h(struct lk_report *report, const struct resampled *r) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "cohen_h", "Cohen's h of each race against White"));
    lk_table_column(table, "Race", LK_ALIGN_LEFT);
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

/* By source as Hotelling's T squared of df2 + 1 sources: chi-square over its df rejects far too often when a term has
 * nearly as many columns as there are sources. */
static void wald_cells(struct lk_table *table, const struct lk_wald *wald, bool by_source) {
    double df2 = by_source ? wald->df2 + 1 - wald->df1 : wald->df2;
    if (wald->undefined || df2 < 1) {
        for (int c = 0; c < 3; c++) lk_table_none(table, wald->undefined ? wald->undefined : "too few sources");
        return;
    }
    double f = wald->f * df2 / wald->df2;
    lk_table_fixed(table, f, 1);
    lk_table_fixed(table, df2, 0);
    lk_table_p(table, lk_f_sf(f, wald->df1, df2));
}

/* Rows for terms first..5 of a model that was fitted with terms 0..n_terms-1. */
static void term_rows(struct lk_table *table, const struct lk_linear_model *model, int first) {
    static const char *const names[] = {"race", "model", "prompt", "race × model", "race × prompt", "model × prompt"};
    for (int t = first; t < model->n_terms; t++) {
        lk_table_row(table);
        lk_table_text(table, "%s", names[t]);
        if (model->undefined) {
            for (int c = 0; c < 7; c++) lk_table_none(table, model->undefined);
            continue;
        }
        lk_table_count(table, model->terms[t].df);
        wald_cells(table, &model->terms[t].clustered, true);
        wald_cells(table, &model->terms[t].independent, false);
    }
}

static enum lk_code axis_rows(struct lk_report *report, struct lk_table *table, enum lk_axis axis, int64_t *n) {
    static const struct lk_model_term terms[] = {{0, -1}, {1, -1}, {2, -1}, {0, 1}, {0, 2}, {1, 2}};
    static const struct { int n_terms, first; } fits[] = {{3, 0}, {6, 3}};
    const struct lk_group all = LK_GROUP_ANY;
    struct lk_observations o;
    LK_TRY(lk_observe_scores(report->data, &all, axis, LK_SCORES_JUDGE, &o));
    const struct lk_model_factor factors[] = {
        {"race", o.race, LK_N_RACES}, {"model", o.model, LK_N_MODELS}, {"prompt", o.prompt, LK_N_EDIT_PROMPTS}};
    *n += (int64_t)o.n;
    lk_table_heading(table, lk_factor_display(LK_FACTOR_AXIS, axis));
    enum lk_code rc = LK_OK;
    for (int f = 0; f < 2 && !rc; f++) {
        struct lk_linear_model *model;
        rc = lk_linear_model_fit(o.value, o.n, factors, 3, terms, fits[f].n_terms, o.source, &model);
        if (rc) break;
        term_rows(table, model, fits[f].first);
        lk_linear_model_free(model);
    }
    lk_observations_free(&o);
    return rc;
}

static enum lk_code table_mixed(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "mixed_design", "Mixed design: race × model × prompt, Wald tests per term"));
    const char *const columns[] = {"Term",       "df",         "F, sources",   "df2, sources",
                                   "p, sources", "F, outputs", "df2, outputs", "p, outputs"};
    for (int c = 0; c < 8; c++) lk_table_column(table, columns[c], c ? LK_ALIGN_RIGHT : LK_ALIGN_LEFT);
    int64_t n = 0;
    enum lk_code rc = LK_OK;
    for (int axis = 0; axis < LK_N_AXES && !rc; axis++) rc = axis_rows(report, table, axis, &n);
    if (rc) {
        lk_table_free(table);
        return rc;
    }
    lk_table_note(
        table,
        "Least squares on the judges' scores, baseline arm. Race, model and prompt are tested in the model "
        "of main effects, interactions in the model with all three. race × prompt has more columns than "
        "there are sources, so that no test by source exists. By source: sandwich errors, F as Hotelling's T² of "
        "the sources; with 12 sources a race they are small, and the permutation of sources in the table of "
        "tests is the one to read for race. " REPEATED);
    table->no_data = !n;
    return lk_report_add(report, LK_SECTION_TESTS, table);
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
    LK_TRY(rc);
    return table_mixed(report);
}
