/* Adjusted p-values against statsmodels, and the study's vector. */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/stats/tests/multiple.h"
#include "tests/common/stats_cases.h"
#include "tests/common/test.h"

static void against_statsmodels(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "multiple", 12);
    uint64_t checksum = STATS_CHECKSUM_START;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        struct lk_stream s = stats_stream("multiple", c);
        double p[16], adjusted[16];
        size_t n = 1 + lk_stream_bounded(&s, 8);
        uint64_t scale = 2 + lk_stream_bounded(&s, UINT64_C(1) << (1 + lk_stream_bounded(&s, 20)));
        for (size_t i = 0; i < n; i++) p[i] = (double)lk_stream_bounded(&s, scale) / (double)(scale - 1) / (1 << c % 8);
        checksum = stats_checksum(checksum, p, n);
        for (int m = 0; m < 4; m++) {
            const double *expected = golden.values + 12 * c + 3 * m;
            const char *name = lk_adjustment_name((enum lk_adjustment)m);
            double sum = 0;
            assert_ok(lk_adjust_p(p, n, (enum lk_adjustment)m, adjusted));
            for (size_t i = 0; i < n; i++) sum += adjusted[i] * (double)(i + 1);
            stats_assert_close(name, c, sum, expected[0], 1e-10, 1e-12);
            stats_assert_close(name, c, adjusted[0], expected[1], 1e-10, 1e-300);
            stats_assert_close(name, c, adjusted[n - 1], expected[2], 1e-10, 1e-300);
        }
    }
    assert_true(checksum == golden.inputs);
    stats_golden_close(&golden);
}

static void vector_of_the_study(void **state) {
    (void)state;
    double p[] = {0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205, 0.212, 0.216};
    const double expected[] = {0.01, 0.04, 0.084, 0.084, 0.084, 0.1, 0.10571428571428572, 0.216, 0.216, 0.216};
    assert_ok(lk_adjust_p(p, 10, LK_ADJUST_BENJAMINI_HOCHBERG, p)); /* in place */
    for (int i = 0; i < 10; i++) stats_assert_close("benjamini_hochberg", i, p[i], expected[i], 1e-10, 0);
}

static void degenerate(void **state) {
    (void)state;
    double out[2];
    const double nan[] = {0.1, NAN}, above[] = {1.5}, one[] = {1}, tied[] = {0.5, 0.5};
    for (int m = 0; m < 4; m++) {
        assert_ok(lk_adjust_p(NULL, 0, (enum lk_adjustment)m, NULL));
        assert_ok(lk_adjust_p(one, 1, (enum lk_adjustment)m, out));
        assert_true(out[0] == 1);
        assert_ok(lk_adjust_p(tied, 2, (enum lk_adjustment)m, out));
        assert_true(out[0] == out[1]);
        assert_fails(lk_adjust_p(nan, 2, (enum lk_adjustment)m, out), LK_E_INPUT, "p[1]");
        assert_fails(lk_adjust_p(above, 1, (enum lk_adjustment)m, out), LK_E_INPUT, "[0, 1]");
    }
    lk_alloc_fail_at(1);
    assert_int_equal(lk_adjust_p(one, 1, LK_ADJUST_HOLM, out), LK_E_NOMEM);
    lk_alloc_fail_at(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_statsmodels),
        cmocka_unit_test(vector_of_the_study),
        cmocka_unit_test(degenerate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
