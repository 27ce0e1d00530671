/* What the feature prompt changes: tables 14 and 19, by model and overall, and the same on magnitudes of change. Every
 * difference is preserved minus edited over pairs that have both scores. */
#include <math.h>
#include <stdio.h>

#include "eval/report/build.h"

static struct lk_paired paired(const struct lk_report *report, struct lk_group group, enum lk_axis axis,
                               bool magnitude) {
    const struct lk_report_options *o = &report->options;
    return lk_paired_of(report->data, group, axis, o->score_source, magnitude, o->drifted_only, &o->thresholds);
}

static double delta(struct lk_paired p) { return p.n ? (p.preserved - p.edited) / (double)p.n : 0; }

static void delta_cell(struct lk_table *table, struct lk_paired p) {
    if (p.n)
        lk_table_signed(table, delta(p), 2);
    else
        lk_table_none(table, "no pair with both scores");
}

/* Which scores and which pairs: two published tables cannot be placed for want of it. */
static void name_source(const struct lk_report *report, struct lk_table *table) {
    char caption[256];
    snprintf(caption, sizeof caption, "%s; scores: %s; pairs: %s", table->caption,
             report->options.score_source == LK_SCORES_HUMAN ? "mean of the raters" : "judges' ensemble",
             report->options.drifted_only ? "those whose baseline drifted" : "all");
    lk_table_caption(table, caption);
    lk_table_note(table, "Negative is improvement.");
}

/* Races in ascending order of the change of race drift; those without pairs last. */
static int64_t order_by_delta(struct lk_report *report, int order[LK_N_RACES]) {
    double key[LK_N_RACES];
    int64_t n = 0;
    for (int r = 0; r < LK_N_RACES; r++) {
        struct lk_group group = LK_GROUP_ANY;
        group.race = r;
        struct lk_paired p = paired(report, group, LK_AXIS_RACE_DRIFT, false);
        key[r] = p.n ? delta(p) : INFINITY;
        n += p.n;
        int at = r;
        for (; at > 0 && key[order[at - 1]] > key[r]; at--) order[at] = order[at - 1];
        order[at] = r;
    }
    return n;
}

static enum lk_code table_14(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "table_14", "Change reduction from the feature prompt (negative = improvement)",
                        "Race|>Δ Race|>Δ Gender|>Δ Skin"));
    const enum lk_axis axes[] = {LK_AXIS_RACE_DRIFT, LK_AXIS_GENDER_DRIFT, LK_AXIS_SKIN_TONE};
    int order[LK_N_RACES] = {0};
    table->no_data = !order_by_delta(report, order);
    for (int i = 0; i < LK_N_RACES; i++) {
        struct lk_group group = LK_GROUP_ANY;
        group.race = order[i];
        lk_table_row(table);
        lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_RACE, order[i]));
        for (int a = 0; a < 3; a++) delta_cell(table, paired(report, group, axes[a], false));
    }
    name_source(report, table);
    return lk_report_add(report, LK_SECTION_MITIGATION, table);
}

static enum lk_code table_19(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "table_19", "Race drift (1–5) before and after the feature prompt",
                        "Group|>Baseline Drift|>w/ Feature|>Δ"));
    int order[LK_N_RACES] = {0};
    table->no_data = !order_by_delta(report, order);
    for (int i = 0; i < LK_N_RACES; i++) {
        struct lk_group group = LK_GROUP_ANY;
        group.race = order[i];
        struct lk_paired p = paired(report, group, LK_AXIS_RACE_DRIFT, false);
        lk_table_row(table);
        lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_RACE, order[i]));
        if (p.n) {
            lk_table_fixed(table, p.edited / (double)p.n, 2);
            lk_table_fixed(table, p.preserved / (double)p.n, 2);
        } else {
            lk_table_none(table, "no pair with both scores");
            lk_table_none(table, "no pair with both scores");
        }
        delta_cell(table, p);
    }
    name_source(report, table);
    return lk_report_add(report, LK_SECTION_MITIGATION, table);
}

/* Every axis by model: pairs, both means, the change, and the change relative to the baseline. */
static void mitigation_rows(struct lk_report *report, struct lk_table *table, struct lk_group group, bool magnitude) {
    for (int axis = 0; axis < LK_N_AXES; axis++) {
        if (magnitude && axis != LK_AXIS_SKIN_TONE && axis != LK_AXIS_AGE_DRIFT) continue;
        struct lk_paired p = paired(report, group, axis, magnitude);
        lk_table_row(table);
        lk_table_text(table, magnitude ? "|%s − 3|" : "%s", lk_factor_display(LK_FACTOR_AXIS, axis));
        lk_table_count(table, p.n);
        if (!p.n) {
            for (int c = 0; c < 4; c++) lk_table_none(table, "no pair with both scores");
            continue;
        }
        lk_table_fixed(table, p.edited / (double)p.n, 2);
        lk_table_fixed(table, p.preserved / (double)p.n, 2);
        lk_table_signed(table, delta(p), 2);
        if (p.edited > 0)
            lk_table_signed(table, (p.preserved - p.edited) / p.edited, 2);
        else
            lk_table_none(table, "the baseline's mean is 0");
    }
}

static enum lk_code table_mitigation(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "mitigation", "Change by the feature prompt, every axis, overall and by model",
                        "Axis|>Pairs|>Baseline|>w/ Feature|>Δ|>Δ / baseline"));
    struct lk_group group = LK_GROUP_ANY;
    int64_t n = paired(report, group, LK_AXIS_RACE_DRIFT, false).n;
    lk_table_heading(table, "All models");
    mitigation_rows(report, table, group, false);
    mitigation_rows(report, table, group, true);
    for (int model = 0; model < LK_N_MODELS; model++) {
        lk_table_heading(table, lk_factor_display(LK_FACTOR_MODEL, model));
        group.model = model;
        mitigation_rows(report, table, group, false);
        mitigation_rows(report, table, group, true);
    }
    name_source(report, table);
    table->no_data = !n;
    return lk_report_add(report, LK_SECTION_MITIGATION, table);
}

enum lk_code lk_report_tables_pairs(struct lk_report *report) {
    LK_TRY(table_14(report));
    LK_TRY(table_19(report));
    return table_mitigation(report);
}
