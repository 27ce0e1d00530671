/* The additive model's projections and weights, by Gram and Schmidt twice over, which names aliased columns. */
#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/crossed/crossed.h"

#define ALIASED 1e-10 /* of a column's square, what is left beside the columns before it */

struct basis {
    int n, rank;
    double *q;     /* [columns, n], rows are orthonormal columns of the model */
    double *along; /* [columns] coefficients of the column that came last */
};

static double dot(const double *a, const double *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* Adds the column in x, which is overwritten. False: the others determine it. */
static bool add_column(struct basis *basis, double *x) {
    int n = basis->n;
    double before = dot(x, x, n);
    memset(basis->along, 0, ((size_t)basis->rank + 1) * sizeof *x);
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < basis->rank; k++) {
            const double *q = basis->q + (size_t)k * (size_t)n;
            double along = dot(x, q, n);
            basis->along[k] += along;
            for (int i = 0; i < n; i++) x[i] -= along * q[i];
        }
    double left = dot(x, x, n);
    if (basis->rank == n || !(left > ALIASED * before)) return false; /* at most one a column that is asked for */
    double length = sqrt(left);
    basis->along[basis->rank] = length;
    for (int i = 0; i < n; i++) basis->q[(size_t)basis->rank * (size_t)n + (size_t)i] = x[i] / length;
    basis->rank++;
    return true;
}

static bool add_level(struct basis *basis, const struct lk_levels *factor, int level, double *x) {
    for (int i = 0; i < basis->n; i++) x[i] = factor->of[i] == level;
    return add_column(basis, x);
}

static enum lk_code check_levels(int n, const struct lk_levels *factors, int n_factors) {
    if (n < 1) return lk_fail(LK_E_INPUT, "crossed: expected at least one source and one prompt, got %d", n);
    for (int f = 0; f < n_factors; f++)
        for (int i = 0; i < n; i++)
            if (factors[f].of[i] < 0 || factors[f].of[i] >= factors[f].count)
                return lk_fail(LK_E_INPUT, "crossed: factor %d, row %d: expected a level below %d, got %d", f, i,
                               factors[f].count, factors[f].of[i]);
    return LK_OK;
}

/* The intercept and factors[first...]; x: scratch [n]. */
static void span(struct basis *basis, const struct lk_levels *factors, int first, int n_factors, double *x) {
    for (int i = 0; i < basis->n; i++) x[i] = 1;
    add_column(basis, x);
    for (int f = first; f < n_factors; f++)
        for (int level = 1; level < factors[f].count && basis->rank < basis->n; level++)
            add_level(basis, factors + f, level, x);
}

/* Columns that the intercept and the factors can have. */
static size_t n_columns_of(int n, const struct lk_levels *factors, int n_factors) {
    size_t columns = 1;
    for (int f = 0; f < n_factors; f++) columns += (size_t)(factors[f].count > 1 ? factors[f].count - 1 : 0);
    return columns < (size_t)n ? columns : (size_t)n;
}

enum lk_code lk_residual_maker(int n, const struct lk_levels *factors, int n_factors, struct lk_residual_maker *out) {
    *out = (struct lk_residual_maker){.n = n};
    LK_TRY(check_levels(n, factors, n_factors));
    const size_t rows = (size_t)n, columns = n_columns_of(n, factors, n_factors);
    out->q = lk_malloc((rows * (columns + 3) + columns + 1) * sizeof *out->q);
    if (!out->q) return lk_fail(LK_E_NOMEM, "crossed: no memory for a projection of %d rows", n);
    out->left = out->q + rows * columns;
    out->inflation = out->left + rows;
    struct basis basis = {n, 0, out->q, out->inflation + 2 * rows};
    span(&basis, factors, 0, n_factors, out->inflation + rows);
    out->rank = basis.rank;
    for (size_t i = 0; i < rows; i++) {
        double h = 0;
        for (size_t k = 0; k < (size_t)basis.rank; k++) h += out->q[k * rows + i] * out->q[k * rows + i];
        out->left[i] = 1 - h;
        out->inflation[i] = out->left[i] > 1e-9 ? 1 / out->left[i] : 0;
    }
    return LK_OK;
}

void lk_residual_maker_free(struct lk_residual_maker *maker) {
    lk_free(maker->q);
    *maker = (struct lk_residual_maker){0};
}

enum { BLOCK = 4 }; /* columns at a time */

/* The first n columns of x less their parts along q; inlined where n is known. */
static inline void clear(const double *q, int rows, int n, size_t stride, double *x) {
    double along[BLOCK] = {0};
    for (int i = 0; i < rows; i++)
        for (int c = 0; c < n; c++) along[c] += q[i] * x[(size_t)i * stride + (size_t)c];
    for (int i = 0; i < rows; i++)
        for (int c = 0; c < n; c++) x[(size_t)i * stride + (size_t)c] -= q[i] * along[c];
}

void lk_residuals(const struct lk_residual_maker *maker, double *x, int n_columns) {
    for (int first = 0; first < n_columns; first += BLOCK)
        for (int k = 0; k < maker->rank; k++) {
            const double *q = maker->q + (size_t)k * (size_t)maker->n;
            if (n_columns - first >= BLOCK)
                clear(q, maker->n, BLOCK, (size_t)n_columns, x + first);
            else
                clear(q, maker->n, n_columns - first, (size_t)n_columns, x + first);
        }
}

static bool has_level(int n, const int32_t *of, int level) {
    for (int i = 0; i < n; i++)
        if (of[i] == level) return true;
    return false;
}

/* w in the span of the first factor's columns, cleared of the others: D'w = contrast, level after level. */
static const char *adjusted_weights(struct basis *basis, const struct lk_levels *factor, const double *contrast,
                                    double *x, double *along_w, double *w) {
    int n = basis->n, others = basis->rank, reference = -1;
    for (int level = 0; level < factor->count; level++) {
        if (!has_level(n, factor->of, level)) {
            if (contrast[level] != 0) return "a level of the comparison has no member";
            continue;
        }
        if (reference < 0) {
            reference = level;
            continue;
        }
        if (!add_level(basis, factor, level, x)) return "this attribute cannot be told from the other attributes";
        int k = basis->rank - 1;
        double a = contrast[level];
        for (int j = others; j < k; j++) a -= basis->along[j] * along_w[j];
        along_w[k] = a / basis->along[k];
    }
    for (int k = others; k < basis->rank; k++)
        for (int i = 0; i < n; i++) w[i] += along_w[k] * basis->q[(size_t)k * (size_t)n + (size_t)i];
    return NULL;
}

enum lk_code lk_contrast_weights(int n, const struct lk_levels *factors, int n_factors, const double *contrast,
                                 double *w, const char **undefined) {
    *undefined = NULL;
    LK_TRY(check_levels(n, factors, n_factors));
    double sum = 0, size = 0;
    for (int level = 0; level < factors[0].count; level++) {
        sum += contrast[level];
        size += fabs(contrast[level]);
    }
    if (!(fabs(sum) <= 1e-9 * size)) return lk_fail(LK_E_INPUT, "crossed: expected a contrast of sum 0, got %g", sum);
    const size_t rows = (size_t)n, columns = n_columns_of(n, factors, n_factors);
    double *q = lk_malloc((rows * (columns + 1) + 2 * (columns + 1)) * sizeof *q);
    if (!q) return lk_fail(LK_E_NOMEM, "crossed: no memory for the weights of %d rows", n);
    double *x = q + rows * columns, *along_w = x + rows;
    struct basis basis = {n, 0, q, along_w + columns + 1};
    memset(w, 0, rows * sizeof *w);
    span(&basis, factors, 1, n_factors, x);
    *undefined = adjusted_weights(&basis, factors, contrast, x, along_w, w);
    lk_free(q);
    return LK_OK;
}

void lk_mean_weights(int n, const int32_t *of, int level, double *w) {
    int count = 0;
    for (int i = 0; i < n; i++) count += level < 0 || of[i] == level;
    for (int i = 0; i < n; i++) w[i] = level < 0 || of[i] == level ? 1.0 / count : 0;
}

void lk_level_contrast(int n, const struct lk_levels *factor, int a, int b, double *contrast) {
    int others = 0;
    for (int level = 0; level < factor->count; level++) others += level != a && has_level(n, factor->of, level);
    for (int level = 0; level < factor->count; level++)
        contrast[level] = level == a                                      ? 1
                          : b >= 0                                        ? -(level == b)
                          : others > 0 && has_level(n, factor->of, level) ? -1.0 / others
                                                                          : 0;
    if (b < 0 && others == 0 && a < factor->count) contrast[a] = 0;
}
