#include "eval/stats/tests/count_tests.h"
#include "eval/stats/result.h"
#include "eval/stats/special/special.h"

#include <math.h>

enum lk_code lk_mcnemar(int64_t b, int64_t c, enum lk_mcnemar_method method, struct lk_test *test) {
    *test = (struct lk_test){.name = "McNemar"};
    if (b < 0 || c < 0 || b > 500000000 || c > 500000000)
        return lk_fail(LK_E_INPUT, "mcnemar: counts: expected 0 to 5e8, got %lld and %lld", (long long)b, (long long)c);
    int64_t fewer = b < c ? b : c;
    test->n = (size_t)(b + c);
    if (!test->n) return lk_undefined(test, "no pair changed");
    if (method == LK_MCNEMAR_EXACT) {
        test->method = "exact";
        test->statistic = (double)fewer;
        test->p = fmin(2 * lk_binomial_at_most(fewer, b + c, 0.5), 1);
        return LK_OK;
    }
    double gap = fabs((double)(b - c)) - (method == LK_MCNEMAR_CONTINUITY);
    test->method = method == LK_MCNEMAR_CONTINUITY ? "asymptotic, continuity correction" : "asymptotic";
    test->statistic = gap * gap / (double)(b + c);
    test->df = 1;
    test->p = lk_chi2_sf(test->statistic, 1);
    return LK_OK;
}
