#include "eval/stats/tests/count_tests.h"
#include "eval/stats/result.h"
#include "eval/stats/special/special.h"

#include <math.h>

static enum lk_code check_trials(const char *what, int64_t successes, int64_t trials) {
    if (trials < 0 || trials > 1000000000 || successes < 0 || successes > trials)
        return lk_fail(LK_E_INPUT, "%s: expected 0 to 1e9 trials and no more successes, got %lld of %lld", what,
                       (long long)successes, (long long)trials);
    return LK_OK;
}

enum lk_code lk_two_proportions(int64_t successes1, int64_t trials1, int64_t successes2, int64_t trials2,
                                enum lk_alternative alternative, struct lk_test *test) {
    *test = (struct lk_test){.name = "two-proportion z", .method = "asymptotic"};
    LK_TRY(check_trials("two_proportions: first", successes1, trials1));
    LK_TRY(check_trials("two_proportions: second", successes2, trials2));
    test->n = (size_t)(trials1 + trials2);
    if (!trials1 || !trials2) return lk_undefined(test, "a group is empty");
    double n1 = (double)trials1, n2 = (double)trials2, p1 = (double)successes1 / n1, p2 = (double)successes2 / n2;
    const int64_t successes = successes1 + successes2, failures = trials1 + trials2 - successes;
    if (!successes || !failures) return lk_undefined(test, "both proportions are 0, or both are 1");
    /* (p1 - p2) / sqrt(p (1 - p) (1 / n1 + 1 / n2)), times n1 n2: neither difference of rates is rounded */
    double z = (double)(successes1 * trials2 - successes2 * trials1) /
               sqrt((double)successes * (double)failures / (n1 + n2) * n1 * n2);
    test->statistic = z;
    switch (alternative) {
    case LK_LESS:
        test->p = lk_normal_cdf(z);
        break;
    case LK_GREATER:
        test->p = lk_normal_sf(z);
        break;
    case LK_TWO_SIDED:
        test->p = 2 * lk_normal_sf(fabs(z));
        break;
    }
    test->effect = 2 * asin(sqrt(p1)) - 2 * asin(sqrt(p2));
    test->effect_name = "Cohen's h";
    return LK_OK;
}

/* The counts beyond the mean on the other side of k that are no more probable than k: all from the one returned on
 * outwards (-1 or n + 1 for none). Probabilities fall from the mean outwards, so that it can be searched by halves. */
static int64_t other_side(int64_t k, int64_t n, double p) {
    double limit = lk_binomial_pmf(k, n, p) * (1 + 1e-7), mean = (double)n * p;
    bool up = (double)k < mean;
    int64_t near = up ? (int64_t)ceil(mean) - 1 : (int64_t)floor(mean) + 1, far = up ? n + 1 : -1;
    while (near - far > 1 || far - near > 1) {
        int64_t middle = near + (far - near) / 2;
        if (lk_binomial_pmf(middle, n, p) <= limit)
            far = middle;
        else
            near = middle;
    }
    return far;
}

static double two_sided(int64_t k, int64_t n, double p) {
    double mean = (double)n * p;
    if ((double)k == mean) return 1;
    int64_t other = other_side(k, n, p);
    double sum = (double)k < mean ? lk_binomial_at_most(k, n, p) + lk_binomial_at_least(other, n, p)
                                  : lk_binomial_at_least(k, n, p) + lk_binomial_at_most(other, n, p);
    return fmin(sum, 1);
}

enum lk_code lk_binomial_test(int64_t successes, int64_t trials, double p, enum lk_alternative alternative,
                              struct lk_test *test) {
    *test = (struct lk_test){.name = "binomial test", .method = "exact"};
    LK_TRY(check_trials("binomial_test", successes, trials));
    if (!(p >= 0 && p <= 1)) return lk_fail(LK_E_INPUT, "binomial_test: p: expected a number from 0 to 1, got %g", p);
    test->n = (size_t)trials;
    if (!trials) return lk_undefined(test, "no trials");
    test->statistic = (double)successes / (double)trials;
    switch (alternative) {
    case LK_LESS:
        test->p = lk_binomial_at_most(successes, trials, p);
        break;
    case LK_GREATER:
        test->p = lk_binomial_at_least(successes, trials, p);
        break;
    case LK_TWO_SIDED:
        test->p = two_sided(successes, trials, p);
        break;
    }
    return LK_OK;
}
