/* How well groups separate in a space of features. Peers: sklearn.metrics.silhouette_samples and silhouette_score
 * (Euclidean), sklearn.metrics.pairwise.cosine_similarity. */
#pragma once

#include "eval/stats/stats.h"

/* features [n, n_features], groups [n]: 0..n_groups-1. Mean of (b - a)/max(a, b), 0 for the only member of a group.
 * Undefined unless 2 to n - 1 groups have members. by_group [n_groups], or NULL: means over each group's members.
 * LK_E_INPUT: a number that is not finite, a group outside. Time n^2 n_features. */
enum lk_code lk_silhouette(const double *features, size_t n, int n_features, const int32_t *groups, int n_groups,
                           struct lk_number *out, struct lk_number *by_group);

/* u.v / (|u| |v|) of vectors [n]; undefined when one is 0. */
enum lk_code lk_cosine_similarity(const double *u, const double *v, size_t n, struct lk_number *out);
