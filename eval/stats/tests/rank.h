/* Mid-ranks and ties. */
#pragma once

#include "eval/stats/stats.h"

/* Over the groups of t equal values; every sum is 0 when no two values are equal. */
struct lk_ties {
    double pairs;    /* t (t - 1) / 2 */
    double cubes;    /* t^3 - t */
    double triples;  /* t (t - 1) (t - 2) */
    double weighted; /* t (t - 1) (2 t + 5) */
    size_t largest;  /* the greatest t: n when all are equal */
};

/* ranks [n] from 1, equal values share the mean of theirs. Values are finite; -0 equals 0. Linear time for whole
 * numbers that lie close together (scores), n log n otherwise. LK_E_NOMEM. */
enum lk_code lk_rank(const double *values, size_t n, double *ranks, struct lk_ties *ties);

struct lk_entry {
    double key;
    size_t index;
};

/* Sorts by key, equal keys in their order; spare [n]. Gives the number of pairs that stood in the wrong order. */
uint64_t lk_merge_sort(struct lk_entry *entries, struct lk_entry *spare, size_t n);
