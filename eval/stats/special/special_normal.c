#include "eval/stats/special/special.h"

#include <float.h>
#include <math.h>

double lk_normal_cdf(double z) { return 0.5 * erfc(-z * M_SQRT1_2); }

double lk_normal_sf(double z) { return 0.5 * erfc(z * M_SQRT1_2); }

static double density(double z) { return exp(-0.5 * z * z) * (0.5 * M_SQRT1_2 * M_2_SQRTPI); }

/* Newton's method on erf, whose value near the centre is as exact as p - 1/2. */
static double central_quantile(double p) {
    double d = p - 0.5, z = d / density(0);
    for (int i = 0; i < 40; i++) {
        double step = (d - 0.5 * erf(z * M_SQRT1_2)) / density(z);
        z += step;
        if (fabs(step) <= DBL_EPSILON * fabs(z)) break;
    }
    return z;
}

/* The z > 0 with P(Z > z) = q, q < 1/4. The logarithm of the tail is concave: Newton's method on it comes from the
 * right of the root without crossing it, and sqrt(-2 log q) is right of it. */
static double tail_quantile(double q) {
    double z = sqrt(-2 * log(q));
    for (int i = 0; i < 60; i++) {
        double tail = lk_normal_sf(z);
        double step = tail > 0 ? log(tail / q) * tail / density(z) : -1e-3 * z;
        z += step;
        if (fabs(step) <= DBL_EPSILON * z) break;
    }
    return z;
}

double lk_normal_quantile(double p) {
    if (!(p >= 0 && p <= 1)) return NAN;
    if (p == 0 || p == 1) return p == 0 ? -INFINITY : INFINITY;
    if (p < 0.25) return -tail_quantile(p);
    return p > 0.75 ? tail_quantile(1 - p) : central_quantile(p);
}
