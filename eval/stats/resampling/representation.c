#include "eval/stats/resampling/representation.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/proportion.h"
#include "eval/stats/resampling/representation_sets.h"
#include "eval/stats/special/special.h"

enum { MOST_BY_SUBSET = 12 }; /* groups; of more, resamples alone */

enum lk_code lk_representation_check_target(const double *target, int n_groups) {
    double sum = 0;
    if (n_groups < 1) return lk_fail(LK_E_INPUT, "representation: expected 1 group or more, got %d", n_groups);
    for (int g = 0; g < n_groups; g++) {
        if (!(target[g] >= 0 && target[g] <= 1))
            return lk_fail(LK_E_INPUT, "representation: target of group %d: expected a share, got %g", g, target[g]);
        sum += target[g];
    }
    if (!(fabs(sum - 1) <= 1e-9))
        return lk_fail(LK_E_INPUT, "representation: target: expected shares that sum to 1, got %.12g", sum);
    return LK_OK;
}

enum lk_code lk_representation_rates(const int64_t *counts, int n_groups, double *rates) {
    int64_t sum = 0;
    for (int g = 0; g < n_groups; g++) {
        if (counts[g] < 0 || counts[g] > INT64_C(1) << 40)
            return lk_fail(LK_E_INPUT, "representation: group %d: expected a count, got %lld", g, (long long)counts[g]);
        sum += counts[g];
    }
    for (int g = 0; g < n_groups; g++) rates[g] = sum ? (double)counts[g] / (double)sum : NAN;
    return LK_OK;
}

/* NaN without counts. */
static double spd_of(const double *counts, int n_groups, const double *target) {
    double sum = 0, spd = 0;
    for (int g = 0; g < n_groups; g++) sum += counts[g];
    if (!(sum > 0)) return NAN;
    for (int g = 0; g < n_groups; g++) spd += fabs(counts[g] / sum - target[g]);
    return spd;
}

static void set(struct lk_number *out, double value, size_t n) {
    *out = (struct lk_number){.n = n};
    if (isnan(value))
        out->undefined = "no image with a label";
    else
        out->value = value;
}

enum lk_code lk_spd(const int64_t *counts, int n_groups, const double *target, struct lk_number *out) {
    memset(out, 0, sizeof *out);
    LK_TRY(lk_representation_check_target(target, n_groups));
    double *rates = lk_malloc((size_t)n_groups * sizeof *rates);
    if (!rates) return lk_fail(LK_E_NOMEM, "representation: no memory for %d groups", n_groups);
    enum lk_code rc = lk_representation_rates(counts, n_groups, rates);
    size_t n = 0;
    for (int g = 0; g < n_groups && !rc; g++) {
        n += (size_t)counts[g];
        rates[g] = (double)counts[g];
    }
    if (!rc) set(out, spd_of(rates, n_groups, target), n);
    lk_free(rates);
    return rc;
}

struct lk_number lk_bias_amplification(const struct lk_number *spd, double reference_spd) {
    struct lk_number out = *spd;
    if (out.undefined) return out;
    out.value -= reference_spd;
    out.low -= reference_spd;
    out.high -= reference_spd;
    return out;
}

static double correlation(const double *x, const double *y, size_t n) {
    double sx = 0, sy = 0, xx = 0, yy = 0, xy = 0, m = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i]) || isnan(y[i])) continue;
        m++;
        sx += x[i];
        sy += y[i];
        xx += x[i] * x[i];
        yy += y[i] * y[i];
        xy += x[i] * y[i];
    }
    double spread = sqrt(fmax(m * xx - sx * sx, 0)) * sqrt(fmax(m * yy - sy * sy, 0));
    return spread > 0 ? (m * xy - sx * sy) / spread : 0;
}

/* From a difference a - b to its end: from a to its own, and from b to its opposite one, of which `shift` is bias. */
static double reach(double a, double b, double shift, double r) {
    b -= shift;
    return shift + sqrt(fmax(a * a - 2 * r * a * b + b * b, 0));
}

/* By how much SPD exceeds the truth in the mean: 0 but for groups near their targets. */
static double bias(const double *most, size_t n, const struct lk_number *spd) {
    double sum = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(most[i])) continue;
        sum += most[i];
        count++;
    }
    return count > 0 ? fmin(fmax(sum / count, 0), spd->value - spd->low) : 0;
}

/* How many times wider Student's t is at this tail, and n than its resamples (bootstrap.h). */
static double expanded(double tail, size_t n) {
    double count = fmax((double)n, 2);
    return sqrt(count / (count - 1)) * lk_t_quantile(tail, count - 1) / lk_normal_quantile(tail);
}

/* SPD is 2 (P(S) - t(S)), P and t the shares of the groups S that have more than their targets, and at least that for
 * any other S. So Clopper-Pearson's upper end of P(S) bounds it in the S where that is most, whichever S is the true
 * one; the lower end is taken of the S seen. What resamples cannot tell is in these ends: a group that none of the n
 * pictures shows. Widens the number to them. */
static void widen_exactly(const struct lk_representation *set, const int32_t *groups, double confidence,
                          struct lk_number *number) {
    int64_t counts[LK_REPRESENTATION_MAX_GROUPS] = {0}, n = (int64_t)number->n;
    for (size_t i = 0; i < set->n; i++)
        if (groups[i] >= 0) counts[groups[i]]++;
    for (uint32_t subset = 1; set->n_groups <= MOST_BY_SUBSET && subset + 1 < 1u << set->n_groups; subset++) {
        struct lk_number share;
        int64_t count = 0;
        double target = 0;
        for (int g = 0; g < set->n_groups; g++) {
            if (!(subset >> g & 1)) continue;
            count += counts[g];
            target += set->target[g];
        }
        if (lk_proportion(count, n, LK_CLOPPER_PEARSON, confidence, &share)) continue;
        number->high = fmax(number->high, 2 * (share.high - target));
        if (2 * (share.value - target) > number->value - 1e-12)
            number->low = fmin(number->low, fmax(2 * (share.low - target), 0));
    }
}

void lk_representation_bounds(const struct lk_representation *set, const double *rows, size_t n, double confidence,
                              const struct lk_number spd[3], double *scratch, struct lk_number bounds[3]) {
    int n_arms = set->other ? 2 : 1;
    double limit = 0; /* all pictures in the group of the least target */
    for (int g = 0; g < set->n_groups; g++) limit = fmax(limit, 2 - 2 * set->target[g]);
    double alpha = 1 - confidence;
    struct lk_number along = {0}, most = {0};
    memcpy(bounds, spd, 3 * sizeof *bounds);
    for (int arm = 0; arm < n_arms; arm++, rows += 2 * n) {
        struct lk_number *number = &bounds[arm];
        if (number->undefined) continue;
        lk_interval_percentile_in(rows, n, fmax(1 - 0.6 * alpha, 0), scratch, &along);
        lk_interval_percentile_in(rows + n, n, fmax(1 - 1.4 * alpha, 0), scratch, &most);
        double below = most.high * expanded(0.7 * alpha, number->n),
               above = -along.low * expanded(0.3 * alpha, number->n);
        number->low = fmin(fmax(number->value - below, 0), number->value);
        number->high = number->value + above;
        widen_exactly(set, arm ? set->other : set->base, confidence, number);
        number->high = fmax(fmin(number->high, limit), number->value);
    }
    if (n_arms < 2 || bounds[2].undefined) return;
    const struct lk_number *a = &bounds[0], *b = &bounds[1];
    double same = correlation(rows - 4 * n, rows - 2 * n, n);
    rows -= 4 * n;
    bounds[2].low = bounds[2].value - reach(a->high - a->value, b->value - b->low, bias(rows + 3 * n, n, b), same);
    bounds[2].high = bounds[2].value + reach(b->high - b->value, a->value - a->low, bias(rows + n, n, a), same);
}
