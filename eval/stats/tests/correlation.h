/* Correlation of pairs x [n], y [n]. Fewer than three pairs, or a constant x or y: undefined. LK_E_INPUT for a value
 * that is not finite, LK_E_NOMEM. All two-sided. */
#pragma once

#include "eval/stats/stats.h"

/* Pearson correlation of mid-ranks; p from Student's t with n - 2 degrees of freedom. scipy.stats.spearmanr. */
enum lk_code lk_spearman(const double *x, const double *y, size_t n, struct lk_test *test);

/* p as above; interval (may be NULL): Fisher's, with that confidence, 0 < confidence < 1. scipy.stats.pearsonr and its
 * confidence_interval. */
enum lk_code lk_pearson(const double *x, const double *y, size_t n, double confidence, struct lk_test *test,
                        struct lk_number *interval);

/* tau-b. p exact when there are no ties and either n <= 33 or at most one pair is out of order (or all but one are),
 * else from the normal distribution with the variance for ties. scipy.stats.kendalltau. */
enum lk_code lk_kendall(const double *x, const double *y, size_t n, struct lk_test *test);
