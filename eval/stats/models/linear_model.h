/* A linear model of factors (race x model x prompt) by least squares, with errors that allow for clusters: scores of
 * one source go together. What independence would give is reported beside.
 *
 *     const struct lk_model_factor factors[] = {{"race", race_of_item, 7}, {"model", model_of_item, 3}};
 *     const struct lk_model_term terms[] = {{0, -1}, {1, -1}, {0, 1}};    // race + model + race:model
 *     LK_TRY(lk_linear_model_fit(y, n, factors, 2, terms, 3, source_of_item, &model));
 *     LK_TRY(lk_linear_model_term(model, 2, &wald));           // CR2: wald.f, .df1, .df2, .p_f, the test to read
 *     model->terms[2].clustered.f, .df1, .df2, .p_f ...        // CR1, as statsmodels has it
 *     lk_linear_model_free(model);
 *
 * Coding: an intercept and one column for each level but the first that occurs; of an interaction, one for each
 * combination of such levels that occurs. Peers: statsmodels OLS(y, X).fit(), and fit(cov_type='cluster',
 * cov_kwds={'groups': clusters}, use_t=True), wald_test(use_f=True and False); and clubSandwich's vcovCR(type="CR2")
 * with coef_test and conf_int (test="Satterthwaite") and Wald_test(test="HTZ").
 *
 * The sandwich of statsmodels, CR1, takes residuals for errors and G - 1 for degrees of freedom: of 12 sources a race
 * its test of race flags 12 to 15 % of data without an effect at 5 %. Bias-reduced linearisation, CR2 (Bell and
 * McCaffrey 2002), inflates the residuals of a cluster by what the fit took from them, and degrees of freedom are
 * estimated (Satterthwaite; approximate Hotelling's T squared, Pustejovsky and Tipton 2018). */
#pragma once

#include "eval/stats/stats.h"

enum { LK_MODEL_COLUMNS_MAX = 256 };

struct lk_model_factor {
    const char *name;
    const int32_t *levels; /* [n] 0..n_levels-1; -1: not known, the observation is left out */
    int n_levels;
};
struct lk_model_term {
    int a, b; /* factors; b -1: a alone */
};

/* All coefficients of a term are 0. */
struct lk_wald {
    double chi2, p_chi2;     /* df1 degrees of freedom */
    double f, df1, df2, p_f; /* chi2 / df1; df2: clusters - 1, or n - columns. CR2: chi2 / df1 x df2 / (df2 + df1 - 1)
                              */
    const char *undefined;
};
/* A combination of coefficients. */
struct lk_contrast {
    double value, error, df;
    double low, high, p; /* by Student's t with df */
    const char *undefined;
};
struct lk_model_column {
    int term;             /* -1: the intercept */
    int level_a, level_b; /* -1 where the term has none */
    double coefficient;
    double clustered_error, independent_error;
    double low, high; /* 95 %, clustered (CR1); t with clusters - 1 df */
};
struct lk_linear_model {
    size_t n, n_clusters, left_out;
    int n_columns, n_terms;
    struct lk_model_column *columns;
    struct lk_model_term_test {
        int df;
        struct lk_wald clustered, independent;
    } * terms;
    double residual_variance, r_squared;
    const char *undefined; /* too few observations, collinear columns: nothing else is set but the counts */
    struct lk_cr2 *cr2;    /* NULL when undefined, and with one cluster */
};

/* y [n], NaN left out; clusters [n], any ids. Clustered errors carry statsmodels' correction G/(G - 1) (n - 1)/(n - k);
 * with one cluster there are none and the tests say so. LK_E_INPUT: an infinite value, a level or factor outside, more
 * than LK_MODEL_COLUMNS_MAX columns. */
enum lk_code lk_linear_model_fit(const double *y, size_t n, const struct lk_model_factor *factors, int n_factors,
                                 const struct lk_model_term *terms, int n_terms, const int32_t *clusters,
                                 struct lk_linear_model **out);
/* CR2. contrasts [q, columns]: all combinations are 0 (HTZ; q = 1: the square of Student's t with Satterthwaite's df).
 * A test that does not exist says why: more contrasts than clusters tell apart, too few degrees of freedom. LK_E_INPUT:
 * no term of that number, q < 1; LK_E_NOMEM. */
enum lk_code lk_linear_model_wald(const struct lk_linear_model *model, const double *contrasts, int q,
                                  struct lk_wald *out);
enum lk_code lk_linear_model_term(const struct lk_linear_model *model, int term, struct lk_wald *out);
/* contrast [columns]; of a single coefficient it is 1 there and 0 elsewhere. */
enum lk_code lk_linear_model_contrast(const struct lk_linear_model *model, const double *contrast, double confidence,
                                      struct lk_contrast *out);
void lk_linear_model_free(struct lk_linear_model *model);
