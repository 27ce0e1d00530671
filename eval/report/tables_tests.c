/* The study's hypothesis tests in families, with the tests that allow for repeated sources beside, and what
 * they say about the research questions. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/report/build.h"
#include "eval/report/observations.h"
#include "eval/stats/models/cluster_means.h"
#include "eval/stats/tests/count_tests.h"
#include "eval/stats/tests/multiple.h"
#include "eval/stats/resampling/permutation.h"
#include "eval/stats/tests/rank_tests.h"
#include "eval/stats/special/special.h"

enum { FAMILY_MAX = LK_N_RACES * (LK_N_RACES - 1) / 2, OTHERS = -1 };

/* One row. by_source: the p that allows for clusters, and how it was found. */
struct row {
    const char *name, *axis;
    char groups[96];
    struct lk_test test;
    struct lk_number by_source;
    const char *by_source_name;
    int decimals;    /* of the statistic: 2 of a standard normal one, 1 of all others */
    bool own_choice; /* the study reports this one, not adjusted */
};

struct family {
    struct row rows[FAMILY_MAX];
    int n;
};

static struct row *add(struct family *family, const char *name, const char *axis, int decimals) {
    struct row *row = &family->rows[family->n++];
    memset(row, 0, sizeof *row);
    row->name = name;
    row->axis = axis;
    row->decimals = decimals;
    return row;
}

/* p of the rows that are defined, in their order, adjusted within the family. */
static enum lk_code adjust(const struct family *family, double adjusted[FAMILY_MAX]) {
    double p[FAMILY_MAX];
    size_t n = 0;
    for (int i = 0; i < family->n; i++)
        if (!family->rows[i].test.undefined) p[n++] = family->rows[i].test.p;
    return lk_adjust_p(p, n, LK_ADJUST_BENJAMINI_HOCHBERG, adjusted);
}

static enum lk_code print(struct lk_table *table, const char *heading, const struct family *family) {
    double adjusted[FAMILY_MAX];
    size_t at = 0, n = 0;
    for (int i = 0; i < family->n; i++) n += family->rows[i].test.n;
    if (!n) return LK_OK; /* nobody gave what it takes */
    LK_TRY(adjust(family, adjusted));
    lk_table_heading(table, heading);
    for (int i = 0; i < family->n; i++) {
        const struct row *row = &family->rows[i];
        lk_table_row(table);
        lk_table_text(table, "%s", row->name);
        lk_table_text(table, "%s", row->axis);
        lk_table_text(table, "%s", row->groups);
        lk_table_count(table, (int64_t)row->test.n);
        if (row->test.undefined) {
            for (int c = 0; c < 6; c++) lk_table_none(table, row->test.undefined);
            continue;
        }
        lk_table_fixed(table, row->test.statistic, row->decimals);
        lk_table_p(table, row->test.p);
        if (row->own_choice) {
            lk_table_bold(table);
            lk_table_remark(table, "the study's own choice of test, not adjusted");
        }
        lk_table_p(table, adjusted[at++]);
        if (row->test.effect_name) {
            lk_table_signed(table, row->test.effect, 2);
            lk_table_remark(table, "%s", row->test.effect_name);
        } else {
            lk_table_none(table, "the test has none");
        }
        lk_table_text(table, "%s", row->test.method);
        if (row->by_source.undefined) {
            lk_table_none(table, row->by_source.undefined);
        } else {
            lk_table_p(table, row->by_source.value);
            lk_table_remark(table, "%s", row->by_source_name);
        }
    }
    return LK_OK;
}

static struct lk_resampling resampling(const struct lk_report *report) {
    return (struct lk_resampling){report->options.study_seed, (int)report->options.n_bootstrap,
                                  1 - report->options.alpha, NULL, 0};
}

/* All races, shuffled among the sources: whatever the sources' distribution. A Wald test with errors by source rejects
 * too often when sources differ much and not normally, even CR2's; a race has 12 of them. */
static enum lk_code races_by_source(const struct lk_report *report, const struct lk_observations *o, struct row *row) {
    double means[LK_N_SOURCES];
    int32_t races[LK_N_SOURCES];
    size_t n = lk_observations_source_means(o, means, races);
    struct lk_resampling how = resampling(report);
    struct lk_test test;
    LK_TRY(lk_permutation_groups(means, races, n, LK_N_RACES, &how, &test));
    row->by_source.value = test.p;
    row->by_source.undefined = test.undefined;
    row->by_source_name = "permutation of the sources' means, sum of squares between races";
    return LK_OK;
}

/* Means of the sources of race a against those of race b (OTHERS: all but a), races shuffled among sources. */
static enum lk_code permutation_by_source(const struct lk_report *report, const struct lk_observations *o, int a, int b,
                                          struct row *row) {
    double means[LK_N_SOURCES];
    int32_t races[LK_N_SOURCES], labels[LK_N_SOURCES];
    size_t n_sources = lk_observations_source_means(o, means, races), n = 0;
    for (size_t i = 0; i < n_sources; i++) {
        if (races[i] != a && b != OTHERS && races[i] != b) continue;
        means[n] = means[i];
        labels[n++] = races[i] == a;
    }
    struct lk_resampling how = resampling(report);
    struct lk_test test;
    LK_TRY(lk_permutation_means(means, labels, n, &how, &test));
    row->by_source.value = test.p;
    row->by_source.undefined = test.undefined;
    row->by_source_name = "permutation of the sources' means";
    return LK_OK;
}

/* The mean change against 0, its error clustered by source. */
static enum lk_code change_by_source(const struct lk_report *report, const struct lk_observations *o, struct row *row) {
    struct lk_cluster_mean mean;
    LK_TRY(lk_cluster_mean(o->value, o->source, o->n, 1 - report->options.alpha, &mean));
    row->by_source_name = "Student's t of the mean change, error clustered by source (CR2, Satterthwaite's df)";
    if (mean.n_clusters < 2 || !(mean.cr2_error > 0))
        row->by_source.undefined = "fewer than two sources, or no variance between them";
    else
        row->by_source.value = lk_t_two_sided(mean.cr2.value / mean.cr2_error, mean.cr2_df);
    return LK_OK;
}

/* Values race by race without the races that have none; sizes [LK_N_RACES]. */
static int present_races(const struct lk_observations *o, double *values, size_t sizes[LK_N_RACES],
                         int races[LK_N_RACES]) {
    size_t all[LK_N_RACES];
    int n = 0;
    lk_observations_by_race(o, values, all);
    for (int race = 0; race < LK_N_RACES; race++)
        if (all[race]) {
            sizes[n] = all[race];
            races[n++] = race;
        }
    return n;
}

static enum lk_code kruskal(const struct lk_report *report, const struct lk_observations *o, double *values,
                            struct row *row) {
    size_t sizes[LK_N_RACES];
    int races[LK_N_RACES], n = present_races(o, values, sizes, races);
    snprintf(row->groups, sizeof row->groups, "%d races", n);
    LK_TRY(lk_kruskal_wallis(values, sizes, (size_t)n, &row->test));
    return races_by_source(report, o, row);
}

static enum lk_code white_against_others(const struct lk_report *report, const struct lk_observations *o,
                                         double *values, struct row *row) {
    size_t sizes[LK_N_RACES];
    lk_observations_by_race(o, values, sizes);
    snprintf(row->groups, sizeof row->groups, "White, all others");
    LK_TRY(lk_mann_whitney(values, sizes[0], values + sizes[0], o->n - sizes[0], NULL, &row->test));
    return permutation_by_source(report, o, 0, OTHERS, row);
}

static enum lk_code changes(const struct lk_report *report, const struct lk_observations *o, struct row *row) {
    const struct lk_wilcoxon_options plain = {.zero_method = LK_ZERO_WILCOX};
    snprintf(row->groups, sizeof row->groups, "%zu pairs", o->n);
    LK_TRY(lk_wilcoxon(o->value, o->n, &plain, &row->test));
    return change_by_source(report, o, row);
}

enum kind { KRUSKAL, MANN_WHITNEY, WILCOXON, N_KINDS };
_Static_assert(LK_N_HUMAN_TESTS == N_KINDS * LK_N_AXES, "a test of each kind and axis");
static const char *const kinds[N_KINDS] = {"Kruskal–Wallis H", "Mann–Whitney U", "Wilcoxon T"};

static enum lk_code rank_row(const struct lk_report *report, enum kind kind, enum lk_axis axis,
                             enum lk_score_source source, struct row *row) {
    const struct lk_group edited = LK_GROUP_ANY;
    struct lk_observations o;
    LK_TRY(kind == WILCOXON ? lk_observe_changes(report->data, edited, axis, source, &o)
                            : lk_observe_scores(report->data, &edited, axis, source, &o));
    double *values = lk_malloc(o.n * sizeof *values);
    enum lk_code rc = LK_OK;
    if (!values)
        rc = lk_fail(LK_E_NOMEM, "report: no memory for %zu observations", o.n);
    else if (kind == KRUSKAL)
        rc = kruskal(report, &o, values, row);
    else if (kind == MANN_WHITNEY)
        rc = white_against_others(report, &o, values, row);
    else
        rc = changes(report, &o, row);
    if (row->test.undefined) row->test.n = o.n;
    lk_free(values);
    lk_observations_free(&o);
    return rc;
}

/* One kind of test on one source of scores over the five axes. */
static enum lk_code rank_family(const struct lk_report *report, enum kind kind, enum lk_score_source source,
                                struct family *family) {
    family->n = 0;
    for (int axis = 0; axis < LK_N_AXES; axis++) {
        struct row *row = add(family, kinds[kind], lk_factor_display(LK_FACTOR_AXIS, axis), 1);
        row->own_choice = source == LK_SCORES_HUMAN && (kind == WILCOXON || axis == LK_AXIS_SKIN_TONE);
        LK_TRY(rank_row(report, kind, axis, source, row));
    }
    return LK_OK;
}

enum lk_code lk_report_human_tests(const struct lk_report *report, struct lk_human_test out[LK_N_HUMAN_TESTS]) {
    struct family *family = lk_malloc(sizeof *family);
    enum lk_code rc = family ? LK_OK : lk_fail(LK_E_NOMEM, "report: no memory for tests");
    for (int kind = 0; kind < N_KINDS && !rc; kind++) {
        double adjusted[FAMILY_MAX];
        int at = 0;
        rc = rank_family(report, kind, LK_SCORES_HUMAN, family);
        if (!rc) rc = adjust(family, adjusted);
        for (int i = 0; i < family->n && !rc; i++) {
            const struct row *row = &family->rows[i];
            out[kind * LK_N_AXES + i] = (struct lk_human_test){
                row->name, row->axis, row->test, row->test.undefined ? 1 : adjusted[at++], row->by_source};
        }
    }
    lk_free(family);
    return rc;
}

static enum lk_code drift_row(const struct lk_report *report, int model, bool chi_square, enum lk_score_source source,
                              struct row *row) {
    struct lk_group group = LK_GROUP_ANY;
    group.model = model;
    const char *of = model < 0 ? "all models" : lk_factor_short(LK_FACTOR_MODEL, model);
    snprintf(row->groups, sizeof row->groups, chi_square ? "race × drift, %s" : "White, all others, %s", of);
    struct lk_observations o;
    LK_TRY(lk_observe_measure(report->data, &group, LK_MEASURE_RACE_DRIFT, source, &report->options.thresholds, &o));
    int64_t counts[LK_N_RACES][2] = {{0}}, others[2] = {0, 0};
    for (size_t i = 0; i < o.n; i++) {
        counts[o.race[i]][o.value[i] > 0]++;
        if (o.race[i]) others[o.value[i] > 0]++;
    }
    struct lk_contingency contingency;
    enum lk_code rc = chi_square ? lk_chi2_contingency(&counts[0][0], LK_N_RACES, 2, &contingency, NULL, NULL)
                                 : lk_two_proportions(counts[0][1], counts[0][0] + counts[0][1], others[1],
                                                      others[0] + others[1], LK_TWO_SIDED, &row->test);
    if (!rc && chi_square) {
        row->test = contingency.test;
        if (!row->test.undefined && contingency.n_small)
            snprintf(row->groups + strlen(row->groups), sizeof row->groups - strlen(row->groups),
                     "; %zu expected counts below 5", contingency.n_small);
    }
    row->test.n = o.n;
    if (!rc) rc = chi_square ? races_by_source(report, &o, row) : permutation_by_source(report, &o, 0, OTHERS, row);
    lk_observations_free(&o);
    return rc;
}

enum lk_code lk_report_drift_test(const struct lk_report *report, enum lk_score_source source,
                                  struct lk_drift_test *out) {
    struct row row = {.by_source.undefined = "no outputs"};
    LK_TRY(drift_row(report, -1, true, source, &row));
    *out = (struct lk_drift_test){row.test, row.by_source};
    return LK_OK;
}

static enum lk_code drift_family(const struct lk_report *report, bool chi_square, enum lk_score_source source,
                                 struct family *family) {
    family->n = 0;
    for (int model = -1; model < LK_N_MODELS; model++)
        LK_TRY(drift_row(report, model, chi_square, source,
                         add(family, chi_square ? "χ²" : "Two-proportion z", lk_measure_name(LK_MEASURE_RACE_DRIFT),
                             chi_square ? 1 : 2)));
    return LK_OK;
}

static enum lk_code dunn_rows(const struct lk_report *report, const struct lk_observations *o, double *values,
                              struct family *family) {
    size_t sizes[LK_N_RACES];
    int races[LK_N_RACES], n = present_races(o, values, sizes, races), at = 0;
    struct lk_test tests[FAMILY_MAX];
    family->n = 0;
    if (n < 2) return LK_OK;
    LK_TRY(lk_dunn(values, sizes, (size_t)n, tests));
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            struct row *row = add(family, "Dunn z", lk_factor_display(LK_FACTOR_AXIS, LK_AXIS_SKIN_TONE), 2);
            row->test = tests[at++];
            snprintf(row->groups, sizeof row->groups, "%s, %s", lk_factor_display(LK_FACTOR_RACE, races[i]),
                     lk_factor_display(LK_FACTOR_RACE, races[j]));
            LK_TRY(permutation_by_source(report, o, races[i], races[j], row));
        }
    return LK_OK;
}

static enum lk_code dunn_family(const struct lk_report *report, enum lk_score_source source, struct family *family) {
    const struct lk_group edited = LK_GROUP_ANY;
    struct lk_observations o;
    LK_TRY(lk_observe_scores(report->data, &edited, LK_AXIS_SKIN_TONE, source, &o));
    double *values = lk_malloc(o.n * sizeof *values);
    enum lk_code rc = values ? dunn_rows(report, &o, values, family)
                             : lk_fail(LK_E_NOMEM, "report: no memory for %zu observations", o.n);
    lk_free(values);
    lk_observations_free(&o);
    return rc;
}

static enum lk_code families(const struct lk_report *report, struct lk_table *table, struct family *family) {
    static const char *const sources[] = {"judges' ensemble", "human mean"};
    char heading[128];
    for (int s = LK_SCORES_HUMAN; s >= LK_SCORES_JUDGE; s--)
        for (int kind = 0; kind < N_KINDS; kind++) {
            LK_TRY(rank_family(report, kind, s, family));
            snprintf(heading, sizeof heading, "%s, %s", kinds[kind], sources[s]);
            LK_TRY(print(table, heading, family));
        }
    for (int s = LK_SCORES_JUDGE; s <= LK_SCORES_HUMAN; s++)
        for (int chi_square = 1; chi_square >= 0; chi_square--) {
            LK_TRY(drift_family(report, chi_square, s, family));
            snprintf(heading, sizeof heading, "%s%s",
                     chi_square ? "Race × race change" : "Race change, White against all others",
                     s == LK_SCORES_HUMAN ? ", raters' majority" : "");
            LK_TRY(print(table, heading, family));
        }
    for (int s = LK_SCORES_HUMAN; s >= LK_SCORES_JUDGE; s--) {
        LK_TRY(dunn_family(report, s, family));
        snprintf(heading, sizeof heading, "Dunn after Kruskal–Wallis, skin tone, %s", sources[s]);
        LK_TRY(print(table, heading, family));
    }
    return LK_OK;
}

static enum lk_code table_tests(struct lk_report *report, struct family *family) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "t_test", "Hypothesis tests",
                        "Test|Axis|Groups|>n|>Statistic|>p|>Adjusted p|>Effect size|Method|>p by source"));
    enum lk_code rc = families(report, table, family);
    if (rc) {
        lk_table_free(table);
        return rc;
    }
    lk_table_note(
        table, "Two-sided; baseline arm, but Wilcoxon on preserved − edited. Adjusted: Benjamini–Hochberg within the "
               "family under one heading. Bold: the study's own choice, not adjusted. Sources repeat across "
               "prompts; the study's own tests (p) treat outputs as independent, the last column does not; both are "
               "reported and neither p by source is adjusted.");
    const struct lk_group any = LK_GROUP_ANY;
    double value;
    bool data = false;
    for (size_t i = 0; i < report->data->n_items && !data; i++)
        for (int axis = 0; axis < LK_N_AXES; axis++)
            data |= lk_group_has(&any, &report->data->items[i]) &&
                    (lk_item_score(&report->data->items[i], axis, LK_SCORES_JUDGE, &value) ||
                     lk_item_score(&report->data->items[i], axis, LK_SCORES_HUMAN, &value));
    table->no_data = !data;
    return lk_report_add(report, LK_SECTION_TESTS, table);
}

enum lk_code lk_report_tables_tests(struct lk_report *report) {
    struct family *family = lk_malloc(sizeof *family);
    if (!family) return lk_fail(LK_E_NOMEM, "report: no memory for tests");
    enum lk_code rc = table_tests(report, family);
    lk_free(family);
    return rc;
}
