/* Several groups ranked together. */
#pragma once

#include "eval/stats/tests/rank.h"

struct lk_ranked_groups {
    double *rank_sums; /* [n_groups] sums of 2 rank - (N + 1): whole numbers, 0 in the mean */
    size_t n;          /* of all groups */
    struct lk_ties ties;
    const char *undefined; /* fewer than two groups, an empty one, all values equal: then nothing else is set */
};

/* LK_E_INPUT naming `what`, LK_E_NOMEM. */
enum lk_code lk_rank_groups(const char *what, const double *values, const size_t *n, size_t n_groups,
                            struct lk_ranked_groups *out);
void lk_ranked_groups_free(struct lk_ranked_groups *groups);
