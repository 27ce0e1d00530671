/* A mean or rate of observations that come in clusters: the 84 sources repeat over prompts and models, so that their
 * scores are not independent. What independence would give is reported beside what the clusters give. Peer:
 * statsmodels OLS(y, 1).fit(cov_type='cluster', use_t=True); clubSandwich vcovCR(type="CR2") with conf_int
 * (test="Satterthwaite") of lm(y ~ 1). */
#pragma once

#include "eval/stats/stats.h"

struct lk_cluster_mean {
    /* interval by bias-reduced linearisation (linear_model.h), t with Satterthwaite's df; the one to read where
     * clusters are few or of unequal size, the same as the next where they are of one size; not cut to [0, 1] */
    struct lk_number cr2;
    struct lk_number clustered;   /* interval by the sandwich estimator, G/(G - 1), t with G - 1 df */
    struct lk_number independent; /* the same mean with SD / sqrt(n), t with n - 1 df */
    double cr2_error, cr2_df, clustered_error, independent_error;
    size_t n_clusters;
    /* variance over that of independent observations; and the correlation within a cluster (one-way analysis of
     * variance, m0 for unequal sizes), with Kish's design effect 1 + (sum m^2 / n - 1) icc */
    struct lk_number design_effect, icc, kish;
};

/* y [n], NaN left out; clusters [n], any ids. With one cluster, or one observation, the mean has no interval (both ends
 * 0). LK_E_INPUT: an infinite value, confidence not between 0 and 1. */
enum lk_code lk_cluster_mean(const double *y, const int32_t *clusters, size_t n, double confidence,
                             struct lk_cluster_mean *out);

/* Two one-sided tests (TOST): whether the mean lies within (-margin, margin), by CR2's error and degrees of freedom. Of
 * clusters of one observation it is statsmodels' ttost_paired(x, y, -margin, margin). */
struct lk_equivalence {
    double p_low, p_high; /* of a mean at or below -margin, at or above margin */
    double p;             /* the larger */
    const char *undefined;
};
/* margin > 0. */
struct lk_equivalence lk_cluster_equivalence(const struct lk_cluster_mean *mean, double margin);
