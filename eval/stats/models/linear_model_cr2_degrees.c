/* The covariance of contrasts by bias-reduced linearisation, and its degrees of freedom. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/models/cholesky.h"
#include "eval/stats/models/linear_model_cr2.h"

/* rows [q, k]: C F'^-1, each row F^-1 c. */
static void contrast_rows(const struct lk_cr2 *cr2, const double *contrasts, int q, double *rows) {
    int k = cr2->k;
    memcpy(rows, contrasts, (size_t)q * (size_t)k * sizeof *rows);
    for (int s = 0; s < q; s++) lk_cholesky_forward(cr2->factor, k, rows + s * k);
}

enum lk_code lk_cr2_covariance(const struct lk_cr2 *cr2, const double *contrasts, int q, double *covariance) {
    int k = cr2->k;
    double *rows = lk_malloc(((size_t)q * (size_t)k + (size_t)q) * sizeof *rows);
    if (!rows) return lk_fail(LK_E_NOMEM, "linear model: no memory for %d contrasts", q);
    double *sums = rows + q * k;
    contrast_rows(cr2, contrasts, q, rows);
    memset(covariance, 0, (size_t)q * (size_t)q * sizeof *covariance);
    for (int g = 0; g < cr2->n_clusters; g++) {
        const double *score = cr2->scores + (size_t)g * (size_t)k;
        for (int s = 0; s < q; s++) {
            sums[s] = 0;
            for (int a = 0; a < k; a++) sums[s] += rows[s * k + a] * score[a];
        }
        for (int s = 0; s < q; s++)
            for (int t = 0; t < q; t++) covariance[s * q + t] += sums[s] * sums[t];
    }
    lk_free(rows);
    return LK_OK;
}

/* Memory of the degrees of freedom, in one block. */
struct work {
    double *block;
    double *rows;     /* [q, k] */
    double *moved;    /* [q, rank of a class] */
    double *expected; /* [q, q]: the covariance that is expected of independent observations, and its factor */
    double *own;      /* [n_classes, q, q]: of a cluster with itself */
    double *cross;    /* [n_classes, k, q]: K', where K K' is what two clusters share */
    double *shared;   /* [q, q]: of two clusters */
};

static bool work_make(const struct lk_cr2 *cr2, size_t q, struct work *work) {
    size_t k = (size_t)cr2->k, n = (size_t)cr2->n_classes, sizes[] = {q * k, q * k, q * q, n * q * q, n * k * q, q * q};
    double **parts[] = {&work->rows, &work->moved, &work->expected, &work->own, &work->cross, &work->shared};
    size_t total = 0;
    for (int i = 0; i < 6; i++) total += sizes[i];
    work->block = lk_calloc(total, sizeof *work->block);
    if (!work->block) return false;
    double *at = work->block;
    for (int i = 0; i < 6; at += sizes[i++]) *parts[i] = at;
    return true;
}

/* moved [q, rank]: the rows in the directions of a class. */
static void move(const struct lk_cr2 *cr2, const struct lk_cr2_class *class, const double *rows, int q, double *moved) {
    for (int s = 0; s < q; s++)
        for (int i = 0; i < class->rank; i++) {
            double sum = 0;
            for (int a = 0; a < cr2->k; a++) sum += rows[s * cr2->k + a] * class->basis[i * cr2->k + a];
            moved[s * class->rank + i] = sum;
        }
}

/* sum [q, q] += weight x moved diag(share) moved', without what the class determines alone. */
static void add_own(const struct lk_cr2_class *class, const double *moved, int q, double weight, double *sum) {
    for (int i = 0; i < class->rank; i++) {
        if (lk_cr2_inflation(class->share[i]) == 0) continue;
        for (int s = 0; s < q; s++) {
            double left = weight * class->share[i] * moved[s * class->rank + i];
            for (int t = 0; t < q; t++) sum[s * q + t] += left * moved[t * class->rank + i];
        }
    }
}

/* out [k, q]: basis' diag(share / sqrt(1 - share)) moved'. */
static void set_cross(const struct lk_cr2_class *class, const double *moved, int q, int k, double *out) {
    for (int i = 0; i < class->rank; i++) {
        double weight = class->share[i] * lk_cr2_inflation(class->share[i]);
        for (int a = 0; a < k && weight > 0; a++) {
            double along = weight * class->basis[i * k + a];
            for (int s = 0; s < q; s++) out[a * q + s] += along * moved[s * class->rank + i];
        }
    }
}

/* What the q x q matrix B of two clusters adds to the variance: tr(B B) + tr(B)^2. */
static double variance_of(const double *b, int q) {
    double squares = 0, trace = 0;
    for (int s = 0; s < q; s++) {
        trace += b[s * q + s];
        for (int t = 0; t < q; t++) squares += b[s * q + t] * b[t * q + s];
    }
    return squares + trace * trace;
}

/* b [q, q] = x' y for x, y [k, q]. */
static void inner(const double *restrict x, const double *restrict y, int k, int q, double *restrict b) {
    memset(b, 0, (size_t)q * (size_t)q * sizeof *b);
    for (int a = 0; a < k; a++)
        for (int s = 0; s < q; s++)
            for (int t = 0; t < q; t++) b[s * q + t] += x[a * q + s] * y[a * q + t];
}

/* Sum over all pairs of clusters. */
static double total_variance(const struct lk_cr2 *cr2, const struct work *work, int q) {
    size_t square = (size_t)q * (size_t)q, cross = (size_t)cr2->k * (size_t)q;
    double total = 0;
    for (int i = 0; i < cr2->n_classes; i++) {
        double m = cr2->classes[i].n_clusters;
        total += m * variance_of(work->own + (size_t)i * square, q);
        for (int j = i; j < cr2->n_classes; j++) {
            double pairs = j > i ? 2 * m * cr2->classes[j].n_clusters : m * (m - 1);
            if (pairs == 0) continue;
            inner(work->cross + (size_t)i * cross, work->cross + (size_t)j * cross, cr2->k, q, work->shared);
            total += pairs * variance_of(work->shared, q);
        }
    }
    return total;
}

/* The rows so turned that the covariance that is expected is the unit matrix; false when it is singular. */
static bool standardise(const struct lk_cr2 *cr2, int q, struct work *work) {
    int k = cr2->k;
    for (int c = 0; c < cr2->n_classes; c++) {
        move(cr2, &cr2->classes[c], work->rows, q, work->moved);
        add_own(&cr2->classes[c], work->moved, q, cr2->classes[c].n_clusters, work->expected);
    }
    if (!lk_cholesky(work->expected, q)) return false;
    for (int a = 0; a < k; a++) {
        for (int s = 0; s < q; s++) work->shared[s] = work->rows[s * k + a];
        lk_cholesky_forward(work->expected, q, work->shared);
        for (int s = 0; s < q; s++) work->rows[s * k + a] = work->shared[s];
    }
    return true;
}

enum lk_code lk_cr2_degrees(const struct lk_cr2 *cr2, const double *contrasts, int q, double *nu) {
    struct work work;
    *nu = 0;
    if (!work_make(cr2, (size_t)q, &work)) return lk_fail(LK_E_NOMEM, "linear model: no memory for %d contrasts", q);
    contrast_rows(cr2, contrasts, q, work.rows);
    if (standardise(cr2, q, &work)) {
        for (int c = 0; c < cr2->n_classes; c++) {
            const struct lk_cr2_class *class = &cr2->classes[c];
            move(cr2, class, work.rows, q, work.moved);
            add_own(class, work.moved, q, 1, work.own + (size_t)c * (size_t)q * (size_t)q);
            set_cross(class, work.moved, q, cr2->k, work.cross + (size_t)c * (size_t)cr2->k * (size_t)q);
        }
        *nu = q * (q + 1.0) / total_variance(cr2, &work, q);
    }
    lk_free(work.block);
    return LK_OK;
}
