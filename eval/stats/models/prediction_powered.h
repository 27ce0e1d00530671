/* Means of people's ratings where few items are rated and a judge has scored many: the judge's mean, corrected by what
 * people say of the items that both have seen. However wrong the judge is, the estimate is unbiased; a good judge makes
 * its interval narrower. Angelopoulos, Duchi and Zrnic 2023 (PPI++); Cochran 1977, chapter 7 (difference estimator). */
#pragma once

#include "eval/stats/stats.h"

struct lk_prediction_error {
    double standard_error, df; /* infinite: a normal interval; 0: there is no error */
};

struct lk_prediction_powered {
    struct lk_number estimate;                     /* n: the rated items; a normal interval, of strata Student's t */
    struct lk_number rated_only;                   /* what the ratings say without the judge */
    double judged_only;                            /* what the judge says without the ratings */
    struct lk_prediction_error error, error_rated; /* of the two */
    double lambda;      /* how much of the judge is taken, the mean over rated items; 0: none */
    double correlation; /* of judge and people (within strata), 0 where one of them does not vary */
    double effective_n; /* ratings that would do without the judge, 0 where the error is 0 */
    int merged_strata;  /* strata with fewer than two ratings, put to the next one */
};

/* Of any population: y, judged [n] of the rated items, other [n_other] of further items of the same kind. lambda < 0:
 * the one that makes the interval narrowest, within 0 and 1. Undefined below two rated items or without others. Peer:
 * ppi_py.ppi_mean_pointestimate and ppi_mean_ci (its variances divide by n). */
enum lk_code lk_prediction_powered_mean(const double *y, const double *judged, size_t n, const double *other,
                                        size_t n_other, double lambda, double confidence,
                                        struct lk_prediction_powered *out);

/* Of these n items and no others: all are judged, and those with rated[i] were drawn for people, at random within each
 * stratum (stratum [n], 0 to n_strata - 1; NULL: one). lambda is the slope of y on judged within strata; below 200
 * ratings every second item of a stratum has that of the others, so that an item does not choose its own; 0 in a
 * stratum that is rated whole, and where the correlation may be below 0.2 (95 %, one side of a two-sided interval). y
 * is read where rated only. Degrees of freedom of the interval: Satterthwaite's, as strata have few ratings each.
 * LK_E_INPUT: a stratum outside. */
enum lk_code lk_difference_estimate(const double *judged, const double *y, const unsigned char *rated,
                                    const int32_t *stratum, size_t n, int n_strata, double confidence,
                                    struct lk_prediction_powered *out);
