/* Tests and intervals by bias-reduced linearisation. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/models/cholesky.h"
#include "eval/stats/models/linear_model_cr2.h"
#include "eval/stats/special/special.h"

/* What rounding leaves of an error that is 0, against the error of independent observations. */
#define DUST 1e-10

static const char *no_tests(const struct lk_linear_model *model) {
    if (model->undefined) return model->undefined;
    if (!model->cr2) return "fewer than two clusters";
    return model->cr2->variance == 0 ? "the model fits exactly" : NULL;
}

/* Whether a contrast has an error that is 0 but for rounding. row [k] is scratch. */
static bool is_dust(const struct lk_linear_model *model, const double *contrast, double variance, double *row) {
    int k = model->n_columns;
    double squares = 0;
    memcpy(row, contrast, (size_t)k * sizeof *row);
    lk_cholesky_forward(model->cr2->factor, k, row);
    for (int a = 0; a < k; a++) squares += row[a] * row[a];
    return !(variance > DUST * DUST * model->cr2->variance * squares);
}

/* In units of the tests. */
static double estimate(const struct lk_linear_model *model, const double *contrast) {
    double sum = 0;
    for (int a = 0; a < model->n_columns; a++) sum += contrast[a] * model->cr2->beta[a];
    return sum;
}

/* chi2 = b' V^-1 b, unless V [q, q] is singular. b, solved [q] and row [k] are scratch. */
static bool quadratic(const struct lk_linear_model *model, const double *contrasts, int q, double *covariance,
                      double *b, double *solved, double *row, double *chi2) {
    int k = model->n_columns;
    for (int s = 0; s < q; s++) {
        b[s] = solved[s] = estimate(model, contrasts + s * k);
        if (is_dust(model, contrasts + s * k, covariance[s * q + s], row)) return false;
    }
    if (!lk_cholesky(covariance, q)) return false;
    lk_cholesky_solve(covariance, q, solved);
    *chi2 = 0;
    for (int s = 0; s < q; s++) *chi2 += b[s] * solved[s];
    return true;
}

/* memory: [q, q] + 2 q + k numbers. */
static enum lk_code hotelling(const struct lk_linear_model *model, const double *contrasts, int q, double *memory,
                              struct lk_wald *out) {
    double *b = memory + q * q, chi2, nu;
    LK_TRY(lk_cr2_covariance(model->cr2, contrasts, q, memory));
    if (!quadratic(model, contrasts, q, memory, b, b + q, b + 2 * q, &chi2)) {
        out->undefined = "the covariance is singular: more is tested than clusters tell apart";
        return LK_OK;
    }
    LK_TRY(lk_cr2_degrees(model->cr2, contrasts, q, &nu));
    double df2 = nu - q + 1;
    if (!(df2 > 0)) {
        out->undefined = "too few clusters for so many columns";
        return LK_OK;
    }
    out->chi2 = chi2;
    out->f = chi2 / q * (df2 / nu);
    out->df1 = q;
    out->df2 = df2;
    out->p_chi2 = lk_chi2_sf(chi2, q);
    out->p_f = lk_f_sf(out->f, q, df2);
    return LK_OK;
}

enum lk_code lk_linear_model_wald(const struct lk_linear_model *model, const double *contrasts, int q,
                                  struct lk_wald *out) {
    *out = (struct lk_wald){.undefined = no_tests(model)};
    if (q < 1) return lk_fail(LK_E_INPUT, "linear model: contrasts: expected 1 or more, got %d", q);
    if (out->undefined) return LK_OK;
    if ((size_t)q >= model->n_clusters) {
        out->undefined = "more columns than clusters tell apart";
        return LK_OK;
    }
    double *memory = lk_malloc(((size_t)q * ((size_t)q + 2) + (size_t)model->n_columns) * sizeof *memory);
    if (!memory) return lk_fail(LK_E_NOMEM, "linear model: no memory for %d contrasts", q);
    enum lk_code rc = hotelling(model, contrasts, q, memory, out);
    lk_free(memory);
    return rc;
}

enum lk_code lk_linear_model_term(const struct lk_linear_model *model, int term, struct lk_wald *out) {
    *out = (struct lk_wald){.undefined = no_tests(model)};
    if (term < 0 || term >= model->n_terms)
        return lk_fail(LK_E_INPUT, "linear model: term: expected 0 to %d, got %d", model->n_terms - 1, term);
    if (out->undefined) return LK_OK;
    size_t k = (size_t)model->n_columns, q = 0;
    for (size_t c = 0; c < k; c++) q += model->columns[c].term == term;
    if (!q) {
        out->undefined = "fewer than two levels";
        return LK_OK;
    }
    double *contrasts = lk_calloc(q * k, sizeof *contrasts);
    if (!contrasts) return lk_fail(LK_E_NOMEM, "linear model: no memory for %zu contrasts", q);
    for (size_t c = 0, s = 0; c < k; c++)
        if (model->columns[c].term == term) contrasts[s++ * k + c] = 1;
    enum lk_code rc = lk_linear_model_wald(model, contrasts, (int)q, out);
    lk_free(contrasts);
    return rc;
}

enum lk_code lk_linear_model_contrast(const struct lk_linear_model *model, const double *contrast, double confidence,
                                      struct lk_contrast *out) {
    *out = (struct lk_contrast){.undefined = no_tests(model)};
    if (!(confidence > 0 && confidence < 1))
        return lk_fail(LK_E_INPUT, "linear model: confidence: expected a share between 0 and 1, got %g", confidence);
    if (model->undefined) return LK_OK;
    for (int a = 0; a < model->n_columns; a++) out->value += contrast[a] * model->columns[a].coefficient;
    if (out->undefined) return LK_OK;
    double variance, *row = lk_malloc((size_t)model->n_columns * sizeof *row);
    if (!row) return lk_fail(LK_E_NOMEM, "linear model: no memory for %d columns", model->n_columns);
    enum lk_code rc = lk_cr2_covariance(model->cr2, contrast, 1, &variance);
    if (!rc && is_dust(model, contrast, variance, row)) out->undefined = "no variance between clusters";
    if (!rc && !out->undefined) rc = lk_cr2_degrees(model->cr2, contrast, 1, &out->df);
    lk_free(row);
    if (rc || out->undefined) return rc;
    double reach = -lk_t_quantile((1 - confidence) / 2, out->df);
    out->error = ldexp(sqrt(variance), model->cr2->exponent);
    out->low = out->value - reach * out->error;
    out->high = out->value + reach * out->error;
    out->p = lk_t_two_sided(estimate(model, contrast) / sqrt(variance), out->df);
    return LK_OK;
}
