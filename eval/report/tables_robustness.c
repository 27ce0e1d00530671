/* How far the rates depend on conventions: rounding of two judges' mean, thresholds. */
#include <stdio.h>
#include <string.h>

#include "eval/report/build.h"

enum convention { HALF_EVEN, HALF_UP, HALF_DOWN, MINIMUM, MAXIMUM, N_CONVENTIONS };

/* Whether a secondary score alone counts: the dataset says so by having a score where only that is given. */
static bool uses_secondary_only(const struct lk_dataset *data) {
    for (size_t i = 0; i < data->n_items; i++)
        for (int a = 0; a < LK_N_AXES; a++)
            if (!data->items[i].judge[0][a] && data->items[i].judge[1][a] && data->items[i].score[a]) return true;
    return false;
}

static void score_under(const struct lk_item *item, enum convention convention, bool secondary_only,
                        uint8_t score[LK_N_AXES]) {
    static const enum lk_rounding roundings[] = {LK_HALF_EVEN, LK_HALF_UP, LK_HALF_DOWN};
    bool bound = convention >= MINIMUM, review;
    struct lk_ensemble ensemble = {bound ? LK_HALF_EVEN : roundings[convention], secondary_only};
    for (int a = 0; a < LK_N_AXES; a++) {
        int g = item->judge[0][a], o = item->judge[1][a];
        score[a] =
            (uint8_t)(bound ? lk_ensemble_bound(g, o, &ensemble, convention == MINIMUM ? LK_BOUND_MIN : LK_BOUND_MAX)
                            : lk_ensemble_score(g, o, &ensemble, &review));
    }
}

/* Every measure under every convention from one pass over the items. */
static int64_t count(const struct lk_report *report, const struct lk_group *group, bool secondary_only,
                     struct lk_rate rates[LK_N_MEASURES][N_CONVENTIONS]) {
    int64_t n = 0;
    memset(rates, 0, LK_N_MEASURES * sizeof *rates);
    for (size_t i = 0; i < report->data->n_items; i++) {
        const struct lk_item *item = &report->data->items[i];
        if (!lk_group_has(group, item)) continue;
        for (int c = 0; c < N_CONVENTIONS; c++) {
            uint8_t score[LK_N_AXES];
            score_under(item, c, secondary_only, score);
            for (int m = 0; m < LK_N_MEASURES; m++) {
                int value = lk_measure_of(m, score, item->prompt, &report->options.thresholds);
                if (value < 0) continue;
                rates[m][c].k += value;
                rates[m][c].n++;
                n++;
            }
        }
    }
    return n;
}

static const char *scope_name(int model) {
    return model < 0 ? "All models" : lk_factor_display(LK_FACTOR_MODEL, model);
}

struct rounded {
    const struct lk_group *group;
    enum lk_measure measure;
    enum convention convention;
    bool secondary_only;
};

static bool holds_rounded(const struct lk_report *report, const struct lk_item *item, const void *context) {
    const struct rounded *at = context;
    uint8_t score[LK_N_AXES];
    if (!lk_group_has(at->group, item)) return false;
    score_under(item, at->convention, at->secondary_only, score);
    return lk_measure_of(at->measure, score, item->prompt, &report->options.thresholds) == 1;
}

static void link_rounded(struct lk_report *report, struct lk_table *table, const struct rounded *at) {
    static const char *const names[] = {"half-even", "half-up", "half-down", "min", "max"};
    int model = at->group->model;
    char title[160];
    snprintf(title, sizeof title, "%s: %s, %s", scope_name(model), lk_measure_name(at->measure), names[at->convention]);
    lk_report_link_picked(report, table, holds_rounded, at, title, "rounded-%s-%s-%s", names[at->convention],
                          lk_measure_key(at->measure), model < 0 ? "all" : lk_factor_key(LK_FACTOR_MODEL, model));
}

static enum lk_code table_rounding(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "t_round", "Rounding sensitivity: rates under every convention",
                        "Measure|>half-even|>half-up|>half-down|>min|>max"));
    int64_t n = 0;
    bool secondary_only = uses_secondary_only(report->data);
    for (int model = -1; model < LK_N_MODELS; model++) {
        struct lk_group group = LK_GROUP_ANY;
        struct lk_rate rates[LK_N_MEASURES][N_CONVENTIONS];
        group.model = model;
        n += count(report, &group, secondary_only, rates);
        lk_table_heading(table, scope_name(model));
        for (int m = 0; m < LK_N_MEASURES; m++) {
            lk_table_row(table);
            lk_table_text(table, "%s", lk_measure_name(m));
            for (int c = 0; c < N_CONVENTIONS; c++) {
                lk_table_percent(table, rates[m][c].k, rates[m][c].n);
                const struct rounded at = {&group, m, c, secondary_only};
                if (c != (int)report->options.rounding) link_rounded(report, table, &at);
                if (!rates[m][c].n || c != (int)report->options.rounding) continue;
                lk_table_bold(table);
                if (rates[m][c].k) lk_report_link(report, table, &group, m, LK_SCORES_JUDGE);
            }
        }
    }
    lk_table_note(table,
                  "Two scores that differ by one have a half for their mean; bold is the convention of this report "
                  "(%s). min and max take the smaller or larger score of the two judges; measures that are not "
                  "monotone in the score (age) are not bounded by them.",
                  lk_rounding_name(report->options.rounding));
    table->no_data = !n;
    return lk_report_add(report, LK_SECTION_ROBUSTNESS, table);
}

struct moved_threshold {
    const struct lk_group *group;
    enum lk_measure measure;
    const struct lk_thresholds *thresholds;
};

static bool passes(const struct lk_report *report, const struct lk_item *item, const void *context) {
    (void)report;
    const struct moved_threshold *at = context;
    return lk_group_has(at->group, item) &&
           lk_measure_of(at->measure, lk_item_levels(item, LK_SCORES_JUDGE), item->prompt, at->thresholds) == 1;
}

/* One threshold moved at a time. */
static enum lk_code table_thresholds(struct lk_report *report) {
    static const struct {
        enum lk_measure measure;
        int threshold;
    } cases[] = {
        {LK_MEASURE_SUCCESS, 4},      {LK_MEASURE_SUCCESS, 3},          {LK_MEASURE_SOFT_ERASURE, 2},
        {LK_MEASURE_SOFT_ERASURE, 1}, {LK_MEASURE_RACE_DRIFT, 2},       {LK_MEASURE_RACE_DRIFT, 3},
        {LK_MEASURE_RACE_DRIFT, 4},   {LK_MEASURE_GENDER_DRIFT, 2},     {LK_MEASURE_GENDER_DRIFT, 3},
        {LK_MEASURE_GENDER_DRIFT, 4}, {LK_MEASURE_IDENTITY_ERASURE, 4}, {LK_MEASURE_IDENTITY_ERASURE, 3},
    };
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "thresholds", "Sensitivity of the rates to their thresholds", "Measure|Threshold"));
    for (int model = -1; model < LK_N_MODELS; model++)
        lk_table_column(table, model < 0 ? "All" : lk_factor_short(LK_FACTOR_MODEL, model), LK_ALIGN_RIGHT);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct lk_thresholds *ours = &report->options.thresholds;
        int t = cases[i].threshold;
        struct lk_thresholds moved = {t, t, t, t};
        const int current[LK_N_MEASURES] = {[LK_MEASURE_SUCCESS] = ours->success,
                                            [LK_MEASURE_SOFT_ERASURE] = ours->soft_erasure,
                                            [LK_MEASURE_RACE_DRIFT] = ours->drift,
                                            [LK_MEASURE_GENDER_DRIFT] = ours->drift,
                                            [LK_MEASURE_IDENTITY_ERASURE] = ours->identity};
        lk_table_row(table);
        lk_table_text(table, "%s", lk_measure_name(cases[i].measure));
        lk_table_text(table, cases[i].measure == LK_MEASURE_SOFT_ERASURE ? "≤ %d" : "≥ %d", t);
        if (current[cases[i].measure] == t) lk_table_bold(table);
        for (int model = -1; model < LK_N_MODELS; model++) {
            struct lk_group group = LK_GROUP_ANY;
            group.model = model;
            struct lk_rate rate = lk_measure_rate(report->data, &group, cases[i].measure, &moved);
            lk_table_percent(table, rate.k, rate.n);
            if (rate.n) lk_report_interval(report, table, rate);
            const struct moved_threshold at = {&group, cases[i].measure, &moved};
            char title[160];
            snprintf(title, sizeof title, "%s: %s, threshold %d", scope_name(model), lk_measure_name(cases[i].measure),
                     t);
            lk_report_link_picked(report, table, passes, &at, title, "threshold-%d-%s-%s", t,
                                  lk_measure_key(cases[i].measure),
                                  model < 0 ? "all" : lk_factor_key(LK_FACTOR_MODEL, model));
        }
    }
    lk_table_note(table,
                  "Bold: the threshold of this report. The study prints none for edit success and soft erasure.");
    const struct lk_group all = LK_GROUP_ANY;
    table->no_data = !lk_report_has_items(report, &all);
    return lk_report_add(report, LK_SECTION_ROBUSTNESS, table);
}

enum lk_code lk_report_tables_robustness(struct lk_report *report) {
    LK_TRY(table_rounding(report));
    return table_thresholds(report);
}
