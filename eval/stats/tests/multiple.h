/* p-values of a family of tests, adjusted. Peer: statsmodels.stats.multitest.multipletests. */
#pragma once

#include "eval/stats/stats.h"

enum lk_adjustment {
    LK_ADJUST_BONFERRONI,
    LK_ADJUST_HOLM,               /* step-down */
    LK_ADJUST_BENJAMINI_HOCHBERG, /* false discovery rate, independent or positively dependent tests */
    LK_ADJUST_BENJAMINI_YEKUTIELI /* the same under any dependence */
};

const char *lk_adjustment_name(enum lk_adjustment method); /* "Benjamini-Hochberg" */

/* p, adjusted [n], each in its own order; may be the same array. A test is rejected at alpha where adjusted <= alpha.
 * Ties keep their order. LK_E_INPUT: a p that is not in [0, 1] (leave tests without a p out of the family). */
enum lk_code lk_adjust_p(const double *p, size_t n, enum lk_adjustment method, double *adjusted);
