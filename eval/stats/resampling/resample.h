/* Inside of the resampling files: clusters as lists of units, and what each thread works with. */
#pragma once

#include "eval/stats/resampling/bootstrap.h"

/* Units by cluster: those of cluster c are units[start[c]..start[c + 1]). Without clusters every unit is its own. */
struct lk_clusters {
    size_t n, longest;
    int32_t *of_unit; /* [n_units]: 0..n-1 in ascending order of the ids; NULL without clusters */
    size_t *start;    /* [n + 1]; NULL without clusters */
    int32_t *units;   /* [n_units]; NULL without clusters */
};

/* Checks `how` too. */
enum lk_code lk_clusters_make(size_t n_units, const struct lk_resampling *how, struct lk_clusters *out);
void lk_clusters_free(struct lk_clusters *clusters);
int lk_resampling_threads(const struct lk_resampling *how);
