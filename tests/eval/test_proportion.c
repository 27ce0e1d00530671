/* Rates, sample sizes and mean with SD against statsmodels, scipy, mpmath and numpy, and the study's vectors.
 */
#include <float.h>
#include <math.h>

#include "eval/stats/proportion.h"
#include "eval/stats/tests/sample_size.h"
#include "eval/stats/summary.h"
#include "tests/common/stats_cases.h"
#include "tests/common/test.h"

static void close_to(const char *what, int number, double got, double expected) {
    stats_assert_close(what, number, got, expected, 1e-10, 1e-12);
}

static void intervals_against_statsmodels(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "proportion", 7);
    uint64_t checksum = STATS_CHECKSUM_START;
    const double confidences[] = {0.95, 0.9, 0.99};
    for (int c = 0; c < (int)golden.n_cases; c++) {
        struct lk_stream s = stats_stream("proportion", c);
        const double *expected = golden.values + 7 * c;
        uint64_t size = UINT64_C(1) << lk_stream_bounded(&s, 14);
        int64_t n1 = 1 + (int64_t)lk_stream_bounded(&s, size), n2 = 1 + (int64_t)lk_stream_bounded(&s, size);
        int64_t first = (int64_t)lk_stream_bounded(&s, (uint64_t)n1 + 1);
        int64_t second = (int64_t)lk_stream_bounded(&s, (uint64_t)n1 + 1);
        int64_t third = (int64_t)lk_stream_bounded(&s, (uint64_t)n2 + 1);
        int64_t k1[] = {0, n1, first, second}, k2[] = {0, n2, third};
        double flat[] = {(double)k1[c % 4], (double)n1, (double)k2[c % 3], (double)n2};
        checksum = stats_checksum(checksum, flat, 4);
        struct lk_number number;
        for (int kind = 0; kind < 2; kind++) {
            enum lk_proportion_interval which = kind ? LK_CLOPPER_PEARSON : LK_WILSON;
            assert_ok(lk_proportion(k1[c % 4], n1, which, confidences[c % 3], &number));
            close_to("low", c, number.low, expected[2 * kind]);
            close_to("high", c, number.high, expected[2 * kind + 1]);
            assert_true(number.low <= number.value && number.value <= number.high);
        }
        assert_ok(lk_proportion_difference(k1[c % 4], n1, k2[c % 3], n2, confidences[c % 3], &number));
        close_to("newcombe low", c, number.low, expected[4]);
        close_to("newcombe high", c, number.high, expected[5]);
        close_to("cohen h", c, lk_cohen_h(flat[0] / flat[1], flat[2] / flat[3]), expected[6]);
    }
    assert_true(checksum == golden.inputs);
    stats_golden_close(&golden);
}

static double value_or_nan(const struct lk_number *number) { return number->undefined ? NAN : number->value; }

static void sizes_against_peers(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "sample_size", 4);
    uint64_t checksum = STATS_CHECKSUM_START;
    const double alphas[] = {0.05, 0.01, 0.125};
    for (int c = 0; c < (int)golden.n_cases; c++) {
        struct lk_stream s = stats_stream("sample_size", c);
        const double *expected = golden.values + 4 * c;
        double p1 = (double)lk_stream_bounded(&s, 65) / 64, p2 = (double)lk_stream_bounded(&s, 65) / 64;
        double n = 1 + (double)lk_stream_bounded(&s, 2000), ratio = (double)(1 + lk_stream_bounded(&s, 16)) / 8;
        double alpha = alphas[c % 3], power = (double)(33 + lk_stream_bounded(&s, 31)) / 64;
        double flat[] = {p1, p2, n, ratio, power};
        checksum = stats_checksum(checksum, flat, 5);
        struct lk_number number;
        assert_ok(lk_sample_size_proportions(p1, p2, alpha, power, LK_Z_EXACT, &number));
        close_to("size", c, value_or_nan(&number), expected[0]);
        assert_true(number.undefined || (double)number.n == ceil(number.value));
        assert_ok(lk_power_proportions(p1, p2, alpha, n, &number));
        stats_assert_close("power", c, value_or_nan(&number), expected[1], 1e-8, 1e-300);
        assert_ok(lk_power_h(lk_cohen_h(p1, p2), n, ratio, alpha, &number));
        stats_assert_close("power of h", c, value_or_nan(&number), expected[2], 1e-8, 1e-300);
        assert_ok(lk_sample_size_h(lk_cohen_h(p1, p2), power, ratio, alpha, &number));
        close_to("size for h", c, value_or_nan(&number), expected[3]);
    }
    assert_true(checksum == golden.inputs);
    stats_golden_close(&golden);
}

static void mean_and_sd_against_numpy(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "summary", 2);
    uint64_t checksum = STATS_CHECKSUM_START;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        struct lk_stream s = stats_stream("summary", c);
        double x[64];
        size_t n = 1 + lk_stream_bounded(&s, 50);
        stats_values(&s, x, n, (enum stats_kind)(c % 6));
        checksum = stats_checksum(checksum, x, n);
        struct lk_summary summary;
        x[n] = NAN; /* a missing value */
        assert_ok(lk_summarise(x, n + 1, &summary));
        assert_int_equal(summary.n, n);
        close_to("mean", c, summary.mean, golden.values[2 * c]);
        close_to("sd", c, summary.sd, golden.values[2 * c + 1]);
        for (int shift = -700; shift <= 700; shift += 1400) { /* squares would vanish, or overflow */
            struct lk_summary other;
            double y[64];
            for (size_t i = 0; i <= n; i++) y[i] = ldexp(x[i], shift);
            assert_ok(lk_summarise(y, n + 1, &other));
            assert_true(other.mean == ldexp(summary.mean, shift));
            assert_true(other.sd == ldexp(summary.sd, shift) || n < 2);
        }
    }
    assert_true(checksum == golden.inputs);
    stats_golden_close(&golden);
}

static void vectors_of_the_study(void **state) {
    (void)state;
    struct lk_number number;
    close_to("h", 0, lk_cohen_h(0.788, 0.469), 0.675866728637557);
    close_to("h", 1, lk_cohen_h(0.2, 0.15), 0.1318963878174686);
    assert_ok(lk_sample_size_proportions(0.2, 0.15, 0.05, 0.8, LK_Z_ROUNDED, &number));
    close_to("rounded z", 0, number.value, 901.5999999999998);
    assert_int_equal(number.n, 902);
    assert_ok(lk_sample_size_proportions(0.2, 0.15, 0.05, 0.8, LK_Z_EXACT, &number));
    close_to("exact z", 0, number.value, 902.621169450145);
    assert_int_equal(number.n, 903);
    assert_ok(lk_power_proportions(0.2, 0.15, 0.05, number.value, &number));
    close_to("its power", 0, number.value, 0.8);
    const char *labels[] = {"negligible", "small", "medium", "large"};
    const double h[] = {-0.19, 0.2, -0.5, 0.8};
    for (int i = 0; i < 4; i++) assert_string_equal(lk_cohen_h_label(h[i]), labels[i]);
}

static void degenerate(void **state) {
    (void)state;
    struct lk_number number;
    struct lk_summary summary;
    const double infinite[] = {1, INFINITY}, far_apart[] = {-DBL_MAX, DBL_MAX};
    assert_fails(lk_summarise(far_apart, 2, &summary), LK_E_INPUT, "standard deviation");
    assert_ok(lk_proportion(0, 0, LK_WILSON, 0.95, &number));
    assert_non_null(number.undefined);
    assert_ok(lk_proportion_difference(0, 0, 1, 2, 0.95, &number));
    assert_non_null(number.undefined);
    assert_fails(lk_proportion(3, 2, LK_CLOPPER_PEARSON, 0.95, &number), LK_E_INPUT, "3 of 2");
    assert_fails(lk_proportion(-1, 2, LK_CLOPPER_PEARSON, 0.95, &number), LK_E_INPUT, "-1 of 2");
    assert_fails(lk_proportion(1, 2, LK_WILSON, NAN, &number), LK_E_INPUT, "confidence");
    assert_true(isnan(lk_cohen_h(1.1, 0)) && isnan(lk_cohen_h(0, NAN)));
    assert_string_equal(lk_cohen_h_label(NAN), "undefined");
    assert_fails(lk_sample_size_proportions(0.2, NAN, 0.05, 0.8, LK_Z_EXACT, &number), LK_E_INPUT, "rates");
    assert_fails(lk_sample_size_proportions(0.2, 0.1, 0, 0.8, LK_Z_EXACT, &number), LK_E_INPUT, "alpha");
    assert_ok(lk_power_proportions(0, 1, 0.05, 10, &number));
    assert_non_null(number.undefined);
    assert_fails(lk_power_proportions(0, 1, 0.05, 0, &number), LK_E_INPUT, "n:");
    assert_fails(lk_power_h(0.5, INFINITY, 1, 0.05, &number), LK_E_INPUT, "n:");
    assert_fails(lk_power_h(NAN, 10, 1, 0.05, &number), LK_E_INPUT, "finite h");
    assert_fails(lk_sample_size_h(0.5, 0.8, 0, 0.05, &number), LK_E_INPUT, "ratio");
    assert_ok(lk_sample_size_h(0.5, 0.04, 1, 0.05, &number));
    assert_non_null(number.undefined);
    assert_ok(lk_sample_size_h(0.5, 1 - 1e-16, 1, 0.05, &number));
    assert_true(number.undefined || number.value > 0);
    assert_ok(lk_summarise(NULL, 0, &summary));
    assert_non_null(summary.undefined);
    assert_fails(lk_summarise(infinite, 2, &summary), LK_E_INPUT, "finite");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_against_statsmodels),
        cmocka_unit_test(sizes_against_peers),
        cmocka_unit_test(mean_and_sd_against_numpy),
        cmocka_unit_test(vectors_of_the_study),
        cmocka_unit_test(degenerate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
