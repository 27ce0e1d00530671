#include "eval/stats/models/silhouette.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/summary.h"

/* Times scale. Squares that would overflow or vanish are of differences divided by the largest. */
static double distance(const double *a, const double *b, int n, double scale) {
    double sum = 0, largest = 0;
    for (int i = 0; i < n; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    if (sum > 0x1p-960 && sum < 0x1p960) return sqrt(sum) * scale;
    for (int i = 0; i < n; i++) largest = fmax(largest, fabs(a[i] * scale - b[i] * scale));
    sum = 0;
    for (int i = 0; i < n && largest > 0; i++) {
        double apart = (a[i] * scale - b[i] * scale) / largest;
        sum += apart * apart;
    }
    return largest * sqrt(sum);
}

/* sums [n_groups]: scratch; sizes [n_groups]: members. */
static double width_of(const double *features, size_t n, int n_features, const int32_t *groups, int n_groups,
                       const size_t *sizes, size_t i, double scale, double *sums) {
    if (sizes[groups[i]] == 1) return 0;
    memset(sums, 0, (size_t)n_groups * sizeof *sums);
    for (size_t j = 0; j < n; j++)
        if (j != i)
            sums[groups[j]] +=
                distance(features + i * (size_t)n_features, features + j * (size_t)n_features, n_features, scale);
    double inside = sums[groups[i]] / (double)(sizes[groups[i]] - 1), nearest = INFINITY;
    for (int g = 0; g < n_groups; g++)
        if (g != groups[i] && sizes[g] && sums[g] / (double)sizes[g] < nearest) nearest = sums[g] / (double)sizes[g];
    double larger = fmax(inside, nearest);
    return larger > 0 ? (nearest - inside) / larger : 0;
}

static enum lk_code check(const double *features, size_t n, int n_features, const int32_t *groups, int n_groups) {
    if (n_features < 1 || n_groups < 1)
        return lk_fail(LK_E_INPUT, "silhouette: expected features and groups, got %d and %d", n_features, n_groups);
    for (size_t i = 0; i < n; i++)
        if (groups[i] < 0 || groups[i] >= n_groups)
            return lk_fail(LK_E_INPUT, "silhouette: row %zu: expected a group below %d, got %d", i, n_groups,
                           groups[i]);
    for (size_t i = 0; i < n * (size_t)n_features; i++)
        if (!isfinite(features[i]))
            return lk_fail(LK_E_INPUT, "silhouette: row %zu: expected finite features, got %g", i / (size_t)n_features,
                           features[i]);
    return LK_OK;
}

static void finish(struct lk_number *number, double sum, size_t n, const char *undefined) {
    *number = (struct lk_number){.n = n, .undefined = undefined};
    if (!undefined && !n) number->undefined = "a group without members";
    if (!number->undefined) number->value = sum / (double)n;
}

enum lk_code lk_silhouette(const double *features, size_t n, int n_features, const int32_t *groups, int n_groups,
                           struct lk_number *out, struct lk_number *by_group) {
    memset(out, 0, sizeof *out);
    LK_TRY(check(features, n, n_features, groups, n_groups));
    double *sums = lk_calloc((size_t)n_groups * 2, sizeof *sums);
    size_t *sizes = lk_calloc((size_t)n_groups, sizeof *sizes), n_present = 0;
    if (!sums || !sizes) {
        lk_free(sums);
        lk_free(sizes);
        return lk_fail(LK_E_NOMEM, "silhouette: no memory for %d groups", n_groups);
    }
    double *widths = sums + n_groups;
    for (size_t i = 0; i < n; i++) n_present += !sizes[groups[i]]++;
    const char *undefined = n_present < 2 ? "fewer than two groups" : n_present >= n ? "each row is a group" : NULL;
    /* a power of two that brings all features near 1: only ratios of distances count */
    const int exponent = lk_exponent_of(features, n * (size_t)n_features);
    const double scale = ldexp(1, exponent < -1000 ? 1000 : -exponent);
    double sum = 0;
    for (size_t i = 0; i < n && !undefined; i++) {
        double width = width_of(features, n, n_features, groups, n_groups, sizes, i, scale, sums);
        widths[groups[i]] += width;
        sum += width;
    }
    finish(out, sum, n, undefined);
    for (int g = 0; g < n_groups && by_group; g++) finish(&by_group[g], widths[g], sizes[g], undefined);
    lk_free(sums);
    lk_free(sizes);
    return LK_OK;
}

enum lk_code lk_cosine_similarity(const double *u, const double *v, size_t n, struct lk_number *out) {
    *out = (struct lk_number){.n = n};
    double largest_u = 0, largest_v = 0, uu = 0, vv = 0, uv = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(u[i]) || !isfinite(v[i]))
            return lk_fail(LK_E_INPUT, "cosine: element %zu: expected finite numbers, got %g and %g", i, u[i], v[i]);
        largest_u = fmax(largest_u, fabs(u[i]));
        largest_v = fmax(largest_v, fabs(v[i]));
    }
    if (largest_u == 0 || largest_v == 0) {
        out->undefined = "a vector of zeros";
        return LK_OK;
    }
    for (size_t i = 0; i < n; i++) { /* scaled: squares neither overflow nor vanish */
        double a = u[i] / largest_u, b = v[i] / largest_v;
        uu += a * a;
        vv += b * b;
        uv += a * b;
    }
    out->value = uv / (sqrt(uu) * sqrt(vv));
    return LK_OK;
}
