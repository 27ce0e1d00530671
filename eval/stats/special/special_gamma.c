#include "eval/stats/special/special.h"
#include "eval/stats/special/special_internal.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

static const double largest = 1e9; /* of a: the iterations below take about 10 sqrt(a) rounds */

double lk_log_gamma(double x) {
    int sign; /* lgamma itself writes to a global */
    return lgamma_r(x, &sign);
}

double lk_stirling_error(double a) {
    if (a < 10) return lk_log_gamma(a + 1) - (a + 0.5) * log(a) + a - 0.5 * log(2 * M_PI);
    static const double terms[] = {1.0 / 12,   -1.0 / 360,        1.0 / 1260, -1.0 / 1680,
                                   1.0 / 1188, -691.0 / 360360.0, 1.0 / 156,  -3617.0 / 122400.0};
    double z = 1 / a, z2 = z * z, sum = 0;
    for (int i = 8; i-- > 0;) sum = sum * z2 + terms[i];
    return sum * z;
}

/* log(1 + d) - d. */
static double log1p_minus(double d) {
    if (d < -0.5 || d > 1) return log1p(d) - d;
    double r = d / (2 + d), r2 = r * r, power = r2, sum = 0;
    for (int k = 3; k < 80; k += 2, power *= r2) {
        double term = power / k;
        sum += term;
        if (term <= DBL_EPSILON / 8 * sum) break;
    }
    return r * (2 * sum - d); /* log(1 + d) = 2 atanh(r), d = 2 r + r d */
}

double lk_deviance(double a, double x, double excess) {
    if (x < 0.5 * a) return a * (log(a) - log(x)) + excess;
    return -a * log1p_minus(excess / a);
}

static double density(double a, double x) {
    if (!(a > 0 && x >= 0)) return NAN;
    if (x == 0 || isinf(x)) return 0;
    return sqrt(a / (2 * M_PI)) * exp(-lk_stirling_error(a) - lk_deviance(a, x, x - a));
}

/* P by its power series: sum of x^n / (a (a + 1) ... (a + n)). For x < a + 1. */
static double lower_series(double a, double x) {
    double term = 1 / a, sum = term;
    for (double n = 1; n < 1e7; n++) {
        term *= x / (a + n);
        sum += term;
        if (term <= DBL_EPSILON / 8 * sum) break;
    }
    return sum * density(a, x);
}

/* Q by Legendre's continued fraction, evaluated from the front (Lentz). For x >= a + 1. */
static double upper_fraction(double a, double x) {
    double b = x + 1 - a, c = 1e300, d = 1 / b, value = d;
    for (double n = 1; n < 1e7; n++) {
        double numerator = -n * (n - a);
        b += 2;
        d = 1 / (numerator * d + b);
        c = b + numerator / c;
        value *= c * d;
        if (fabs(c * d - 1) <= DBL_EPSILON) break;
    }
    return value * density(a, x);
}

static bool in_domain(double a, double x) { return a > 0 && a <= largest && x >= 0; }

double lk_gamma_q(double a, double x) {
    if (!in_domain(a, x)) return NAN;
    if (x == 0 || isinf(x)) return x == 0;
    return x < a + 1 ? 1 - lower_series(a, x) : upper_fraction(a, x);
}

double lk_chi2_sf(double x, double df) { return lk_gamma_q(0.5 * df, 0.5 * x); }
