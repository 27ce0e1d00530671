/* Uniform manifold approximation and projection (McInnes, Healy and Melville 2018) to two dimensions, and how far a
 * projection keeps neighbours. Exact neighbours, Euclidean distances. Peers: umap-learn's smooth_knn_dist and
 * fuzzy_simplicial_set, sklearn.manifold.trustworthiness. */
#pragma once

#include "eval/stats/stats.h"

enum { LK_UMAP_MAX_ROWS = 20000, LK_UMAP_MAX_NEIGHBOURS = 200 };

/* A row's nearest ones, itself first, and the kernel over their distances. */
struct lk_neighbours {
    size_t n;
    int k;               /* the row itself counts */
    int32_t *rows;       /* [n, k] nearest first, of equal distances the earlier row */
    double *distances;   /* [n, k] */
    double *sigma, *rho; /* [n]: membership of a neighbour exp(-max(0, distance - rho) / sigma) */
};
/* features [n, n_features]. LK_E_INPUT: fewer than 4 or more than LK_UMAP_MAX_ROWS rows, a number that is not finite, k
 * outside 2 to min(n - 1, LK_UMAP_MAX_NEIGHBOURS). Time n^2 n_features. */
enum lk_code lk_neighbours_find(const double *features, size_t n, int n_features, int k, struct lk_neighbours *out);
void lk_neighbours_free(struct lk_neighbours *neighbours);

/* An edge of the fuzzy union a + b - a b of both rows' memberships; each pair stands there in both directions. */
struct lk_umap_edge {
    int32_t from, to;
    double weight;
};
/* *edges is lk_malloc'ed, [*n_edges] in the order of the neighbours. LK_E_NOMEM. */
enum lk_code lk_umap_graph(const struct lk_neighbours *neighbours, struct lk_umap_edge **edges, size_t *n_edges);

/* out [n, 2]: from the first two principal components, then stochastic gradient descent with negative samples drawn
 * from the stream "umap" of the seed; min_dist 0.1, spread 1. Equal inputs and seeds give equal bits. Errors as above.
 */
enum lk_code lk_umap(const double *features, size_t n, int n_features, int k, uint64_t seed, double *out);

/* 1 less the ranks by which rows come among the k nearest (without the row itself) of the projection [n, 2] that are
 * not among those of the features; undefined for k >= n / 2. */
enum lk_code lk_trustworthiness(const double *features, size_t n, int n_features, const double *projection, int k,
                                struct lk_number *out);
