/* Figures of the scores themselves: distributions, means by race and axis, pairs before and after. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "eval/report/build.h"

static const char *const numbers[5] = {"1", "2", "3", "4", "5"};

/* Counts of an axis's five scores over a group; false without any. */
static bool count_scores(const struct lk_report *report, const struct lk_group *group, enum lk_axis axis,
                         int64_t out[5]) {
    bool any = false;
    memset(out, 0, 5 * sizeof *out);
    for (size_t i = 0; i < report->data->n_items; i++) {
        const struct lk_item *item = &report->data->items[i];
        double score;
        if (!lk_group_has(group, item) || !lk_item_score(item, axis, LK_SCORES_JUDGE, &score)) continue;
        out[item->score[axis] - 1]++;
        any = true;
    }
    return any;
}

/* rows [n], counts [n, 5] of the levels from 1. */
static enum lk_code add_likert(struct lk_report *report, enum lk_section section, const struct lk_figure_head *head,
                               const char *row_name, const char *const *rows, int n, int64_t (*counts)[5],
                               const char *const levels[5]) {
    struct lk_figure figure;
    struct lk_figure_likert likert = {
        .head = *head, .row_name = row_name, .rows = rows, .n_rows = n, .counts = (const int64_t(*)[5])counts};
    memcpy(likert.levels, levels, sizeof likert.levels);
    LK_TRY(lk_figure_likert(&likert, &figure));
    return lk_report_add_figure(report, section, &figure);
}

static enum lk_code likert_axes(struct lk_report *report) {
    const char *rows[LK_N_AXES];
    int64_t counts[LK_N_AXES][5];
    struct lk_group all = LK_GROUP_ANY;
    int n = 0;
    for (int a = 0; a < LK_N_AXES; a++) {
        if (!count_scores(report, &all, (enum lk_axis)a, counts[n])) continue;
        rows[n++] = lk_factor_display(LK_FACTOR_AXIS, a);
    }
    if (!n) return LK_OK;
    const struct lk_figure_head head = {
        .id = "f_scores",
        .title = "Distribution of scores by axis",
        .description = "Shares of the scores 1 to 5 of each axis, stacked around the middle of score 3.",
        .note = "Baseline outputs of all models. On skin tone and age, 3 is no change; on success, 5 is best; on "
                "drift, 1 is none."};
    return add_likert(report, LK_SECTION_EDITS, &head, "Axis", rows, n, counts, numbers);
}

/* What the raters who are kept answered, attention checks left out. */
static enum lk_code likert_raters(struct lk_report *report) {
    const struct lk_dataset *data = report->data;
    const char *rows[LK_N_AXES];
    int64_t counts[LK_N_AXES][5] = {{0}};
    int n = 0;
    for (int a = 0; a < LK_N_AXES; a++) {
        bool any = false;
        for (size_t i = 0; i < data->n_ratings; i++) {
            const struct lk_rating *rating = &data->ratings[i];
            if (rating->is_gold || data->raters[rating->rater].excluded || !rating->score[a]) continue;
            counts[n][rating->score[a] - 1]++;
            any = true;
        }
        if (any) rows[n++] = lk_factor_display(LK_FACTOR_AXIS, a);
    }
    if (!n) return LK_OK;
    const struct lk_figure_head head = {
        .id = "f_ratings",
        .title = "Distribution of raters' answers by axis",
        .description = "Shares of the answers 1 to 5 of each axis, stacked around the middle of answer 3.",
        .note = "All answers of the raters who are kept, both arms; attention checks are left out."};
    return add_likert(report, LK_SECTION_HUMAN, &head, "Axis", rows, n, counts, numbers);
}

static enum lk_code likert_skin(struct lk_report *report) {
    static const char *const levels[5] = {"Much darker", "Darker", "Same", "Lighter", "Much lighter"};
    const char *rows[LK_N_RACES];
    int64_t counts[LK_N_RACES][5];
    int n = 0;
    for (int r = 0; r < LK_N_RACES; r++) {
        struct lk_group group = lk_group_with((struct lk_group)LK_GROUP_ANY, LK_FACTOR_RACE, r);
        if (!count_scores(report, &group, LK_AXIS_SKIN_TONE, counts[n])) continue;
        rows[n++] = lk_factor_display(LK_FACTOR_RACE, r);
    }
    if (!n) return LK_OK;
    const struct lk_figure_head head = {
        .id = "f_skin_tone_by_race",
        .title = "Skin tone of the output against the source, by race",
        .description = "Shares of darker and lighter outputs of each race, stacked around the middle of those "
                       "that are the same.",
        .note = "Baseline outputs of all models."};
    return add_likert(report, LK_SECTION_DISPARITY, &head, "Race", rows, n, counts, levels);
}

static struct lk_figure_value mean_value(struct lk_mean mean) {
    return (struct lk_figure_value){.value = mean.n ? mean.sum / (double)mean.n : 0, .none = !mean.n};
}

static enum lk_code heat_axes(struct lk_report *report) {
    const char *races[LK_N_RACES], *axes[LK_N_AXES];
    struct lk_figure_value values[LK_N_RACES * LK_N_AXES];
    int used[LK_N_AXES], n = 0;
    struct lk_group group = LK_GROUP_ANY;
    for (int a = 0; a < LK_N_AXES; a++)
        if (lk_mean_of(report->data, &group, (enum lk_axis)a, LK_SCORES_JUDGE).n) used[n++] = a;
    if (!n) return LK_OK;
    for (int r = 0; r < LK_N_RACES; r++) {
        races[r] = lk_factor_display(LK_FACTOR_RACE, r);
        group.race = r;
        for (int a = 0; a < n; a++) {
            axes[a] = lk_factor_display(LK_FACTOR_AXIS, used[a]);
            values[r * n + a] = mean_value(lk_mean_of(report->data, &group, (enum lk_axis)used[a], LK_SCORES_JUDGE));
        }
    }
    struct lk_figure figure;
    LK_TRY(lk_figure_heat(&(struct lk_figure_heat){.head = {.id = "f_mean_by_race_axis",
                                                            .title = "Mean score by race and axis",
                                                            .description = "A cell per race and axis, darker where the "
                                                                           "mean score is higher.",
                                                            .note = "Baseline outputs of all models; scores 1 to 5."},
                                                   .unit = LK_UNIT_NUMBER,
                                                   .decimals = 2,
                                                   .value_name = "Mean score",
                                                   .row_name = "Race",
                                                   .rows = races,
                                                   .n_rows = LK_N_RACES,
                                                   .columns = axes,
                                                   .n_columns = n,
                                                   .values = values},
                          &figure));
    return lk_report_add_figure(report, LK_SECTION_DISPARITY, &figure);
}

static enum lk_code before_after(struct lk_report *report) {
    const char *rows[LK_N_RACES];
    struct lk_figure_value from[LK_N_RACES], to[LK_N_RACES];
    int n = 0;
    for (int r = 0; r < LK_N_RACES; r++) {
        struct lk_group group = lk_group_with((struct lk_group)LK_GROUP_ANY, LK_FACTOR_RACE, r);
        struct lk_paired paired = lk_paired_of(report->data, group, LK_AXIS_RACE_DRIFT, report->options.score_source,
                                               false, false, &report->options.thresholds);
        if (!paired.n) continue;
        rows[n] = lk_factor_display(LK_FACTOR_RACE, r);
        from[n] = (struct lk_figure_value){.value = paired.edited / (double)paired.n};
        to[n] = (struct lk_figure_value){.value = paired.preserved / (double)paired.n};
        n++;
    }
    if (!n) return LK_OK;
    struct lk_figure figure;
    LK_TRY(lk_figure_shift(
        &(struct lk_figure_shift){
            .head = {.id = "f_race_drift_pairs",
                     .title = "Race drift without and with the features in the prompt",
                     .description = "Mean race drift of each race's pairs, and the way from the "
                                    "prompt as it is to the one that names features.",
                     .note = report->options.score_source == LK_SCORES_HUMAN
                                 ? "Raters' means of pairs of which both outputs are rated; 1 is no drift."
                                 : "Pairs of which both outputs are scored; 1 is no drift."},
            .unit = LK_UNIT_NUMBER,
            .decimals = 2,
            .value_name = "Mean race drift",
            .row_name = "Race",
            .from_name = lk_factor_display(LK_FACTOR_ARM, LK_ARM_EDITED),
            .to_name = lk_factor_display(LK_FACTOR_ARM, LK_ARM_PRESERVED),
            .rows = rows,
            .n_rows = n,
            .from = from,
            .to = to,
            .has_reference = true,
            .reference = 1,
            .reference_name = "no drift"},
        &figure));
    return lk_report_add_figure(report, LK_SECTION_MITIGATION, &figure);
}

enum lk_code lk_report_figures_scores(struct lk_report *report) {
    LK_TRY(likert_axes(report));
    LK_TRY(likert_raters(report));
    LK_TRY(likert_skin(report));
    LK_TRY(heat_axes(report));
    return before_after(report);
}
