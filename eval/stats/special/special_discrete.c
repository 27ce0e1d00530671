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

/* The quotient of three binomial probabilities with p = n / population, each of moderate size. */
static double hypergeometric_pmf(double k, double population, double marked, double n) {
    if (k < 0 || k > n || k > marked || n - k > population - marked) return 0;
    if (n == 0 || n == population) return 1;
    double p = n / population, q = (population - n) / population;
    return binomial_pmf(k, marked, p, q) *
           (binomial_pmf(n - k, population - marked, p, q) / binomial_pmf(n, population, p, q));
}

static int in_domain(int64_t population, int64_t marked, int64_t n) {
    return population >= 0 && marked >= 0 && marked <= population && n >= 0 && n <= population;
}

double lk_hypergeometric_pmf(int64_t k, int64_t population, int64_t n_marked, int64_t n) {
    if (!in_domain(population, n_marked, n)) return NAN;
    return hypergeometric_pmf((double)k, (double)population, (double)n_marked, (double)n);
}

/* The sum of the terms from k downwards (or upwards in the mirror image), which shrink from the first on when k is on
 * its side of the mean. */
static double sum_down(double k, double population, double marked, double n) {
    double term = 1, sum = 1;
    for (double i = k; i > 0 && term > 1e-18 * sum; i--) {
        term *= i * (population - marked - n + i) / ((marked - i + 1) * (n - i + 1));
        sum += term;
    }
    return sum * hypergeometric_pmf(k, population, marked, n);
}

static double at_most(double k, double population, double marked, double n) {
    double least = fmax(0, n - (population - marked)), most = fmin(n, marked);
    if (k < least) return 0;
    if (k >= most) return 1;
    if (k < (n + 1) * ((marked + 1) / (population + 2))) return sum_down(k, population, marked, n);
    return 1 - sum_down(n - k - 1, population, population - marked, n); /* unmarked ones among those drawn */
}

double lk_hypergeometric_at_most(int64_t k, int64_t population, int64_t n_marked, int64_t n) {
    if (!in_domain(population, n_marked, n)) return NAN;
    return at_most((double)k, (double)population, (double)n_marked, (double)n);
}

double lk_hypergeometric_at_least(int64_t k, int64_t population, int64_t n_marked, int64_t n) {
    if (!in_domain(population, n_marked, n)) return NAN;
    return at_most((double)(n - k), (double)population, (double)(population - n_marked), (double)n);
}
