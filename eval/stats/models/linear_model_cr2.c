#include "eval/stats/models/linear_model_cr2.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/models/cholesky.h"
#include "eval/stats/models/symmetric_eigen.h"

/* Shares below have no weight. */
#define NO_SHARE 1e-13

/* The different rows of a cluster. */
struct pattern {
    int n_rows;
    int32_t *rows; /* [n_rows, width] */
    double *count; /* [n_rows] */
};

struct builder {
    const struct lk_design *design;
    struct lk_cr2 *cr2;
    struct pattern *patterns; /* [n_clusters], of the classes */
    int32_t *rows;            /* [longest cluster, width], and so on: of the cluster that is looked at */
    double *count;
    size_t longest;
};

static bool same_pattern(const struct pattern *a, const struct pattern *b, size_t width) {
    return a->n_rows == b->n_rows && !memcmp(a->count, b->count, (size_t)a->n_rows * sizeof *a->count) &&
           !memcmp(a->rows, b->rows, (size_t)a->n_rows * width * sizeof *a->rows);
}

/* Observations from..to-1 into rows and count. */
static struct pattern pattern_of(const struct builder *b, size_t from, size_t to) {
    struct pattern pattern = {0, b->rows, b->count};
    size_t width = (size_t)b->design->width;
    for (size_t i = from; i < to; i++) {
        const int32_t *active = b->design->active + i * width;
        int r = 0;
        while (r < pattern.n_rows && memcmp(pattern.rows + (size_t)r * width, active, width * sizeof *active)) r++;
        if (r == pattern.n_rows) {
            memcpy(pattern.rows + (size_t)r * width, active, width * sizeof *active);
            pattern.count[r] = 0;
            pattern.n_rows++;
        }
        pattern.count[r]++;
    }
    return pattern;
}

static void set_rows(const struct lk_cr2 *cr2, const struct pattern *pattern, int width, double *z) {
    for (int r = 0; r < pattern->n_rows; r++) {
        double *row = z + (size_t)r * (size_t)cr2->k;
        memset(row, 0, (size_t)cr2->k * sizeof *row);
        for (int a = 0; a < width; a++)
            if (pattern->rows[r * width + a] >= 0) row[pattern->rows[r * width + a]] += sqrt(pattern->count[r]);
        lk_cholesky_forward(cr2->factor, cr2->k, row);
    }
}

/* Z Z' [d, d], or Z'Z [k, k] where that is the smaller one. */
static void products(const double *z, int d, int k, bool of_rows, double *out) {
    int n = of_rows ? d : k;
    memset(out, 0, (size_t)n * (size_t)n * sizeof *out);
    for (int i = 0; i < d && !of_rows; i++)
        for (int a = 0; a < k; a++)
            for (int b = 0; b < k; b++) out[a * k + b] += z[i * k + a] * z[i * k + b];
    for (int i = 0; i < d && of_rows; i++)
        for (int j = 0; j <= i; j++) {
            double sum = 0;
            for (int a = 0; a < k; a++) sum += z[i * k + a] * z[j * k + a];
            out[i * d + j] = out[j * d + i] = sum;
        }
}

/* Keeps the directions that have a share; vectors [n, n] are of Z Z' (of_rows) or of Z'Z. */
static void set_basis(const double *z, int d, int k, bool of_rows, const double *values, const double *vectors,
                      struct lk_cr2_class *class) {
    int n = of_rows ? d : k;
    for (int i = 0; i < n; i++) {
        if (!(values[i] > NO_SHARE)) continue;
        double *row = class->basis + (size_t) class->rank * (size_t)k;
        memset(row, 0, (size_t)k * sizeof *row);
        for (int r = 0; r < d && of_rows; r++)
            for (int a = 0; a < k; a++) row[a] += vectors[i * n + r] / sqrt(values[i]) * z[r * k + a];
        if (!of_rows) memcpy(row, vectors + (size_t)i * (size_t)k, (size_t)k * sizeof *row);
        class->share[class->rank++] = fmin(values[i], 1);
    }
}

static enum lk_code set_class(const struct builder *b, const struct pattern *pattern, struct lk_cr2_class *class) {
    int k = b->cr2->k, d = pattern->n_rows;
    bool of_rows = d < k;
    size_t n = (size_t)(of_rows ? d : k), n_z = (size_t)d * (size_t)k;
    double *z = lk_malloc((n_z + 2 * n * n + 3 * n) * sizeof *z);
    class->share = lk_malloc(n * sizeof *class->share);
    class->basis = lk_malloc(n * (size_t)k * sizeof *class->basis);
    if (!z || !class->share || !class->basis) {
        lk_free(z);
        return lk_fail(LK_E_NOMEM, "linear model: no memory for a cluster of %d rows", d);
    }
    double *square = z + n_z, *vectors = square + n * n, *values = vectors + n * n;
    set_rows(b->cr2, pattern, b->design->width, z);
    products(z, d, k, of_rows, square);
    bool found = lk_symmetric_eigen(square, (int)n, values, vectors, values + n);
    if (found) set_basis(z, d, k, of_rows, values, vectors, class);
    lk_free(z);
    return found ? LK_OK : lk_fail(LK_E_INTERNAL, "linear model: the eigenvalues of a cluster were not found");
}

/* The class of a pattern, made when it is new. */
static enum lk_code find_class(struct builder *b, const struct pattern *pattern, int *out) {
    struct lk_cr2 *cr2 = b->cr2;
    size_t width = (size_t)b->design->width, n = (size_t)pattern->n_rows;
    for (*out = 0; *out < cr2->n_classes; ++*out)
        if (same_pattern(&b->patterns[*out], pattern, width)) return LK_OK;
    struct pattern *copy = &b->patterns[cr2->n_classes++];
    *copy = (struct pattern){pattern->n_rows, lk_malloc(n * width * sizeof *copy->rows),
                             lk_malloc(n * sizeof *copy->count)};
    if (!copy->rows || !copy->count) return lk_fail(LK_E_NOMEM, "linear model: no memory for a cluster of %zu rows", n);
    memcpy(copy->rows, pattern->rows, n * width * sizeof *copy->rows);
    memcpy(copy->count, pattern->count, n * sizeof *copy->count);
    return set_class(b, pattern, &cr2->classes[*out]);
}

/* scores [k] of a cluster <- Q (1 - share)^-1/2 Q' F^-1 scores. */
static void adjust(const struct lk_cr2 *cr2, const struct lk_cr2_class *class, double *score, double *out) {
    lk_cholesky_forward(cr2->factor, cr2->k, score);
    memset(out, 0, (size_t)cr2->k * sizeof *out);
    for (int i = 0; i < class->rank; i++) {
        const double *row = class->basis + (size_t)i * (size_t)cr2->k;
        double along = 0;
        for (int a = 0; a < cr2->k; a++) along += row[a] * score[a];
        along *= lk_cr2_inflation(class->share[i]);
        for (int a = 0; a < cr2->k; a++) out[a] += along * row[a];
    }
}

static enum lk_code build(struct builder *b, double *score) {
    const struct lk_design *design = b->design;
    struct lk_cr2 *cr2 = b->cr2;
    for (size_t from = 0, to; from < design->n; from = to) {
        for (to = from; to < design->n && design->cluster[to] == design->cluster[from];) to++;
        struct pattern pattern = pattern_of(b, from, to);
        double *out = cr2->scores + (size_t)design->cluster[from] * (size_t)cr2->k;
        int c;
        LK_TRY(find_class(b, &pattern, &c));
        cr2->classes[c].n_clusters++;
        memcpy(score, out, (size_t)cr2->k * sizeof *score);
        adjust(cr2, &cr2->classes[c], score, out);
    }
    return LK_OK;
}

void lk_cr2_free(struct lk_cr2 *cr2) {
    if (!cr2) return;
    for (int c = 0; c < cr2->n_classes; c++) {
        lk_free(cr2->classes[c].share);
        lk_free(cr2->classes[c].basis);
    }
    lk_free(cr2->classes);
    lk_free(cr2->factor);
    lk_free(cr2->scores);
    lk_free(cr2);
}

static struct lk_cr2 *cr2_new(const struct lk_design *design, const double *factor, const double *scores) {
    size_t k = (size_t)design->n_columns, g = design->n_clusters;
    struct lk_cr2 *cr2 = lk_calloc(1, sizeof *cr2);
    if (!cr2) return NULL;
    cr2->k = design->n_columns;
    cr2->n_clusters = (int)g;
    cr2->exponent = design->origin.exponent;
    cr2->factor = lk_malloc((k * k + k) * sizeof *cr2->factor);
    cr2->scores = lk_malloc(g * k * sizeof *cr2->scores);
    cr2->classes = lk_calloc(g, sizeof *cr2->classes);
    if (!cr2->factor || !cr2->scores || !cr2->classes) {
        lk_cr2_free(cr2);
        return NULL;
    }
    cr2->beta = cr2->factor + k * k;
    memcpy(cr2->factor, factor, k * k * sizeof *factor);
    memcpy(cr2->scores, scores, g * k * sizeof *scores);
    return cr2;
}

enum lk_code lk_cr2_make(const struct lk_design *design, const double *factor, const double *scores,
                         struct lk_cr2 **out) {
    struct builder b = {.design = design, .cr2 = cr2_new(design, factor, scores)};
    for (size_t i = 0, length = 0; i < design->n; i++) {
        length = i && design->cluster[i] == design->cluster[i - 1] ? length + 1 : 1;
        if (length > b.longest) b.longest = length;
    }
    b.patterns = lk_calloc(design->n_clusters, sizeof *b.patterns);
    b.rows = lk_malloc(b.longest * (size_t)design->width * sizeof *b.rows);
    b.count = lk_malloc((b.longest + (size_t)design->n_columns) * sizeof *b.count);
    enum lk_code rc = LK_OK;
    if (!b.cr2 || !b.patterns || !b.rows || !b.count)
        rc = lk_fail(LK_E_NOMEM, "linear model: no memory for %zu clusters", design->n_clusters);
    else
        rc = build(&b, b.count + b.longest);
    for (int c = 0; b.cr2 && b.patterns && c < b.cr2->n_classes; c++) {
        lk_free(b.patterns[c].rows);
        lk_free(b.patterns[c].count);
    }
    lk_free(b.patterns);
    lk_free(b.rows);
    lk_free(b.count);
    if (rc) lk_cr2_free(b.cr2);
    *out = rc ? NULL : b.cr2;
    return rc;
}
