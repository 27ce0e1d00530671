#include "eval/stats/models/linear_model_design.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"

struct row {
    int32_t cluster, at;
};

static int by_cluster(const void *a, const void *b) {
    const struct row *x = a, *y = b;
    if (x->cluster != y->cluster) return x->cluster < y->cluster ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static enum lk_code check(const double *y, size_t n, const struct lk_model_factor *factors, int n_factors,
                          const struct lk_model_term *terms, int n_terms) {
    if (n > INT32_MAX || n_factors < 0 || n_terms < 0)
        return lk_fail(LK_E_INPUT, "linear model: expected under 2^31 observations, got %zu", n);
    for (int t = 0; t < n_terms; t++)
        if (terms[t].a < 0 || terms[t].a >= n_factors || terms[t].b < -1 || terms[t].b >= n_factors ||
            terms[t].a == terms[t].b)
            return lk_fail(LK_E_INPUT, "linear model: term %d: expected one factor or two of %d, got %d and %d", t,
                           n_factors, terms[t].a, terms[t].b);
    for (int f = 0; f < n_factors; f++)
        for (size_t i = 0; i < n; i++)
            if (factors[f].levels[i] < -1 || factors[f].levels[i] >= factors[f].n_levels)
                return lk_fail(LK_E_INPUT,
                               "linear model: factor %s, observation %zu: expected a level below %d, got %d",
                               factors[f].name, i, factors[f].n_levels, factors[f].levels[i]);
    for (size_t i = 0; i < n; i++)
        if (isinf(y[i])) return lk_fail(LK_E_INPUT, "linear model: observation %zu: expected a finite number", i);
    return LK_OK;
}

void lk_design_free(struct lk_design *design) {
    lk_free(design->y);
    lk_free(design->cluster);
    lk_free(design->active);
    lk_free(design->columns);
    memset(design, 0, sizeof *design);
}

/* The first level of a factor that occurs in the rows. */
static int32_t reference_level(const struct lk_model_factor *factor, const struct row *rows, size_t n) {
    int32_t first = factor->n_levels;
    for (size_t i = 0; i < n; i++)
        if (factor->levels[rows[i].at] < first) first = factor->levels[rows[i].at];
    return first;
}

/* Columns of one term: level combinations without reference levels, in ascending order, as far as they occur.
 * numbers [levels of a, levels of b] gets each combination's column or -1. */
static enum lk_code add_term(const struct lk_model_factor *factors, const struct lk_model_term *terms, int t,
                             const struct row *rows, size_t n, struct lk_design *design) {
    const struct lk_model_factor *a = &factors[terms[t].a], *b = terms[t].b < 0 ? NULL : &factors[terms[t].b];
    int32_t n_b = b ? b->n_levels : 1, first_a = reference_level(a, rows, n),
            first_b = b ? reference_level(b, rows, n) : 0;
    size_t n_cells = (size_t)a->n_levels * (size_t)n_b;
    int32_t *numbers = lk_calloc(n_cells, sizeof *numbers);
    if (!numbers) return lk_fail(LK_E_NOMEM, "linear model: no memory for term %d", t);
    for (size_t i = 0; i < n; i++) numbers[a->levels[rows[i].at] * n_b + (b ? b->levels[rows[i].at] : 0)] = 1;
    enum lk_code rc = LK_OK;
    for (size_t c = 0; c < n_cells; c++) {
        int32_t level_a = (int32_t)c / n_b, level_b = (int32_t)c % n_b;
        bool has_column = numbers[c] && level_a != first_a && (!b || level_b != first_b);
        numbers[c] = has_column ? design->n_columns : -1;
        if (!has_column) continue;
        if (design->n_columns == LK_MODEL_COLUMNS_MAX) {
            rc = lk_fail(LK_E_INPUT, "linear model: expected at most %d columns", LK_MODEL_COLUMNS_MAX);
            break;
        }
        design->columns[design->n_columns++] =
            (struct lk_model_column){.term = t, .level_a = level_a, .level_b = b ? level_b : -1};
    }
    for (size_t i = 0; i < n && !rc; i++)
        design->active[i * (size_t)design->width + 1 + (size_t)t] =
            numbers[a->levels[rows[i].at] * n_b + (b ? b->levels[rows[i].at] : 0)];
    lk_free(numbers);
    return rc;
}

static size_t gather(const double *y, size_t n, const struct lk_model_factor *factors, int n_factors,
                     const int32_t *clusters, struct row *rows) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        bool known = !isnan(y[i]);
        for (int f = 0; f < n_factors; f++) known &= factors[f].levels[i] >= 0;
        if (known) rows[kept++] = (struct row){clusters[i], (int32_t)i};
    }
    if (kept) qsort(rows, kept, sizeof *rows, by_cluster);
    return kept;
}

enum lk_code lk_design_make(const double *y, size_t n, const struct lk_model_factor *factors, int n_factors,
                            const struct lk_model_term *terms, int n_terms, const int32_t *clusters,
                            struct lk_design *out) {
    memset(out, 0, sizeof *out);
    LK_TRY(check(y, n, factors, n_factors, terms, n_terms));
    struct row *rows = lk_malloc(n * sizeof *rows);
    out->width = 1 + n_terms;
    out->y = lk_malloc(n * sizeof *out->y);
    out->cluster = lk_malloc(n * sizeof *out->cluster);
    out->active = lk_calloc(n * (size_t)out->width, sizeof *out->active);
    out->columns = lk_malloc(LK_MODEL_COLUMNS_MAX * sizeof *out->columns);
    enum lk_code rc = LK_OK;
    if (!rows || !out->y || !out->cluster || !out->active || !out->columns)
        rc = lk_fail(LK_E_NOMEM, "linear model: no memory for %zu observations", n);
    if (!rc) {
        out->n = gather(y, n, factors, n_factors, clusters, rows);
        for (size_t i = 0; i < out->n; i++) {
            out->n_clusters += !i || rows[i].cluster != rows[i - 1].cluster;
            out->cluster[i] = (int32_t)out->n_clusters - 1;
            out->y[i] = y[rows[i].at];
        }
        out->origin = lk_origin_of(out->y, out->n);
        out->columns[out->n_columns++] = (struct lk_model_column){.term = -1, .level_a = -1, .level_b = -1};
    }
    for (int t = 0; t < n_terms && !rc && out->n; t++) rc = add_term(factors, terms, t, rows, out->n, out);
    lk_free(rows);
    if (rc) lk_design_free(out);
    return rc;
}
