/* Tests on ranks. Samples of several groups are one array, group after group, with the groups' sizes. LK_E_INPUT for a
 * value that is not finite, LK_E_NOMEM; a sample for which a test says nothing is undefined (eval/stats/stats.h). */
#pragma once

#include <stdbool.h>

#include "eval/stats/stats.h"

/* values [sum of n], n [n_groups]. H corrected for ties, chi-square with n_groups - 1 degrees of freedom, effect
 * epsilon squared H / (N - 1). scipy.stats.kruskal. */
enum lk_code lk_kruskal_wallis(const double *values, const size_t *n, size_t n_groups, struct lk_test *test);

/* Dunn's comparison of each pair of groups after Kruskal-Wallis: tests [n_groups (n_groups - 1) / 2] in the order (0,
 * 1), (0, 2), ..., (1, 2), ...; z is positive where the first group ranks higher; p two-sided and not adjusted.
 * scikit_posthocs.posthoc_dunn. */
enum lk_code lk_dunn(const double *values, const size_t *n, size_t n_groups, struct lk_test *tests);

/* values [n_blocks, n_treatments], ranked within each block. Corrected for ties, chi-square with n_treatments - 1
 * degrees of freedom, effect Kendall's W; at least three treatments. scipy.stats.friedmanchisquare. */
enum lk_code lk_friedman(const double *values, size_t n_blocks, size_t n_treatments, struct lk_test *test);

enum lk_p_method {
    LK_P_AUTO,       /* exact where the study asks for it (below), else asymptotic */
    LK_P_ASYMPTOTIC, /* normal distribution */
    LK_P_EXACT,      /* exact wherever the distribution is known: test->method says whether it was */
};

struct lk_mann_whitney_options {
    enum lk_alternative alternative;
    enum lk_p_method method; /* auto: exact when the smaller sample has at most 8 and there are no ties */
    bool no_continuity;      /* without the correction of 1/2 in the asymptotic p */
};

/* x [nx] against y [ny]: U of x, effect rank-biserial 2 U / (nx ny) - 1. The exact distribution knows no ties, and
 * samples of nx ny <= 20,000 (nx + ny over nx < 2^127 when larger). options may be NULL. scipy.stats.mannwhitneyu. */
enum lk_code lk_mann_whitney(const double *x, size_t nx, const double *y, size_t ny,
                             const struct lk_mann_whitney_options *options, struct lk_test *test);

enum lk_zero_method {
    LK_ZERO_WILCOX, /* differences of 0 are dropped */
    LK_ZERO_PRATT,  /* ranked with the others, then dropped */
    LK_ZERO_ZSPLIT, /* ranked, and half of their ranks counted on each side */
};

struct lk_wilcoxon_options {
    enum lk_zero_method zero_method;
    enum lk_alternative alternative; /* of x against y */
    enum lk_p_method method;         /* auto: exact for at most 50 differences, none 0 and no ties */
    bool continuity;                 /* the correction of 1/2 in the asymptotic p */
    bool keep_digits;                /* rank differences as they are; else rounded to 10 decimals, so that 4 - 3.67 and
                                        3.33 - 3 are equal */
};

/* Differences x - y [n] of pairs: T = min(W+, W-) two-sided, W+ one-sided; effect matched rank-biserial
 * (W+ - W-) / (W+ + W-); n is the number of differences ranked. The exact distribution knows neither zeros nor ties,
 * and at most 1,000 differences. options may be NULL. scipy.stats.wilcoxon. */
enum lk_code lk_wilcoxon(const double *differences, size_t n, const struct lk_wilcoxon_options *options,
                         struct lk_test *test);
