/* Special functions and the tails of distributions that the tests need.
 *
 * Each tail is computed as itself, never as one minus the other, so that small probabilities keep their digits:
 * relative error at most 1e-12 (1e-9 for probabilities under 1e-20) down to 1e-300, as tests/golden/generate_special.py
 * finds with 10,000 points each. Arguments outside a function's domain, and NaN, give NaN. */
#pragma once

#include <stdint.h>

/* Standard normal: P(Z <= z), P(Z > z), and the z that has P(Z <= z) = p, 0 <= p <= 1 (the ends give infinities). */
double lk_normal_cdf(double z);
double lk_normal_sf(double z);
double lk_normal_quantile(double p);

double lk_log_gamma(double x); /* log |gamma(x)| */
/* log (n choose k), 0 <= k <= n. */
double lk_log_choose(double n, double k);

/* Regularised upper incomplete gamma function Q(a, x), 0 < a <= 1e9, x >= 0. */
double lk_gamma_q(double a, double x);

/* A number in [0, 1] and what it lacks to 1, where each may be too small to tell from the other. */
struct lk_share {
    double x, y;
};
struct lk_share lk_share(double x); /* {x, 1 - x} */

/* Regularised incomplete beta function I_x(a, b), 0 < a, b <= 1e9, and the share that has I_x(a, b) = p.x, 1 - I = p.y.
 */
double lk_beta(double a, double b, struct lk_share x);
struct lk_share lk_beta_inverse(double a, double b, struct lk_share p);
/* x^a y^b / B(a, b): the beta density times x y. */
double lk_beta_density(double a, double b, struct lk_share x);

/* Chi-square with df > 0: P(X > x). */
double lk_chi2_sf(double x, double df);

/* Student's t with df > 0: P(|T| > |t|), and the t that has P(T <= t) = p. */
double lk_t_two_sided(double t, double df);
double lk_t_quantile(double p, double df);

/* Fisher's F with df1, df2 > 0: P(F > f), and the f that has P(F <= f) = p. */
double lk_f_sf(double f, double df1, double df2);
double lk_f_quantile(double p, double df1, double df2);

/* Binomial, k successes of n with probability p: P(X = k), P(X <= k), P(X >= k). */
double lk_binomial_pmf(int64_t k, int64_t n, double p);
double lk_binomial_at_most(int64_t k, int64_t n, double p);
double lk_binomial_at_least(int64_t k, int64_t n, double p);
