/* Samples that say nothing, answers that are none, and memory that runs out: every test gives a reason in words, or an
 * error, or finite numbers. */
#include "eval/stats/quantile.h"
#include "eval/stats/tests/correlation.h"
#include "eval/stats/tests/count_tests.h"
#include "eval/stats/tests/rank_tests.h"
#include "tests/common/stats_cases.h"
#include "tests/common/test.h"

#include <math.h>

#include "engine/base/alloc.h"

static int n_checked;

/* Defined, with numbers that can be printed. */
static void sound(enum lk_code rc, const struct lk_test *test) {
    assert_ok(rc);
    if (test->undefined) fail_msg("%s: undefined: %s", test->name, test->undefined);
    assert_true(test->p >= 0 && test->p <= 1 && !isnan(test->statistic) && isfinite(test->effect) &&
                isfinite(test->df));
    assert_true(test->n > 0 && test->method && (test->effect_name || test->effect == 0));
    n_checked++;
}

static void undefined(enum lk_code rc, const struct lk_test *test, const char *why) {
    assert_ok(rc);
    if (!test->undefined || !strstr(test->undefined, why))
        fail_msg("%s: expected \"%s\", got \"%s\"", test->name, why, test->undefined ? test->undefined : "a value");
    assert_true(test->statistic == 0 && test->p == 0 && test->df == 0 && test->effect == 0 && !test->effect_name);
    assert_true(strlen(test->name) > 2);
    n_checked++;
}

static void refused(enum lk_code rc, const char *part) {
    assert_int_equal(rc, LK_E_INPUT);
    if (!strstr(lk_error_text(), part)) fail_msg("expected \"%s\", got: %s", part, lk_error_text());
    n_checked++;
}

static enum lk_code pearson(const double *x, const double *y, size_t n, struct lk_test *test) {
    struct lk_number interval;
    enum lk_code rc = lk_pearson(x, y, n, 0.95, test, &interval);
    if (!rc)
        assert_true(test->undefined ? interval.undefined && interval.value == 0 : !isnan(interval.low + interval.high));
    return rc;
}

static void correlations(void **state) {
    (void)state;
    static enum lk_code (*const calls[])(const double *, const double *, size_t,
                                         struct lk_test *) = {lk_spearman, pearson, lk_kendall};
    const double x[] = {3, 1, 2, 5}, y[] = {2, 7, 4, 4}, same[] = {4, 4, 4, 4}, nan[] = {1, 2, NAN, 3};
    const double infinite[] = {1, -INFINITY, 2, 3}, zeros[] = {0, -0.0, 0, -0.0};
    for (int f = 0; f < 3; f++) {
        struct lk_test test;
        undefined(calls[f](NULL, NULL, 0, &test), &test, "fewer than three pairs");
        undefined(calls[f](x, y, 1, &test), &test, "fewer than three pairs");
        undefined(calls[f](x, y, 2, &test), &test, "fewer than three pairs");
        undefined(calls[f](x, same, 4, &test), &test, "constant");
        undefined(calls[f](same, x, 4, &test), &test, "constant");
        undefined(calls[f](zeros, x, 4, &test), &test, "constant");
        refused(calls[f](nan, x, 4, &test), "x: value 2");
        refused(calls[f](x, infinite, 4, &test), "y: value 1");
        sound(calls[f](x, y, 3, &test), &test);
        sound(calls[f](x, x, 4, &test), &test);
    }
    struct lk_test test;
    struct lk_number interval;
    refused(lk_pearson(x, y, 4, 1, &test, &interval), "confidence");
    refused(lk_pearson(x, y, 4, NAN, &test, &interval), "confidence");
}

static void several_groups(void **state) {
    (void)state;
    const double values[] = {1, 2, 3, 4, 5, 6}, same[] = {3, 3, 3, 3, 3, 3}, nan[] = {1, 2, 3, 4, 5, NAN};
    const size_t sizes[] = {2, 3, 1}, hole[] = {2, 0, 4}, ones[] = {1, 1, 1};
    struct lk_test test, pairs[3];
    undefined(lk_kruskal_wallis(NULL, NULL, 0, &test), &test, "fewer than two groups");
    undefined(lk_kruskal_wallis(values, sizes, 1, &test), &test, "fewer than two groups");
    undefined(lk_kruskal_wallis(values, hole, 3, &test), &test, "a group is empty");
    undefined(lk_kruskal_wallis(same, sizes, 3, &test), &test, "all values are equal");
    refused(lk_kruskal_wallis(nan, sizes, 3, &test), "kruskal: value 5");
    sound(lk_kruskal_wallis(values, ones, 3, &test), &test);
    assert_ok(lk_dunn(values, sizes, 1, pairs));
    undefined(lk_dunn(values, hole, 3, pairs), &pairs[2], "a group is empty");
    undefined(lk_dunn(same, sizes, 3, pairs), &pairs[0], "all values are equal");
    refused(lk_dunn(nan, sizes, 3, pairs), "dunn: value 5");
    sound(lk_dunn(values, ones, 3, pairs), &pairs[1]);
    undefined(lk_friedman(NULL, 0, 4, &test), &test, "no blocks");
    undefined(lk_friedman(NULL, 4, 0, &test), &test, "fewer than three conditions");
    undefined(lk_friedman(values, 3, 2, &test), &test, "fewer than three conditions");
    undefined(lk_friedman(same, 2, 3, &test), &test, "all values of each block are equal");
    refused(lk_friedman(nan, 2, 3, &test), "friedman: value 5");
    sound(lk_friedman(values, 1, 3, &test), &test);
}

static void two_samples(void **state) {
    (void)state;
    const double x[] = {1, 2, 3}, same[] = {2, 2, 2}, nan[] = {NAN}, zeros[] = {0, -0.0, 1e-12};
    struct lk_test test;
    for (enum lk_p_method method = LK_P_AUTO; method <= LK_P_EXACT; method++) {
        const struct lk_mann_whitney_options options = {.method = method};
        undefined(lk_mann_whitney(NULL, 0, NULL, 0, &options, &test), &test, "a group is empty");
        undefined(lk_mann_whitney(x, 3, NULL, 0, &options, &test), &test, "a group is empty");
        undefined(lk_mann_whitney(NULL, 0, x, 3, &options, &test), &test, "a group is empty");
        undefined(lk_mann_whitney(same, 3, same, 2, &options, &test), &test, "all values are equal");
        refused(lk_mann_whitney(x, 3, nan, 1, &options, &test), "y: value 0");
        sound(lk_mann_whitney(x, 1, x + 1, 1, &options, &test), &test);
        sound(lk_mann_whitney(x, 3, same, 3, &options, &test), &test);
    }
    for (enum lk_zero_method zero = LK_ZERO_WILCOX; zero <= LK_ZERO_ZSPLIT; zero++) {
        const struct lk_wilcoxon_options options = {.zero_method = zero, .method = LK_P_EXACT};
        undefined(lk_wilcoxon(NULL, 0, &options, &test), &test, "no pairs");
        undefined(lk_wilcoxon(zeros, 3, &options, &test), &test, "every difference is 0");
        refused(lk_wilcoxon(nan, 1, &options, &test), "differences: value 0");
        sound(lk_wilcoxon(x, 1, &options, &test), &test);
        sound(lk_wilcoxon(same, 3, &options, &test), &test);
        const double huge[] = {1e308, -1e308, 3e307};
        sound(lk_wilcoxon(huge, 3, &options, &test), &test);
        assert_true(lk_quantile((double[]){-1e308, 1e308, 1.7e308}, 3, 0.25) == 0);
    }
}

static void tables(void **state) {
    (void)state;
    const int64_t zeros[6] = {0}, row[] = {0, 0, 0, 4, 1, 2}, column[] = {0, 3, 0, 0, 2, 0}, negative[] = {1, -1, 2, 2};
    const int64_t huge[] = {(int64_t)1 << 53, 1, 1, 1}, small[] = {1, 0, 0, 1}, large[] = {INT64_MAX, INT64_MAX, 1, 1};
    struct lk_contingency result;
    struct lk_test test;
    undefined(lk_chi2_contingency(NULL, 0, 0, &result, NULL, NULL), &result.test, "fewer than two rows");
    undefined(lk_chi2_contingency(zeros, 2, 3, &result, NULL, NULL), &result.uncorrected, "fewer than two rows");
    undefined(lk_chi2_contingency(row, 2, 3, &result, NULL, NULL), &result.test, "fewer than two rows");
    undefined(lk_chi2_contingency(column, 2, 3, &result, NULL, NULL), &result.test, "fewer than two columns");
    refused(lk_chi2_contingency(negative, 2, 2, &result, NULL, NULL), "count 1");
    refused(lk_chi2_contingency(huge, 2, 2, &result, NULL, NULL), "2^53");
    refused(lk_chi2_contingency(large, 2, 2, &result, NULL, NULL), "count 0");
    sound(lk_chi2_contingency(small, 2, 2, &result, NULL, NULL), &result.test);
    assert_true(result.n_small == 4 && result.least_expected == 0.5);
    const double shares[] = {1, 1, 0, 2}, bad[] = {1, -1, 1, 1}, none[] = {1, 1, NAN, 1},
                 endless[] = {1e308, 1e308, 1, 1};
    const int64_t counted[] = {3, 4, 1, 2};
    undefined(lk_chi2_fit(NULL, NULL, 0, &test, NULL), &test, "nothing was counted");
    undefined(lk_chi2_fit(zeros, NULL, 4, &test, NULL), &test, "nothing was counted");
    undefined(lk_chi2_fit(counted, NULL, 1, &test, NULL), &test, "fewer than two categories");
    refused(lk_chi2_fit(negative, NULL, 4, &test, NULL), "count 1");
    refused(lk_chi2_fit(counted, shares, 4, &test, NULL), "count 2");
    refused(lk_chi2_fit(counted, bad, 4, &test, NULL), "share 1");
    refused(lk_chi2_fit(counted, none, 4, &test, NULL), "share 2");
    refused(lk_chi2_fit(counted, endless, 4, &test, NULL), "finite sum");
    const int64_t within[] = {3, 4, 0, 2};
    sound(lk_chi2_fit(within, shares, 4, &test, NULL), &test);
    assert_true(test.df == 2);
}

static void fourfold(void **state) {
    (void)state;
    const int64_t zeros[4] = {0}, negative[] = {1, -1, 2, 2}, small[] = {1, 0, 0, 1}, side[] = {3, 2, 0, 0};
    const int64_t top[] = {3, 0, 2, 0}, large[] = {1, 1, 1, INT64_MAX};
    struct lk_test test;
    for (enum lk_alternative a = LK_TWO_SIDED; a <= LK_GREATER; a++) {
        undefined(lk_fisher_exact(zeros, a, &test), &test, "a row is empty");
        undefined(lk_fisher_exact(side, a, &test), &test, "a row is empty");
        undefined(lk_fisher_exact(top, a, &test), &test, "a column is empty");
        refused(lk_fisher_exact(negative, a, &test), "count 1");
        refused(lk_fisher_exact(large, a, &test), "count 3");
        sound(lk_fisher_exact(small, a, &test), &test);
        assert_true(test.statistic == INFINITY);
        undefined(lk_two_proportions(0, 0, 1, 2, a, &test), &test, "a group is empty");
        undefined(lk_two_proportions(0, 3, 0, 2, a, &test), &test, "both proportions are 0");
        undefined(lk_two_proportions(3, 3, 2, 2, a, &test), &test, "both are 1");
        refused(lk_two_proportions(3, 2, 1, 2, a, &test), "first");
        refused(lk_two_proportions(1, 2, -1, 2, a, &test), "second");
        sound(lk_two_proportions(1, 1, 0, 1, a, &test), &test);
        undefined(lk_binomial_test(0, 0, 0.5, a, &test), &test, "no trials");
        refused(lk_binomial_test(3, 2, 0.5, a, &test), "3 of 2");
        refused(lk_binomial_test(1, 2, NAN, a, &test), "p: ");
        refused(lk_binomial_test(1, 2, 1.01, a, &test), "p: ");
        refused(lk_binomial_test(1, INT64_MAX, 0.5, a, &test), "1e9");
        for (int64_t k = 0; k < 3; k++)
            for (int p = 0; p < 3; p++) sound(lk_binomial_test(k, 2, 0.5 * p, a, &test), &test);
        sound(lk_binomial_test(400000000, 1000000000, 0.4, a, &test), &test);
    }
    for (enum lk_mcnemar_method m = LK_MCNEMAR_EXACT; m <= LK_MCNEMAR_ASYMPTOTIC; m++) {
        undefined(lk_mcnemar(0, 0, m, &test), &test, "no pair changed");
        refused(lk_mcnemar(-1, 3, m, &test), "counts");
        refused(lk_mcnemar(1, INT64_MAX, m, &test), "counts");
        sound(lk_mcnemar(1, 0, m, &test), &test);
        sound(lk_mcnemar(500000000, 499000000, m, &test), &test);
    }
}

static void sixty_cases(void **state) {
    (void)state;
    assert_true(n_checked >= 60);
}

/* Whatever is small: numbers, or a reason. */
static void small_samples_are_sound(void **state) {
    (void)state;
    for (int c = 0; c < 3000; c++) {
        struct lk_stream stream = stats_stream("small", c);
        double x[8], y[8];
        size_t n = lk_stream_bounded(&stream, 8), m = lk_stream_bounded(&stream, 8), sizes[] = {n, m};
        double both[16];
        stats_values(&stream, x, 8, c % 5);
        stats_values(&stream, y, 8, c / 5 % 5);
        memcpy(both, x, n * sizeof *x);
        memcpy(both + n, y, m * sizeof *y);
        struct lk_test tests[7];
        assert_ok(lk_spearman(x, y, n, &tests[0]));
        assert_ok(pearson(x, y, n, &tests[1]));
        assert_ok(lk_kendall(x, y, n, &tests[2]));
        assert_ok(lk_mann_whitney(x, n, y, m, NULL, &tests[3]));
        assert_ok(lk_wilcoxon(x, n, NULL, &tests[4]));
        assert_ok(lk_kruskal_wallis(both, sizes, 2, &tests[5]));
        assert_ok(lk_friedman(both, (n + m) / 4, 4, &tests[6]));
        for (int t = 0; t < 7; t++)
            if (!tests[t].undefined) sound(LK_OK, &tests[t]);
    }
}

/* All tests that allocate; whichever fails first ends it. */
static enum lk_code work(struct lk_test *tests) {
    enum { N = 40 };
    double x[N], y[N];
    int64_t counts[] = {3, 4, 5, 6, 7, 8};
    const size_t sizes[] = {12, 20, 8};
    const struct lk_mann_whitney_options exact = {.method = LK_P_EXACT};
    struct lk_contingency table;
    for (int i = 0; i < N; i++) {
        x[i] = i * 0.5 + 0.25 * (i % 3);
        y[i] = (i * 7 % N) * 0.37;
    }
    LK_TRY(lk_spearman(x, y, N, &tests[0]));
    LK_TRY(lk_pearson(x, y, N, 0.95, &tests[1], NULL));
    LK_TRY(lk_kendall(x, y, N, &tests[2]));
    LK_TRY(lk_kruskal_wallis(y, sizes, 3, &tests[3]));
    LK_TRY(lk_dunn(y, sizes, 3, &tests[4]));
    LK_TRY(lk_friedman(y, 8, 5, &tests[7]));
    LK_TRY(lk_mann_whitney(x, N, y, N, NULL, &tests[8]));
    LK_TRY(lk_mann_whitney(x, 30, y, 20, &exact, &tests[9]));
    LK_TRY(lk_wilcoxon(x + 1, N - 1, NULL, &tests[10]));
    LK_TRY(lk_chi2_contingency(counts, 3, 2, &table, NULL, NULL));
    tests[11] = table.test;
    double far[N];
    for (int i = 0; i < N; i++) far[i] = (i + 1) * (i % 3 ? 0.7 : -0.3);
    return lk_wilcoxon(far, N, NULL, &tests[12]);
}

static void nth_allocation_fails(void **state) {
    (void)state;
    enum { N_TESTS = 13 };
    struct lk_test expected[N_TESTS], tests[N_TESTS];
    assert_ok(work(expected));
    int64_t live = lk_alloc_live(), n = 1;
    for (;; n++) {
        lk_alloc_fail_at(n);
        enum lk_code rc = work(tests);
        lk_alloc_fail_at(0);
        assert_int_equal(lk_alloc_live(), live);
        if (!rc) break;
        assert_int_equal(rc, LK_E_NOMEM);
        assert_non_null(strstr(lk_error_text(), "out of memory"));
    }
    assert_true(n > 15);
    for (int t = 0; t < N_TESTS; t++) assert_true(tests[t].p == expected[t].p && tests[t].effect == expected[t].effect);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(correlations),
        cmocka_unit_test(several_groups),
        cmocka_unit_test(two_samples),
        cmocka_unit_test(tables),
        cmocka_unit_test(fourfold),
        cmocka_unit_test(sixty_cases),
        cmocka_unit_test(small_samples_are_sound),
        cmocka_unit_test(nth_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
