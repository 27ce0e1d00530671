#include "eval/stats/special/special.h"
#include "eval/stats/special/special_internal.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

static const double largest = 1e9; /* of a and b: the fraction takes about 10 sqrt(a + b) rounds */

struct lk_share lk_share(double x) {
    return (struct lk_share){x, 1 - x};
}

double lk_beta_density(double a, double b, struct lk_share s) {
    if (!(a > 0 && b > 0 && s.x >= 0 && s.y >= 0)) return NAN;
    if (s.x == 0 || s.y == 0) return 0;
    double n = a + b, excess = b * s.x - a * s.y;
    double log_scale = lk_stirling_error(n) - lk_stirling_error(a) - lk_stirling_error(b);
    return sqrt(a * (b / n) / (2 * M_PI)) *
           exp(log_scale - lk_deviance(a, n * s.x, excess) - lk_deviance(b, n * s.y, -excess));
}

/* I_x(a, b) / (x^a y^b / B(a, b)) by the continued fraction of Didonato and Morris (1992), evaluated from the front
 * (Lentz). It has y by itself: near x = 1 the digits are in it. For x under (a + 1) / (a + b + 2). */
static double fraction(double a, double b, struct lk_share s) {
    double centre = a * s.y - b * s.x + 1;
    double value = a / (a + 1) * centre, c = value, d = 0;
    for (double m = 1; m < 1e7; m++) {
        double middle = a + 2 * m - 1, back = m * (b - m) * s.x;
        double numerator = (a + m - 1) / middle * ((a + b + m - 1) / middle) * back * s.x;
        double term = m + back / middle + (a + m) / (middle + 2) * (centre + m * (1 + s.y));
        d = 1 / (term + numerator * d);
        c = term + numerator / c;
        value *= c * d;
        if (fabs(c * d - 1) <= DBL_EPSILON) break;
    }
    return 1 / value;
}

static bool in_domain(double a, double b, struct lk_share s) {
    return a > 0 && a <= largest && b > 0 && b <= largest && s.x >= 0 && s.y >= 0 && s.x <= 1 && s.y <= 1;
}

double lk_beta(double a, double b, struct lk_share s) {
    if (!in_domain(a, b, s)) return NAN;
    if (s.x == 0 || s.y == 0) return s.y == 0;
    double density = lk_beta_density(a, b, s);
    if (s.x < (a + 1) / (a + b + 2)) return density * fraction(a, b, s);
    return 1 - density * fraction(b, a, (struct lk_share){s.y, s.x});
}

static struct lk_share from_log_odds(double z) { return (struct lk_share){1 / (1 + exp(-z)), 1 / (1 + exp(z))}; }

/* The log odds of the x with I_x(a, b) = p, p <= 1/2. I is log-concave in them, and at most e^(a z) / (a B(a, b)),
 * which bounds the root from the left: Newton's method on the logarithm comes from there without crossing it. */
static double log_odds(double a, double b, double p) {
    double z = (log(p) + log(a) + lk_log_gamma(a) + lk_log_gamma(b) - lk_log_gamma(a + b)) / a;
    if (z < -700) return z;
    for (int i = 0; i < 200; i++) {
        struct lk_share s = from_log_odds(z);
        double value = lk_beta(a, b, s), slope = lk_beta_density(a, b, s);
        if (!(value > 0 && slope > 0)) {
            z += 0.1; /* underflow of a first value too far out */
            continue;
        }
        double step = -log(value / p) * value / slope;
        z += step;
        if (fabs(step) <= DBL_EPSILON * (1 + fabs(z))) break;
    }
    return z;
}

static double inverse_log_odds(double a, double b, struct lk_share p) {
    return p.x <= p.y ? log_odds(a, b, p.x) : -log_odds(b, a, p.y);
}

struct lk_share lk_beta_inverse(double a, double b, struct lk_share p) {
    if (!in_domain(a, b, p)) return (struct lk_share){NAN, NAN};
    if (p.x == 0 || p.y == 0) return (struct lk_share){p.y == 0, p.x == 0};
    return from_log_odds(inverse_log_odds(a, b, p));
}

double lk_t_two_sided(double t, double df) {
    if (!(df > 0)) return NAN;
    double ratio = fabs(t) / sqrt(df);
    if (ratio > 1e100) return lk_beta(0.5 * df, 0.5, (struct lk_share){1 / ratio / ratio, 1});
    double square = t * t;
    return lk_beta(0.5 * df, 0.5, (struct lk_share){df / (df + square), square / (df + square)});
}

double lk_t_quantile(double p, double df) {
    if (!(p >= 0 && p <= 1 && df > 0 && df <= 2 * largest)) return NAN;
    if (p == 0 || p == 1) return p == 0 ? -INFINITY : INFINITY;
    if (p == 0.5) return 0;
    double tail = p < 0.5 ? p : 1 - p, t;
    if (tail < 0.25)
        t = sqrt(df) * exp(-0.5 * inverse_log_odds(0.5 * df, 0.5, lk_share(2 * tail)));
    else
        t = sqrt(df) * exp(0.5 * inverse_log_odds(0.5, 0.5 * df, lk_share(2 * fabs(p - 0.5))));
    return p < 0.5 ? -t : t;
}

double lk_f_sf(double f, double df1, double df2) {
    if (!(f >= 0 && df1 > 0 && df2 > 0)) return NAN;
    double ratio = df1 * f / df2;
    if (isinf(ratio)) return 0;
    return lk_beta(0.5 * df2, 0.5 * df1, (struct lk_share){1 / (1 + ratio), ratio / (1 + ratio)});
}

double lk_f_quantile(double p, double df1, double df2) {
    struct lk_share share = lk_share(p);
    if (!in_domain(0.5 * df1, 0.5 * df2, share)) return NAN;
    if (p == 0 || p == 1) return p == 0 ? 0 : INFINITY;
    return df2 / df1 * exp(inverse_log_odds(0.5 * df1, 0.5 * df2, share));
}
