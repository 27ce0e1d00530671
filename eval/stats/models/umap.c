#include "eval/stats/models/umap.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/result.h"
#include "eval/study/random.h"

static enum lk_code out_of_memory(size_t n) { return lk_fail(LK_E_NOMEM, "umap: out of memory for %zu rows", n); }

static double distance(const double *a, const double *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

struct candidate {
    double distance;
    int32_t row;
};

static int nearer(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    return x->distance < y->distance ? -1 : x->distance > y->distance ? 1 : (x->row > y->row) - (x->row < y->row);
}

/* All rows by their distance from row i, which is the first. */
static void sort_rows(const double *features, size_t n, int n_features, size_t i, struct candidate *out) {
    for (size_t j = 0; j < n; j++)
        out[j] = (struct candidate){
            i == j ? -1 : distance(features + i * (size_t)n_features, features + j * (size_t)n_features, n_features),
            (int32_t)j};
    qsort(out, n, sizeof *out, nearer);
    out[0].distance = 0;
}

/* The kernel's width: the sum of memberships of the neighbours, without the row itself, is log2 k. By bisection as the
 * peer's, with its end at 1e-5 and its lower bound; rho: the distance of the nearest other row that is not equal. */
static void smooth(struct lk_neighbours *nb, size_t i, double mean_of_all) {
    const double *d = nb->distances + i * (size_t)nb->k;
    double low = 0, high = INFINITY, sigma = 1, rho = 0, mean = 0;
    for (int j = nb->k - 1; j >= 0; j--)
        if (d[j] > 0) rho = d[j];
    for (int j = 0; j < nb->k; j++) mean += d[j] / nb->k;
    for (int step = 0; step < 64; step++) {
        double sum = 0;
        for (int j = 1; j < nb->k; j++) sum += d[j] > rho ? exp(-(d[j] - rho) / sigma) : 1;
        if (fabs(sum - log2(nb->k)) < 1e-5) break;
        if (sum > log2(nb->k))
            high = sigma;
        else
            low = sigma;
        sigma = isinf(high) ? 2 * sigma : (low + high) / 2;
    }
    nb->rho[i] = rho;
    nb->sigma[i] = fmax(sigma, 1e-3 * (rho > 0 ? mean : mean_of_all));
}

static enum lk_code check(const double *features, size_t n, int n_features, int k) {
    if (n < 4 || n > LK_UMAP_MAX_ROWS)
        return lk_fail(LK_E_INPUT, "umap: expected 4 to %d rows, got %zu", LK_UMAP_MAX_ROWS, n);
    if (n_features < 1) return lk_fail(LK_E_INPUT, "umap: expected features, got none");
    if (k < 2 || k > LK_UMAP_MAX_NEIGHBOURS || (size_t)k >= n)
        return lk_fail(LK_E_INPUT, "umap: expected 2 to %zu neighbours of %zu rows, got %d",
                       n - 1 < LK_UMAP_MAX_NEIGHBOURS ? n - 1 : LK_UMAP_MAX_NEIGHBOURS, n, k);
    return lk_check_finite("umap: features", features, n * (size_t)n_features);
}

enum lk_code lk_neighbours_find(const double *features, size_t n, int n_features, int k, struct lk_neighbours *out) {
    *out = (struct lk_neighbours){.n = n, .k = k};
    LK_TRY(check(features, n, n_features, k));
    const size_t width = (size_t)k;
    struct candidate *sorted = lk_calloc(n, sizeof *sorted);
    out->rows = lk_calloc(n * width, sizeof *out->rows);
    out->distances = lk_calloc(n * width, sizeof *out->distances);
    out->sigma = lk_calloc(n, sizeof *out->sigma);
    out->rho = lk_calloc(n, sizeof *out->rho);
    if (!sorted || !out->rows || !out->distances || !out->sigma || !out->rho) {
        lk_free(sorted);
        lk_neighbours_free(out);
        return out_of_memory(n);
    }
    double mean = 0;
    for (size_t i = 0; i < n; i++) {
        sort_rows(features, n, n_features, i, sorted);
        for (size_t j = 0; j < width; j++) {
            out->rows[i * width + j] = sorted[j].row;
            out->distances[i * width + j] = sorted[j].distance;
            mean += sorted[j].distance / (double)(n * width);
        }
    }
    for (size_t i = 0; i < n; i++) smooth(out, i, mean);
    lk_free(sorted);
    return LK_OK;
}

void lk_neighbours_free(struct lk_neighbours *nb) {
    lk_free(nb->rows);
    lk_free(nb->distances);
    lk_free(nb->sigma);
    lk_free(nb->rho);
    *nb = (struct lk_neighbours){0};
}

/* How far row i takes row j for one of its own; 0 when it is none of its neighbours, and of itself. */
static double membership(const struct lk_neighbours *nb, size_t i, size_t j) {
    for (size_t m = 1; m < (size_t)nb->k; m++) {
        const size_t at = i * (size_t)nb->k + m;
        if ((size_t)nb->rows[at] != j) continue;
        return nb->distances[at] > nb->rho[i] ? exp(-(nb->distances[at] - nb->rho[i]) / nb->sigma[i]) : 1;
    }
    return 0;
}

enum lk_code lk_umap_graph(const struct lk_neighbours *nb, struct lk_umap_edge **edges, size_t *n_edges) {
    struct lk_umap_edge *list = lk_calloc(2 * nb->n * (size_t)nb->k, sizeof *list);
    size_t n = 0;
    if (!list) return out_of_memory(nb->n);
    for (size_t i = 0; i < nb->n; i++)
        for (size_t m = 1; m < (size_t)nb->k; m++) {
            const int32_t j = nb->rows[i * (size_t)nb->k + m];
            const double a = membership(nb, i, (size_t)j), b = membership(nb, (size_t)j, i), weight = a + b - a * b;
            list[n++] = (struct lk_umap_edge){(int32_t)i, j, weight};
            if (b == 0) list[n++] = (struct lk_umap_edge){j, (int32_t)i, weight};
        }
    *edges = list;
    *n_edges = n;
    return LK_OK;
}

/* The features' projection on the axis of largest variance that is at right angles to axis 0 (NULL: on the first), by
 * power iteration. centred [n, n_features], axis [n_features], scores [n]. */
static void principal_axis(const double *centred, size_t n, int n_features, const double *before, double *axis,
                           double *scores, double *next) {
    for (int f = 0; f < n_features; f++) axis[f] = 1.0 / (1 + f);
    for (int step = 0; step < 300; step++) {
        double along = 0, norm = 0;
        for (int f = 0; before && f < n_features; f++) along += axis[f] * before[f];
        for (int f = 0; f < n_features; f++) {
            if (before) axis[f] -= along * before[f];
            norm += axis[f] * axis[f];
        }
        for (int f = 0; f < n_features; f++) axis[f] = norm > 0 ? axis[f] / sqrt(norm) : 0;
        memset(next, 0, (size_t)n_features * sizeof *next);
        for (size_t i = 0; i < n; i++) {
            const double *row = centred + i * (size_t)n_features;
            scores[i] = 0;
            for (int f = 0; f < n_features; f++) scores[i] += row[f] * axis[f];
            for (int f = 0; f < n_features; f++) next[f] += scores[i] * row[f];
        }
        if (step < 299) memcpy(axis, next, (size_t)n_features * sizeof *axis);
    }
}

/* The start: two principal components, each from 0 to 10. */
static enum lk_code start(const double *features, size_t n, int n_features, double *out) {
    const size_t width = (size_t)n_features;
    double *centred = lk_calloc((n + 3) * width + n, sizeof *centred);
    if (!centred) return out_of_memory(n);
    double *axes = centred + n * width, *next = axes + 2 * width, *scores = next + width, largest = 0;
    for (size_t f = 0; f < width; f++) {
        double mean = 0;
        for (size_t i = 0; i < n; i++) mean += features[i * width + f] / (double)n;
        for (size_t i = 0; i < n; i++) {
            centred[i * width + f] = features[i * width + f] - mean;
            largest = fmax(largest, fabs(centred[i * width + f]));
        }
    }
    for (size_t i = 0; i < n * width && largest > 0; i++) centred[i] /= largest; /* squares stay finite */
    for (int axis = 0; axis < 2; axis++) {
        double low = INFINITY, high = -INFINITY;
        principal_axis(centred, n, n_features, axis ? axes : NULL, axes + (size_t)axis * width, scores, next);
        for (size_t i = 0; i < n; i++) low = fmin(low, scores[i]), high = fmax(high, scores[i]);
        for (size_t i = 0; i < n; i++)
            out[2 * i + (size_t)axis] = high > low ? 10 * (scores[i] - low) / (high - low) : 0;
    }
    lk_free(centred);
    return LK_OK;
}

/* 1 / (1 + A d^2B) comes nearest to exp(-max(0, d - 0.1)): umap-learn's find_ab_params(1, 0.1). */
static const double A = 1.576943460405378, B = 0.8950608781227859;

static double clip(double v) { return v > 4 ? 4 : v < -4 ? -4 : v; }

/* p is drawn to q, which comes to meet it, or pushed off. */
static void move(double *p, double *q, bool attract, double rate) {
    const double square = (p[0] - q[0]) * (p[0] - q[0]) + (p[1] - q[1]) * (p[1] - q[1]);
    if (square == 0) return;
    const double slope = attract ? -2 * A * B * pow(square, B - 1) / (A * pow(square, B) + 1)
                                 : 2 * B / ((0.001 + square) * (A * pow(square, B) + 1));
    for (int c = 0; c < 2; c++) {
        const double by = rate * clip(slope * (p[c] - q[c]));
        p[c] += by;
        if (attract) q[c] -= by;
    }
}

enum { EPOCHS = 500, FEWER_EPOCHS = 200, MANY_ROWS = 10000, NEGATIVES = 5 };

/* Each edge is drawn as often as its weight says; due, due_negative [n_edges]: at which epoch next. */
static void descend(const struct lk_umap_edge *edges, size_t n_edges, size_t n, uint64_t seed, double *due,
                    double *due_negative, double *out) {
    const int n_epochs = n > MANY_ROWS ? FEWER_EPOCHS : EPOCHS;
    double largest = 0;
    struct lk_stream stream;
    lk_stream_named(&stream, seed, "umap");
    for (size_t e = 0; e < n_edges; e++) largest = fmax(largest, edges[e].weight);
    for (size_t e = 0; e < n_edges; e++) {
        due[e] = edges[e].weight > largest / n_epochs ? largest / edges[e].weight : INFINITY;
        due_negative[e] = due[e] / NEGATIVES;
    }
    for (int epoch = 0; epoch < n_epochs; epoch++) {
        const double rate = 1 - (double)epoch / n_epochs;
        for (size_t e = 0; e < n_edges; e++) {
            if (due[e] > epoch) continue;
            double *p = out + 2 * (size_t)edges[e].from, every = largest / edges[e].weight;
            move(p, out + 2 * (size_t)edges[e].to, true, rate);
            due[e] += every;
            const int n_negative = (int)((epoch - due_negative[e]) / (every / NEGATIVES));
            for (int s = 0; s < n_negative; s++) {
                const size_t other = (size_t)lk_stream_bounded(&stream, n);
                if (other != (size_t)edges[e].from) move(p, out + 2 * other, false, rate);
            }
            due_negative[e] += n_negative * (every / NEGATIVES);
        }
    }
}

enum lk_code lk_umap(const double *features, size_t n, int n_features, int k, uint64_t seed, double *out) {
    struct lk_neighbours nb;
    struct lk_umap_edge *edges = NULL;
    size_t n_edges = 0;
    LK_TRY(lk_neighbours_find(features, n, n_features, k, &nb));
    enum lk_code rc = lk_umap_graph(&nb, &edges, &n_edges);
    lk_neighbours_free(&nb);
    double *due = rc ? NULL : lk_calloc(2 * n_edges, sizeof *due);
    if (!rc && !due) rc = out_of_memory(n);
    if (!rc) rc = start(features, n, n_features, out);
    if (!rc) descend(edges, n_edges, n, seed, due, due + n_edges, out);
    lk_free(edges);
    lk_free(due);
    return rc;
}

enum lk_code lk_trustworthiness(const double *features, size_t n, int n_features, const double *projection, int k,
                                struct lk_number *out) {
    *out = (struct lk_number){.n = n};
    LK_TRY(check(features, n, n_features, k));
    LK_TRY(lk_check_finite("trustworthiness: projection", projection, 2 * n));
    if (2 * (size_t)k >= n) out->undefined = "as many neighbours as half of the rows";
    if (out->undefined) return LK_OK;
    struct candidate *sorted = lk_calloc(2 * n, sizeof *sorted);
    size_t *rank = lk_calloc(n, sizeof *rank);
    double sum = 0;
    for (size_t i = 0; i < n && sorted && rank; i++) {
        sort_rows(features, n, n_features, i, sorted);
        sort_rows(projection, n, 2, i, sorted + n);
        for (size_t j = 0; j < n; j++) rank[sorted[j].row] = j;
        for (size_t j = 1; j <= (size_t)k; j++) {
            const size_t r = rank[sorted[n + j].row];
            if (r > (size_t)k) sum += (double)(r - (size_t)k);
        }
    }
    out->value = 1 - 2 * sum / ((double)n * k * (2.0 * (double)n - 3.0 * k - 1));
    const bool done = sorted && rank;
    lk_free(sorted);
    lk_free(rank);
    return done ? LK_OK : out_of_memory(n);
}
