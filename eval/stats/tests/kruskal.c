#include "eval/stats/tests/groups.h"
#include "eval/stats/tests/rank_tests.h"
#include "eval/stats/result.h"
#include "eval/stats/special/special.h"

#include <math.h>

enum lk_code lk_kruskal_wallis(const double *values, const size_t *n, size_t n_groups, struct lk_test *test) {
    *test = (struct lk_test){.name = "Kruskal-Wallis H", .method = "asymptotic"};
    struct lk_ranked_groups groups;
    LK_TRY(lk_rank_groups("kruskal", values, n, n_groups, &groups));
    test->n = groups.n;
    if (groups.undefined) {
        lk_undefined(test, groups.undefined);
    } else {
        /* About the mean rank, where no digits cancel; the sums are of twice the ranks. */
        double total = (double)groups.n, between = 0,
               correction = 1 - groups.ties.cubes / (total * (total * total - 1));
        for (size_t g = 0; g < n_groups; g++) between += groups.rank_sums[g] * groups.rank_sums[g] / (double)n[g];
        test->statistic = 3 * between / (total * (total + 1)) / correction;
        test->df = (double)n_groups - 1;
        test->p = lk_chi2_sf(test->statistic, test->df);
        test->effect = test->statistic / (total - 1);
        test->effect_name = "epsilon squared";
    }
    lk_ranked_groups_free(&groups);
    return LK_OK;
}
