/* How far the two judges agree: of each axis, and of each model's outputs of each race. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/alloc.h"
#include "eval/report/agreement.h"
#include "eval/report/build.h"
#include "eval/stats/agreement/gwet.h"
#include "eval/stats/tests/multiple.h"

static enum lk_code no_memory(void) { return lk_fail(LK_E_NOMEM, "report: out of memory for the judges' scores"); }

/* Both judges' scores of an axis. */
struct both {
    size_t n;
    int32_t *g, *o; /* [n] */
    double *x, *y;  /* [n], the same */
};

static void collect(const struct lk_dataset *data, const struct lk_group *group, int axis, struct both *both) {
    both->n = 0;
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        if (!lk_group_has(group, item) || !item->judge[0][axis] || !item->judge[1][axis]) continue;
        both->x[both->n] = both->g[both->n] = item->judge[0][axis];
        both->y[both->n] = both->o[both->n] = item->judge[1][axis];
        both->n++;
    }
}

static enum lk_code gwet_of(const struct both *both, struct lk_gwet *out) {
    int32_t *counts = lk_calloc(both->n + 1, 5 * sizeof *counts);
    if (!counts) return no_memory();
    for (size_t i = 0; i < both->n; i++) {
        counts[5 * i + (size_t)both->g[i] - 1]++;
        counts[5 * i + (size_t)both->o[i] - 1]++;
    }
    enum lk_code rc = lk_gwet_ac(counts, both->n, 5, LK_WEIGHTS_QUADRATIC, out);
    lk_free(counts);
    return rc;
}

struct agreed {
    int64_t n, exact, within;
    struct lk_kappa plain, quadratic;
    struct lk_test rho;
    struct lk_gwet gwet;
};

static enum lk_code agreed_of(const struct both *both, struct agreed *out) {
    *out = (struct agreed){.n = (int64_t)both->n};
    for (size_t i = 0; i < both->n; i++) {
        out->exact += both->g[i] == both->o[i];
        out->within += abs(both->g[i] - both->o[i]) <= 1;
    }
    LK_TRY(lk_cohen_kappa(both->g, both->o, both->n, 1, 5, LK_WEIGHTS_NONE, &out->plain));
    LK_TRY(lk_cohen_kappa(both->g, both->o, both->n, 1, 5, LK_WEIGHTS_QUADRATIC, &out->quadratic));
    LK_TRY(lk_spearman(both->x, both->y, both->n, &out->rho));
    return gwet_of(both, &out->gwet);
}

static void rho_cell(struct lk_table *table, const struct lk_test *rho) {
    if (rho->undefined) {
        lk_table_none(table, rho->undefined);
    } else {
        lk_table_fixed(table, rho->statistic, 2);
        lk_table_remark(table, rho->p < 0.001 ? "p < 0.001" : "p = %.3f", rho->p);
    }
}

static void gwet_cells(struct lk_table *table, const struct agreed *agreed) {
    lk_report_number(table, &agreed->gwet.ac, 2);
    if (agreed->n)
        lk_table_rate(table, agreed->gwet.prevalence);
    else
        lk_table_none(table, "no output with both scores");
}

/* Outputs of a group whose judges are from `least` to `most` levels apart. */
struct apart {
    const struct lk_group *group;
    int axis, least, most;
};

static bool are_apart(const struct lk_report *report, const struct lk_item *item, const void *context) {
    (void)report;
    const struct apart *at = context;
    int g = item->judge[0][at->axis], o = item->judge[1][at->axis];
    return g && o && abs(g - o) >= at->least && abs(g - o) <= at->most && lk_group_has(at->group, item);
}

/* The shares of equal scores, of those at most a level apart, and with `differ` of all others. */
static void share_cells(struct lk_report *report, struct lk_table *table, const struct lk_group *group, int axis,
                        const struct agreed *agreed, bool differ) {
    static const struct {
        int least, most;
        const char *key, *title;
    } kinds[] = {{0, 0, "equal", "give the same score"},
                 {0, 1, "within-1", "are at most one level apart"},
                 {2, 4, "differ", "are more than one level apart"}};
    const int64_t counts[] = {agreed->exact, agreed->within, agreed->n - agreed->within};
    for (int i = 0; i < 2 + differ; i++) {
        const struct apart at = {group, axis, kinds[i].least, kinds[i].most};
        char title[256], of[128] = "", key[96] = "";
        if (group->model >= 0) {
            snprintf(of, sizeof of, "%s, %s, ", lk_factor_display(LK_FACTOR_MODEL, group->model),
                     lk_factor_display(LK_FACTOR_RACE, group->race));
            snprintf(key, sizeof key, "-%s-%s", lk_factor_key(LK_FACTOR_MODEL, group->model),
                     lk_factor_key(LK_FACTOR_RACE, group->race));
        }
        snprintf(title, sizeof title, "%s%s: the judges %s", of, lk_factor_display(LK_FACTOR_AXIS, axis),
                 kinds[i].title);
        lk_table_percent(table, counts[i], agreed->n);
        lk_report_link_picked(report, table, are_apart, &at, title, "judges-%s-%s%s", kinds[i].key,
                              lk_factor_key(LK_FACTOR_AXIS, axis), key);
    }
}

static enum lk_code judge_row(struct lk_report *report, struct lk_table *table, const struct lk_group *group, int axis,
                              const struct both *both) {
    struct agreed agreed;
    LK_TRY(agreed_of(both, &agreed));
    lk_table_row(table);
    lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_AXIS, axis));
    lk_table_count(table, agreed.n);
    share_cells(report, table, group, axis, &agreed, true);
    lk_report_number(table, &agreed.plain.kappa, 2);
    lk_report_number(table, &agreed.quadratic.kappa, 2);
    rho_cell(table, &agreed.rho);
    gwet_cells(table, &agreed);
    return LK_OK;
}

static enum lk_code judge_rows(struct lk_report *report, struct lk_table *table, struct both *both) {
    struct lk_group all = LK_GROUP_ANY;
    all.arm = -1;
    for (int axis = 0; axis < LK_N_AXES; axis++) {
        collect(report->data, &all, axis, both);
        LK_TRY(judge_row(report, table, &all, axis, both));
    }
    return LK_OK;
}

static enum lk_code table_judges(struct lk_report *report, struct both *both, bool any) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "t_judge", "Agreement of the two judges",
                        "Axis|>n|>Exact|>Within 1|>Flagged|>κ|>κ quadratic|>ρ|>AC2|>Commonest"));
    enum lk_code rc = judge_rows(report, table, both);
    if (rc) {
        lk_table_free(table);
        return rc;
    }
    lk_table_note(table,
                  "Outputs with a score of both judges, both arms. Flagged: more than one level apart, the primary "
                  "judge's score counts. Kappa intervals: normal, 95%%, outputs taken as independent although "
                  "sources repeat. ρ: Spearman. AC2: Gwet's, quadratic weights. Where nearly all scores are the "
                  "commonest one, kappa tends to be low and AC2 high, so both stand here with its share.");
    table->no_data = !any;
    return lk_report_add(report, LK_SECTION_ROBUSTNESS, table);
}

/* Of one model's outputs of one race. */
struct cell {
    int axis, model, race;
    struct agreed agreed;
    struct lk_lean lean;
};

static enum lk_code cells_of(const struct lk_report *report, struct both *both, struct cell *cells, size_t *n) {
    for (int axis = 0; axis < LK_N_AXES; axis++)
        for (int model = 0; model < LK_N_MODELS; model++)
            for (int race = 0; race < LK_N_RACES; race++) {
                struct cell *cell = &cells[*n];
                struct lk_group group = LK_GROUP_ANY;
                group.arm = -1, group.model = model, group.race = race;
                *cell = (struct cell){.axis = axis, .model = model, .race = race};
                collect(report->data, &group, axis, both);
                LK_TRY(agreed_of(both, &cell->agreed));
                LK_TRY(lk_judges_lean(report->data, &group, axis, 1 - report->options.alpha, &cell->lean));
                *n += both->n > 0;
            }
    return LK_OK;
}

static void cell_row(struct lk_report *report, struct lk_table *table, const struct cell *cell, double adjusted) {
    const struct agreed *a = &cell->agreed;
    struct lk_group group = LK_GROUP_ANY;
    group.arm = -1, group.model = cell->model, group.race = cell->race;
    lk_table_row(table);
    lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_MODEL, cell->model));
    lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_RACE, cell->race));
    lk_table_count(table, a->n);
    share_cells(report, table, &group, cell->axis, a, false);
    lk_report_number(table, &a->quadratic.kappa, 2);
    rho_cell(table, &a->rho);
    gwet_cells(table, a);
    lk_table_signed(table, (double)(cell->lean.sum[1] - cell->lean.sum[0]) / (double)a->n, 2);
    if (cell->lean.difference.low < cell->lean.difference.high)
        lk_table_interval(table, cell->lean.difference.low, cell->lean.difference.high);
    if (isnan(adjusted))
        lk_table_none(table, cell->lean.sign.undefined);
    else
        lk_table_p(table, adjusted);
}

static enum lk_code group_rows(struct lk_report *report, struct lk_table *table, struct both *both,
                               struct cell *cells) {
    enum { N = LK_N_AXES * LK_N_MODELS * LK_N_RACES };
    double p[N];
    size_t n = 0, n_p = 0;
    LK_TRY(cells_of(report, both, cells, &n));
    for (size_t i = 0; i < n; i++)
        if (!cells[i].lean.sign.undefined) p[n_p++] = cells[i].lean.sign.p;
    LK_TRY(lk_adjust_p(p, n_p, LK_ADJUST_BENJAMINI_HOCHBERG, p));
    for (size_t i = 0, at = 0; i < n; i++) {
        if (!i || cells[i].axis != cells[i - 1].axis)
            lk_table_heading(table, lk_factor_display(LK_FACTOR_AXIS, cells[i].axis));
        cell_row(report, table, &cells[i], cells[i].lean.sign.undefined ? NAN : p[at++]);
    }
    return LK_OK;
}

static enum lk_code table_groups(struct lk_report *report, struct both *both) {
    struct cell *cells = lk_calloc(LK_N_AXES * LK_N_MODELS * LK_N_RACES + 1, sizeof *cells);
    struct lk_table *table = NULL;
    if (!cells) return no_memory();
    enum lk_code rc =
        lk_table_new(&table, "t_judge_groups", "Agreement of the two judges by model and race",
                     "Model|Race|>n|>Exact|>Within 1|>κ quadratic|>ρ|>AC2|>Commonest|>Difference|>p adjusted");
    if (!rc) rc = group_rows(report, table, both, cells);
    lk_free(cells);
    if (rc) {
        lk_table_free(table);
        return rc;
    }
    lk_table_note(table, "As the table of all outputs. Difference: the secondary judge's mean less the primary's, with "
                         "an interval that counts sources (CR2). p: whether the secondary judge gives more as often "
                         "as less, exact, outputs taken as independent; Benjamini-Hochberg over this table. A judge "
                         "who sees change less well on some faces makes a disparity that is none.");
    return lk_report_add(report, LK_SECTION_ROBUSTNESS, table);
}

enum lk_code lk_report_tables_judges(struct lk_report *report) {
    size_t room = report->data->n_items;
    struct both both = {.x = lk_malloc(room * 2 * (sizeof(double) + sizeof(int32_t)))};
    bool any = false;
    if (!both.x) return no_memory();
    both.y = both.x + room;
    both.g = (int32_t *)(void *)(both.y + room);
    both.o = both.g + room;
    for (size_t i = 0; i < room && !any; i++)
        for (int axis = 0; axis < LK_N_AXES; axis++)
            any |= report->data->items[i].judge[0][axis] && report->data->items[i].judge[1][axis];
    enum lk_code rc = table_judges(report, &both, any);
    if (!rc) rc = table_groups(report, &both);
    lk_free(both.x);
    return rc;
}
