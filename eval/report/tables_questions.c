/* The research questions: the hypothesis as the study prints it, the numbers and the tests. What they mean is left to
 * the reader. */
#include <math.h>
#include <stdio.h>

#include "engine/base/alloc.h"
#include "eval/report/build.h"
#include "eval/report/findings/outcomes.h"
#include "eval/report/findings/relabelled.h"
#include "eval/stats/models/cluster_means.h"
#include "eval/stats/proportion.h"
#include "eval/stats/special/special.h"

/* Outputs with an outcome: of two judges the mean of their indicators, as the intervals and tests have it. */
struct share {
    double k;
    int64_t n;
};

static struct share share_of(const struct lk_report *report, struct lk_group group, enum lk_measure measure) {
    struct share out = {0};
    for (size_t i = 0; i < report->data->n_items; i++) {
        const struct lk_item *item = &report->data->items[i];
        if (!lk_group_has(&group, item)) continue;
        const double value = lk_outcome_of(item, measure, &report->options, LK_SCORES_JUDGE);
        if (!isnan(value)) out.k += value, out.n++;
    }
    return out;
}

static double value_of(struct share s) { return s.n ? s.k / (double)s.n : 0; }

/* A difference that exists, with its interval. */
static void difference_cell(struct lk_table *table, double difference, const struct lk_relabelled_answer *a,
                            bool score) {
    if (score)
        lk_table_signed(table, difference, 2);
    else
        lk_table_points(table, difference);
    if (a->why || a->no_interval)
        lk_table_remark(table, "no interval: %s", a->why ? a->why : a->no_interval);
    else
        lk_table_interval(table, score ? a->low : fmax(a->low, -1), score ? a->high : fmin(a->high, 1));
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
static enum lk_code difference_row(struct lk_report *report, struct lk_table *table, const char *text, struct share a,
                                   struct share b, const struct lk_relabelled_question *question) {
    const double h = lk_cohen_h(value_of(a), value_of(b));
    struct lk_relabelled_answer answer;
    label(table, text, a.n + b.n);
    LK_TRY(lk_report_relabel(report->data, &report->options, question, &answer));
    if (!a.n || !b.n) {
        lk_table_none(table, "one of the groups has no outputs");
    } else {
        difference_cell(table, value_of(a) - value_of(b), &answer, false);
        lk_table_remark(table, "Cohen's h %.2f, %s", h, lk_cohen_h_label(h));
    }
    test_cells(table, question->about == LK_ASK_CATEGORIES ? "prompts relabelled" : "sources relabelled", &answer);
    return LK_OK;
}

/* The other races' rate minus White's. */
static enum lk_code others_row(struct lk_report *report, struct lk_table *table, const char *text,
                               enum lk_measure measure) {
    struct lk_group all = LK_GROUP_ANY;
    struct share white = share_of(report, lk_group_with(all, LK_FACTOR_RACE, 0), measure);
    struct share every = share_of(report, all, measure);
    return difference_row(
        report, table, text, (struct share){every.k - white.k, every.n - white.n}, white,
        &(struct lk_relabelled_question){.about = LK_ASK_OTHERS_THAN_WHITE, .measure = measure, .category = -1});
}

/* Disparity between races in a group, and race by outcome. */
static enum lk_code disparity_row(struct lk_report *report, struct lk_table *table, const char *text, int category,
                                  enum lk_measure measure) {
    const struct lk_group all = LK_GROUP_ANY,
                          group = category < 0 ? all : lk_group_with(all, LK_FACTOR_CATEGORY, category);
    struct share shares[LK_N_RACES];
    struct lk_relabelled_answer answer;
    int64_t n = 0;
    int high = -1, low = -1, n_races = 0;
    for (int race = 0; race < LK_N_RACES; race++) {
        shares[race] = share_of(report, lk_group_with(group, LK_FACTOR_RACE, race), measure);
        n += shares[race].n;
        if (!shares[race].n) continue;
        n_races++;
        if (high < 0 || value_of(shares[race]) > value_of(shares[high])) high = race;
        if (low < 0 || value_of(shares[race]) < value_of(shares[low])) low = race;
    }
    label(table, text, n);
    LK_TRY(lk_report_relabel(
        report->data, &report->options,
        &(struct lk_relabelled_question){.about = LK_ASK_RACES, .measure = measure, .category = category}, &answer));
    if (n_races > 1) {
        difference_cell(table, value_of(shares[high]) - value_of(shares[low]), &answer, false);
        lk_table_remark(table, "highest %s, lowest %s", lk_factor_display(LK_FACTOR_RACE, high),
                        lk_factor_display(LK_FACTOR_RACE, low));
    } else {
        lk_table_none(table, "fewer than two races have outputs");
    }
    test_cells(table, "sources relabelled, the largest of seven", &answer);
    return LK_OK;
}

/* Means of a score: the other races minus White. */
static enum lk_code tone_rows(struct lk_report *report, struct lk_table *table, const char *text,
                              enum lk_score_source source) {
    const struct lk_group all = LK_GROUP_ANY;
    struct share tone[2] = {{0}};
    struct lk_relabelled_answer answer;
    for (size_t i = 0; i < report->data->n_items; i++) {
        const struct lk_item *item = &report->data->items[i];
        const uint8_t level = lk_item_levels(item, source)[LK_AXIS_SKIN_TONE];
        if (!lk_group_has(&all, item) || !level) continue;
        tone[item->race > 0].k += level;
        tone[item->race > 0].n++;
    }
    label(table, text, tone[0].n + tone[1].n);
    LK_TRY(lk_report_relabel(report->data, &report->options,
                             &(struct lk_relabelled_question){.about = LK_ASK_OTHERS_THAN_WHITE,
                                                              .mean_score = true,
                                                              .axis = LK_AXIS_SKIN_TONE,
                                                              .source = source,
                                                              .category = -1},
                             &answer));
    if (tone[0].n && tone[1].n)
        difference_cell(table, value_of(tone[1]) - value_of(tone[0]), &answer, true);
    else
        lk_table_none(table, "one of the groups has no scores");
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
    struct share by_category[2];
    char text[128];
    lk_table_heading(table,
                     "RQ2, edit type. Hypothesis printed: vulnerability edits show more erasure for minority groups");
    for (int c = 0; c < 2; c++) {
        others[c] = lk_group_with(all, LK_FACTOR_CATEGORY, c);
        by_category[c] = share_of(report, others[c], LK_MEASURE_SOFT_ERASURE);
    }
    struct lk_relabelled_question question = {
        .about = LK_ASK_CATEGORIES, .measure = LK_MEASURE_SOFT_ERASURE, .category = -1};
    LK_TRY(difference_row(report, table, "Soft erasure: vulnerability − occupational", by_category[1], by_category[0],
                          &question));
    for (int c = 0; c < 2; c++) {
        struct share white = share_of(report, lk_group_with(others[c], LK_FACTOR_RACE, 0), LK_MEASURE_SOFT_ERASURE);
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
        table, "Values are of outputs, of two judges the mean of their indicators; intervals and p are for people and "
               "prompts like these: outputs of one source or prompt are not independent. p is two-sided and not "
               "adjusted for the number of rows; the study's own "
               "tests, which take outputs as independent, stand in the table of tests. A small p does not confirm a "
               "hypothesis, a large one does not refute it. Sentences whose answer is unclear "
               "are left out of adherence here.");
    const struct lk_group all = LK_GROUP_ANY;
    table->no_data = !n_roles && !lk_report_has_items(report, &all);
    return lk_report_add(report, LK_SECTION_TESTS, table);
}
