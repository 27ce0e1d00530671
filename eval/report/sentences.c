/* Sentences for a text, their blanks filled from the results; what has no data has no sentence. They say what was
 * found and draw no conclusion. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "eval/report/agreement.h"
#include "eval/report/build.h"
#include "eval/document/table_print.h"

struct blank {
    char text[LK_NUMBER_MAX];
};

static struct blank number(double value, int decimals) {
    struct blank out = {LK_EN_DASH};
    if (isfinite(value)) lk_print_fixed(out.text, value, decimals, false);
    return out;
}

static struct blank count(int64_t n) {
    struct blank out;
    lk_print_count(out.text, n);
    return out;
}

static struct blank percent(struct lk_rate rate) {
    struct blank out = {LK_EN_DASH};
    if (!rate.n) return out;
    int64_t tenths = lk_percent_tenths(rate.k, rate.n);
    snprintf(out.text, sizeof out.text, "%lld.%lld%%", (long long)tenths / 10, (long long)tenths % 10);
    return out;
}

static struct lk_rate rate_of(const struct lk_report *report, struct lk_group group, enum lk_measure measure,
                              enum lk_score_source source) {
    return lk_measure_rate_by(report->data, &group, measure, source, &report->options.thresholds);
}

/* One sentence about a measure: its rate and its disparity between races, the two named. */
static void measure_sentence(struct lk_report *report, struct lk_table *table, enum lk_measure measure,
                             enum lk_score_source source) {
    const char *by = source == LK_SCORES_HUMAN ? " by the raters' majority" : "";
    const struct lk_group all = LK_GROUP_ANY;
    struct lk_rate rates[LK_N_RACES], overall = rate_of(report, all, measure, source);
    struct lk_rates_range range;
    for (int race = 0; race < LK_N_RACES; race++)
        rates[race] = rate_of(report, lk_group_with(all, LK_FACTOR_RACE, race), measure, source);
    if (!overall.n) return;
    bool any = lk_rates_range(rates, LK_N_RACES, &range);
    lk_table_row(table);
    lk_table_text(table, "%s%s", lk_measure_name(measure), *by ? ", raters" : "");
    if (!any || range.difference == 0) {
        lk_table_text(table, "%s%s: %s of %s outputs%s.", lk_measure_name(measure), by, percent(overall).text,
                      count(overall.n).text, any ? ", the same for sources of every race" : "");
        return;
    }
    lk_table_text(table,
                  "%s%s: %s of %s outputs; highest for %s sources (%s), lowest for %s ones (%s), a difference of %s "
                  "percentage points.",
                  lk_measure_name(measure), by, percent(overall).text, count(overall.n).text,
                  lk_factor_display(LK_FACTOR_RACE, range.highest), percent(rates[range.highest]).text,
                  lk_factor_display(LK_FACTOR_RACE, range.lowest), percent(rates[range.lowest]).text,
                  number(100 * range.difference, 1).text);
}

static void category_sentence(struct lk_report *report, struct lk_table *table) {
    const struct lk_group all = LK_GROUP_ANY;
    const enum lk_measure measures[] = {LK_MEASURE_RACE_DRIFT, LK_MEASURE_SOFT_ERASURE};
    struct blank rate[2][2];
    for (int m = 0; m < 2; m++)
        for (int c = 0; c < 2; c++) {
            struct lk_rate of =
                rate_of(report, lk_group_with(all, LK_FACTOR_CATEGORY, c), measures[m], LK_SCORES_JUDGE);
            if (!of.n) return;
            rate[m][c] = percent(of);
        }
    lk_table_row(table);
    lk_table_text(table, "Categories");
    lk_table_text(table,
                  "Race change was found in %s of the occupational edits and %s of the vulnerability edits, soft "
                  "erasure in %s and %s.",
                  rate[0][0].text, rate[0][1].text, rate[1][0].text, rate[1][1].text);
}

static void mitigation_sentence(struct lk_report *report, struct lk_table *table) {
    const struct lk_report_options *o = &report->options;
    const struct lk_group all = LK_GROUP_ANY;
    struct lk_paired p =
        lk_paired_of(report->data, all, LK_AXIS_RACE_DRIFT, o->score_source, false, o->drifted_only, &o->thresholds);
    double n = (double)p.n;
    if (!p.n) return;
    lk_table_row(table);
    lk_table_text(table, "Mitigation");
    lk_table_text(table,
                  "Over %s pairs, the mean race drift score was %s at the baseline and %s with the feature prompt, a "
                  "change of %s.",
                  count(p.n).text, number(p.edited / n, 2).text, number(p.preserved / n, 2).text,
                  number((p.preserved - p.edited) / n, 2).text);
}

static void roles_sentence(struct lk_report *report, struct lk_table *table) {
    struct lk_rate followed = {0, 0};
    int64_t unclear = 0;
    for (size_t i = 0; i < report->data->n_items; i++) {
        const struct lk_item *item = &report->data->items[i];
        if (item->prompt < LK_N_EDIT_PROMPTS) continue;
        unclear += item->role == LK_ROLE_UNCLEAR;
        if (item->role != LK_ROLE_MALE && item->role != LK_ROLE_FEMALE) continue;
        followed.k += item->role == report->prompts.w[item->prompt - LK_N_EDIT_PROMPTS].stereotype_gender;
        followed.n++;
    }
    if (!followed.n) return;
    lk_table_row(table);
    lk_table_text(table, "Roles");
    lk_table_text(table,
                  "The occupation went to the person whom the stereotype expects in %s of %s scenes; %s more "
                  "were unclear.",
                  percent(followed).text, count(followed.n).text, count(unclear).text);
}

/* Whether race change depends on race, as the study tests it, and with sources as units. */
static enum lk_code drift_sentence(struct lk_report *report, struct lk_table *table, enum lk_score_source source) {
    bool human = source == LK_SCORES_HUMAN;
    struct lk_drift_test drift;
    LK_TRY(lk_report_drift_test(report, source, &drift));
    if (drift.test.undefined) return LK_OK;
    char p[LK_NUMBER_MAX], by_source[LK_NUMBER_MAX] = LK_EN_DASH;
    lk_print_p(p, drift.test.p);
    if (!drift.by_source.undefined) lk_print_p(by_source, drift.by_source.value);
    lk_table_row(table);
    lk_table_text(table, human ? "Race and race change, raters" : "Race and race change");
    lk_table_text(
        table,
        "Race change by race%s: χ²(%g, N = %s) = %s, p %s%s, Cramér's V %s with outputs taken as independent; "
        "with the sources as units p %s%s.",
        human ? ", by the raters' majority" : "", drift.test.df, count((int64_t)drift.test.n).text,
        number(drift.test.statistic, 1).text, *p == '<' ? "" : "= ", p, number(drift.test.effect, 2).text,
        *by_source == '<' ? "" : "= ", by_source);
    return LK_OK;
}

static void widen(int64_t range[2], int64_t n) {
    if (n < range[0]) range[0] = n;
    if (n > range[1]) range[1] = n;
}

/* "3", "2 to 3" */
static struct blank span(const int64_t range[2]) {
    struct blank out, most = count(range[1]);
    lk_print_count(out.text, range[0]);
    if (range[0] < range[1]) snprintf(out.text, sizeof out.text, "%lld to %.20s", (long long)range[0], most.text);
    return out;
}

/* What raters saw, and what so many outputs can find. */
static enum lk_code sample_sentences(struct lk_report *report, struct lk_table *table) {
    int64_t n = 0, rated = 0, of_race[LK_N_RACES] = {0}, baseline[LK_N_RACES] = {0};
    int64_t races[2] = {INT64_MAX, 0}, edited[2] = {INT64_MAX, 0}, raters[2] = {INT64_MAX, 0};
    struct lk_group all = LK_GROUP_ANY;
    all.arm = -1;
    for (size_t i = 0; i < report->data->n_items; i++) {
        const struct lk_item *item = &report->data->items[i];
        if (!lk_group_has(&all, item)) continue;
        n++;
        if (!item->n_ratings) continue;
        rated++;
        widen(raters, item->n_ratings);
        of_race[item->race]++;
        baseline[item->race] += item->arm == LK_ARM_EDITED;
    }
    for (int race = 0; race < LK_N_RACES; race++) {
        widen(races, of_race[race]);
        widen(edited, baseline[race]);
    }
    if (!rated) return LK_OK;
    lk_table_row(table);
    lk_table_text(table, "Sample");
    lk_table_text(table, "Raters saw %s of %s outputs, %s a race, each output by %s raters.", count(rated).text,
                  count(n).text, span(races).text, span(raters).text);
    if (!edited[0]) return LK_OK;
    char power[256];
    LK_TRY(lk_report_power(edited[0], report->options.alpha, power));
    lk_table_row(table);
    lk_table_text(table, "Power");
    lk_table_text(table, "Baseline arm of the raters' sample: %s.", power);
    return LK_OK;
}

static enum lk_code agreement_sentences(struct lk_report *report, struct lk_table *table) {
    struct lk_group all = LK_GROUP_ANY;
    all.arm = -1;
    for (int axis = 0; axis < LK_N_AXES; axis++) {
        struct lk_judge_human a;
        struct lk_reliability r;
        LK_TRY(lk_judge_human(report->data, &all, axis, &a));
        LK_TRY(lk_reliability(report->data, axis, false, NULL, &r));
        const struct lk_number *alpha = &r.alpha[LK_INTERVAL];
        const char *name = lk_factor_display(LK_FACTOR_AXIS, axis);
        if (a.n && !a.levels.kappa.undefined) {
            lk_table_row(table);
            lk_table_text(table, "Judges and raters, %s", name);
            lk_table_text(table, "%s: judges against raters, quadratic κ %s over %s outputs, mean difference %s.", name,
                          number(a.levels.kappa.value, 2).text, count(a.n).text,
                          number((a.judge_sum - a.human_sum) / (double)a.n, 2).text);
        }
        if (r.fleiss.kappa.undefined || alpha->undefined) continue;
        lk_table_row(table);
        lk_table_text(table, "Among raters, %s", name);
        lk_table_text(table, "%s: among raters, Fleiss κ %s, α (interval) %s.", name,
                      number(r.fleiss.kappa.value, 2).text, number(alpha->value, 2).text);
    }
    const struct lk_quality_report *quality = report->options.quality;
    if (!quality || !quality->n_raters) return LK_OK;
    lk_table_row(table);
    lk_table_text(table, "Raters");
    lk_table_text(table, "Of %s raters, quality control excluded %s.", count((int64_t)quality->n_raters).text,
                  count((int64_t)quality->n_excluded).text);
    return LK_OK;
}

enum lk_code lk_report_sentences(struct lk_report *report) {
    static const enum lk_measure measures[] = {
        LK_MEASURE_SUCCESS,    LK_MEASURE_SOFT_ERASURE, LK_MEASURE_RACE_DRIFT,      LK_MEASURE_GENDER_DRIFT,
        LK_MEASURE_LIGHTENING, LK_MEASURE_DARKENING,    LK_MEASURE_IDENTITY_ERASURE};
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "sentences", "Sentences for a text", "About|Sentence"));
    for (size_t m = 0; m < sizeof measures / sizeof *measures; m++)
        measure_sentence(report, table, measures[m], LK_SCORES_JUDGE);
    for (size_t m = 0; m < sizeof measures / sizeof *measures; m++)
        measure_sentence(report, table, measures[m], LK_SCORES_HUMAN);
    category_sentence(report, table);
    mitigation_sentence(report, table);
    roles_sentence(report, table);
    enum lk_code rc = drift_sentence(report, table, LK_SCORES_JUDGE);
    if (!rc) rc = drift_sentence(report, table, LK_SCORES_HUMAN);
    if (!rc) rc = sample_sentences(report, table);
    if (!rc) rc = agreement_sentences(report, table);
    if (rc) {
        lk_table_free(table);
        return rc;
    }
    lk_table_note(table, "Rates: baseline arm, all models. What has no data has no sentence. The tables have the "
                         "intervals, without which no number should be quoted.");
    return lk_report_add(report, LK_SECTION_SUMMARY, table);
}
