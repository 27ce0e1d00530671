/* Inside of the rates: how many clusters a rate or a disparity is of, and what its expanded interval's confidence is.
 */
#pragma once

#include <stdbool.h>

#include "eval/stats/resampling/bootstrap_rates.h"

struct lk_rate_clusters {
    size_t n_drawn;
    int n_groups;    /* of all groupings */
    int32_t *counts; /* [n_groups + n_groupings, n_measures]: clusters with a valid unit in the group, in the grouping
                      */
    bool *nested;    /* [n_groupings]: no cluster has units in two groups */
    double *confidence; /* as counts: what the percentiles of an expanded interval are taken at */
};

enum lk_code lk_rate_clusters_make(const struct lk_rates *rates, const struct lk_resampling *how,
                                   struct lk_rate_clusters *out);
/* Degrees of freedom of all n_groups groups of a grouping that have valid units; and of the difference of groups a and
 * b, which count from the first one of all groupings. */
double lk_rate_clusters_all(const struct lk_rate_clusters *clusters, int n_measures, int grouping, int measure,
                            int n_groups);
double lk_rate_clusters_pair(const struct lk_rate_clusters *clusters, int n_measures, int grouping, int measure, int a,
                             int b);
void lk_rate_clusters_free(struct lk_rate_clusters *clusters);
