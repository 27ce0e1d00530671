/* How many observations a comparison of two rates needs, and what a given number finds. Two-sided tests at alpha. */
#pragma once

#include "eval/stats/stats.h"

enum lk_z {
    LK_Z_EXACT,
    LK_Z_ROUNDED, /* quantiles to two decimals, as by hand: 1.96 and 0.84 */
};

/* Of each of two groups, (z_{alpha/2} + z_power)^2 (p1 (1 - p1) + p2 (1 - p2)) / (p1 - p2)^2: 0.20 against 0.15 at
 * 0.05 and 0.80 needs 902.6, rounded 901.6, so 903 or 902. out->value is not rounded up, out->n is. Undefined when the
 * rates are equal. LK_E_INPUT: rates outside [0, 1], alpha or power not between 0 and 1. */
enum lk_code lk_sample_size_proportions(double p1, double p2, double alpha, double power, enum lk_z z,
                                        struct lk_number *out);
/* The power of n observations in each group by the same formula, LK_Z_EXACT. n > 0. */
enum lk_code lk_power_proportions(double p1, double p2, double alpha, double n, struct lk_number *out);

/* For Cohen's h, with ratio n1 observations in the second group: the power of both tails, and the n1 that reaches a
 * power (from alpha up to 1). Peer: statsmodels.stats.power.NormalIndPower. */
enum lk_code lk_power_h(double h, double n1, double ratio, double alpha, struct lk_number *out);
enum lk_code lk_sample_size_h(double h, double power, double ratio, double alpha, struct lk_number *out);
