/* How the two judges lean apart, and what reviewers' decisions change. */
#include <stdio.h>

#include "eval/judge/review.h"
#include "eval/report/agreement.h"
#include "eval/report/build.h"

static enum lk_code table_judge_drift(struct lk_report *report) {
    struct lk_table *table;
    int64_t n = 0;
    LK_TRY(lk_table_new(&table, "judge_drift", "How the secondary judge's scores lie beside the primary's",
                        "Axis|>n|>Primary|>Secondary|>Difference|>Higher|>Lower|>p"));
    struct lk_group all = LK_GROUP_ANY;
    all.arm = -1;
    for (int axis = 0; axis < LK_N_AXES; axis++) {
        struct lk_lean lean;
        enum lk_code rc = lk_judges_lean(report->data, &all, axis, 1 - report->options.alpha, &lean);
        if (rc) lk_table_free(table);
        LK_TRY(rc);
        double count = (double)lean.n;
        n += lean.n;
        lk_table_row(table);
        lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_AXIS, axis));
        lk_table_count(table, lean.n);
        for (int c = 0; c < 6 && !lean.n; c++) lk_table_none(table, "no output with a score of both judges");
        if (!lean.n) continue;
        for (int j = 0; j < LK_N_JUDGES; j++) lk_table_fixed(table, (double)lean.sum[j] / count, 2);
        lk_table_signed(table, (double)(lean.sum[1] - lean.sum[0]) / count, 2);
        if (lean.difference.low < lean.difference.high)
            lk_table_interval(table, lean.difference.low, lean.difference.high);
        lk_table_percent(table, lean.higher, lean.n);
        lk_table_percent(table, lean.lower, lean.n);
        if (lean.sign.undefined)
            lk_table_none(table, lean.sign.undefined);
        else
            lk_table_p(table, lean.sign.p);
    }
    lk_table_note(table, "Outputs with a score of both judges, both arms. Mean scores; difference: secondary minus "
                         "primary; higher, lower: share of outputs to which the secondary judge gives more, or less. "
                         "The interval counts sources (CR2); p: whether more is as frequent as less, exact, outputs "
                         "taken as independent.");
    table->no_data = !n;
    return lk_report_add(report, LK_SECTION_ROBUSTNESS, table);
}

static bool any_review(const struct lk_dataset *data) {
    for (size_t i = 0; i < data->n_items; i++)
        if (data->items[i].reviewed_axes) return true;
    return false;
}

struct rate_pair {
    struct lk_rate judged, reviewed;
};

static void rates_of(struct lk_report *report, int model, struct rate_pair out[LK_N_MEASURES]) {
    struct lk_group group = LK_GROUP_ANY;
    const struct lk_thresholds *thresholds = &report->options.thresholds;
    group.model = model;
    for (int m = 0; m < LK_N_MEASURES; m++) out[m].judged = lk_measure_rate(report->data, &group, m, thresholds);
    lk_review_swap(report->data);
    for (int m = 0; m < LK_N_MEASURES; m++) out[m].reviewed = lk_measure_rate(report->data, &group, m, thresholds);
    lk_review_swap(report->data);
}

struct reviewed_rate {
    const struct lk_group *group;
    enum lk_measure measure;
};

/* The measure holds with the decisions in place of the judges' scores. */
static bool holds_reviewed(const struct lk_report *report, const struct lk_item *item, const void *context) {
    const struct reviewed_rate *at = context;
    uint8_t score[LK_N_AXES];
    for (int a = 0; a < LK_N_AXES; a++) score[a] = item->reviewed_axes >> a & 1 ? item->reviewed[a] : item->score[a];
    return lk_group_has(at->group, item) &&
           lk_measure_of(at->measure, score, item->prompt, &report->options.thresholds) == 1;
}

static enum lk_code table_rates(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "review_rates", "Rates as judged and with the reviewers' decisions",
                        "Measure|>As judged|>With review|>Difference"));
    for (int model = -1; model < LK_N_MODELS; model++) {
        struct rate_pair rates[LK_N_MEASURES];
        rates_of(report, model, rates);
        lk_table_heading(table, model < 0 ? "All models" : lk_factor_display(LK_FACTOR_MODEL, model));
        for (int m = 0; m < LK_N_MEASURES; m++) {
            const struct rate_pair *r = &rates[m];
            lk_table_row(table);
            lk_table_text(table, "%s", lk_measure_name(m));
            lk_table_percent(table, r->judged.k, r->judged.n);
            struct lk_group group = LK_GROUP_ANY;
            group.model = model;
            if (r->judged.k) lk_report_link(report, table, &group, m, LK_SCORES_JUDGE);
            lk_table_percent(table, r->reviewed.k, r->reviewed.n);
            const char *of = model < 0 ? "All models" : lk_factor_display(LK_FACTOR_MODEL, model);
            const struct reviewed_rate at = {&group, m};
            char title[160];
            snprintf(title, sizeof title, "%s: %s, with review", of, lk_measure_name(m));
            lk_report_link_picked(report, table, holds_reviewed, &at, title, "reviewed-%s-%s", lk_measure_key(m),
                                  model < 0 ? "all" : lk_factor_key(LK_FACTOR_MODEL, model));
            if (r->judged.n && r->reviewed.n)
                lk_table_points(table, lk_rate_value(r->reviewed) - lk_rate_value(r->judged));
            else
                lk_table_none(table, "no score");
        }
    }
    lk_table_note(table, "Every other table is as judged. With review: the last decision about an axis of an output in "
                         "place of the judges' score.");
    return lk_report_add(report, LK_SECTION_ROBUSTNESS, table);
}

/* What became of one axis of an output, role included; the last four are of decisions. */
enum outcome { FLAGGED, OPEN, DECIDED, KEPT, AS_PRIMARY, AS_SECONDARY, N_OUTCOMES };

/* A bit per outcome. */
static unsigned outcomes_of(const struct lk_item *item, int axis) {
    bool is_role = axis == LK_REVIEW_ROLE, flagged = item->review >> axis & 1;
    if (!(item->reviewed_axes >> axis & 1)) return flagged ? 1u << FLAGGED | 1u << OPEN : 0;
    int decision = is_role ? item->reviewed_role : item->reviewed[axis];
    unsigned bits = 1u << DECIDED | (unsigned)flagged << FLAGGED;
    if (decision == (is_role ? item->role : item->score[axis])) bits |= 1u << KEPT;
    for (int j = 0; j < LK_N_JUDGES; j++)
        if (decision == (is_role ? item->judge_role[j] : item->judge[j][axis])) bits |= 1u << (AS_PRIMARY + j);
    return bits;
}

struct picked {
    int axis;
    enum outcome outcome;
};

static bool picks(const struct lk_report *report, const struct lk_item *item, const void *context) {
    (void)report;
    const struct picked *picked = context;
    return outcomes_of(item, picked->axis) >> picked->outcome & 1;
}

static void decisions_row(struct lk_report *report, struct lk_table *table, int axis) {
    static const char *const names[] = {
        "flagged", "open", "decided", "score kept", "as the primary judge said", "as the secondary judge said"};
    const char *name = axis == LK_REVIEW_ROLE ? "Assigned role" : lk_factor_display(LK_FACTOR_AXIS, axis);
    int64_t n[N_OUTCOMES] = {0};
    for (size_t i = 0; i < report->data->n_items; i++) {
        unsigned bits = outcomes_of(&report->data->items[i], axis);
        for (int o = 0; o < N_OUTCOMES; o++) n[o] += bits >> o & 1;
    }
    lk_table_row(table);
    lk_table_text(table, "%s", name);
    for (int o = 0; o < N_OUTCOMES; o++) {
        const struct picked picked = {axis, o};
        char title[128];
        snprintf(title, sizeof title, "%s, review: %s", name, names[o]);
        if (o <= DECIDED)
            lk_table_count(table, n[o]);
        else
            lk_table_percent(table, n[o], n[DECIDED]);
        lk_report_link_picked(report, table, picks, &picked, title, "review-%d-%d", axis, o);
    }
}

static enum lk_code table_decisions(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "review_decisions", "What the reviewers decided, and which judge they agree with",
                        "Axis|>Flagged|>Open|>Decided|>Score kept|>Primary|>Secondary"));
    for (int axis = 0; axis < LK_N_REVIEW_AXES; axis++) decisions_row(report, table, axis);
    lk_table_note(table, "Flagged: the judges are more than one level apart, or name different people. Open: flagged, "
                         "and nobody decided. Of the decisions: share that equals the score as judged, the primary and "
                         "the secondary judge's own; outputs nobody flagged can be decided as well.");
    return lk_report_add(report, LK_SECTION_ROBUSTNESS, table);
}

enum lk_code lk_report_tables_review(struct lk_report *report) {
    LK_TRY(table_judge_drift(report));
    if (!any_review(report->data)) return LK_OK;
    LK_TRY(table_rates(report));
    return table_decisions(report);
}
