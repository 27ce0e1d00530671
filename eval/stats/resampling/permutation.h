/* Permutation tests: labels are shuffled, and the statistic that they give is compared with the one observed.
 * Permutation b uses the stream "perm|b" of the seed, so that p is the same with any number of threads. */
#pragma once

#include "eval/stats/resampling/bootstrap.h"

/* A statistic whose distance from 0 is tested; NaN where it does not exist. Runs in several threads at once: context is
 * only read, scratch is the thread's own. */
typedef double (*lk_label_statistic)(const int32_t *labels, size_t n, const void *context, void *scratch);

/* labels [n] are shuffled among the units of each cluster of `how` (two images of one seed: their arms are swapped or
 * not), clusters in ascending order of their ids, or among all units without clusters. Two-sided,
 * p = (1 + #{|s*| >= |s| - 1e-12}) / (B + 1); permutations without a statistic do not count, neither above nor below.
 * Undefined when the labels observed give none. */
enum lk_code lk_permutation_test(const int32_t *labels, size_t n, const struct lk_resampling *how,
                                 lk_label_statistic statistic, const void *context, size_t scratch_bytes,
                                 struct lk_test *out);

/* p of out->statistic from the statistics [n] of all permutations. */
void lk_permutation_compare(const double *statistics, int n, struct lk_test *out);

/* Of the difference of means of values [n], label 1 - label 0; units of other labels keep out of both. */
enum lk_code lk_permutation_means(const double *values, const int32_t *labels, size_t n,
                                  const struct lk_resampling *how, struct lk_test *out);

/* Of the means of n_groups groups: the sum of squares between them; labels [n] 0..n_groups-1. With one value a source
 * and the sources' race: all races, whatever the sources' distribution. LK_E_INPUT: a label outside. */
enum lk_code lk_permutation_groups(const double *values, const int32_t *labels, size_t n, int n_groups,
                                   const struct lk_resampling *how, struct lk_test *out);
