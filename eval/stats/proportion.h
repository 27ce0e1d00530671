/* Rates: intervals of one and of a difference, and the effect size of a difference. Peers:
 * statsmodels.stats.proportion.proportion_confint (wilson, beta), confint_proportions_2indep(method='newcomb'),
 * proportion_effectsize. */
#pragma once

#include "eval/stats/stats.h"

enum lk_proportion_interval {
    LK_WILSON,
    LK_CLOPPER_PEARSON, /* exact: never covers less than it says */
};

enum { LK_FEW_OUTCOMES = 5 }; /* so few or fewer of a rate take the exact interval */

/* k of n. Undefined when n is 0. LK_E_INPUT: k is not in 0..n, confidence not between 0 and 1. */
enum lk_code lk_proportion(int64_t k, int64_t n, enum lk_proportion_interval kind, double confidence,
                           struct lk_number *out);

/* k1/n1 - k2/n2 with Newcombe's interval (1998, method 10: from the two Wilson intervals). */
enum lk_code lk_proportion_difference(int64_t k1, int64_t n1, int64_t k2, int64_t n2, double confidence,
                                      struct lk_number *out);

/* Cohen's h = 2 asin sqrt(p1) - 2 asin sqrt(p2); NaN outside of [0, 1]. */
double lk_cohen_h(double p1, double p2);
/* Of one share: h is twice the difference of two. NaN outside of 0 to 1. */
double lk_cohen_angle(double share);
/* By |h|: below 0.2 "negligible", then "small", from 0.5 "medium", from 0.8 "large". */
const char *lk_cohen_h_label(double h);
