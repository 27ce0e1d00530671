/* The research questions: the hypothesis as the study prints it, the numbers and the tests. What they mean is left to
 * the reader. */
#include <stdio.h>

#include "engine/base/alloc.h"
#include "eval/report/build.h"
#include "eval/report/observations.h"
#include "eval/stats/tests/count_tests.h"
#include "eval/stats/proportion.h"
#include "eval/stats/tests/rank_tests.h"

static struct lk_rate rate_of(const struct lk_report *report, struct lk_group group, enum lk_measure measure) {
    return lk_measure_rate(report->data, &group, measure, &report->options.thresholds);
}

/* decimals: of the statistic. */
static void test_cells(struct lk_table *table, const char *name, const struct lk_test *test, int decimals) {
    lk_table_text(table, "%s", name);
    if (test->undefined) {
        lk_table_none(table, test->undefined);
        lk_table_none(table, test->undefined);
        return;
    }
    lk_table_fixed(table, test->statistic, decimals);
    lk_table_p(table, test->p);
}

static void label(struct lk_table *table, const char *text, int64_t n) {
    lk_table_row(table);
    lk_table_text(table, "%s", text);
    lk_table_count(table, n);
}

/* Rate a minus rate b with Newcombe's interval, and the z test. */
static enum lk_code difference_row(struct lk_report *report, struct lk_table *table, const char *text, struct lk_rate a,
                                   struct lk_rate b) {
    struct lk_number difference;
    struct lk_test test;
    label(table, text, a.n + b.n);
    LK_TRY(lk_two_proportions(a.k, a.n, b.k, b.n, LK_TWO_SIDED, &test));
    if (!a.n || !b.n) {
        lk_table_none(table, "one of the groups has no outputs");
    } else {
        LK_TRY(lk_proportion_difference(a.k, a.n, b.k, b.n, 1 - report->options.alpha, &difference));
        lk_table_points(table, difference.value);
        lk_table_interval(table, difference.low, difference.high);
        lk_table_remark(table, "Cohen's h %.2f, %s", lk_cohen_h(lk_rate_value(a), lk_rate_value(b)),
                        lk_cohen_h_label(lk_cohen_h(lk_rate_value(a), lk_rate_value(b))));
    }
    test_cells(table, "two-proportion z", &test, 2);
    return LK_OK;
}

/* The other races' rate minus White's. */
static enum lk_code others_row(struct lk_report *report, struct lk_table *table, const char *text,
                               enum lk_measure measure) {
    struct lk_group all = LK_GROUP_ANY;
    struct lk_rate white = rate_of(report, lk_group_with(all, LK_FACTOR_RACE, 0), measure);
    struct lk_rate every = rate_of(report, all, measure);
    return difference_row(report, table, text, (struct lk_rate){every.k - white.k, every.n - white.n}, white);
}

/* Disparity between races in a group, and race by outcome. */
static enum lk_code disparity_row(struct lk_report *report, struct lk_table *table, const char *text,
                                  struct lk_group group, enum lk_measure measure) {
    struct lk_rate rates[LK_N_RACES];
    struct lk_rates_range range;
    struct lk_contingency contingency;
    int64_t counts[LK_N_RACES][2], n = 0;
    for (int race = 0; race < LK_N_RACES; race++) {
        rates[race] = rate_of(report, lk_group_with(group, LK_FACTOR_RACE, race), measure);
        counts[race][0] = rates[race].n - rates[race].k;
        counts[race][1] = rates[race].k;
        n += rates[race].n;
    }
    label(table, text, n);
    if (lk_rates_range(rates, LK_N_RACES, &range)) {
        lk_table_points(table, range.difference);
        lk_table_remark(table, "highest %s, lowest %s", lk_factor_display(LK_FACTOR_RACE, range.highest),
                        lk_factor_display(LK_FACTOR_RACE, range.lowest));
    } else {
        lk_table_none(table, "fewer than two races have outputs");
    }
    LK_TRY(lk_chi2_contingency(&counts[0][0], LK_N_RACES, 2, &contingency, NULL, NULL));
    test_cells(table, "χ² race × outcome", &contingency.test, 1);
    return LK_OK;
}

/* Means of a score: the other races minus White, by ranks. */
static enum lk_code tone_rows(struct lk_report *report, struct lk_table *table, const char *text,
                              enum lk_score_source source) {
    const struct lk_group all = LK_GROUP_ANY;
    struct lk_observations o;
    LK_TRY(lk_observe_scores(report->data, &all, LK_AXIS_SKIN_TONE, source, &o));
    double *values = lk_malloc(o.n * sizeof *values), sum[2] = {0, 0};
    enum lk_code rc = values ? LK_OK : lk_fail(LK_E_NOMEM, "report: no memory for %zu observations", o.n);
    struct lk_test test;
    if (!rc) {
        size_t sizes[LK_N_RACES];
        lk_observations_by_race(&o, values, sizes);
        size_t n_white = sizes[0], n_others = o.n - sizes[0];
        for (size_t i = 0; i < o.n; i++) sum[i >= n_white] += values[i];
        label(table, text, (int64_t)o.n);
        if (n_white && n_others)
            lk_table_signed(table, sum[1] / (double)n_others - sum[0] / (double)n_white, 2);
        else
            lk_table_none(table, "one of the groups has no scores");
        rc = lk_mann_whitney(values, n_white, values + n_white, n_others, NULL, &test);
        if (!rc) test_cells(table, "Mann–Whitney U, White against others", &test, 1);
    }
    lk_free(values);
    lk_observations_free(&o);
    return rc;
}

static enum lk_code question_1(struct lk_report *report, struct lk_table *table) {
    const struct lk_group all = LK_GROUP_ANY;
    lk_table_heading(table,
                     "RQ1, identity drift disparity. Hypothesis printed: non-White sources show more race drift and "
                     "skin lightening than White ones");
    LK_TRY(disparity_row(report, table, "Race change: disparity between races", all, LK_MEASURE_RACE_DRIFT));
    LK_TRY(others_row(report, table, "Race change: others − White", LK_MEASURE_RACE_DRIFT));
    LK_TRY(disparity_row(report, table, "Skin lightening: disparity between races", all, LK_MEASURE_LIGHTENING));
    LK_TRY(others_row(report, table, "Skin lightening: others − White", LK_MEASURE_LIGHTENING));
    LK_TRY(tone_rows(report, table, "Skin tone, judges: mean of others − White", LK_SCORES_JUDGE));
    return tone_rows(report, table, "Skin tone, raters: mean of others − White", LK_SCORES_HUMAN);
}

static enum lk_code question_2(struct lk_report *report, struct lk_table *table) {
    struct lk_group all = LK_GROUP_ANY, others[2];
    struct lk_rate by_category[2];
    char text[128];
    lk_table_heading(table,
                     "RQ2, edit type. Hypothesis printed: vulnerability edits show more erasure for minority groups");
    for (int c = 0; c < 2; c++) {
        others[c] = lk_group_with(all, LK_FACTOR_CATEGORY, c);
        by_category[c] = rate_of(report, others[c], LK_MEASURE_SOFT_ERASURE);
    }
    LK_TRY(difference_row(report, table, "Soft erasure: vulnerability − occupational", by_category[1], by_category[0]));
    for (int c = 0; c < 2; c++) {
        struct lk_rate white = rate_of(report, lk_group_with(others[c], LK_FACTOR_RACE, 0), LK_MEASURE_SOFT_ERASURE);
        by_category[c].k -= white.k;
        by_category[c].n -= white.n;
    }
    LK_TRY(difference_row(report, table, "The same without White sources", by_category[1], by_category[0]));
    for (int c = 0; c < 2; c++) {
        snprintf(text, sizeof text, "Soft erasure, %s: disparity between races",
                 lk_factor_display(LK_FACTOR_CATEGORY, c));
        LK_TRY(disparity_row(report, table, text, others[c], LK_MEASURE_SOFT_ERASURE));
        snprintf(text, sizeof text, "Race change, %s: disparity between races",
                 lk_factor_display(LK_FACTOR_CATEGORY, c));
        LK_TRY(disparity_row(report, table, text, others[c], LK_MEASURE_RACE_DRIFT));
    }
    return LK_OK;
}

static struct lk_rate adherence(const struct lk_report *report, int model, int64_t *n) {
    struct lk_rate rate = {0, 0};
    for (size_t i = 0; i < report->data->n_items; i++) {
        const struct lk_item *item = &report->data->items[i];
        if (item->prompt < LK_N_EDIT_PROMPTS || (model >= 0 && item->model != model)) continue;
        if (item->role != LK_ROLE_MALE && item->role != LK_ROLE_FEMALE) continue;
        rate.k += item->role == report->prompts.w[item->prompt - LK_N_EDIT_PROMPTS].stereotype_gender;
        rate.n++;
    }
    *n += rate.n;
    return rate;
}

static enum lk_code question_3(struct lk_report *report, struct lk_table *table, int64_t *n) {
    char text[128];
    lk_table_heading(table,
                     "RQ3, stereotype congruence. Hypothesis printed: high-status roles go to men under gender-neutral "
                     "prompts");
    for (int model = -1; model < LK_N_MODELS; model++) {
        struct lk_rate rate = adherence(report, model, n);
        struct lk_test test;
        snprintf(text, sizeof text, "Stereotype adherence, %s",
                 model < 0 ? "all models" : lk_factor_display(LK_FACTOR_MODEL, model));
        label(table, text, rate.n);
        lk_table_percent(table, rate.k, rate.n);
        if (rate.n) lk_report_interval(report, table, rate);
        LK_TRY(lk_binomial_test(rate.k, rate.n, 0.5, LK_TWO_SIDED, &test));
        test_cells(table, "binomial, against 0.5", &test, 2);
    }
    return LK_OK;
}

enum lk_code lk_report_tables_questions(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "research_questions", "Research questions: hypotheses, numbers, tests",
                        "Number|>n|>Value|Test|>Statistic|>p"));
    int64_t n_roles = 0;
    enum lk_code rc = question_1(report, table);
    if (!rc) rc = question_2(report, table);
    if (!rc) rc = question_3(report, table, &n_roles);
    if (rc) {
        lk_table_free(table);
        return rc;
    }
    lk_table_note(table,
                  "p values are two-sided, not adjusted, and take outputs as independent, as the study does, although "
                  "sources repeat across prompts; the table of tests has them adjusted and by source. A small p "
                  "does not confirm a hypothesis, a large one does not refute it. Sentences whose answer is unclear "
                  "are left out of adherence here.");
    const struct lk_group all = LK_GROUP_ANY;
    table->no_data = !n_roles && !lk_report_has_items(report, &all);
    return lk_report_add(report, LK_SECTION_TESTS, table);
}
