/* Inside of the linear model: what bias-reduced linearisation needs of the clusters.
 *
 * With X'X = F F' and Z = X_g F'^-1 for the rows of cluster g, Z'Z = Q diag(share) Q' has order and rank of the
 * columns, where I - H_gg = I - Z Z' has the order of the cluster; its symmetric square roots, wanted between Z' and Z
 * or the residuals, are functions of the shares alone. A share of 1 is a direction that the cluster alone determines:
 * its residuals are 0 and the generalised inverse leaves it out.
 *
 * Clusters with the same rows of X (sources of one race with nothing missing) are of one class. */
#pragma once

#include <math.h>

#include "eval/stats/models/linear_model_design.h"

struct lk_cr2_class {
    int n_clusters, rank;
    double *share; /* [rank], above 0 and at most 1 */
    double *basis; /* [rank, k]: the rows of Q' */
};
struct lk_cr2 {
    int k, n_clusters, n_classes, exponent; /* y, coefficients, scores and variance are in units of 2^exponent */
    double variance;                        /* of residuals; 0: the model fits exactly */
    double *beta;                           /* [k] */
    double *factor;                         /* [k, k]: F, lower */
    double *scores; /* [n_clusters, k]: Q (1 - share)^-1/2 Q' F^-1 X_g' e_g, so that V = F'^-1 (sum of squares) F^-1 */
    struct lk_cr2_class *classes;
};

/* 1 / sqrt(1 - share), and 0 where nothing is left: the limit is the peer's, clubSandwich's. */
static inline double lk_cr2_inflation(double share) { return 1 - share > 1e-12 ? 1 / sqrt(1 - share) : 0; }

/* factor [k, k] of X'X; scores [n_clusters, k]: X_g' e_g. beta and variance are the caller's to set. LK_E_NOMEM. */
enum lk_code lk_cr2_make(const struct lk_design *design, const double *factor, const double *scores,
                         struct lk_cr2 **out);
void lk_cr2_free(struct lk_cr2 *cr2);

/* Of the contrasts C [q, k]: their covariance C V C' [q, q]. LK_E_NOMEM. */
enum lk_code lk_cr2_covariance(const struct lk_cr2 *cr2, const double *contrasts, int q, double *covariance);
/* The degrees of freedom of the Wishart distribution that the covariance is like when observations are independent and
 * of equal variance (Pustejovsky and Tipton 2018, HTZ), Satterthwaite's where q = 1; 0 when the covariance that is
 * expected is singular. */
enum lk_code lk_cr2_degrees(const struct lk_cr2 *cr2, const double *contrasts, int q, double *nu);
