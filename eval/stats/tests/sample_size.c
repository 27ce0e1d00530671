#include "eval/stats/tests/sample_size.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "eval/stats/special/special.h"

static bool inside(double share) { return share > 0 && share < 1; }

static enum lk_code check_shares(double alpha, double power) {
    if (!inside(alpha) || !inside(power))
        return lk_fail(LK_E_INPUT, "sample size: alpha and power: expected shares between 0 and 1, got %g and %g",
                       alpha, power);
    return LK_OK;
}

static enum lk_code check_rates(double p1, double p2) {
    if (!(p1 >= 0 && p1 <= 1 && p2 >= 0 && p2 <= 1))
        return lk_fail(LK_E_INPUT, "sample size: rates: expected numbers in [0, 1], got %g and %g", p1, p2);
    return LK_OK;
}

static double upper_z(double tail, enum lk_z z) {
    double exact = -lk_normal_quantile(tail);
    return z == LK_Z_EXACT ? exact : floor(exact * 100 + 0.5) / 100;
}

static void set(struct lk_number *out, double value) {
    out->value = value;
    double up = ceil(value);
    out->n = up < 9e15 ? (size_t)up : (size_t)9e15;
}

enum lk_code lk_sample_size_proportions(double p1, double p2, double alpha, double power, enum lk_z z,
                                        struct lk_number *out) {
    memset(out, 0, sizeof *out);
    LK_TRY(check_shares(alpha, power));
    LK_TRY(check_rates(p1, p2));
    if (p1 == p2) {
        out->undefined = "the rates are equal";
        return LK_OK;
    }
    double sum = upper_z(alpha / 2, z) + upper_z(1 - power, z);
    double apart = p1 - p2, spread = p1 * (1 - p1) + p2 * (1 - p2);
    set(out, sum < 0 ? 0 : sum * sum * (spread / apart / apart)); /* the square of a small difference would vanish */
    return LK_OK;
}

enum lk_code lk_power_proportions(double p1, double p2, double alpha, double n, struct lk_number *out) {
    memset(out, 0, sizeof *out);
    LK_TRY(check_shares(alpha, 0.5));
    LK_TRY(check_rates(p1, p2));
    if (!(n > 0) || isinf(n)) return lk_fail(LK_E_INPUT, "power: n: expected a number above 0, got %g", n);
    double spread = p1 * (1 - p1) + p2 * (1 - p2);
    if (spread == 0) {
        out->undefined = "rates of 0 or 1 do not vary";
        return LK_OK;
    }
    set(out, 0);
    out->value = lk_normal_sf(upper_z(alpha / 2, LK_Z_EXACT) - fabs(p1 - p2) * sqrt(n / spread));
    out->n = (size_t)fmin(n, 9e15);
    return LK_OK;
}

/* Both tails, for a mean of `shift` standard errors. */
static double power_of(double shift, double alpha) {
    double z = -lk_normal_quantile(alpha / 2);
    return lk_normal_sf(z - shift) + lk_normal_cdf(-z - shift);
}

static enum lk_code check_h(double h, double ratio) {
    if (!isfinite(h) || !(ratio > 0) || isinf(ratio))
        return lk_fail(LK_E_INPUT, "sample size: expected a finite h and a ratio above 0, got %g and %g", h, ratio);
    return LK_OK;
}

enum lk_code lk_power_h(double h, double n1, double ratio, double alpha, struct lk_number *out) {
    memset(out, 0, sizeof *out);
    LK_TRY(check_shares(alpha, 0.5));
    LK_TRY(check_h(h, ratio));
    if (!(n1 > 0) || isinf(n1)) return lk_fail(LK_E_INPUT, "power: n: expected a number above 0, got %g", n1);
    out->n = (size_t)fmin(n1, 9e15);
    out->value = power_of(fabs(h) * sqrt(n1 * ratio / (1 + ratio)), alpha);
    return LK_OK;
}

enum lk_code lk_sample_size_h(double h, double power, double ratio, double alpha, struct lk_number *out) {
    memset(out, 0, sizeof *out);
    LK_TRY(check_shares(alpha, power));
    LK_TRY(check_h(h, ratio));
    if (h == 0) {
        out->undefined = "the rates are equal";
        return LK_OK;
    }
    if (power <= alpha) {
        out->undefined = "any number of observations has that power";
        return LK_OK;
    }
    /* power rises with the shift, from alpha at 0; halved until nothing is left between the ends */
    double low = 0, high = 1;
    while (power_of(high, alpha) < power) high *= 2;
    for (;;) {
        double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high) break;
        if (power_of(middle, alpha) < power)
            low = middle;
        else
            high = middle;
    }
    set(out, high * high / (h * h) * (1 + ratio) / ratio);
    return LK_OK;
}
