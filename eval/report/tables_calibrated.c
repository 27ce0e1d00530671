/* What raters would say of all outputs, had they seen all: of outputs, of pairs, and between groups. */
#include <math.h>

#include "eval/report/agreement.h"
#include "eval/report/build.h"
#include "eval/stats/special/special.h"
#include "eval/stats/tests/multiple.h"

/* The mean of edit success first. */
static enum lk_measure measure_at(int i) { return (enum lk_measure)((i + LK_N_MEASURES) % (LK_N_MEASURES + 1)); }

static void measure_heading(struct lk_table *table, enum lk_measure measure) {
    lk_table_heading(table, measure == LK_N_MEASURES ? "Edit success, mean" : lk_measure_name(measure));
}

/* A rate or a mean of edit success, or how much larger one is than another. */
static void value_cell(struct lk_table *table, enum lk_measure measure, bool change, const struct lk_number *number) {
    if (number->undefined) {
        lk_table_none(table, number->undefined);
        return;
    }
    if (measure == LK_N_MEASURES)
        (change ? lk_table_signed : lk_table_fixed)(table, number->value, 2);
    else
        (change ? lk_table_points : lk_table_rate)(table, number->value);
    /* beyond what the value can be, an interval says nothing: 0 to 1 of a rate, 1 to 5 of a mean score */
    double least = measure == LK_N_MEASURES ? 1 : 0, most = measure == LK_N_MEASURES ? 5 : 1;
    if (change) most -= least, least = -most;
    double low = fmax(number->low, fmin(least, number->value)), high = fmin(number->high, fmax(most, number->value));
    if (low < high) lk_table_interval(table, low, high);
}

static struct lk_calibration calibration_of(const struct lk_report *report, const struct lk_group *group,
                                            enum lk_measure measure, bool change) {
    return (struct lk_calibration){*group, measure, change, &report->options.thresholds, 1 - report->options.alpha};
}

static enum lk_code calibrated_row(struct lk_report *report, struct lk_table *table, const char *label,
                                   const struct lk_calibration *c) {
    struct lk_prediction_powered p;
    int64_t judged;
    LK_TRY(lk_calibrated(report->data, c, &p, &judged));
    struct lk_number judges = {.value = p.judged_only, .undefined = judged ? NULL : "no score"};
    lk_table_row(table);
    lk_table_text(table, "%s", label);
    lk_table_count(table, judged);
    lk_table_count(table, (int64_t)p.estimate.n);
    value_cell(table, c->measure, c->change, &judges);
    value_cell(table, c->measure, c->change, &p.rated_only);
    value_cell(table, c->measure, c->change, &p.estimate);
    if (p.estimate.undefined) {
        for (int i = 0; i < 2; i++) lk_table_none(table, p.estimate.undefined);
        return LK_OK;
    }
    lk_table_fixed(table, p.correlation, 2);
    if (p.effective_n > 0)
        lk_table_fixed(table, p.effective_n, 0);
    else
        lk_table_none(table, "all of them are rated, or all ratings are one");
    return LK_OK;
}

static enum lk_code calibrated_rows(struct lk_report *report, struct lk_table *table, bool change) {
    static const enum lk_factor factors[] = {LK_FACTOR_MODEL, LK_FACTOR_RACE};
    const struct lk_group all = LK_GROUP_ANY;
    for (int i = 0; i <= LK_N_MEASURES; i++) {
        struct lk_calibration c = calibration_of(report, &all, measure_at(i), change);
        measure_heading(table, c.measure);
        LK_TRY(calibrated_row(report, table, "All", &c));
        for (int f = 0; f < 2; f++)
            for (int level = 0; level < lk_factor_levels(factors[f]); level++) {
                c.group = lk_group_with(all, factors[f], level);
                LK_TRY(calibrated_row(report, table, lk_factor_display(factors[f], level), &c));
            }
    }
    return LK_OK;
}

#define WHAT_IT_IS                                                                                                     \
    "The judges' mean over all %s, corrected by what raters say of those that both have seen (difference estimator, "  \
    "strata of race, gender, age group and model; the judges are left out where ρ, their correlation with raters "    \
    "within strata, may be below 0.2). It is unbiased however wrong the judges are, if the rated outputs were drawn "  \
    "at random. Intervals are of these outputs, not of other sources: Student's t, %g%%."

/* Whether outputs of this kind are rated, of a change both arms, and judges scored any. */
static bool any_to_calibrate(const struct lk_dataset *data, bool change) {
    bool rated = false, judged = false;
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        rated |= item->n_ratings && (!change || (item->partner >= 0 && data->items[item->partner].n_ratings));
        for (int a = 0; a < LK_N_AXES; a++) judged |= item->score[a] > 0;
    }
    return rated && judged;
}

static enum lk_code table_calibrated(struct lk_report *report, bool change) {
    struct lk_table *table;
    bool any = any_to_calibrate(report->data, change);
    double percent = 100 * (1 - report->options.alpha);
    LK_TRY(lk_table_new(&table, change ? "calibrated_change" : "calibrated",
                        change ? "Calibrated to people: what raters would say the feature prompt changes"
                               : "Calibrated to people: what raters would say of all outputs",
                        "Group|>Judged|>Rated|>Judges alone|>Raters alone|>Calibrated|>ρ|>Worth ratings"));
    enum lk_code rc = any ? calibrated_rows(report, table, change) : LK_OK;
    if (rc) {
        lk_table_free(table);
        return rc;
    }
    if (change)
        lk_table_note(table, "Preserved arm less baseline, pair by pair. " WHAT_IT_IS, "pairs", percent);
    else
        lk_table_note(table,
                      "Baseline arm. " WHAT_IT_IS " Worth ratings: how many without judges would give an interval as "
                      "narrow.",
                      "outputs", percent);
    table->no_data = !any;
    lk_report_note_kin(report, table);
    return lk_report_add(report, LK_SECTION_HUMAN, table);
}

/* Two groups of outputs, which share no stratum, so that their estimates are independent. */
struct contrast {
    enum lk_measure measure;
    enum lk_factor factor;
    int a, b;
    struct lk_number judges, raters, calibrated;
    double p; /* NaN: none */
};
enum { N_PAIRS = LK_N_RACES * (LK_N_RACES - 1) / 2 + 1, N_CONTRASTS = N_PAIRS * (LK_N_MEASURES + 1) };

/* Welch: each has its own error and degrees of freedom. p NaN: there is no error. */
static void subtract(const struct lk_number *a, const struct lk_prediction_error *of_a, const struct lk_number *b,
                     const struct lk_prediction_error *of_b, double alpha, struct lk_number *out, double *p) {
    const struct lk_prediction_error *errors[] = {of_a, of_b};
    double variance = 0, squares = 0;
    *out = (struct lk_number){.undefined = a->undefined ? a->undefined : b->undefined};
    *p = NAN;
    if (out->undefined) return;
    for (int i = 0; i < 2; i++) {
        double part = errors[i]->standard_error * errors[i]->standard_error;
        variance += part;
        if (part > 0) squares += part * part / errors[i]->df;
    }
    out->low = out->high = out->value = a->value - b->value;
    if (!(variance > 0)) return;
    double df = variance * variance / squares, error = sqrt(variance);
    double reach = lk_t_quantile(1 - alpha / 2, df) * error;
    out->low -= reach, out->high += reach;
    *p = lk_t_two_sided(out->value / error, df);
}

/* All pairs of a factor's levels that are rated; gives how many. */
static enum lk_code contrasts_of(const struct lk_report *report, enum lk_measure measure, enum lk_factor factor,
                                 struct contrast *out, size_t *n) {
    const struct lk_group all = LK_GROUP_ANY;
    const double alpha = report->options.alpha;
    struct lk_prediction_powered p[LK_N_RACES];
    int64_t judged;
    double ignored;
    for (int a = 0; a < lk_factor_levels(factor); a++) {
        const struct lk_group group = lk_group_with(all, factor, a);
        const struct lk_calibration c = calibration_of(report, &group, measure, false);
        LK_TRY(lk_calibrated(report->data, &c, &p[a], &judged));
        for (int b = 0; b < a; b++) {
            struct contrast *at = &out[*n];
            *at = (struct contrast){.measure = measure, .factor = factor, .a = b, .b = a};
            at->judges.value = p[b].judged_only - p[a].judged_only;
            subtract(&p[b].rated_only, &p[b].error_rated, &p[a].rated_only, &p[a].error_rated, alpha, &at->raters,
                     &ignored);
            subtract(&p[b].estimate, &p[b].error, &p[a].estimate, &p[a].error, alpha, &at->calibrated, &at->p);
            *n += !at->calibrated.undefined;
        }
    }
    return LK_OK;
}

static void contrast_row(struct lk_table *table, const struct contrast *c, double adjusted) {
    lk_table_row(table);
    lk_table_text(table, "%s less %s", lk_factor_display(c->factor, c->a), lk_factor_display(c->factor, c->b));
    value_cell(table, c->measure, true, &c->judges);
    value_cell(table, c->measure, true, &c->raters);
    value_cell(table, c->measure, true, &c->calibrated);
    if (isnan(c->p)) {
        for (int i = 0; i < 2; i++) lk_table_none(table, "all of both groups are rated, or all ratings are one");
        return;
    }
    lk_table_p(table, c->p);
    lk_table_p(table, adjusted);
    if (adjusted < 0.05) lk_table_bold(table);
}

static enum lk_code contrast_rows(struct lk_report *report, struct lk_table *table) {
    static const enum lk_factor factors[] = {LK_FACTOR_RACE, LK_FACTOR_GENDER};
    struct contrast list[N_CONTRASTS];
    double p[N_CONTRASTS];
    size_t n = 0, n_p = 0;
    for (int i = 0; i <= LK_N_MEASURES; i++)
        for (int f = 0; f < 2; f++) LK_TRY(contrasts_of(report, measure_at(i), factors[f], list, &n));
    for (size_t i = 0; i < n; i++)
        if (!isnan(list[i].p)) p[n_p++] = list[i].p;
    LK_TRY(lk_adjust_p(p, n_p, LK_ADJUST_BENJAMINI_HOCHBERG, p));
    for (size_t i = 0, at = 0; i < n; i++) {
        if (!i || list[i].measure != list[i - 1].measure) measure_heading(table, list[i].measure);
        contrast_row(table, &list[i], isnan(list[i].p) ? NAN : p[at++]);
    }
    return LK_OK;
}

static enum lk_code table_contrasts(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "calibrated_groups", "Calibrated to people: differences between groups",
                        "Groups|>Judges alone|>Raters alone|>Calibrated|>p|>p adjusted"));
    enum lk_code rc = any_to_calibrate(report->data, false) ? contrast_rows(report, table) : LK_OK;
    if (rc) {
        lk_table_free(table);
        return rc;
    }
    lk_table_note(table,
                  "Baseline arm; each group is calibrated on its own, as in the table of all outputs. The largest less "
                  "the smallest rate has no unbiased form, so all pairs stand here. p: Student's t; adjusted: "
                  "Benjamini-Hochberg over this table; bold: below 0.05. Intervals: %g%%, of these outputs.",
                  100 * (1 - report->options.alpha));
    lk_report_note_kin(report, table);
    return lk_report_add(report, LK_SECTION_HUMAN, table);
}

enum lk_code lk_report_tables_calibrated(struct lk_report *report) {
    LK_TRY(table_calibrated(report, false));
    LK_TRY(table_calibrated(report, true));
    return table_contrasts(report);
}
