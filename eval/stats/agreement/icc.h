/* Intraclass correlation of n targets rated by the same k raters, in all six forms of Shrout and Fleiss (1979) with
 * McGraw and Wong's intervals (1996). Peer: pingouin.intraclass_corr(nan_policy='omit'). */
#pragma once

#include "eval/stats/stats.h"

enum lk_icc_form {
    LK_ICC1,  /* one-way: each target by other raters; one rating */
    LK_ICC2,  /* two-way random, absolute agreement; one rating */
    LK_ICC3,  /* two-way mixed, consistency; one rating */
    LK_ICC1K, /* the means of k ratings */
    LK_ICC2K,
    LK_ICC3K,
    LK_N_ICC,
};

struct lk_icc {
    const char *name;        /* "ICC(2,1)", "ICC(2,k)" */
    struct lk_number value;  /* 95 % interval; n: the targets that were used */
    double f, df1, df2, p;   /* against 0 */
    const char *f_undefined; /* why there is no F and no interval; the value may exist without */
    const char *no_interval; /* why F has no interval with it: forms 2 alone */
};

/* ratings [n_targets, n_raters], NaN where there is none: targets with a missing rating are left out. Undefined with
 * fewer than two targets or raters, or without variance. The mean of raters of form 2 has neither a value nor an
 * interval's low end where its formula has passed a denominator of 0 (raters whose means differ less than chance would
 * have it): the peer prints values above 1 and low ends above the high ones there. LK_E_INPUT: an infinite rating. out
 * [LK_N_ICC]. */
enum lk_code lk_icc(const double *ratings, size_t n_targets, int n_raters, struct lk_icc *out);
