#include "eval/stats/tests/rank.h"
#include "eval/stats/tests/rank_tests.h"
#include "eval/stats/result.h"
#include "eval/stats/special/special.h"

#include <math.h>

#include "engine/base/alloc.h"

static enum lk_code rank_blocks(const double *values, size_t n, size_t k, double *sums, double *ranks, double *cubes) {
    *cubes = 0;
    for (size_t block = 0; block < n; block++) {
        struct lk_ties ties;
        LK_TRY(lk_rank(values + block * k, k, ranks, &ties));
        *cubes += ties.cubes;
        for (size_t j = 0; j < k; j++) sums[j] += 2 * ranks[j] - (double)(k + 1);
    }
    return LK_OK;
}

enum lk_code lk_friedman(const double *values, size_t n_blocks, size_t n_treatments, struct lk_test *test) {
    *test = (struct lk_test){.name = "Friedman chi-square", .method = "asymptotic", .n = n_blocks};
    LK_TRY(lk_check_finite("friedman", values, n_blocks * n_treatments));
    if (n_treatments < 3) return lk_undefined(test, "fewer than three conditions");
    if (!n_blocks) return lk_undefined(test, "no blocks");
    double *sums = lk_calloc(2 * n_treatments, sizeof *sums), cubes;
    if (!sums) return lk_fail(LK_E_NOMEM, "friedman: out of memory for %zu conditions", n_treatments);
    enum lk_code rc = rank_blocks(values, n_blocks, n_treatments, sums, sums + n_treatments, &cubes);
    double n = (double)n_blocks, k = (double)n_treatments, squares = 0, untied = n * k * (k * k - 1) - cubes;
    for (size_t j = 0; j < n_treatments; j++) squares += sums[j] * sums[j];
    lk_free(sums);
    if (rc) return rc;
    if (untied == 0) return lk_undefined(test, "all values of each block are equal");
    test->statistic = 3 * (k - 1) * squares / untied;
    test->df = k - 1;
    test->p = lk_chi2_sf(test->statistic, test->df);
    test->effect = test->statistic / (n * (k - 1));
    test->effect_name = "Kendall's W";
    return LK_OK;
}
