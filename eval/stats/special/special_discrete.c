#include "eval/stats/special/special.h"
#include "eval/stats/special/special_internal.h"

#include <math.h>

double lk_log_choose(double n, double k) {
    if (!(k >= 0 && k <= n)) return NAN;
    double rest = n - k;
    if (k == 0 || rest == 0) return 0;
    return lk_log_gamma(n + 1) - lk_log_gamma(k + 1) - lk_log_gamma(rest + 1);
}

/* (n choose k) p^k q^(n - k). */
static double binomial_pmf(double k, double n, double p, double q) {
    if (k < 0 || k > n) return 0;
    if (p == 0 || q == 0) return (p == 0 ? k == 0 : k == n);
    if (k == 0) return q < p ? pow(q, n) : exp(n * log1p(-p));
    if (k == n) return p < q ? pow(p, n) : exp(n * log1p(-q));
    double rest = n - k, excess = n * p - k;
    double exponent = lk_stirling_error(n) - lk_stirling_error(k) - lk_stirling_error(rest) -
                      lk_deviance(k, n * p, excess) - lk_deviance(rest, n * q, -excess);
    return exp(exponent) * sqrt(n / (2 * M_PI * k * rest));
}

double lk_binomial_pmf(int64_t k, int64_t n, double p) {
    if (n < 0 || !(p >= 0 && p <= 1)) return NAN;
    return binomial_pmf((double)k, (double)n, p, 1 - p);
}

double lk_binomial_at_most(int64_t k, int64_t n, double p) {
    if (n < 0 || !(p >= 0 && p <= 1)) return NAN;
    if (k < 0) return 0;
    if (k >= n) return 1;
    return lk_beta((double)(n - k), (double)(k + 1), (struct lk_share){1 - p, p});
}

double lk_binomial_at_least(int64_t k, int64_t n, double p) {
    if (n < 0 || !(p >= 0 && p <= 1)) return NAN;
    if (k <= 0) return 1;
    if (k > n) return 0;
    return lk_beta((double)k, (double)(n - k + 1), lk_share(p));
}
