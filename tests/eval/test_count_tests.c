/* Chi-square, Fisher, McNemar, two proportions and the binomial test against scipy and statsmodels, on the cases of
 * tests/golden/generate_stats_tests.py. */
#include "eval/stats/tests/count_tests.h"
#include "tests/common/stats_cases.h"
#include "tests/common/test.h"

#include <math.h>

enum { MOST = 64 };

static void is_defined(const struct lk_test *test, const double *row, int c) {
    if (!test->undefined != !isnan(row[0])) fail_msg("case %d: %s", c, test->undefined ? test->undefined : "defined");
}

/* n counts below most. */
static void draw(struct lk_stream *stream, uint64_t most, size_t n, int64_t *counts, uint64_t *checksum) {
    for (size_t i = 0; i < n; i++) {
        counts[i] = (int64_t)lk_stream_bounded(stream, most);
        double value = (double)counts[i];
        *checksum = stats_checksum(*checksum, &value, 1);
    }
}

static void contingency_as_scipy(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "chi2_contingency", 7);
    uint64_t checksum = STATS_CHECKSUM_START;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        static const uint64_t most[] = {4, 30, 1000};
        int64_t counts[MOST];
        struct lk_stream stream = stats_stream("chi2_contingency", c);
        struct lk_contingency result;
        const double *row = stats_row(&golden, c);
        size_t rows = c % 3 ? 2 + lk_stream_bounded(&stream, 6) : 2,
               columns = c % 3 ? 2 + lk_stream_bounded(&stream, 5) : 2;
        draw(&stream, most[c / 3 % 3], rows * columns, counts, &checksum);
        assert_ok(lk_chi2_contingency(counts, rows, columns, &result, NULL, NULL));
        is_defined(&result.test, row, c);
        if (result.test.undefined) continue;
        stats_assert_value("chi-square", c, result.test.statistic, row[0]);
        stats_assert_p("p", c, result.test.p, row[1]);
        stats_assert_value("uncorrected", c, result.uncorrected.statistic, row[2]);
        stats_assert_p("p, uncorrected", c, result.uncorrected.p, row[3]);
        assert_true(result.test.df == row[4] && (double)result.n_small == row[6]);
        stats_assert_value("V", c, result.test.effect, row[5]);
    }
    stats_golden_finish(&golden, checksum);
}

static void fit_as_scipy(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "chi2_fit", 4);
    uint64_t checksum = STATS_CHECKSUM_START;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        static const uint64_t most[] = {4, 30, 1000};
        int64_t counts[MOST];
        double shares[MOST];
        size_t n_small;
        struct lk_stream stream = stats_stream("chi2_fit", c);
        struct lk_test test;
        const double *row = stats_row(&golden, c);
        size_t k = 2 + lk_stream_bounded(&stream, 8);
        draw(&stream, most[c / 2 % 3], k, counts, &checksum);
        for (size_t i = 0; i < k; i++) shares[i] = c % 2 ? 1 : (double)(1 + lk_stream_bounded(&stream, 9));
        checksum = stats_checksum(checksum, shares, k);
        assert_ok(lk_chi2_fit(counts, c % 2 ? NULL : shares, k, &test, &n_small));
        is_defined(&test, row, c);
        if (test.undefined) continue;
        stats_assert_value("chi-square", c, test.statistic, row[0]);
        stats_assert_p("p", c, test.p, row[1]);
        stats_assert_value("w", c, test.effect, row[2]);
        assert_true((double)n_small == row[3]);
    }
    stats_golden_finish(&golden, checksum);
}

static void fisher_as_scipy(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "fisher_exact", 4);
    uint64_t checksum = STATS_CHECKSUM_START;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        static const uint64_t most[] = {6, 40, 300};
        int64_t table[4];
        struct lk_stream stream = stats_stream("fisher_exact", c);
        const double *row = stats_row(&golden, c);
        draw(&stream, most[c % 3], 4, table, &checksum);
        for (enum lk_alternative alternative = LK_TWO_SIDED; alternative <= LK_GREATER; alternative++) {
            struct lk_test test;
            assert_ok(lk_fisher_exact(table, alternative, &test));
            is_defined(&test, row, c);
            if (test.undefined) continue;
            stats_assert_value("odds", c, test.statistic, row[0]);
            stats_assert_p("p", c, test.p, row[1 + alternative]);
        }
    }
    stats_golden_finish(&golden, checksum);
}

static void mcnemar_as_statsmodels(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "mcnemar", 6);
    uint64_t checksum = STATS_CHECKSUM_START;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        static const uint64_t most[] = {6, 40, 300};
        int64_t table[4];
        struct lk_stream stream = stats_stream("mcnemar", c);
        const double *row = stats_row(&golden, c);
        draw(&stream, most[c % 3], 4, table, &checksum);
        for (enum lk_mcnemar_method method = LK_MCNEMAR_EXACT; method <= LK_MCNEMAR_ASYMPTOTIC; method++) {
            struct lk_test test;
            assert_ok(lk_mcnemar(table[1], table[2], method, &test));
            is_defined(&test, row, c);
            if (test.undefined) continue;
            stats_assert_value("statistic", c, test.statistic, row[2 * method]);
            stats_assert_p("p", c, test.p, row[2 * method + 1]);
        }
    }
    stats_golden_finish(&golden, checksum);
}

static void proportions_as_statsmodels(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "two_proportions", 5);
    uint64_t checksum = STATS_CHECKSUM_START;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        static const uint64_t most[] = {8, 60, 3000};
        struct lk_stream stream = stats_stream("two_proportions", c);
        const double *row = stats_row(&golden, c);
        uint64_t n1 = 1 + lk_stream_bounded(&stream, most[c % 3]), n2 = 1 + lk_stream_bounded(&stream, most[c % 3]);
        uint64_t k1 = lk_stream_bounded(&stream, n1 + 1), k2 = lk_stream_bounded(&stream, n2 + 1);
        const double inputs[] = {(double)k1, (double)n1, (double)k2, (double)n2};
        checksum = stats_checksum(checksum, inputs, 4);
        for (enum lk_alternative alternative = LK_TWO_SIDED; alternative <= LK_GREATER; alternative++) {
            struct lk_test test;
            assert_ok(lk_two_proportions((int64_t)k1, (int64_t)n1, (int64_t)k2, (int64_t)n2, alternative, &test));
            is_defined(&test, row, c);
            if (test.undefined) continue;
            stats_assert_value("z", c, test.statistic, row[0]);
            stats_assert_p("p", c, test.p, row[1 + alternative]);
            stats_assert_value("h", c, test.effect, row[4]);
        }
    }
    stats_golden_finish(&golden, checksum);
}

static void binomial_as_scipy(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "binomial_test", 3);
    uint64_t checksum = STATS_CHECKSUM_START;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        static const uint64_t most[] = {8, 60, 1500};
        struct lk_stream stream = stats_stream("binomial_test", c);
        int64_t n = 1 + (int64_t)lk_stream_bounded(&stream, most[c % 3]);
        double p = c % 2 ? 0.5 : (double)lk_stream_bounded(&stream, 65) / 64;
        int64_t k;
        if (c % 5) {
            k = (int64_t)lk_stream_bounded(&stream, (uint64_t)n + 1);
        } else {
            k = (int64_t)((double)n * p) + (int64_t)lk_stream_bounded(&stream, 4);
            if (k > n) k = n;
        }
        const double inputs[] = {(double)k, (double)n, p};
        checksum = stats_checksum(checksum, inputs, 3);
        for (enum lk_alternative alternative = LK_TWO_SIDED; alternative <= LK_GREATER; alternative++) {
            struct lk_test test;
            assert_ok(lk_binomial_test(k, n, p, alternative, &test));
            stats_assert_p("p", c, test.p, stats_row(&golden, c)[alternative]);
        }
    }
    stats_golden_finish(&golden, checksum);
}

static void tables_of_the_study(void **state) {
    (void)state;
    const int64_t table[] = {40, 200, 44, 194, 23, 217, 36, 203, 43, 197, 36, 202, 3, 236};
    const int64_t outer[] = {40, 200, 3, 236};
    struct lk_contingency result;
    assert_ok(lk_chi2_contingency(table, 7, 2, &result, NULL, NULL));
    stats_assert_value("chi-square", 0, result.test.statistic, 46.1837045303113);
    stats_assert_p("p", 0, result.test.p, 2.721409977424215e-08);
    stats_assert_value("V", 0, result.test.effect, 0.16609886169992716);
    assert_true(result.test.df == 6 && result.n_small == 0);
    assert_ok(lk_chi2_contingency(outer, 2, 2, &result, NULL, NULL));
    stats_assert_value("Yates", 0, result.test.statistic, 32.947223826375975);
    stats_assert_p("Yates", 0, result.test.p, 9.46948720341626e-09);
    stats_assert_value("plain", 0, result.uncorrected.statistic, 34.80775039063209);
    stats_assert_p("plain", 0, result.uncorrected.p, 3.6392183546638416e-09);
}

static void empty_rows_are_named(void **state) {
    (void)state;
    const int64_t table[] = {5, 0, 9, 0, 0, 0, 7, 0, 2, 0, 0, 0};
    struct lk_contingency result, without;
    bool row_empty[4], column_empty[3];
    assert_ok(lk_chi2_contingency(table, 4, 3, &result, row_empty, column_empty));
    assert_true(!row_empty[0] && row_empty[1] && !row_empty[2] && row_empty[3]);
    assert_true(!column_empty[0] && column_empty[1] && !column_empty[2]);
    assert_true(result.n_rows == 2 && result.n_columns == 2 && result.n_small == 2);
    const int64_t rest[] = {5, 9, 7, 2};
    assert_ok(lk_chi2_contingency(rest, 2, 2, &without, NULL, NULL));
    assert_true(result.test.p == without.test.p && result.test.effect == without.test.effect);
    assert_string_equal(result.test.method, "asymptotic, Yates' correction");
}

static void five_expected_are_enough(void **state) {
    (void)state;
    const int64_t even[] = {7, 3, 3, 7}, fewer[] = {7, 3, 3, 6};
    struct lk_contingency result;
    assert_ok(lk_chi2_contingency(even, 2, 2, &result, NULL, NULL));
    assert_true(result.n_small == 0 && result.least_expected == 5);
    assert_ok(lk_chi2_contingency(fewer, 2, 2, &result, NULL, NULL));
    assert_true(result.n_small == 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contingency_as_scipy),
        cmocka_unit_test(fit_as_scipy),
        cmocka_unit_test(fisher_as_scipy),
        cmocka_unit_test(mcnemar_as_statsmodels),
        cmocka_unit_test(proportions_as_statsmodels),
        cmocka_unit_test(binomial_as_scipy),
        cmocka_unit_test(tables_of_the_study),
        cmocka_unit_test(empty_rows_are_named),
        cmocka_unit_test(five_expected_are_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
