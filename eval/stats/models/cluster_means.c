#include "eval/stats/models/cluster_means.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/double_double.h"
#include "eval/stats/special/special.h"

struct observation {
    int32_t cluster;
    size_t at;
    struct lk_dd y; /* from the origin; then from the mean */
};

static int by_cluster(const void *a, const void *b) {
    const struct observation *x = a, *y = b;
    if (x->cluster != y->cluster) return x->cluster < y->cluster ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static size_t gather(const double *y, const int32_t *clusters, size_t n, const struct lk_origin *origin,
                     struct observation *sorted) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(y[i])) sorted[kept++] = (struct observation){clusters[i], i, lk_from_origin(origin, y[i])};
    if (kept) qsort(sorted, kept, sizeof *sorted, by_cluster);
    return kept;
}

/* Sums over clusters: of squared sums of deviations, of squares between and within them, of squared sizes. */
struct sums {
    double meat, between, within, total, sizes_squared;
    double inflated;                /* of squared sums of deviations over 1 - share, share = m / n */
    double own, own_shared, shared; /* of a^2, a b, b for a = share / (1 - share), b = share^2 / (1 - share) */
    size_t n_clusters;
};

static void add_cluster(const struct observation *members, size_t m, size_t n, struct sums *sums) {
    double count = (double)m, share = count / (double)n, a = share / (1 - share), b = share * a;
    struct lk_dd sum = {0};
    for (size_t i = 0; i < m; i++) sum = lk_dd_add(sum, members[i].y);
    double deviation = sum.hi;
    for (size_t i = 0; i < m; i++) {
        double off = members[i].y.hi, inside = off - deviation / count;
        sums->total += off * off;
        sums->within += inside * inside;
    }
    sums->meat += deviation * deviation;
    sums->between += deviation * deviation / count;
    sums->sizes_squared += count * count;
    if (m < n) {
        sums->inflated += deviation * deviation / (1 - share);
        sums->own += a * a;
        sums->own_shared += a * b;
        sums->shared += b;
    }
    sums->n_clusters++;
}

static void set_interval(struct lk_number *number, double error, double df, double confidence) {
    double reach = -lk_t_quantile((1 - confidence) / 2, df) * error;
    number->low = number->value - reach;
    number->high = number->value + reach;
}

static void correlation(const struct sums *sums, double n, struct lk_cluster_mean *out) {
    double g = (double)sums->n_clusters;
    if (sums->n_clusters < 2 || n <= g) {
        out->icc.undefined = sums->n_clusters < 2 ? "fewer than two clusters" : "no cluster has two observations";
    } else {
        double m0 = (n - sums->sizes_squared / n) / (g - 1), between = sums->between / (g - 1);
        double within = sums->within / (n - g), spread = between + (m0 - 1) * within;
        if (spread > 0)
            out->icc.value = (between - within) / spread;
        else
            out->icc.undefined = "all observations are equal";
    }
    out->icc.n = out->kish.n = (size_t)n;
    out->kish.undefined = out->icc.undefined;
    if (!out->icc.undefined) out->kish.value = 1 + (sums->sizes_squared / n - 1) * out->icc.value;
}

static void measure(struct observation *sorted, size_t n, const struct lk_origin *origin, double confidence,
                    struct lk_cluster_mean *out) {
    struct sums sums = {0};
    struct lk_dd of_origin = {0};
    double count = (double)n;
    for (size_t i = 0; i < n; i++) of_origin = lk_dd_add(of_origin, sorted[i].y);
    of_origin = lk_dd_divide(of_origin, lk_dd_of(count));
    for (size_t i = 0; i < n; i++) sorted[i].y = lk_dd_subtract(sorted[i].y, of_origin);
    const double mean = ldexp(lk_dd_add(of_origin, lk_dd_of(origin->value)).hi, origin->exponent);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from; to < n && sorted[to].cluster == sorted[from].cluster;) to++;
        add_cluster(sorted + from, to - from, n, &sums);
    }
    double g = (double)sums.n_clusters;
    out->n_clusters = sums.n_clusters;
    out->cr2.value = out->clustered.value = out->independent.value = mean;
    correlation(&sums, count, out);
    out->design_effect.n = n;
    if (n > 1) {
        out->independent_error = ldexp(sqrt(sums.total / (count - 1) / count), origin->exponent);
        set_interval(&out->independent, out->independent_error, count - 1, confidence);
    }
    if (sums.n_clusters < 2) {
        out->design_effect.undefined = "fewer than two clusters";
        return;
    }
    out->clustered_error = ldexp(sqrt(g / (g - 1) * sums.meat) / count, origin->exponent);
    set_interval(&out->clustered, out->clustered_error, g - 1, confidence);
    /* what two clusters share is (a - b) on the diagonal and sqrt(b b') beside it; the diagonal sums to 1 */
    out->cr2_error = ldexp(sqrt(sums.inflated) / count, origin->exponent);
    out->cr2_df = 1 / (sums.own - 2 * sums.own_shared + sums.shared * sums.shared);
    set_interval(&out->cr2, out->cr2_error, out->cr2_df, confidence);
    if (sums.total > 0)
        out->design_effect.value = g / (g - 1) * sums.meat * (count - 1) / (count * sums.total);
    else
        out->design_effect.undefined = "all observations are equal";
}

enum lk_code lk_cluster_mean(const double *y, const int32_t *clusters, size_t n, double confidence,
                             struct lk_cluster_mean *out) {
    memset(out, 0, sizeof *out);
    if (!(confidence > 0 && confidence < 1))
        return lk_fail(LK_E_INPUT, "cluster mean: confidence: expected a share between 0 and 1, got %g", confidence);
    for (size_t i = 0; i < n; i++)
        if (isinf(y[i])) return lk_fail(LK_E_INPUT, "cluster mean: value %zu: expected a finite number", i);
    struct observation *sorted = lk_malloc(n * sizeof *sorted);
    if (!sorted) return lk_fail(LK_E_NOMEM, "cluster mean: no memory for %zu observations", n);
    const struct lk_origin origin = lk_origin_of(y, n);
    size_t kept = gather(y, clusters, n, &origin, sorted);
    out->cr2.n = out->clustered.n = out->independent.n = kept;
    if (kept)
        measure(sorted, kept, &origin, confidence, out);
    else
        out->cr2.undefined = out->clustered.undefined = out->independent.undefined = out->design_effect.undefined =
            out->icc.undefined = out->kish.undefined = "no observation";
    lk_free(sorted);
    return LK_OK;
}

/* The chance of a t at least as large. */
static double above(double t, double df) {
    double half = lk_t_two_sided(t, df) / 2;
    return t > 0 ? half : 1 - half;
}

struct lk_equivalence lk_cluster_equivalence(const struct lk_cluster_mean *mean, double margin) {
    struct lk_equivalence out = {.undefined = mean->cr2.undefined};
    double value = mean->cr2.value, error = mean->cr2_error;
    if (!out.undefined && mean->n_clusters < 2) out.undefined = "fewer than two clusters";
    if (out.undefined) return out;
    if (error > 0) {
        out.p_low = above((value + margin) / error, mean->cr2_df);
        out.p_high = above((margin - value) / error, mean->cr2_df);
    } else { /* the same in every cluster */
        out.p_low = value > -margin ? 0 : 1;
        out.p_high = value < margin ? 0 : 1;
    }
    out.p = out.p_low > out.p_high ? out.p_low : out.p_high;
    return out;
}
