/* How far the rates depend on conventions: rounding of two judges' mean, thresholds; and how far the judges agree. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/report/agreement.h"
#include "eval/report/build.h"
#include "eval/stats/agreement/gwet.h"
#include "eval/stats/tests/multiple.h"

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
                if (rates[m][c].n && c == (int)report->options.rounding) lk_table_bold(table);
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

/* Both judges' scores of an axis, of all outputs of experiments 1 and 2. */
struct both {
    size_t n;
    int32_t *g, *o; /* [n] */
    double *x, *y;  /* [n], the same */
};

static void collect(const struct lk_dataset *data, int axis, struct both *both) {
    struct lk_group group = LK_GROUP_ANY;
    group.arm = -1;
    both->n = 0;
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        if (!lk_group_has(&group, item) || !item->judge[0][axis] || !item->judge[1][axis]) continue;
        both->x[both->n] = both->g[both->n] = item->judge[0][axis];
        both->y[both->n] = both->o[both->n] = item->judge[1][axis];
        both->n++;
    }
}

static enum lk_code gwet_of(const struct both *both, struct lk_gwet *out) {
    int32_t *counts = lk_calloc(both->n + 1, 5 * sizeof *counts);
    if (!counts) return lk_fail(LK_E_NOMEM, "report: no memory for %zu scores", both->n);
    for (size_t i = 0; i < both->n; i++) {
        counts[5 * i + (size_t)both->g[i] - 1]++;
        counts[5 * i + (size_t)both->o[i] - 1]++;
    }
    enum lk_code rc = lk_gwet_ac(counts, both->n, 5, LK_WEIGHTS_QUADRATIC, out);
    lk_free(counts);
    return rc;
}

static enum lk_code judge_row(struct lk_table *table, int axis, const struct both *both) {
    struct lk_gwet gwet;
    struct lk_kappa plain, quadratic;
    struct lk_test rho;
    int64_t n = (int64_t)both->n, exact = 0, within = 0;
    for (size_t i = 0; i < both->n; i++) {
        exact += both->g[i] == both->o[i];
        within += abs(both->g[i] - both->o[i]) <= 1;
    }
    LK_TRY(lk_cohen_kappa(both->g, both->o, both->n, 1, 5, LK_WEIGHTS_NONE, &plain));
    LK_TRY(lk_cohen_kappa(both->g, both->o, both->n, 1, 5, LK_WEIGHTS_QUADRATIC, &quadratic));
    LK_TRY(lk_spearman(both->x, both->y, both->n, &rho));
    LK_TRY(gwet_of(both, &gwet));
    lk_table_row(table);
    lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_AXIS, axis));
    lk_table_count(table, n);
    lk_table_percent(table, exact, n);
    lk_table_percent(table, within, n);
    lk_table_percent(table, n - within, n);
    lk_report_number(table, &plain.kappa, 2);
    lk_report_number(table, &quadratic.kappa, 2);
    if (rho.undefined) {
        lk_table_none(table, rho.undefined);
    } else {
        lk_table_fixed(table, rho.statistic, 2);
        lk_table_remark(table, rho.p < 0.001 ? "p < 0.001" : "p = %.3f", rho.p);
    }
    lk_report_number(table, &gwet.ac, 2);
    if (n)
        lk_table_rate(table, gwet.prevalence);
    else
        lk_table_none(table, "no output with both scores");
    return LK_OK;
}

static enum lk_code judge_rows(struct lk_report *report, struct lk_table *table, struct both *both, size_t *n) {
    for (int axis = 0; axis < LK_N_AXES; axis++) {
        collect(report->data, axis, both);
        *n += both->n;
        LK_TRY(judge_row(table, axis, both));
    }
    return LK_OK;
}

static enum lk_code table_judges(struct lk_report *report) {
    size_t room = report->data->n_items, n = 0;
    struct both both = {.x = lk_malloc(room * 2 * (sizeof(double) + sizeof(int32_t)))};
    struct lk_table *table = NULL;
    if (!both.x) return lk_fail(LK_E_NOMEM, "report: no memory for %zu scores", room);
    both.y = both.x + room;
    both.g = (int32_t *)(void *)(both.y + room);
    both.o = both.g + room;
    enum lk_code rc = lk_table_new(&table, "t_judge", "Agreement of the two judges",
                                   "Axis|>n|>Exact|>Within 1|>Flagged|>κ|>κ quadratic|>ρ|>AC2|>Commonest");
    if (!rc) {
        rc = judge_rows(report, table, &both, &n);
    }
    lk_free(both.x);
    if (rc) {
        lk_table_free(table);
        return rc;
    }
    lk_table_note(table,
                  "Outputs with a score of both judges, both arms. Flagged: more than one level apart, the primary "
                  "judge's score counts. Kappa intervals: normal, 95%%, outputs taken as independent although "
                  "sources repeat. ρ: Spearman. AC2: Gwet's, quadratic weights. Where nearly all scores are the "
                  "commonest one, kappa tends to "
                  "be low and AC2 high, so both stand here with its share.");
    table->no_data = !n;
    return lk_report_add(report, LK_SECTION_ROBUSTNESS, table);
}

/* Both contrasts of every axis, and their p adjusted together. */
static enum lk_code table_kinship(struct lk_report *report) {
    enum { N = 2 * LK_N_AXES };
    struct lk_kinship kin[N];
    double p[N];
    size_t n_p = 0;
    struct lk_table *table;
    for (int i = 0; i < N; i++) {
        LK_TRY(lk_judges_kinship(report->data, i / 2, i % 2, 1 - report->options.alpha, &kin[i]));
        if (!isnan(kin[i].p)) p[n_p++] = kin[i].p;
    }
    LK_TRY(lk_adjust_p(p, n_p, LK_ADJUST_BENJAMINI_HOCHBERG, p));
    LK_TRY(lk_table_new(&table, "t_kinship", "Whether a judge favours its own family's editor",
                        "Axis|Editors|>Sources|>Difference of judges|>p|>p adjusted"));
    for (size_t i = 0, at = 0; i < N; i++) {
        lk_table_row(table);
        lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_AXIS, (int)i / 2));
        lk_table_text(table, i % 2 ? "Qwen and Step1X, less FLUX.2" : "Qwen, less the other two");
        lk_table_count(table, (int64_t)kin[i].difference.n);
        lk_report_number(table, &kin[i].difference, 2);
        if (isnan(kin[i].p)) {
            for (int c = 0; c < 2; c++) lk_table_none(table, "the difference is the same for all sources");
        } else {
            lk_table_p(table, kin[i].p);
            lk_table_p(table, p[at++]);
        }
    }
    lk_table_note(table,
                  "The primary judge's score less the secondary's, averaged by editor and source; baseline arm. A "
                  "judge who is stricter with all editors alike cancels out. No judge is neutral: Qwen2.5-VL encodes "
                  "the prompts of Qwen-Image-Edit and Step1X-Edit, Mistral-Small those of FLUX.2. Student's t over "
                  "sources, %g%%; adjusted: Benjamini-Hochberg over this table. A difference may have a real reason; "
                  "the table of judges against raters tells.",
                  100 * (1 - report->options.alpha));
    table->no_data = !n_p && !kin[0].difference.n;
    return lk_report_add(report, LK_SECTION_ROBUSTNESS, table);
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
    LK_TRY(table_judges(report));
    LK_TRY(table_kinship(report));
    return table_thresholds(report);
}
