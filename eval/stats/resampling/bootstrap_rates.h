/* Rates and means by group, their disparities and all of their intervals, from one set of resamples.
 *
 *     const struct lk_grouping groupings[] = {{race_of_item, 7}, {model_of_item, 3}, {NULL, 1}};
 *     struct lk_rates rates = {n_items, 5, values, 3, groupings};   // values: 1, 0 or NaN (no valid score)
 *     struct lk_rate_results *results;
 *     LK_TRY(lk_bootstrap_rates(&rates, &how, &results));
 *     const struct lk_number *indian = lk_rate_of(results, 0, 4, 2);        // grouping, group, measure
 *     const struct lk_disparity *by_race = lk_disparity_of(results, 0, 2);
 *     lk_rate_results_free(results);
 *
 * All units are resampled together, so a group's size varies between resamples, and disparities compare groups of one
 * and the same resample. For the resamples of one group alone, pass that group's units alone. */
#pragma once

#include "eval/stats/resampling/bootstrap.h"

struct lk_grouping {
    const int32_t *group; /* [n_units] 0..n_groups-1, -1: in none; NULL: all in group 0 */
    int n_groups;
};

struct lk_rates {
    size_t n_units;
    int n_measures;
    const double *values; /* [n_units, n_measures]: 0 or 1 for a rate, a score for a mean; NaN: not valid */
    int n_groupings;
    const struct lk_grouping *groupings;
};

struct lk_disparity {
    /* highest - lowest, in the interval of range_interval.h, at the expanded confidence for the clusters of both groups
     * where clusters are resampled; undefined with fewer than two groups that have valid units */
    struct lk_number number;
    int32_t highest, lowest; /* groups; the first of equal ones; -1 when undefined */
};

struct lk_rate_results; /* owns its numbers */

/* Resamples in which a group has no valid unit do not count for it. LK_E_INPUT: an infinite value, a group outside. */
enum lk_code lk_bootstrap_rates(const struct lk_rates *rates, const struct lk_resampling *how,
                                struct lk_rate_results **out);
const struct lk_number *lk_rate_of(const struct lk_rate_results *results, int grouping, int group, int measure);
/* With an expanded interval (lk_expanded_confidence) for the clusters that have valid units in the group; computed
 * where clusters are resampled, else the percentile interval. */
const struct lk_number *lk_rate_expanded_of(const struct lk_rate_results *results, int grouping, int group,
                                            int measure);
const struct lk_disparity *lk_disparity_of(const struct lk_rate_results *results, int grouping, int measure);
void lk_rate_results_free(struct lk_rate_results *results);
