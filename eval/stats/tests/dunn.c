#include "eval/stats/tests/groups.h"
#include "eval/stats/tests/rank_tests.h"
#include "eval/stats/result.h"
#include "eval/stats/special/special.h"

#include <math.h>

static void compare(const struct lk_ranked_groups *groups, const size_t *n, size_t i, size_t j, struct lk_test *test) {
    double total = (double)groups->n, ni = (double)n[i], nj = (double)n[j];
    double variance = (total * (total + 1) - groups->ties.cubes / (total - 1)) / 12 * (1 / ni + 1 / nj);
    test->statistic = 0.5 * (groups->rank_sums[i] / ni - groups->rank_sums[j] / nj) / sqrt(variance);
    test->p = fmin(2 * lk_normal_sf(fabs(test->statistic)), 1);
}

enum lk_code lk_dunn(const double *values, const size_t *n, size_t n_groups, struct lk_test *tests) {
    struct lk_ranked_groups groups;
    LK_TRY(lk_rank_groups("dunn", values, n, n_groups, &groups));
    for (size_t i = 0; i < n_groups; i++)
        for (size_t j = i + 1; j < n_groups; j++, tests++) {
            *tests = (struct lk_test){.name = "Dunn z", .method = "asymptotic", .n = n[i] + n[j]};
            if (groups.undefined)
                lk_undefined(tests, groups.undefined);
            else
                compare(&groups, n, i, j, tests);
        }
    lk_ranked_groups_free(&groups);
    return LK_OK;
}
