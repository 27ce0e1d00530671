/* What the statistics of this folder have in common. Each function takes plain arrays and gives a number or a test:
 *
 *     struct lk_test test;
 *     LK_TRY(lk_kruskal_wallis(values, n, n_groups, &test));
 *     if (test.undefined) printf("– (%s)\n", test.undefined);
 *     else printf("H(%g) = %.1f, p = %.3f\n", test.df, test.statistic, test.p);
 *
 * A degenerate sample (none, one, all equal, an empty group) is no error: the result says in words why it does not
 * exist. A NaN or infinite input is LK_E_INPUT, memory LK_E_NOMEM. Nothing here keeps state, prints or draws from
 * another generator than eval/study/random.h, so a result is the same whatever the number of threads. Definitions are
 * those of the peer named at each function, which the goldens hold it against (1e-10 relative, p-values 1e-8). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

/* A number that may not exist. */
struct lk_number {
    double value;
    double low, high;      /* an interval where the function computes one, both 0 otherwise */
    size_t n;              /* observations (units, items, pairs) that it was computed from */
    const char *undefined; /* NULL, or why there is no value (a string constant); value is then 0 and is not printed */
    const char *no_interval; /* NULL, or why the interval says nothing, where the function computes one */
};

/* What the alternative hypothesis says of the first sample (or the proportion, the odds) against the other. */
enum lk_alternative { LK_TWO_SIDED, LK_LESS, LK_GREATER };

/* A hypothesis test. */
struct lk_test {
    const char *name;   /* "Kruskal-Wallis H" */
    const char *method; /* "exact", "asymptotic", ...: which p */
    double statistic, df, p;
    double effect; /* the effect size that the test is reported with; effect_name is NULL when there is none */
    const char *effect_name;
    size_t n;
    const char *undefined; /* as above */
};
