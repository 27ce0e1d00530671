/* Tests on counts. LK_E_INPUT for a negative count, LK_E_NOMEM; tables for which a test says nothing are undefined
 * (eval/stats/stats.h). Counts in tables are at most 2^53 in all, in Fisher's 2^31 each,
 * trials at most 1e9. */
#pragma once

#include <stdbool.h>

#include "eval/stats/stats.h"

struct lk_contingency {
    struct lk_test test;        /* with Yates' correction where what is left of the table is 2 x 2 */
    struct lk_test uncorrected; /* both have Cramer's V, which is never corrected */
    size_t n_rows, n_columns;   /* that are not empty */
    size_t n_small;             /* cells with an expected count under 5: the distribution is a poor approximation */
    double least_expected;
};

/* counts [n_rows, n_columns]. Empty rows and columns are left out; row_empty [n_rows] and column_empty [n_columns] (may
 * be NULL) say which. scipy.stats.chi2_contingency with and without correction; V: scipy.stats.contingency.association.
 */
enum lk_code lk_chi2_contingency(const int64_t *counts, size_t n_rows, size_t n_columns, struct lk_contingency *out,
                                 bool *row_empty, bool *column_empty);

/* counts [k] against shares [k] (positive or 0, scaled to sum to 1; NULL: all equal); effect Cohen's w. Categories
 * whose share is 0 are left out when nothing was counted there, and LK_E_INPUT otherwise. n_small (may be NULL) as
 * above. scipy.stats.chisquare. */
enum lk_code lk_chi2_fit(const int64_t *counts, const double *shares, size_t k, struct lk_test *test, size_t *n_small);

/* table {{a, b}, {c, d}}: statistic is the sample's odds ratio a d / (b c), infinite when only b c is 0; two-sided p
 * sums the tables that are no more probable. scipy.stats.fisher_exact. */
enum lk_code lk_fisher_exact(const int64_t table[4], enum lk_alternative alternative, struct lk_test *test);

enum lk_mcnemar_method { LK_MCNEMAR_EXACT, LK_MCNEMAR_CONTINUITY, LK_MCNEMAR_ASYMPTOTIC };

/* b and c: pairs that changed one way and the other. statistic is the smaller for the exact test, chi-square with 1
 * degree of freedom otherwise. statsmodels.stats.contingency_tables.mcnemar. */
enum lk_code lk_mcnemar(int64_t b, int64_t c, enum lk_mcnemar_method method, struct lk_test *test);

/* Successes among trials of two groups: z with pooled variance, effect Cohen's h. statsmodels proportions_ztest. */
enum lk_code lk_two_proportions(int64_t successes1, int64_t trials1, int64_t successes2, int64_t trials2,
                                enum lk_alternative alternative, struct lk_test *test);

/* successes among trials against the probability p, 0 <= p <= 1; two-sided as Fisher's. scipy.stats.binomtest. */
enum lk_code lk_binomial_test(int64_t successes, int64_t trials, double p, enum lk_alternative alternative,
                              struct lk_test *test);
