/* Fleiss' kappa: agreement of a fixed number of raters on nominal categories. Peer:
 * statsmodels.stats.inter_rater.fleiss_kappa(table, method='fleiss'), on counts. */
#pragma once

#include "eval/stats/stats.h"

struct lk_fleiss {
    struct lk_number kappa; /* n: the items that were used; undefined without items or when one category has all */
    int n_raters;           /* of each item that was used */
    size_t left_out;        /* items with another number of ratings */
    double observed, expected;
};

/* counts [n_items, n_categories]: how many raters chose each category. Every item needs the same number of ratings:
 * n_raters (2 or more), or with 0 the number that most items have (the larger of two equally common ones). LK_E_INPUT:
 * a negative count, or above 65,535. */
enum lk_code lk_fleiss_kappa(const int32_t *counts, size_t n_items, int n_categories, int n_raters,
                             struct lk_fleiss *out);
