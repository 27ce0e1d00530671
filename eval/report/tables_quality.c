/* Quality control of the raters: what every rule hits, each result on human answers with and without the raters that
 * the policy excludes, and every rule rater by rater. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/report/agreement.h"
#include "eval/report/build.h"

static enum lk_code table_rules(struct lk_report *report) {
    const struct lk_quality_report *quality = report->options.quality;
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "t_qc", "Quality control of the raters", "Rule|Text|>Hit|>Excluded"));
    for (int rule = 0; quality && quality->n_raters && rule < LK_N_QUALITY_RULES; rule++) {
        int64_t excluded = 0;
        for (size_t r = 0; r < quality->n_raters; r++)
            excluded += quality->raters[r].excluded && quality->raters[r].rules >> rule & 1;
        lk_table_row(table);
        lk_table_text(table, "%s", lk_quality_rule_name(rule));
        lk_table_text(table, "%s", lk_quality_rule_text(rule));
        lk_table_count(table, (int64_t)quality->n_hit[rule]);
        lk_table_count(table, excluded);
    }
    if (quality && quality->n_raters) {
        lk_table_row(table);
        lk_table_text(table, "All");
        lk_table_text(table, "raters; excluded by the policy");
        lk_table_count(table, (int64_t)quality->n_raters);
        lk_table_percent(table, (int64_t)quality->n_excluded, (int64_t)quality->n_raters);
        lk_table_row(table);
        lk_table_text(table, "Expected");
        lk_table_text(table, "exclusion rate");
        lk_table_text(table, "%s", "");
        lk_table_rate(table, quality->expected_rate);
    }
    lk_table_note(table, "Hit: raters that the rule applies to; excluded: those of them that the policy leaves out, "
                         "for this rule or another.");
    return lk_report_add(report, LK_SECTION_HUMAN, table);
}

/* Everything that is reported of human answers, once. */
struct human_results {
    int64_t n_answers;
    struct lk_reliability reliability[LK_N_AXES];
    struct lk_judge_human agreement[LK_N_AXES];
    struct lk_mean mean[LK_N_AXES];
    struct lk_paired change[LK_N_AXES]; /* by the feature prompt */
    struct lk_rate rate[LK_N_MEASURES]; /* by the raters' majority, baseline arm */
    struct lk_preference preference;
    struct lk_human_test test[LK_N_HUMAN_TESTS];
};

static enum lk_code results_of(const struct lk_report *report, struct human_results *out) {
    struct lk_group all = LK_GROUP_ANY, baseline = LK_GROUP_ANY;
    struct lk_measure_agreement measured;
    all.arm = -1;
    *out = (struct human_results){0};
    for (size_t i = 0; i < report->data->n_items; i++) out->n_answers += report->data->items[i].n_ratings;
    for (int axis = 0; axis < LK_N_AXES; axis++) {
        LK_TRY(lk_reliability(report->data, axis, false, NULL, &out->reliability[axis]));
        LK_TRY(lk_judge_human(report->data, &all, axis, &out->agreement[axis]));
        out->mean[axis] = lk_mean_of(report->data, &all, axis, LK_SCORES_HUMAN);
        out->change[axis] =
            lk_paired_of(report->data, all, axis, LK_SCORES_HUMAN, false, false, &report->options.thresholds);
    }
    for (int m = 0; m < LK_N_MEASURES; m++) {
        LK_TRY(lk_measure_agreement(report->data, &baseline, m, &report->options.thresholds, &measured));
        out->rate[m] = measured.human;
    }
    out->preference = lk_preference_of(report->data, &all, LK_SCORES_HUMAN);
    return lk_report_human_tests(report, out->test);
}

/* The items' human fields of before, so that going back cannot fail. */
struct saved {
    struct lk_item *items;
    bool *excluded;
};

static enum lk_code save(const struct lk_dataset *data, struct saved *out) {
    out->items = lk_malloc(data->n_items * sizeof *out->items);
    out->excluded = lk_malloc(data->n_raters * sizeof *out->excluded);
    if (!out->items || !out->excluded) {
        lk_free(out->items);
        lk_free(out->excluded);
        return lk_fail(LK_E_NOMEM, "report: out of memory for results without exclusions");
    }
    if (data->n_items) memcpy(out->items, data->items, data->n_items * sizeof *out->items);
    for (size_t r = 0; r < data->n_raters; r++) out->excluded[r] = data->raters[r].excluded;
    return LK_OK;
}

static void restore(struct lk_dataset *data, struct saved *saved) {
    if (data->n_items) memcpy(data->items, saved->items, data->n_items * sizeof *saved->items);
    for (size_t r = 0; r < data->n_raters; r++) data->raters[r].excluded = saved->excluded[r];
    lk_free(saved->items);
    lk_free(saved->excluded);
}

/* [0] without the excluded raters, [1] with all. */
static enum lk_code both_results(struct lk_report *report, struct human_results out[2]) {
    struct lk_dataset *data = report->data;
    struct saved saved;
    LK_TRY(save(data, &saved));
    enum lk_code rc = LK_OK;
    for (int all = 0; all < 2 && !rc; all++) {
        lk_quality_exclude(data, report->options.quality, !all);
        rc = lk_combine(data);
        if (!rc) rc = results_of(report, &out[all]);
    }
    restore(data, &saved);
    return rc;
}

static void row(struct lk_table *table, const char *result, const char *of) {
    lk_table_row(table);
    lk_table_text(table, "%s", result);
    lk_table_text(table, "%s", of);
}

static void mean_cell(struct lk_table *table, double sum, int64_t n, bool sign) {
    if (!n)
        lk_table_none(table, "no item has what it takes");
    else if (sign)
        lk_table_signed(table, sum / (double)n, 2);
    else
        lk_table_fixed(table, sum / (double)n, 2);
}

static void axis_rows(struct lk_table *table, const struct human_results r[2], int axis, bool judged) {
    const char *name = lk_factor_display(LK_FACTOR_AXIS, axis);
    row(table, "Human mean", name);
    for (int i = 0; i < 2; i++) mean_cell(table, r[i].mean[axis].sum, r[i].mean[axis].n, false);
    row(table, "Δ by the feature prompt", name);
    for (int i = 0; i < 2; i++)
        mean_cell(table, r[i].change[axis].preserved - r[i].change[axis].edited, r[i].change[axis].n, true);
    row(table, "Fleiss κ", name);
    for (int i = 0; i < 2; i++) lk_report_number(table, &r[i].reliability[axis].fleiss.kappa, 2);
    row(table, "α interval", name);
    for (int i = 0; i < 2; i++) lk_report_number(table, &r[i].reliability[axis].alpha[LK_INTERVAL], 2);
    if (!judged) return;
    row(table, "κ quadratic, judges against raters", name);
    for (int i = 0; i < 2; i++) lk_report_number(table, &r[i].agreement[axis].levels.kappa, 2);
    row(table, "VLM − human", name);
    for (int i = 0; i < 2; i++) {
        const struct lk_judge_human *a = &r[i].agreement[axis];
        mean_cell(table, a->judge_sum - a->human_sum, a->n, true);
    }
}

static void result_rows(struct lk_report *report, struct lk_table *table, const struct human_results r[2]) {
    const struct lk_group baseline = LK_GROUP_ANY;
    row(table, "Answers", "outputs times raters");
    for (int i = 0; i < 2; i++) lk_table_count(table, r[i].n_answers);
    bool judged = lk_scores_any(report->data, LK_SCORES_JUDGE);
    for (int axis = 0; axis < LK_N_AXES; axis++) axis_rows(table, r, axis, judged);
    for (int m = 0; m < LK_N_MEASURES; m++) {
        row(table, "Rate by the raters' majority", lk_measure_name(m));
        for (int i = 0; i < 2; i++) {
            lk_table_percent(table, r[i].rate[m].k, r[i].rate[m].n);
            if (r[i].rate[m].n) lk_report_interval(report, table, r[i].rate[m]);
            if (!i && r[i].rate[m].k) lk_report_link(report, table, &baseline, m, LK_SCORES_HUMAN);
        }
    }
    if (!r[1].preference.preserved.n && !r[1].preference.n_ties) return;
    row(table, "Prefer Ours", "answers without a tie");
    for (int i = 0; i < 2; i++) {
        lk_table_percent(table, r[i].preference.preserved.k, r[i].preference.preserved.n);
        if (r[i].preference.preserved.n) lk_report_interval(report, table, r[i].preference.preserved);
    }
    row(table, "Ties", "answers");
    for (int i = 0; i < 2; i++) lk_table_count(table, r[i].preference.n_ties);
}

static enum lk_code table_results(struct lk_report *report, const struct human_results *results) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "t_qc_results", "Results on human answers with and without exclusions",
                        "Result|Of|>With exclusions|>Without exclusions"));
    if (results) result_rows(report, table, results);
    lk_table_note(table, "With exclusions: without the raters that quality control leaves out. Rates: baseline arm; "
                         "all else: both arms.");
    return lk_report_add(report, LK_SECTION_HUMAN, table);
}

static void test_row(struct lk_table *table, const struct lk_human_test *t, const char *exclusions) {
    lk_table_row(table);
    lk_table_text(table, "%s", t->name);
    lk_table_text(table, "%s", t->axis);
    lk_table_text(table, "%s", exclusions);
    lk_table_count(table, (int64_t)t->test.n);
    if (t->test.undefined) {
        for (int c = 0; c < 4; c++) lk_table_none(table, t->test.undefined);
        return;
    }
    lk_table_fixed(table, t->test.statistic, 1);
    lk_table_p(table, t->test.p);
    lk_table_p(table, t->adjusted);
    if (t->by_source.undefined)
        lk_table_none(table, t->by_source.undefined);
    else
        lk_table_p(table, t->by_source.value);
}

static enum lk_code table_tests(struct lk_report *report, const struct human_results *results) {
    static const char *const exclusions[] = {"with", "without"};
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "t_qc_tests", "Tests on human answers with and without exclusions",
                        "Test|Axis|Exclusions|>n|>Statistic|>p|>Adjusted p|>p by source"));
    for (int t = 0; results && t < LK_N_HUMAN_TESTS; t++)
        for (int i = 0; i < 2; i++) test_row(table, &results[i].test[t], exclusions[i]);
    lk_table_note(table, "The tests of the table of tests on the raters' means: Kruskal–Wallis over the races, "
                         "Mann–Whitney of White against all others, both in the baseline arm, Wilcoxon on preserved − "
                         "edited. Adjusted: Benjamini–Hochberg over the five axes of a test. With exclusions: without "
                         "the raters that quality control leaves out.");
    return lk_report_add(report, LK_SECTION_HUMAN, table);
}

static void share_cell(struct lk_table *table, int64_t k, int64_t n, const char *why) {
    if (n)
        lk_table_percent(table, k, n);
    else
        lk_table_none(table, why);
}

static void number_cell(struct lk_table *table, double value, const char *why) {
    if (isnan(value))
        lk_table_none(table, why);
    else
        lk_table_fixed(table, value, 2);
}

static void rules_cell(struct lk_table *table, uint32_t rules) {
    char text[LK_N_QUALITY_RULES * 5 + 1] = "";
    size_t n = 0;
    for (int r = 0; r < LK_N_QUALITY_RULES; r++)
        if (rules >> r & 1)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? " " : "", lk_quality_rule_name(r));
    lk_table_text(table, "%s", text);
}

static void rater_row(const struct lk_report *report, struct lk_table *table, size_t at) {
    const struct lk_rater_quality *q = &report->options.quality->raters[at];
    const struct lk_rater *rater = &report->data->raters[at];
    lk_table_row(table);
    lk_table_text(table, "rater %zu", at + 1); /* a platform's id would name a person */
    share_cell(table, q->n_gold_right, q->n_gold, "no attention check");
    number_cell(table, q->least_duration_part, "no times");
    number_cell(table, q->variance, "no answer on five levels");
    share_cell(table, q->n_most_common, q->n_answers, "no answer on five levels");
    share_cell(table, q->n_up > q->n_down ? q->n_up : q->n_down, q->n_steps, "fewer than two answers");
    share_cell(table, q->n_fast, q->n_timed, "no times");
    number_cell(table, q->median_ms / 1000, "no times");
    share_cell(table, rater->n_skipped, rater->n_questions, "no question");
    rules_cell(table, q->rules);
    lk_table_text(table, "%s", q->excluded ? "yes" : "no");
}

static enum lk_code table_raters(struct lk_report *report) {
    const struct lk_quality_report *quality = report->options.quality;
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "t_qc_raters", "Quality control, rater by rater",
                        "Rater|>Checks right|>Duration|>Variance|>Same level|"
                        ">Diagonal|>Fast|>Median s|>Skipped|Rules hit|Excluded"));
    for (size_t r = 0; quality && r < quality->n_raters; r++) rater_row(report, table, r);
    lk_table_note(table, "Checks right: Q1. Duration: the shortest task's time over its estimate, Q3. Variance of the "
                         "answers on five levels, attention checks left out: Q4. Same level: share of the most "
                         "frequent answer, Q5, Q9. Diagonal: share of steps by one in the same direction, Q6. Fast: "
                         "Q7. Median time per question: Q8. Skipped: Q10.");
    return lk_report_add(report, LK_SECTION_HUMAN, table);
}

enum lk_code lk_report_tables_quality(struct lk_report *report) {
    const struct lk_quality_report *quality = report->options.quality;
    bool any = quality && quality->n_raters && report->data->n_ratings;
    LK_TRY(table_rules(report));
    struct human_results *results = any ? lk_calloc(2, sizeof *results) : NULL;
    enum lk_code rc = any && !results ? lk_fail(LK_E_NOMEM, "report: no memory for results") : LK_OK;
    if (results) rc = both_results(report, results);
    if (!rc) rc = table_results(report, results);
    if (!rc) rc = table_tests(report, results);
    lk_free(results);
    return rc ? rc : table_raters(report);
}
