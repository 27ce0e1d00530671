#include "eval/stats/models/linear_model.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/models/cholesky.h"
#include "eval/stats/models/linear_model_cr2.h"
#include "eval/stats/models/linear_model_design.h"
#include "eval/stats/special/special.h"

/* Square matrices and vectors of a fit, in one block. */
struct work {
    double *block;
    double *factor, *inverse, *meat, *covariance, *part; /* [k, k] */
    double *beta, *some;                                 /* [k] */
    double *scores;                                      /* [clusters, k]: X_g' e_g */
};

void lk_linear_model_free(struct lk_linear_model *model) {
    if (!model) return;
    lk_free(model->columns);
    lk_free(model->terms);
    lk_cr2_free(model->cr2);
    lk_free(model);
}

static bool work_make(struct work *work, int k, size_t n_clusters) {
    size_t square = (size_t)k * (size_t)k;
    work->block = lk_calloc(5 * square + (2 + n_clusters) * (size_t)k, sizeof *work->block);
    if (!work->block) return false;
    double **matrices[] = {&work->factor, &work->inverse, &work->meat, &work->covariance, &work->part};
    for (size_t i = 0; i < 5; i++) *matrices[i] = work->block + i * square;
    work->beta = work->block + 5 * square;
    work->some = work->beta + k;
    work->scores = work->some + k;
    return true;
}

/* X'X and X'y; every entry of X is 0 or 1. */
static void normal_equations(const struct lk_design *design, double *gram, double *right) {
    int k = design->n_columns;
    for (size_t i = 0; i < design->n; i++) {
        const int32_t *active = design->active + i * (size_t)design->width;
        for (int a = 0; a < design->width; a++) {
            if (active[a] < 0) continue;
            right[active[a]] += design->y[i];
            for (int b = 0; b < design->width; b++)
                if (active[b] >= 0) gram[active[a] * k + active[b]]++;
        }
    }
}

static double residual(const struct lk_design *design, const double *beta, size_t i) {
    const int32_t *active = design->active + i * (size_t)design->width;
    double left = design->y[i];
    for (int a = 0; a < design->width; a++)
        if (active[a] >= 0) left -= beta[active[a]];
    return left;
}

static void add_outer(const double *score, int k, double *meat) {
    for (int a = 0; a < k; a++)
        for (int b = 0; b < k && score[a] != 0; b++) meat[a * k + b] += score[a] * score[b];
}

/* Sum over clusters of the outer product of their scores X_g' e_g; returns the sum of squared residuals. */
static double sandwich_filling(const struct lk_design *design, struct work *work) {
    int k = design->n_columns;
    double squares = 0;
    for (size_t i = 0; i < design->n; i++) {
        const int32_t *active = design->active + i * (size_t)design->width;
        double e = residual(design, work->beta, i), *score = work->scores + (size_t)design->cluster[i] * (size_t)k;
        squares += e * e;
        for (int a = 0; a < design->width; a++)
            if (active[a] >= 0) score[active[a]] += e;
        if (i + 1 == design->n || design->cluster[i + 1] != design->cluster[i]) add_outer(score, k, work->meat);
    }
    return squares;
}

/* inverse x meat x inverse, times the correction. */
static void sandwich(struct work *work, int k, double correction) {
    memset(work->part, 0, (size_t)k * (size_t)k * sizeof *work->part);
    memset(work->covariance, 0, (size_t)k * (size_t)k * sizeof *work->covariance);
    for (int i = 0; i < k; i++)
        for (int m = 0; m < k; m++)
            for (int j = 0; j < k; j++) work->part[i * k + j] += work->inverse[i * k + m] * work->meat[m * k + j];
    for (int i = 0; i < k; i++)
        for (int m = 0; m < k; m++)
            for (int j = 0; j < k; j++)
                work->covariance[i * k + j] += correction * work->part[i * k + m] * work->inverse[m * k + j];
}

/* What rounding leaves of an error that is 0, against the error of independent observations. */
#define DUST 1e-10

/* b' V^-1 b of the columns from..to-1; V = scale x covariance. */
static void wald(struct work *work, const double *covariance, int k, int from, int to, double scale, double df2,
                 double variance, struct lk_wald *out) {
    int q = to - from;
    out->df1 = q;
    out->df2 = df2;
    for (int i = 0; i < q; i++) {
        work->some[i] = work->beta[from + i];
        for (int j = 0; j < q; j++) work->part[i * q + j] = scale * covariance[(from + i) * k + from + j];
    }
    bool none = false;
    for (int i = 0; i < q; i++)
        none |= !(work->part[i * q + i] > DUST * DUST * variance * work->inverse[(from + i) * k + from + i]);
    if (variance == 0) {
        out->undefined = "the model fits exactly";
    } else if (!(df2 >= 1)) {
        out->undefined = "too few clusters or observations";
    } else if (none || !lk_cholesky(work->part, q)) {
        out->undefined = "the term's covariance is singular: it has more columns than clusters tell apart";
    } else {
        lk_cholesky_solve(work->part, q, work->some);
        for (int i = 0; i < q; i++) out->chi2 += work->some[i] * work->beta[from + i];
        out->f = out->chi2 / q;
        out->p_chi2 = lk_chi2_sf(out->chi2, q);
        out->p_f = lk_f_sf(out->f, q, df2);
    }
}

static void test_terms(struct work *work, struct lk_linear_model *model) {
    int k = model->n_columns;
    for (int t = 0, from = 1, to; t < model->n_terms; t++, from = to) {
        for (to = from; to < k && model->columns[to].term == t;) to++;
        model->terms[t].df = to - from;
        if (from == to) {
            model->terms[t].clustered.undefined = model->terms[t].independent.undefined = "fewer than two levels";
            continue;
        }
        wald(work, work->covariance, k, from, to, 1, (double)model->n_clusters - 1, model->residual_variance,
             &model->terms[t].clustered);
        wald(work, work->inverse, k, from, to, model->residual_variance, (double)model->n - k, model->residual_variance,
             &model->terms[t].independent);
    }
}

/* Coefficients, errors and tests; false when the columns are collinear. */
static bool solve(const struct lk_design *design, struct work *work, struct lk_linear_model *model) {
    int k = design->n_columns;
    double n = (double)design->n, g = (double)design->n_clusters, mean = 0, total = 0;
    normal_equations(design, work->factor, work->beta);
    if (!lk_cholesky(work->factor, k)) return false;
    lk_cholesky_solve(work->factor, k, work->beta);
    lk_cholesky_inverse(work->factor, k, work->inverse);
    double squares = sandwich_filling(design, work);
    sandwich(work, k, g > 1 ? g / (g - 1) * ((n - 1) / (n - k)) : 0);
    for (size_t i = 0; i < design->n; i++) mean += design->y[i] / n;
    for (size_t i = 0; i < design->n; i++) total += (design->y[i] - mean) * (design->y[i] - mean);
    model->residual_variance = squares > 1e-24 * (total + n * mean * mean) ? squares / (n - k) : 0;
    model->r_squared = total > 0 ? 1 - squares / total : 0;
    double t = g > 1 ? lk_t_quantile(0.975, g - 1) : 0;
    for (int c = 0; c < k; c++) {
        struct lk_model_column *column = &model->columns[c];
        column->coefficient = work->beta[c];
        column->independent_error = sqrt(model->residual_variance * work->inverse[c * k + c]);
        column->clustered_error = sqrt(fmax(work->covariance[c * k + c], 0));
        if (column->clustered_error <= DUST * column->independent_error || model->residual_variance == 0)
            column->clustered_error = 0;
        column->low = g > 1 ? column->coefficient - t * column->clustered_error : 0;
        column->high = g > 1 ? column->coefficient + t * column->clustered_error : 0;
    }
    test_terms(work, model);
    return true;
}

static enum lk_code fit(struct lk_design *design, struct lk_linear_model *model) {
    model->n = design->n;
    model->n_clusters = design->n_clusters;
    model->n_columns = design->n_columns;
    model->columns = design->columns;
    design->columns = NULL;
    if (design->n <= (size_t)design->n_columns) {
        model->undefined = "no more observations than columns";
        return LK_OK;
    }
    struct work work;
    if (!work_make(&work, design->n_columns, design->n_clusters))
        return lk_fail(LK_E_NOMEM, "linear model: no memory for %d columns", design->n_columns);
    enum lk_code rc = LK_OK;
    if (!solve(design, &work, model))
        model->undefined = "the columns are collinear";
    else if (design->n_clusters > 1)
        rc = lk_cr2_make(design, work.factor, work.scores, &model->cr2);
    lk_free(work.block);
    return rc;
}

enum lk_code lk_linear_model_fit(const double *y, size_t n, const struct lk_model_factor *factors, int n_factors,
                                 const struct lk_model_term *terms, int n_terms, const int32_t *clusters,
                                 struct lk_linear_model **out) {
    *out = NULL;
    struct lk_design design;
    LK_TRY(lk_design_make(y, n, factors, n_factors, terms, n_terms, clusters, &design));
    struct lk_linear_model *model = lk_calloc(1, sizeof *model);
    enum lk_code rc = LK_OK;
    if (model) {
        model->left_out = n - design.n;
        model->n_terms = n_terms;
        model->terms = lk_calloc((size_t)n_terms, sizeof *model->terms);
    }
    if (!model || !model->terms)
        rc = lk_fail(LK_E_NOMEM, "linear model: no memory for %d terms", n_terms);
    else
        rc = fit(&design, model);
    lk_design_free(&design);
    if (rc)
        lk_linear_model_free(model);
    else
        *out = model;
    return rc;
}
