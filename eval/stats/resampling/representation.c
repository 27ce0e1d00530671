#include "eval/stats/resampling/representation.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/resampling/representation_sets.h"

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
