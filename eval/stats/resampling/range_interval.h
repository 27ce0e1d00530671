/* An interval for the largest difference between groups that belongs to its estimate.
 *
 * The estimate is the largest minus the smallest of the groups' values, R = max d(i, j) over all ordered pairs, d(i, j)
 * the difference of groups i and j. The largest of noisy numbers is too large, in resamples even more, so that
 * percentiles of the resampled R may lie wholly above R. The pairs do not have that bias. With s(i, j) the standard
 * deviation of the resampled difference d*(i, j):
 *
 *     c     the quantile, at the confidence, of max over pairs of |d*(i, j) - d(i, j)| / s(i, j)   (all pairs at once)
 *     z     the quantile of the normal distribution for one pair, two-sided
 *     low   max over pairs of d(i, j) - c' s(i, j), not below 0
 *     high  max over pairs of d(i, j) + z' s(i, j)
 *
 * c' and z' are c and z taken from the normal distribution to Student's t at the same tail, as expanded percentiles are
 * (bootstrap.h): of few clusters s(i, j) is itself uncertain.
 *
 * The true range is at least each true difference, and all of those are above d - c' s at once with the confidence
 * (simultaneous inference, as Tukey's; the studentised maximum is that of the resamples); it is the difference of one
 * pair, and that pair's d + z' s is at most high. low <= R <= high by construction. Where no group differs low is 0
 * with the confidence; of two groups both bounds are the ordinary ones. */
#pragma once

#include <stdbool.h>

#include "eval/stats/stats.h"

struct lk_resampled_groups {
    int n_groups;
    const double *values; /* [n_groups], `stride` apart; NaN: the group has none and is left out */
    size_t stride;
    const double *replicates; /* [n_groups, n_replicates], rows `row_stride` apart; NaN where a resample has none */
    size_t row_stride, n_replicates;
};

enum { LK_RANGE_SCRATCH_ROWS = 2 }; /* of n_replicates doubles */

struct lk_range_options {
    double confidence;
    double n_drawn, df; /* clusters that are drawn, and degrees of freedom; df 0 expands nothing */
    double limit;       /* the largest difference that there can be */
};

/* number->low and high; both 0 when no pair varies. */
void lk_range_interval(const struct lk_resampled_groups *groups, const struct lk_range_options *how, double *scratch,
                       struct lk_number *number);
