/* Inside of the linear model: its columns, and which of them each observation has. */
#pragma once

#include "eval/stats/double_double.h"
#include "eval/stats/models/linear_model.h"

struct lk_design {
    size_t n, n_clusters;    /* of the observations that are used */
    int n_columns, width;    /* width: 1 + terms */
    double *y;               /* [n] */
    struct lk_origin origin; /* of y, from which all is computed */
    int32_t *cluster;        /* [n]: 0..n_clusters-1; observations in ascending order of it */
    int32_t *active;         /* [n, width]: the intercept, then each term's column or -1; all are ones */
    struct lk_model_column *columns;
};

/* Checks the inputs. */
enum lk_code lk_design_make(const double *y, size_t n, const struct lk_model_factor *factors, int n_factors,
                            const struct lk_model_term *terms, int n_terms, const int32_t *clusters,
                            struct lk_design *out);
void lk_design_free(struct lk_design *design);
