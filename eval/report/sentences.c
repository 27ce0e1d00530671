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

static struct lk_rate rate_of(const struct lk_report *report, struct lk_group group, enum lk_measure measure) {
    return lk_measure_rate(report->data, &group, measure, &report->options.thresholds);
}

/* One sentence about a measure: its rate and its disparity between races, the two named. */
static void measure_sentence(struct lk_report *report, struct lk_table *table, enum lk_measure measure) {
    const struct lk_group all = LK_GROUP_ANY;
    struct lk_rate rates[LK_N_RACES], overall = rate_of(report, all, measure);
    struct lk_rates_range range;
    for (int race = 0; race < LK_N_RACES; race++)
        rates[race] = rate_of(report, lk_group_with(all, LK_FACTOR_RACE, race), measure);
    if (!overall.n) return;
    bool any = lk_rates_range(rates, LK_N_RACES, &range);
    lk_table_row(table);
    lk_table_text(table, "%s", lk_measure_name(measure));
    if (!any || range.difference == 0) {
        lk_table_text(table, "%s: %s of %s outputs%s.", lk_measure_name(measure), percent(overall).text,
                      count(overall.n).text, any ? ", the same for sources of every race" : "");
        return;
    }
    lk_table_text(table,
                  "%s: %s of %s outputs; highest for %s sources (%s), lowest for %s ones (%s), a difference of %s "
                  "percentage points.",
                  lk_measure_name(measure), percent(overall).text, count(overall.n).text,
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
            struct lk_rate of = rate_of(report, lk_group_with(all, LK_FACTOR_CATEGORY, c), measures[m]);
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
    for (size_t m = 0; m < sizeof measures / sizeof *measures; m++) measure_sentence(report, table, measures[m]);
    category_sentence(report, table);
    mitigation_sentence(report, table);
    roles_sentence(report, table);
    enum lk_code rc = agreement_sentences(report, table);
    if (rc) {
        lk_table_free(table);
        return rc;
    }
    lk_table_note(table, "Rates: baseline arm, all models. What has no data has no sentence. The tables have the "
                         "intervals, without which no number should be quoted.");
    return lk_report_add(report, LK_SECTION_SUMMARY, table);
}
