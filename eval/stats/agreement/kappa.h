/* Cohen's kappa of two raters, unweighted or weighted by the distance of the labels, with its large-sample standard
 * errors (Fleiss, Cohen and Everitt 1969) and the agreement behind it.
 *
 *     struct lk_kappa kappa;
 *     LK_TRY(lk_cohen_kappa(judge, human, n, 1, 5, LK_WEIGHTS_QUADRATIC, &kappa));
 *     if (!kappa.kappa.undefined) printf("%.2f [%.2f, %.2f]\n", kappa.kappa.value, kappa.kappa.low, kappa.kappa.high);
 *
 * Peers: sklearn.metrics.cohen_kappa_score(a, b, labels=L, weights=...), statsmodels.stats.inter_rater.cohens_kappa. */
#pragma once

#include "eval/stats/stats.h"

enum { LK_LABELS_MAX = 1024 };
enum lk_weights { LK_WEIGHTS_NONE, LK_WEIGHTS_LINEAR, LK_WEIGHTS_QUADRATIC };

/* How far apart labels i and j of n_labels are, 0 to 1. */
double lk_label_distance(enum lk_weights weights, int i, int j, int n_labels);

struct lk_kappa {
    struct lk_number kappa;     /* with the normal 95 % interval, cut at -1 and 1; undefined when all of both
                                   raters' answers are one and the same label, or there are none */
    double standard_error;      /* of the estimate */
    double standard_error_null; /* if kappa were 0 */
    double z, p;                /* against kappa = 0, two-sided; p is 1 where the null's error is 0 */
    double exact, within_one;   /* shares of pairs with the same label, and at most one level apart */
};

/* a, b [n]: labels from first to last (the full list of levels, used or not). A pair with a label outside is left out:
 * that is how missing answers are written; kappa.n counts those that remain. LK_E_INPUT when last < first or there are
 * more than 1,024 levels. */
enum lk_code lk_cohen_kappa(const int32_t *a, const int32_t *b, size_t n, int32_t first, int32_t last,
                            enum lk_weights weights, struct lk_kappa *out);

/* The same from a table of counts [n_labels, n_labels], rows the first rater. LK_E_INPUT: a negative count. */
enum lk_code lk_cohen_kappa_table(const int64_t *table, int n_labels, enum lk_weights weights, struct lk_kappa *out);
