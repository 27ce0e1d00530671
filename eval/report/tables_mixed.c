/* The mixed design: race x model x prompt on the judges' scores, each term tested by source and as if outputs were
 * independent. */
#include "eval/report/build.h"
#include "eval/report/observations.h"
#include "eval/stats/models/linear_model.h"
#include "eval/stats/resampling/permutation.h"

enum { RACE, N_COLUMNS = 10 };
static const char *const terms_printed[] = {"race",         "model",         "prompt",
                                            "race × model", "race × prompt", "model × prompt"};

/* p of race, from the sources' means shuffled among races. */
static enum lk_code shuffle_races(const struct lk_report *report, const struct lk_observations *o,
                                  struct lk_test *out) {
    double means[LK_N_SOURCES];
    int32_t races[LK_N_SOURCES];
    size_t n = lk_observations_source_means(o, means, races);
    const struct lk_resampling how = {report->options.study_seed, (int)report->options.n_bootstrap,
                                      1 - report->options.alpha, NULL, 0};
    return lk_permutation_groups(means, races, n, LK_N_RACES, &how, out);
}

static void p_cell(struct lk_table *table, double p, const char *undefined) {
    if (undefined)
        lk_table_none(table, undefined);
    else
        lk_table_p(table, p);
}

static void wald_cells(struct lk_table *table, const struct lk_wald *wald, int decimals) {
    if (wald->undefined) {
        for (int c = 0; c < 3; c++) lk_table_none(table, wald->undefined);
        return;
    }
    lk_table_fixed(table, wald->f, 1);
    lk_table_fixed(table, wald->df2, decimals);
    lk_table_p(table, wald->p_f);
}

static enum lk_code term_row(struct lk_table *table, const struct lk_linear_model *model, int t,
                             const struct lk_test *permutation) {
    struct lk_wald htz;
    lk_table_row(table);
    lk_table_text(table, "%s", terms_printed[t]);
    if (model->undefined) {
        for (int c = 1; c < N_COLUMNS; c++) lk_table_none(table, model->undefined);
        return LK_OK;
    }
    LK_TRY(lk_linear_model_term(model, t, &htz));
    const struct lk_model_term_test *test = &model->terms[t];
    lk_table_count(table, test->df);
    p_cell(table, t == RACE ? permutation->p : htz.p_f, t == RACE ? permutation->undefined : htz.undefined);
    lk_table_bold(table);
    if (t == RACE) lk_table_remark(table, "permutation of the sources' means");
    wald_cells(table, &htz, 1);
    p_cell(table, test->clustered.p_f, test->clustered.undefined);
    wald_cells(table, &test->independent, 0);
    return LK_OK;
}

static enum lk_code model_rows(const struct lk_report *report, struct lk_table *table,
                               const struct lk_observations *o) {
    static const struct lk_model_term terms[] = {{0, -1}, {1, -1}, {2, -1}, {0, 1}, {0, 2}, {1, 2}};
    static const struct { int n_terms, first; } fits[] = {{3, 0}, {6, 3}};
    const struct lk_model_factor factors[] = {
        {"race", o->race, LK_N_RACES}, {"model", o->model, LK_N_MODELS}, {"prompt", o->prompt, LK_N_EDIT_PROMPTS}};
    struct lk_test permutation;
    enum lk_code rc = shuffle_races(report, o, &permutation);
    for (int f = 0; f < 2 && !rc; f++) {
        struct lk_linear_model *model;
        LK_TRY(lk_linear_model_fit(o->value, o->n, factors, 3, terms, fits[f].n_terms, o->source, &model));
        for (int t = fits[f].first; t < fits[f].n_terms && !rc; t++) rc = term_row(table, model, t, &permutation);
        lk_linear_model_free(model);
    }
    return rc;
}

static enum lk_code all_axes(const struct lk_report *report, struct lk_table *table, int64_t *n) {
    for (int axis = 0; axis < LK_N_AXES; axis++) {
        const struct lk_group all = LK_GROUP_ANY;
        struct lk_observations o;
        LK_TRY(lk_observe_scores(report->data, &all, axis, LK_SCORES_JUDGE, &o));
        *n += (int64_t)o.n;
        if (o.n) lk_table_heading(table, lk_factor_display(LK_FACTOR_AXIS, axis));
        enum lk_code rc = o.n ? model_rows(report, table, &o) : LK_OK;
        lk_observations_free(&o);
        LK_TRY(rc);
    }
    return LK_OK;
}

enum lk_code lk_report_tables_mixed(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "mixed_design", "Mixed design: race × model × prompt, tests per term",
                        "Term|>df|>p, sources|>F, HTZ|>df2, HTZ|"
                        ">p, HTZ|>p, CR1|>F, outputs|>df2, outputs|>p, outputs"));
    int64_t n = 0;
    enum lk_code rc = all_axes(report, table, &n);
    if (rc) {
        lk_table_free(table);
        return rc;
    }
    lk_table_note(
        table,
        "Least squares on the judges' scores, baseline arm. Race, model and prompt are tested in the model of main "
        "effects, interactions in the model with all three; race × prompt has more columns than there are sources, so "
        "that no test by source exists. p, sources is the one to read. It is the HTZ test: errors by source with "
        "bias-reduced linearisation (CR2) and the approximate Hotelling's T² of Pustejovsky and Tipton (2018), which "
        "keep their level with few sources. For race it is the permutation of the sources' means: with 12 sources a "
        "race that differ much, HTZ flags 8%% of data without an effect at 5%%. CR1, the usual sandwich with one "
        "degree of freedom less than there are sources, flags 12 to 20%% for race and for prompt, and tests by output "
        "more where sources differ. " LK_REPEATED_SOURCES);
    table->no_data = !n;
    return lk_report_add(report, LK_SECTION_TESTS, table);
}
