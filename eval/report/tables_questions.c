/* The research questions: the hypothesis as the study prints it, the numbers and the tests. What they mean is left to
 * the reader. */
#include <math.h>
#include <stdio.h>

#include "engine/base/alloc.h"
#include "eval/report/build.h"
#include "eval/report/findings/relabelled.h"
#include "eval/stats/models/cluster_means.h"
#include "eval/stats/proportion.h"
#include "eval/stats/special/special.h"

static struct lk_rate rate_of(const struct lk_report *report, struct lk_group group, enum lk_measure measure) {
    return lk_measure_rate(report->data, &group, measure, &report->options.thresholds);
}

/* The test of people, or of prompts; "–" with the reason where there is none. */
static void test_cells(struct lk_table *table, const char *name, const struct lk_relabelled_answer *a) {
    lk_table_text(table, "%s", name);
    if (a->why) {
        lk_table_none(table, a->why);
        lk_table_none(table, a->why);
        return;
    }
    if (isfinite(a->t))
        lk_table_fixed(table, a->t, 2);
    else
        lk_table_none(table, "nothing varies but between the groups");
    lk_table_p(table, a->p);
}

static void label(struct lk_table *table, const char *text, int64_t n) {
    lk_table_row(table);
    lk_table_text(table, "%s", text);
    lk_table_count(table, n);
}

/* Rate a minus rate b of outputs, the interval and the test of people and prompts. */
static enum lk_code difference_row(struct lk_report *report, struct lk_table *table, const char *text, struct lk_rate a,
                                   struct lk_rate b, const struct lk_relabelled_question *question) {
    struct lk_relabelled_answer answer;
    label(table, text, a.n + b.n);
    LK_TRY(lk_report_relabel(report->data, &report->options, question, &answer));
    if (!a.n || !b.n) {
        lk_table_none(table, "one of the groups has no outputs");
    } else {
        lk_table_points(table, lk_rate_value(a) - lk_rate_value(b));
        if (answer.low < answer.high) lk_table_interval(table, answer.low, answer.high);
        lk_table_remark(table, "Cohen's h %.2f, %s", lk_cohen_h(lk_rate_value(a), lk_rate_value(b)),
                        lk_cohen_h_label(lk_cohen_h(lk_rate_value(a), lk_rate_value(b))));
    }
    test_cells(table, question->about == LK_ASK_CATEGORIES ? "prompts relabelled" : "sources relabelled", &answer);
    return LK_OK;
}

/* The other races' rate minus White's. */
static enum lk_code others_row(struct lk_report *report, struct lk_table *table, const char *text,
                               enum lk_measure measure) {
    struct lk_group all = LK_GROUP_ANY;
    struct lk_rate white = rate_of(report, lk_group_with(all, LK_FACTOR_RACE, 0), measure);
    struct lk_rate every = rate_of(report, all, measure);
    return difference_row(
        report, table, text, (struct lk_rate){every.k - white.k, every.n - white.n}, white,
        &(struct lk_relabelled_question){.about = LK_ASK_OTHERS_THAN_WHITE, .measure = measure, .category = -1});
}

/* Disparity between races in a group, and race by outcome. */
static enum lk_code disparity_row(struct lk_report *report, struct lk_table *table, const char *text, int category,
                                  enum lk_measure measure) {
    const struct lk_group all = LK_GROUP_ANY,
                          group = category < 0 ? all : lk_group_with(all, LK_FACTOR_CATEGORY, category);
    struct lk_rate rates[LK_N_RACES];
    struct lk_rates_range range;
    struct lk_relabelled_answer answer;
    int64_t n = 0;
    for (int race = 0; race < LK_N_RACES; race++) {
        rates[race] = rate_of(report, lk_group_with(group, LK_FACTOR_RACE, race), measure);
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
    LK_TRY(lk_report_relabel(
        report->data, &report->options,
        &(struct lk_relabelled_question){.about = LK_ASK_RACES, .measure = measure, .category = category}, &answer));
    test_cells(table, "sources relabelled, the largest of seven", &answer);
    return LK_OK;
}

/* Means of a score: the other races minus White. */
static enum lk_code tone_rows(struct lk_report *report, struct lk_table *table, const char *text,
                              enum lk_score_source source) {
    const struct lk_group all = LK_GROUP_ANY;
    double sum[2] = {0, 0};
    int64_t n[2] = {0, 0};
    struct lk_relabelled_answer answer;
    for (size_t i = 0; i < report->data->n_items; i++) {
        const struct lk_item *item = &report->data->items[i];
        const uint8_t tone = lk_item_levels(item, source)[LK_AXIS_SKIN_TONE];
        if (!lk_group_has(&all, item) || !tone) continue;
        sum[item->race > 0] += tone;
        n[item->race > 0]++;
    }
    label(table, text, n[0] + n[1]);
    if (n[0] && n[1])
        lk_table_signed(table, sum[1] / (double)n[1] - sum[0] / (double)n[0], 2);
    else
        lk_table_none(table, "one of the groups has no scores");
    LK_TRY(lk_report_relabel(report->data, &report->options,
                             &(struct lk_relabelled_question){.about = LK_ASK_OTHERS_THAN_WHITE,
                                                              .mean_score = true,
                                                              .axis = LK_AXIS_SKIN_TONE,
                                                              .source = source,
                                                              .category = -1},
                             &answer));
    test_cells(table, "sources relabelled", &answer);
    return LK_OK;
}

static enum lk_code question_1(struct lk_report *report, struct lk_table *table) {
    lk_table_heading(table,
                     "RQ1, identity drift disparity. Hypothesis printed: non-White sources show more race drift and "
                     "skin lightening than White ones");
    LK_TRY(disparity_row(report, table, "Race change: disparity between races", -1, LK_MEASURE_RACE_DRIFT));
    LK_TRY(others_row(report, table, "Race change: others − White", LK_MEASURE_RACE_DRIFT));
    LK_TRY(disparity_row(report, table, "Skin lightening: disparity between races", -1, LK_MEASURE_LIGHTENING));
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
    struct lk_relabelled_question question = {
        .about = LK_ASK_CATEGORIES, .measure = LK_MEASURE_SOFT_ERASURE, .category = -1};
    LK_TRY(difference_row(report, table, "Soft erasure: vulnerability − occupational", by_category[1], by_category[0],
                          &question));
    for (int c = 0; c < 2; c++) {
        struct lk_rate white = rate_of(report, lk_group_with(others[c], LK_FACTOR_RACE, 0), LK_MEASURE_SOFT_ERASURE);
        by_category[c].k -= white.k;
        by_category[c].n -= white.n;
    }
    question.without_white = true;
    LK_TRY(difference_row(report, table, "The same without White sources", by_category[1], by_category[0], &question));
    for (int c = 0; c < 2; c++) {
        snprintf(text, sizeof text, "Soft erasure, %s: disparity between races",
                 lk_factor_display(LK_FACTOR_CATEGORY, c));
        LK_TRY(disparity_row(report, table, text, c, LK_MEASURE_SOFT_ERASURE));
        snprintf(text, sizeof text, "Race change, %s: disparity between races",
                 lk_factor_display(LK_FACTOR_CATEGORY, c));
        LK_TRY(disparity_row(report, table, text, c, LK_MEASURE_RACE_DRIFT));
    }
    return LK_OK;
}

/* Adherence of a model's answers by sentence: outputs of one sentence are not independent. */
static enum lk_code adherence(const struct lk_report *report, int model, struct lk_rate *rate,
                              struct lk_cluster_mean *mean) {
    double *y = lk_malloc((report->data->n_items + 1) * sizeof *y);
    int32_t *sentence = lk_malloc((report->data->n_items + 1) * sizeof *sentence);
    enum lk_code rc = y && sentence ? LK_OK : lk_fail(LK_E_NOMEM, "report: out of memory");
    *rate = (struct lk_rate){0, 0};
    for (size_t i = 0; i < report->data->n_items && !rc; i++) {
        const struct lk_item *item = &report->data->items[i];
        if (item->prompt < LK_N_EDIT_PROMPTS || (model >= 0 && item->model != model)) continue;
        if (item->role != LK_ROLE_MALE && item->role != LK_ROLE_FEMALE) continue;
        const int at = item->prompt - LK_N_EDIT_PROMPTS;
        sentence[rate->n] = at;
        y[rate->n] = item->role == report->prompts.w[at].stereotype_gender;
        rate->k += y[rate->n++] > 0;
    }
    *mean = (struct lk_cluster_mean){.cr2.undefined = "no answers"};
    if (!rc && rate->n) rc = lk_cluster_mean(y, sentence, (size_t)rate->n, 1 - report->options.alpha, mean);
    lk_free(y);
    lk_free(sentence);
    return rc;
}

static enum lk_code question_3(struct lk_report *report, struct lk_table *table, int64_t *n) {
    char text[128];
    lk_table_heading(table,
                     "RQ3, stereotype congruence. Hypothesis printed: high-status roles go to men under gender-neutral "
                     "prompts");
    for (int model = -1; model < LK_N_MODELS; model++) {
        struct lk_rate rate;
        struct lk_cluster_mean mean;
        struct lk_relabelled_answer answer = {0};
        LK_TRY(adherence(report, model, &rate, &mean));
        *n += rate.n;
        snprintf(text, sizeof text, "Stereotype adherence, %s",
                 model < 0 ? "all models" : lk_factor_display(LK_FACTOR_MODEL, model));
        label(table, text, rate.n);
        lk_table_percent(table, rate.k, rate.n);
        if (rate.n && mean.cr2.low < mean.cr2.high)
            lk_table_interval(table, fmax(mean.cr2.low, 0), fmin(mean.cr2.high, 1));
        answer.why = mean.cr2.undefined ? mean.cr2.undefined : mean.cr2_error > 0 ? NULL : "all sentences are alike";
        if (!answer.why) answer.t = (mean.cr2.value - 0.5) / mean.cr2_error;
        if (!answer.why) answer.p = lk_t_two_sided(answer.t, mean.cr2_df);
        test_cells(table, "t by sentence (CR2), against 0.5", &answer);
    }
    return LK_OK;
}

enum lk_code lk_report_tables_questions(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "research_questions", "Research questions: hypotheses, numbers, tests",
                        "Number|>n|>Value|Test|>t|>p"));
    int64_t n_roles = 0;
    enum lk_code rc = question_1(report, table);
    if (!rc) rc = question_2(report, table);
    if (!rc) rc = question_3(report, table, &n_roles);
    if (rc) {
        lk_table_free(table);
        return rc;
    }
    lk_table_note(
        table, "Values are of outputs; intervals and p are for people and prompts like these: outputs of one source "
               "or prompt are not independent. p is two-sided and not adjusted for the number of rows; the study's own "
               "tests, which take outputs as independent, stand in the table of tests. A small p does not confirm a "
               "hypothesis, a large one does not refute it. Sentences whose answer is unclear "
               "are left out of adherence here.");
    const struct lk_group all = LK_GROUP_ANY;
    table->no_data = !n_roles && !lk_report_has_items(report, &all);
    return lk_report_add(report, LK_SECTION_TESTS, table);
}
