#include "eval/stats/resampling/range_interval.h"

#include <math.h>

#include "eval/stats/quantile.h"
#include "eval/stats/special/special.h"

struct pair {
    const double *a, *b; /* replicates */
    double difference, error;
};

/* Group i - group j with the standard deviation of its resamples; false when a group has no value. */
static bool pair_of(const struct lk_resampled_groups *g, int i, int j, struct pair *out) {
    double a = g->values[(size_t)i * g->stride], b = g->values[(size_t)j * g->stride], sum = 0, squares = 0, n = 0;
    if (isnan(a) || isnan(b)) return false;
    *out =
        (struct pair){g->replicates + (size_t)i * g->row_stride, g->replicates + (size_t)j * g->row_stride, a - b, 0};
    for (size_t r = 0; r < g->n_replicates; r++) {
        double shift = out->a[r] - out->b[r] - out->difference;
        if (isnan(shift)) continue;
        sum += shift;
        squares += shift * shift;
        n++;
    }
    if (n > 1) out->error = sqrt(fmax(squares - sum * sum / n, 0) / (n - 1));
    if (!isfinite(out->error)) out->error = 0;
    return true;
}

/* Raises largest [n_replicates] to the pair's |d* - d| / s. A pair that hardly varies is rounding. */
static bool raise(const struct lk_resampled_groups *g, const struct pair *pair, double *largest) {
    if (pair->error <= 1e-12 * fabs(pair->difference)) return false;
    for (size_t r = 0; r < g->n_replicates; r++) {
        double t = fabs(pair->a[r] - pair->b[r] - pair->difference) / pair->error;
        if (t > largest[r]) largest[r] = t;
    }
    return true;
}

/* Student's quantile at the tail of the normal distribution's z. */
static double expanded(const struct lk_range_options *how, double z) {
    if (how->df == 0) return z;
    return sqrt(how->n_drawn / (how->n_drawn - 1)) * -lk_t_quantile(lk_normal_cdf(-z), how->df);
}

void lk_range_interval(const struct lk_resampled_groups *groups, const struct lk_range_options *how, double *scratch,
                       struct lk_number *number) {
    double *largest = scratch, low = 0, high = number->value;
    struct pair pair;
    bool any = false;
    for (size_t r = 0; r < groups->n_replicates; r++) largest[r] = 0;
    for (int i = 0; i < groups->n_groups; i++)
        for (int j = 0; j < i; j++)
            if (pair_of(groups, i, j, &pair)) any |= raise(groups, &pair, largest);
    number->low = number->high = 0;
    if (!any) return;
    double z = lk_normal_quantile((1 + how->confidence) / 2);
    double c = lk_quantile_of(largest, groups->n_replicates, how->confidence, scratch + groups->n_replicates);
    c = expanded(how, fmax(c, z));
    z = expanded(how, z);
    for (int i = 0; i < groups->n_groups; i++)
        for (int j = 0; j < i; j++) {
            if (!pair_of(groups, i, j, &pair)) continue;
            low = fmax(low, fabs(pair.difference) - c * pair.error);
            high = fmax(high, fabs(pair.difference) + z * pair.error);
        }
    number->low = low;
    number->high = fmax(fmin(high, how->limit), number->value);
}
