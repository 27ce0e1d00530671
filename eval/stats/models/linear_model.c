#include "eval/stats/models/linear_model.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/double_double.h"
#include "eval/stats/models/cholesky.h"
#include "eval/stats/models/linear_model_cr2.h"
#include "eval/stats/models/linear_model_design.h"
#include "eval/stats/special/special.h"

/* Square matrices and vectors of a fit, in one block. */
struct work {
    double *block;
    double *factor, *inverse, *covariance, *part; /* [k, k] */
    double *beta, *rest, *some;                   /* [k]; beta + rest has twice a double's digits */
    double *scores;                               /* [clusters, k]: X_g' e_g */
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
    work->block = lk_calloc(4 * square + (3 + n_clusters) * (size_t)k, sizeof *work->block);
    if (!work->block) return false;
    double **matrices[] = {&work->factor, &work->inverse, &work->covariance, &work->part};
    for (size_t i = 0; i < 4; i++) *matrices[i] = work->block + i * square;
    work->beta = work->block + 4 * square;
    work->rest = work->beta + k;
    work->some = work->rest + k;
    work->scores = work->some + k;
    return true;
}

/* X'X; every entry of X is 0 or 1. */
static void gram_of(const struct lk_design *design, double *gram) {
    int k = design->n_columns;
    for (size_t i = 0; i < design->n; i++) {
        const int32_t *active = design->active + i * (size_t)design->width;
        for (int a = 0; a < design->width; a++)
            for (int b = 0; b < design->width && active[a] >= 0; b++)
                if (active[b] >= 0) gram[active[a] * k + active[b]]++;
    }
}

static double residual(const struct lk_design *design, const struct work *work, size_t i) {
    const int32_t *active = design->active + i * (size_t)design->width;
    struct lk_dd left = lk_from_origin(&design->origin, design->y[i]);
    for (int a = 0; a < design->width; a++)
        if (active[a] >= 0) left = lk_dd_subtract(left, (struct lk_dd){work->beta[active[a]], work->rest[active[a]]});
    return left.hi;
}

/* The coefficients by iterative refinement: what is left of y is fitted again, so that groups far apart cost no digits
 * of the residuals. */
static void solve_coefficients(const struct lk_design *design, struct work *work) {
    int k = design->n_columns;
    for (int round = 0; round < 4; round++) {
        memset(work->some, 0, (size_t)k * sizeof *work->some);
        for (size_t i = 0; i < design->n; i++) {
            const int32_t *active = design->active + i * (size_t)design->width;
            const double left = residual(design, work, i);
            for (int a = 0; a < design->width; a++)
                if (active[a] >= 0) work->some[active[a]] += left;
        }
        lk_cholesky_solve(work->factor, k, work->some);
        for (int c = 0; c < k; c++) {
            struct lk_dd sum = lk_dd_add((struct lk_dd){work->beta[c], work->rest[c]}, lk_dd_of(work->some[c]));
            work->beta[c] = sum.hi, work->rest[c] = sum.lo;
        }
    }
}

/* The clusters' scores X_g' e_g; returns the sum of squared residuals. */
static double set_scores(const struct lk_design *design, struct work *work) {
    double squares = 0;
    for (size_t i = 0; i < design->n; i++) {
        const int32_t *active = design->active + i * (size_t)design->width;
        double e = residual(design, work, i);
        double *score = work->scores + (size_t)design->cluster[i] * (size_t)design->n_columns;
        squares += e * e;
        for (int a = 0; a < design->width; a++)
            if (active[a] >= 0) score[active[a]] += e;
    }
    return squares;
}

/* Sum over clusters of the outer product of what they add to the coefficients, times the correction. */
static void sandwich(const struct lk_design *design, struct work *work, double correction) {
    int k = design->n_columns;
    for (size_t g = 0; g < design->n_clusters; g++) {
        memcpy(work->some, work->scores + g * (size_t)k, (size_t)k * sizeof *work->some);
        lk_cholesky_solve(work->factor, k, work->some);
        for (int a = 0; a < k; a++)
            for (int b = 0; b < k; b++) work->covariance[a * k + b] += correction * work->some[a] * work->some[b];
    }
}

/* What rounding leaves of an error that is 0, against the error of independent observations. */
#define DUST 1e-10
/* What rounding y to doubles leaves of the squares of residuals that are 0, against the squares of y. */
#define EXACT 1e-31

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

static void test_terms(struct work *work, double variance, struct lk_linear_model *model) {
    int k = model->n_columns;
    for (int t = 0, from = 1, to; t < model->n_terms; t++, from = to) {
        for (to = from; to < k && model->columns[to].term == t;) to++;
        model->terms[t].df = to - from;
        if (from == to) {
            model->terms[t].clustered.undefined = model->terms[t].independent.undefined = "fewer than two levels";
            continue;
        }
        wald(work, work->covariance, k, from, to, 1, (double)model->n_clusters - 1, variance,
             &model->terms[t].clustered);
        wald(work, work->inverse, k, from, to, variance, (double)model->n - k, variance, &model->terms[t].independent);
    }
}

/* Coefficients, errors and tests, all from y's origin and in its unit; *variance: of residuals. False when the columns
 * are collinear. */
static bool solve(const struct lk_design *design, struct work *work, struct lk_linear_model *model, double *variance) {
    int k = design->n_columns;
    double n = (double)design->n, g = (double)design->n_clusters, mean = 0, total = 0, raw = 0;
    gram_of(design, work->factor);
    if (!lk_cholesky(work->factor, k)) return false;
    solve_coefficients(design, work);
    lk_cholesky_inverse(work->factor, k, work->inverse);
    double squares = set_scores(design, work);
    sandwich(design, work, g > 1 ? g / (g - 1) * ((n - 1) / (n - k)) : 0);
    for (size_t i = 0; i < design->n; i++) mean += lk_from_origin(&design->origin, design->y[i]).hi / n;
    for (size_t i = 0; i < design->n; i++) {
        const double y = lk_from_origin(&design->origin, design->y[i]).hi, whole = y + design->origin.value;
        total += (y - mean) * (y - mean);
        raw += whole * whole;
    }
    *variance = squares > EXACT * raw ? squares / (n - k) : 0;
    model->residual_variance = ldexp(*variance, 2 * design->origin.exponent);
    model->r_squared = total > 0 ? 1 - squares / total : 0;
    test_terms(work, *variance, model);
    work->beta[0] += design->origin.value; /* the intercept, now that nothing is tested any more */
    double t = g > 1 ? lk_t_quantile(0.975, g - 1) : 0;
    for (int c = 0; c < k; c++) {
        struct lk_model_column *column = &model->columns[c];
        double independent = sqrt(*variance * work->inverse[c * k + c]);
        double clustered = sqrt(fmax(work->covariance[c * k + c], 0));
        if (clustered <= DUST * independent || *variance == 0) clustered = 0;
        column->coefficient = ldexp(work->beta[c], design->origin.exponent);
        column->independent_error = ldexp(independent, design->origin.exponent);
        column->clustered_error = ldexp(clustered, design->origin.exponent);
        column->low = g > 1 ? column->coefficient - t * column->clustered_error : 0;
        column->high = g > 1 ? column->coefficient + t * column->clustered_error : 0;
    }
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
    double variance = 0;
    if (!solve(design, &work, model, &variance))
        model->undefined = "the columns are collinear";
    else if (design->n_clusters > 1)
        rc = lk_cr2_make(design, work.factor, work.scores, &model->cr2);
    if (!rc && model->cr2) {
        model->cr2->variance = variance;
        memcpy(model->cr2->beta, work.beta, (size_t)design->n_columns * sizeof *work.beta);
    }
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
