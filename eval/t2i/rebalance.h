/* Reject and resample, offline: of the images that exist, as many as possible whose groups have the target's shares to
 * a tolerance. */
#pragma once

#include <stdbool.h>

#include "eval/stats/stats.h"

/* groups [n]: 0..n_groups-1, -1: no label, never kept. names and target [n_groups]. Keeps the largest n' >= 2 for which
 * counts with |c_g / n' - target_g| <= tolerance exist, among those counts the ones nearest to n' target (least
 * squares; ties to the earlier group), and of each group the first in the order of the stream "post|NAME" of the seed.
 * kept [n], counts [n_groups], *n_kept. Bounds are taken to 1e-9 of an image. LK_E_INPUT: no such n'; the message names
 * the group that is short. */
enum lk_code lk_rebalance(const int32_t *groups, size_t n, const char *const *names, const double *target, int n_groups,
                          double tolerance, uint64_t seed, bool *kept, int64_t *counts, int64_t *n_kept);
/* The counts alone, from the available ones; *n_kept is 0 and *missing the group that is short where none fits. */
enum lk_code lk_rebalance_counts(const int64_t *available, const double *target, int n_groups, double tolerance,
                                 int64_t *counts, int64_t *n_kept, int *missing);
/* n images by the method of largest remainders: floor(n target_g), and one more for the largest remainders (ties to the
 * earlier group). These are the counts nearest to n target in least squares. target sums to 1. */
void lk_quotas(const double *target, int n_groups, int64_t n, int64_t *quotas);
