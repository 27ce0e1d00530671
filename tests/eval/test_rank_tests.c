/* Kruskal-Wallis, Dunn, Friedman, Mann-Whitney and Wilcoxon against scipy and scikit-posthocs, on the cases of
 * tests/golden/generate_stats_tests.py, and mid-ranks against counting. */
#include "eval/stats/tests/rank.h"
#include "eval/stats/tests/rank_tests.h"
#include "tests/common/stats_cases.h"
#include "tests/common/test.h"

#include <math.h>

enum { MOST = 400, MOST_GROUPS = 8 };

static void is_defined(const struct lk_test *test, const double *row, int c) {
    if (!test->undefined != !isnan(row[0])) fail_msg("case %d: %s", c, test->undefined ? test->undefined : "defined");
}

static size_t groups(struct lk_stream *stream, int c, size_t n_groups, double *values, size_t *n, uint64_t *checksum) {
    size_t all = 0;
    if (!n_groups) n_groups = 2 + lk_stream_bounded(stream, 6);
    for (size_t g = 0; g < n_groups; g++) {
        n[g] = 1 + lk_stream_bounded(stream, c % 4 == 0 ? 6 : 40);
        double shift = (double)lk_stream_bounded(stream, 3);
        stats_values(stream, values + all, n[g], c % 6);
        for (size_t i = 0; i < n[g]; i++) values[all + i] += shift;
        all += n[g];
    }
    *checksum = stats_checksum(*checksum, values, all);
    return n_groups;
}

static void kruskal_as_scipy(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "kruskal", 3);
    uint64_t checksum = STATS_CHECKSUM_START;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        double values[MOST];
        size_t n[MOST_GROUPS];
        struct lk_stream stream = stats_stream("kruskal", c);
        struct lk_test test;
        const double *row = stats_row(&golden, c);
        size_t n_groups = groups(&stream, c, 0, values, n, &checksum);
        assert_ok(lk_kruskal_wallis(values, n, n_groups, &test));
        is_defined(&test, row, c);
        if (test.undefined) continue;
        stats_assert_value("H", c, test.statistic, row[0]);
        stats_assert_p("p", c, test.p, row[1]);
        stats_assert_value("epsilon squared", c, test.effect, row[2]);
        assert_true(test.df == (double)n_groups - 1);
    }
    stats_golden_finish(&golden, checksum);
}

static void dunn_as_scikit_posthocs(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "dunn", 6);
    uint64_t checksum = STATS_CHECKSUM_START;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        double values[MOST];
        size_t n[MOST_GROUPS];
        struct lk_stream stream = stats_stream("dunn", c);
        struct lk_test tests[6];
        groups(&stream, c, 4, values, n, &checksum);
        assert_ok(lk_dunn(values, n, 4, tests));
        for (int pair = 0; pair < 6; pair++) {
            is_defined(&tests[pair], stats_row(&golden, c), c);
            if (!tests[pair].undefined) stats_assert_p("p", c, tests[pair].p, stats_row(&golden, c)[pair]);
        }
    }
    stats_golden_finish(&golden, checksum);
}

static void friedman_as_scipy(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "friedman", 3);
    uint64_t checksum = STATS_CHECKSUM_START;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        double values[MOST];
        struct lk_stream stream = stats_stream("friedman", c);
        struct lk_test test;
        const double *row = stats_row(&golden, c);
        size_t k = 3 + lk_stream_bounded(&stream, 6), n = 1 + lk_stream_bounded(&stream, 30);
        for (size_t i = 0; i < n; i++) stats_values(&stream, values + i * k, k, c % 6);
        checksum = stats_checksum(checksum, values, n * k);
        assert_ok(lk_friedman(values, n, k, &test));
        is_defined(&test, row, c);
        if (test.undefined) continue;
        stats_assert_value("chi-square", c, test.statistic, row[0]);
        stats_assert_p("p", c, test.p, row[1]);
        stats_assert_value("W", c, test.effect, row[2]);
    }
    stats_golden_finish(&golden, checksum);
}

static double mann_whitney_p(const double *x, size_t nx, const double *y, size_t ny, enum lk_alternative alternative,
                             enum lk_p_method method, bool no_continuity) {
    struct lk_test test;
    const struct lk_mann_whitney_options options = {alternative, method, no_continuity};
    assert_ok(lk_mann_whitney(x, nx, y, ny, &options, &test));
    assert_null(test.undefined);
    return test.p;
}

static void mann_whitney_as_scipy(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "mann_whitney", 7);
    uint64_t checksum = STATS_CHECKSUM_START;
    int n_exact = 0;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        static const uint64_t most[] = {8, 30, 80};
        double x[MOST], y[MOST];
        struct lk_stream stream = stats_stream("mann_whitney", c);
        struct lk_test test;
        const double *row = stats_row(&golden, c);
        size_t nx = 1 + lk_stream_bounded(&stream, most[c / 6 % 3]),
               ny = 1 + lk_stream_bounded(&stream, most[c / 6 % 3]);
        double shift = (double)lk_stream_bounded(&stream, 3);
        stats_values(&stream, x, nx, c % 6);
        stats_values(&stream, y, ny, c % 6);
        for (size_t i = 0; i < ny; i++) y[i] += shift;
        checksum = stats_checksum(stats_checksum(checksum, x, nx), y, ny);
        assert_ok(lk_mann_whitney(x, nx, y, ny, NULL, &test));
        is_defined(&test, row, c);
        if (test.undefined) continue;
        stats_assert_value("U", c, test.statistic, row[0]);
        stats_assert_value("effect", c, test.effect, 2 * row[0] / (double)(nx * ny) - 1);
        stats_assert_p("p", c, test.p, row[1]);
        stats_assert_p("without continuity", c, mann_whitney_p(x, nx, y, ny, LK_TWO_SIDED, LK_P_ASYMPTOTIC, true),
                       row[2]);
        stats_assert_p("less", c, mann_whitney_p(x, nx, y, ny, LK_LESS, LK_P_ASYMPTOTIC, false), row[3]);
        stats_assert_p("greater", c, mann_whitney_p(x, nx, y, ny, LK_GREATER, LK_P_ASYMPTOTIC, false), row[4]);
        if (isnan(row[5])) continue;
        stats_assert_p("exact", c, mann_whitney_p(x, nx, y, ny, LK_TWO_SIDED, LK_P_EXACT, false), row[5]);
        stats_assert_p("exact, greater", c, mann_whitney_p(x, nx, y, ny, LK_GREATER, LK_P_EXACT, false), row[6]);
        n_exact++;
    }
    assert_true(n_exact > 60);
    stats_golden_finish(&golden, checksum);
}

static struct lk_test wilcoxon(const double *d, size_t n, enum lk_zero_method zero_method,
                               enum lk_alternative alternative, enum lk_p_method method, bool continuity) {
    struct lk_test test;
    const struct lk_wilcoxon_options options = {zero_method, alternative, method, continuity, false};
    assert_ok(lk_wilcoxon(d, n, &options, &test));
    assert_null(test.undefined);
    return test;
}

static void wilcoxon_as_scipy(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "wilcoxon", 11);
    uint64_t checksum = STATS_CHECKSUM_START;
    int n_exact = 0;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        static const uint64_t most[] = {12, 50, 120};
        double x[MOST], d[MOST];
        struct lk_stream stream = stats_stream("wilcoxon", c);
        struct lk_test test;
        const double *row = stats_row(&golden, c);
        size_t n = 1 + lk_stream_bounded(&stream, most[c / 6 % 3]);
        double shift = (double)lk_stream_bounded(&stream, 3) / 2;
        stats_values(&stream, x, n, c % 6);
        stats_values(&stream, d, n, c % 6);
        for (size_t i = 0; i < n; i++) d[i] = x[i] - d[i] + shift;
        checksum = stats_checksum(checksum, d, n);
        assert_ok(lk_wilcoxon(d, n, NULL, &test));
        is_defined(&test, row, c);
        if (test.undefined) continue;
        stats_assert_value("T", c, test.statistic, row[0]);
        stats_assert_p("p", c, test.p, row[1]);
        test = wilcoxon(d, n, LK_ZERO_PRATT, LK_TWO_SIDED, LK_P_ASYMPTOTIC, false);
        stats_assert_value("T, pratt", c, test.statistic, row[2]);
        stats_assert_p("p, pratt", c, test.p, row[3]);
        test = wilcoxon(d, n, LK_ZERO_ZSPLIT, LK_TWO_SIDED, LK_P_ASYMPTOTIC, false);
        stats_assert_value("T, zsplit", c, test.statistic, row[4]);
        stats_assert_p("p, zsplit", c, test.p, row[5]);
        test = wilcoxon(d, n, LK_ZERO_WILCOX, LK_TWO_SIDED, LK_P_ASYMPTOTIC, true);
        stats_assert_p("continuity", c, test.p, row[6]);
        test = wilcoxon(d, n, LK_ZERO_PRATT, LK_LESS, LK_P_ASYMPTOTIC, true);
        stats_assert_p("pratt, less", c, test.p, row[7]);
        test = wilcoxon(d, n, LK_ZERO_ZSPLIT, LK_GREATER, LK_P_ASYMPTOTIC, true);
        stats_assert_p("zsplit, greater", c, test.p, row[8]);
        if (isnan(row[9])) continue;
        test = wilcoxon(d, n, LK_ZERO_WILCOX, LK_TWO_SIDED, LK_P_EXACT, false);
        stats_assert_p("exact", c, test.p, row[9]);
        test = wilcoxon(d, n, LK_ZERO_WILCOX, LK_GREATER, LK_P_EXACT, false);
        stats_assert_p("exact, greater", c, test.p, row[10]);
        n_exact++;
    }
    assert_true(n_exact > 60);
    stats_golden_finish(&golden, checksum);
}

static void groups_of_the_study(void **state) {
    (void)state;
    const double values[] = {3, 3, 4, 3, 4, 5, 3, 3, 3, 4, 4, 5, 4, 4, 3, 5, 3, 3, 3, 2, 3, 3, 4, 3};
    const double y[] = {3, 3, 4, 3, 4, 5, 3, 3, 3, 3, 3, 2, 3, 3, 4, 3};
    const size_t n[] = {8, 8, 8};
    struct lk_test test;
    assert_ok(lk_kruskal_wallis(values, n, 3, &test));
    stats_assert_value("H", 0, test.statistic, 6.884061833688693);
    stats_assert_p("p", 0, test.p, 0.03199963070094902);
    stats_assert_value("epsilon squared", 0, test.effect, 0.2993070362473345);
    assert_ok(lk_mann_whitney(values + 8, 8, y, 16, NULL, &test));
    assert_true(test.statistic == 98);
    stats_assert_p("p", 0, test.p, 0.023118244844433783);
    stats_assert_p("p without continuity", 0, mann_whitney_p(values + 8, 8, y, 16, LK_TWO_SIDED, LK_P_AUTO, true),
                   0.021145440005946706);
    const double x_exact[] = {1.1, 2.2, 3.3, 4.4}, y_exact[] = {0.5, 1.5, 2.5, 3.5, 5.5};
    assert_ok(lk_mann_whitney(x_exact, 4, y_exact, 5, NULL, &test));
    assert_true(test.statistic == 10 && test.p == 1);
    assert_string_equal(test.method, "exact");
}

static void differences_of_the_study(void **state) {
    (void)state;
    const double x[] = {4.0, 3.67, 5.0, 2.33, 3.0, 4.33, 1.0, 3.67, 4.67, 2.0, 3.33, 4.0, 5.0, 1.67, 3.0};
    const double y[] = {3.33, 3.67, 4.33, 2.0, 3.33, 4.0, 1.0, 3.0, 4.0, 2.33, 3.33, 3.0, 4.67, 1.67, 2.0};
    double d[15];
    for (int i = 0; i < 15; i++) d[i] = x[i] - y[i];
    struct lk_test test;
    assert_ok(lk_wilcoxon(d, 15, NULL, &test));
    assert_true(test.statistic == 6 && test.n == 11);
    stats_assert_p("p", 0, test.p, 0.014759475366397046);
    test = wilcoxon(d, 15, LK_ZERO_PRATT, LK_TWO_SIDED, LK_P_AUTO, false);
    assert_true(test.statistic == 14);
    stats_assert_p("pratt", 0, test.p, 0.017664360812130533);
    test = wilcoxon(d, 15, LK_ZERO_ZSPLIT, LK_TWO_SIDED, LK_P_AUTO, false);
    assert_true(test.statistic == 19);
    stats_assert_p("zsplit", 0, test.p, 0.018867712050190433);
    test = wilcoxon(d, 15, LK_ZERO_WILCOX, LK_TWO_SIDED, LK_P_AUTO, true);
    stats_assert_p("continuity", 0, test.p, 0.016707811852049993);
    const double exact[] = {1.1, -0.4, 2.3, 0.9, -1.7, 3.1, 0.2, 1.4};
    assert_ok(lk_wilcoxon(exact, 8, NULL, &test));
    assert_true(test.statistic == 8 && test.p == 0.1953125);
}

/* A rank is one, and the number of smaller values, and half the number of other equal ones. */
static void ranks_by_counting(void **state) {
    (void)state;
    for (int c = 0; c < 120; c++) {
        struct lk_stream stream = stats_stream("rank", c);
        size_t n = lk_stream_bounded(&stream, 60);
        double values[60], ranks[60], pairs = 0;
        struct lk_ties ties;
        stats_values(&stream, values, n, c % 6);
        assert_ok(lk_rank(values, n, ranks, &ties));
        for (size_t i = 0; i < n; i++) {
            double rank = 0.5;
            for (size_t j = 0; j < n; j++) rank += values[j] < values[i] ? 1 : values[j] == values[i] ? 0.5 : 0;
            for (size_t j = 0; j < i; j++) pairs += values[j] == values[i];
            assert_true(ranks[i] == rank);
        }
        assert_true(ties.pairs == pairs && (ties.largest == n) == (pairs == (double)n * ((double)n - 1) / 2));
    }
}

/* Distributions beyond what 128 bits count agree with the normal one; far tails do not vanish into one. */
static void large_exact_samples(void **state) {
    (void)state;
    enum { N = 130 };
    double x[N], y[N];
    for (int i = 0; i < N; i++) {
        x[i] = i + 0.25;
        y[i] = i * 1.07;
    }
    double exact = mann_whitney_p(x, N, y, N, LK_LESS, LK_P_EXACT, false);
    stats_assert_close("p", 0, exact, mann_whitney_p(x, N, y, N, LK_LESS, LK_P_ASYMPTOTIC, false), 2e-3, 0);
    for (int i = 0; i < N; i++) x[i] -= 1000;
    exact = mann_whitney_p(x, N, y, N, LK_LESS, LK_P_EXACT, false);
    stats_assert_p("1 / (260 choose 130)", 0, exact, exp(2 * lgamma(N + 1) - lgamma(2 * N + 1)));
    struct lk_test test;
    static double d[3000];
    for (int i = 0; i < 3000; i++) d[i] = (i + 1) * (i % 5 ? 1 : -1);
    test = wilcoxon(d, 900, LK_ZERO_WILCOX, LK_TWO_SIDED, LK_P_EXACT, false);
    assert_string_equal(test.method, "exact");
    assert_true(test.p > 0 && test.p < 1e-30);
    test = wilcoxon(d, 3000, LK_ZERO_WILCOX, LK_TWO_SIDED, LK_P_EXACT, false);
    assert_string_equal(test.method, "asymptotic");
}

static void limits_of_the_exact_choice(void **state) {
    (void)state;
    double x[9], y[30], d[51];
    struct lk_test test;
    for (int i = 0; i < 9; i++) x[i] = 3 * i + 0.5;
    for (int i = 0; i < 30; i++) y[i] = i;
    for (int i = 0; i < 51; i++) d[i] = (i + 1) * (i % 3 ? 1 : -1);
    assert_ok(lk_mann_whitney(y, 30, x, 8, NULL, &test));
    assert_string_equal(test.method, "exact");
    assert_ok(lk_mann_whitney(x, 9, y, 30, NULL, &test));
    assert_string_equal(test.method, "asymptotic");
    assert_ok(lk_wilcoxon(d, 50, NULL, &test));
    assert_string_equal(test.method, "exact");
    assert_ok(lk_wilcoxon(d, 51, NULL, &test));
    assert_string_equal(test.method, "asymptotic");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kruskal_as_scipy),         cmocka_unit_test(dunn_as_scikit_posthocs),
        cmocka_unit_test(friedman_as_scipy),        cmocka_unit_test(mann_whitney_as_scipy),
        cmocka_unit_test(wilcoxon_as_scipy),        cmocka_unit_test(groups_of_the_study),
        cmocka_unit_test(differences_of_the_study), cmocka_unit_test(ranks_by_counting),
        cmocka_unit_test(large_exact_samples),      cmocka_unit_test(limits_of_the_exact_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
