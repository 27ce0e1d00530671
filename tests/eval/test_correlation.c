/* Spearman, Pearson and Kendall against scipy, on the cases of tests/golden/generate_stats_tests.py. */
#include "eval/stats/tests/correlation.h"
#include "tests/common/stats_cases.h"
#include "tests/common/test.h"

#include <math.h>

enum { MOST = 200 };

static size_t pairs(const char *statistic, int c, double *x, double *y, uint64_t *checksum) {
    struct lk_stream stream = stats_stream(statistic, c);
    size_t n = 3 + lk_stream_bounded(&stream, c % 4 == 0 ? 10 : 150);
    stats_values(&stream, x, n, c % 6);
    stats_values(&stream, y, n, c / 6 % 6);
    uint64_t link = lk_stream_bounded(&stream, 4);
    for (size_t i = 0; i < n; i++) {
        if (link == 1) y[i] += x[i];
        if (link == 2) y[i] -= 2 * x[i];
        if (link == 3) y[i] = x[i];
    }
    if (link == 3) {
        size_t i = lk_stream_bounded(&stream, n), j = lk_stream_bounded(&stream, n);
        double value = y[i];
        y[i] = y[j];
        y[j] = value;
    }
    *checksum = stats_checksum(stats_checksum(*checksum, x, n), y, n);
    return n;
}

static void is_defined(const struct lk_test *test, const double *row, int c) {
    if (!test->undefined != !isnan(row[0])) fail_msg("case %d: %s", c, test->undefined ? test->undefined : "defined");
}

static void spearman_as_scipy(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "spearman", 2);
    uint64_t checksum = STATS_CHECKSUM_START;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        double x[MOST], y[MOST];
        struct lk_test test;
        const double *row = stats_row(&golden, c);
        size_t n = pairs("spearman", c, x, y, &checksum);
        assert_ok(lk_spearman(x, y, n, &test));
        is_defined(&test, row, c);
        if (test.undefined) continue;
        stats_assert_value("rho", c, test.statistic, row[0]);
        stats_assert_p("p", c, test.p, row[1]);
        assert_true(test.df == (double)n - 2 && test.n == n);
    }
    stats_golden_finish(&golden, checksum);
}

static void pearson_as_scipy(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "pearson", 4);
    uint64_t checksum = STATS_CHECKSUM_START;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        double x[MOST], y[MOST];
        struct lk_test test;
        struct lk_number interval;
        const double *row = stats_row(&golden, c);
        size_t n = pairs("pearson", c, x, y, &checksum);
        assert_ok(lk_pearson(x, y, n, 0.95, &test, &interval));
        is_defined(&test, row, c);
        assert_true(!test.undefined == !interval.undefined);
        if (test.undefined) continue;
        stats_assert_value("r", c, test.statistic, row[0]);
        stats_assert_p("p", c, test.p, row[1]);
        stats_assert_value("low", c, interval.low, row[2]);
        stats_assert_value("high", c, interval.high, row[3]);
    }
    stats_golden_finish(&golden, checksum);
}

static void kendall_as_scipy(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "kendall", 2);
    uint64_t checksum = STATS_CHECKSUM_START;
    int n_exact = 0;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        double x[MOST], y[MOST];
        struct lk_test test;
        const double *row = stats_row(&golden, c);
        size_t n = pairs("kendall", c, x, y, &checksum);
        assert_ok(lk_kendall(x, y, n, &test));
        is_defined(&test, row, c);
        if (test.undefined) continue;
        stats_assert_value("tau", c, test.statistic, row[0]);
        stats_assert_p("p", c, test.p, row[1]);
        n_exact += !strcmp(test.method, "exact");
    }
    assert_true(n_exact > 15);
    stats_golden_finish(&golden, checksum);
}

static void vectors_of_the_study(void **state) {
    (void)state;
    const double a[] = {1, 2, 3, 4, 5, 1, 2, 3, 3, 4, 5, 5, 1, 2, 2, 1, 3, 4, 4, 2};
    const double b[] = {1, 2, 2, 4, 5, 1, 1, 3, 4, 4, 5, 4, 2, 2, 3, 1, 3, 3, 5, 2};
    struct lk_test test;
    assert_ok(lk_spearman(a, b, 20, &test));
    stats_assert_value("rho", 0, test.statistic, 0.8922413793103448);
    stats_assert_p("p", 0, test.p, 1.2509468424315173e-07);
}

static void perfect_order(void **state) {
    (void)state;
    double x[40], y[40];
    for (int i = 0; i < 40; i++) {
        x[i] = i;
        y[i] = -exp(0.3 * i);
    }
    struct lk_test test;
    assert_ok(lk_spearman(x, y, 40, &test));
    assert_true(test.statistic == -1 && test.p == 0);
    assert_ok(lk_kendall(x, y, 40, &test));
    assert_true(test.statistic == -1);
    assert_string_equal(test.method, "exact");
    stats_assert_p("2 / 40!", 0, test.p, 2 * exp(-lgamma(41)));
    for (int i = 0; i < 40; i++) x[i] = 1e308 * (i % 2 ? 1 : -1) / (1 + i % 5);
    assert_ok(lk_pearson(x, x, 40, 0.95, &test, NULL));
    stats_assert_close("r of huge values", 0, test.statistic, 1, 1e-15, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spearman_as_scipy),    cmocka_unit_test(pearson_as_scipy), cmocka_unit_test(kendall_as_scipy),
        cmocka_unit_test(vectors_of_the_study), cmocka_unit_test(perfect_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
