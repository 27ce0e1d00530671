/* Figures: rates with intervals from one set of resamples of the sources, heat maps of the same rates; distributions of
 * the scores, their means by race and axis, pairs before and after. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/report/build.h"
#include "eval/stats/resampling/bootstrap_rates.h"

enum { BY_RACE_MODEL, BY_RACE_OF_MODEL, N_GROUPINGS = BY_RACE_OF_MODEL + LK_N_MODELS };

/* The baseline outputs of the two experiments with edits. */
struct outputs {
    size_t n;
    double *values;              /* [n, LK_N_MEASURES] */
    int32_t *source;             /* [n] */
    int32_t *group[N_GROUPINGS]; /* [n] each */
    void *block;
    struct lk_rate_results *results;
};

static const enum lk_measure measures[] = {LK_MEASURE_SUCCESS, LK_MEASURE_SOFT_ERASURE, LK_MEASURE_RACE_DRIFT,
                                           LK_MEASURE_GENDER_DRIFT, LK_MEASURE_LIGHTENING};
enum { N_SHOWN = sizeof measures / sizeof *measures };

static enum lk_code allocate(struct outputs *o, size_t n) {
    size_t per_item = LK_N_MEASURES * sizeof(double) + (1 + N_GROUPINGS) * sizeof(int32_t);
    o->block = lk_calloc(n ? n : 1, per_item);
    if (!o->block) return lk_fail(LK_E_NOMEM, "report: out of memory for the figures");
    o->values = o->block;
    o->source = (int32_t *)(o->values + n * LK_N_MEASURES);
    for (int g = 0; g < N_GROUPINGS; g++) o->group[g] = o->source + (size_t)(g + 1) * n;
    return LK_OK;
}

static void collect(const struct lk_report *report, struct outputs *o) {
    struct lk_group all = LK_GROUP_ANY;
    for (size_t i = 0; i < report->data->n_items; i++) {
        const struct lk_item *item = &report->data->items[i];
        if (!lk_group_has(&all, item)) continue;
        for (int m = 0; m < LK_N_MEASURES; m++) {
            int value = lk_measure_of((enum lk_measure)m, item->score, item->prompt, &report->options.thresholds);
            o->values[o->n * LK_N_MEASURES + (size_t)m] = value < 0 ? NAN : value;
        }
        o->source[o->n] = item->source;
        o->group[BY_RACE_MODEL][o->n] = item->race * LK_N_MODELS + item->model;
        for (int m = 0; m < LK_N_MODELS; m++) o->group[BY_RACE_OF_MODEL + m][o->n] = item->model == m ? item->race : -1;
        o->n++;
    }
}

static enum lk_code resample(const struct lk_report *report, struct outputs *o) {
    struct lk_grouping groupings[N_GROUPINGS];
    for (int g = 0; g < N_GROUPINGS; g++)
        groupings[g] =
            (struct lk_grouping){o->group[g], g == BY_RACE_MODEL ? LK_N_RACES * LK_N_MODELS : (int)LK_N_RACES};
    struct lk_rates rates = {o->n, LK_N_MEASURES, o->values, N_GROUPINGS, groupings};
    struct lk_resampling how = LK_RESAMPLING;
    how.seed = report->options.study_seed;
    how.n_replicates = (int)report->options.n_bootstrap;
    how.confidence = 1 - report->options.alpha;
    how.clusters = o->source;
    return lk_bootstrap_rates(&rates, &how, &o->results);
}

static void note(const struct lk_report *report, char out[160]) {
    snprintf(out, 160, "Whiskers: %g%% expanded percentile intervals, %lld resamples of the sources.",
             100 * (1 - report->options.alpha), (long long)report->options.n_bootstrap);
}

static struct lk_figure_value value_of(const struct lk_number *number) {
    if (number->undefined) return (struct lk_figure_value){.none = true};
    return (struct lk_figure_value){number->value, number->low, number->high, 0, 0, false};
}

int lk_report_models(const struct lk_report *report, enum lk_measure measure, int models[LK_N_MODELS]) {
    int n = 0;
    for (int m = 0; m < LK_N_MODELS; m++) {
        struct lk_group group = LK_GROUP_ANY;
        group.model = m;
        if (lk_measure_rate(report->data, &group, measure, &report->options.thresholds).n) models[n++] = m;
    }
    return n;
}

static enum lk_code bars(struct lk_report *report, const struct outputs *o, enum lk_measure measure,
                         enum lk_section section) {
    const char *races[LK_N_RACES], *series[LK_N_MODELS];
    struct lk_figure_value values[LK_N_RACES * LK_N_MODELS];
    int models[LK_N_MODELS], n = lk_report_models(report, measure, models), at = 0;
    if (!n) return LK_OK;
    for (int m = 0; m < n; m++) series[m] = lk_factor_display(LK_FACTOR_MODEL, models[m]);
    for (int r = 0; r < LK_N_RACES; r++) {
        races[r] = lk_factor_display(LK_FACTOR_RACE, r);
        for (int m = 0; m < n; m++) {
            int group = r * LK_N_MODELS + models[m];
            struct lk_group cell = LK_GROUP_ANY;
            cell.race = r;
            cell.model = models[m];
            struct lk_rate rate = lk_measure_rate(report->data, &cell, measure, &report->options.thresholds);
            values[at] = value_of(lk_rate_expanded_of(o->results, BY_RACE_MODEL, group, measure));
            values[at].k = rate.k;
            values[at].n = rate.n;
            at++;
        }
    }
    char id[96], title[128], remark[160];
    snprintf(id, sizeof id, "f_%s_by_race_model", lk_measure_key(measure));
    snprintf(title, sizeof title, "%s by race and model", lk_measure_name(measure));
    note(report, remark);
    struct lk_figure figure;
    LK_TRY(lk_figure_bars(&(struct lk_figure_bars){.head = {.id = id,
                                                            .title = title,
                                                            .description = "Bars grouped by race, one per model, with "
                                                                           "an interval each.",
                                                            .note = remark},
                                                   .unit = LK_UNIT_PERCENT,
                                                   .value_name = lk_measure_name(measure),
                                                   .group_name = "Race",
                                                   .groups = races,
                                                   .n_groups = LK_N_RACES,
                                                   .series = series,
                                                   .n_series = n,
                                                   .values = values},
                          &figure));
    return lk_report_add_figure(report, section, &figure);
}

/* Race disparities: a heading per measure, a row per model. */
static enum lk_code forest(struct lk_report *report, const struct outputs *o) {
    struct lk_figure_forest_row rows[N_SHOWN * (LK_N_MODELS + 1)];
    int n = 0;
    for (int i = 0; i < N_SHOWN; i++) {
        int models[LK_N_MODELS], n_models = lk_report_models(report, measures[i], models), begun = n;
        rows[n++] = (struct lk_figure_forest_row){.label = lk_measure_name(measures[i]), .heading = true};
        for (int m = 0; m < n_models; m++) {
            const struct lk_disparity *d = lk_disparity_of(o->results, BY_RACE_OF_MODEL + models[m], measures[i]);
            if (d->number.undefined) continue;
            rows[n++] = (struct lk_figure_forest_row){.label = lk_factor_display(LK_FACTOR_MODEL, models[m]),
                                                      .value = value_of(&d->number)};
        }
        if (n == begun + 1) n = begun;
    }
    if (!n) return LK_OK;
    char remark[320], whiskers[160];
    note(report, whiskers);
    snprintf(remark, sizeof remark, "%s Of a largest difference: one that reaches 0 tells no two races apart.",
             whiskers);
    struct lk_figure figure;
    LK_TRY(lk_figure_forest(
        &(struct lk_figure_forest){.head = {.id = "f_disparities",
                                            .title = "Race disparities by measure and model",
                                            .description = "The highest race's rate minus the lowest race's, with an "
                                                           "interval, for each measure and model.",
                                            .note = remark},
                                   .unit = LK_UNIT_POINTS,
                                   .value_name = "Disparity",
                                   .row_name = "Measure and model",
                                   .rows = rows,
                                   .n_rows = n},
        &figure));
    return lk_report_add_figure(report, LK_SECTION_DISPARITY, &figure);
}

/* Rates by race and prompt over all models; prompts without outputs are left out. */
static enum lk_code heat_prompts(struct lk_report *report, enum lk_measure measure) {
    const char *races[LK_N_RACES], *prompts[LK_N_EDIT_PROMPTS];
    struct lk_figure_value values[LK_N_RACES * LK_N_EDIT_PROMPTS];
    int used[LK_N_EDIT_PROMPTS], n = 0;
    struct lk_group group = LK_GROUP_ANY;
    for (int p = 0; p < LK_N_EDIT_PROMPTS; p++) {
        group.prompt = p;
        if (lk_measure_rate(report->data, &group, measure, &report->options.thresholds).n) used[n++] = p;
    }
    if (!n) return LK_OK;
    for (int r = 0; r < LK_N_RACES; r++) {
        races[r] = lk_factor_display(LK_FACTOR_RACE, r);
        for (int p = 0; p < n; p++) {
            group.race = r;
            group.prompt = used[p];
            struct lk_rate rate = lk_measure_rate(report->data, &group, measure, &report->options.thresholds);
            prompts[p] = report->prompts.edit[used[p]].id;
            values[r * n + p] = (struct lk_figure_value){lk_rate_value(rate), 0, 0, rate.k, rate.n, !rate.n};
        }
    }
    char id[96], title[128];
    snprintf(id, sizeof id, "f_%s_by_race_prompt", lk_measure_key(measure));
    snprintf(title, sizeof title, "%s by race and prompt", lk_measure_name(measure));
    struct lk_figure figure;
    LK_TRY(lk_figure_heat(&(struct lk_figure_heat){.head = {.id = id,
                                                            .title = title,
                                                            .description = "A cell per race and prompt, darker where "
                                                                           "the rate is higher.",
                                                            .note = "All models together."},
                                                   .unit = LK_UNIT_PERCENT,
                                                   .value_name = lk_measure_name(measure),
                                                   .row_name = "Race",
                                                   .rows = races,
                                                   .n_rows = LK_N_RACES,
                                                   .columns = prompts,
                                                   .n_columns = n,
                                                   .values = values},
                          &figure));
    return lk_report_add_figure(report, LK_SECTION_DISPARITY, &figure);
}

enum lk_code lk_report_figures_rates(struct lk_report *report) {
    struct outputs o = {0};
    LK_TRY(allocate(&o, report->data->n_items));
    collect(report, &o);
    enum lk_code rc = LK_OK;
    if (o.n) rc = resample(report, &o);
    if (o.n && !rc) {
        rc = bars(report, &o, LK_MEASURE_RACE_DRIFT, LK_SECTION_DISPARITY);
        if (!rc) rc = bars(report, &o, LK_MEASURE_SOFT_ERASURE, LK_SECTION_DISPARITY);
        if (!rc) rc = forest(report, &o);
        if (!rc) rc = heat_prompts(report, LK_MEASURE_RACE_DRIFT);
        if (!rc) rc = heat_prompts(report, LK_MEASURE_SOFT_ERASURE);
    }
    lk_rate_results_free(o.results);
    lk_free(o.block);
    return rc;
}

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
