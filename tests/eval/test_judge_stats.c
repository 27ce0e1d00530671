/* Statistics of judges: Gwet's coefficient against irrCAC, prediction-powered means against ppi_py, the difference
 * estimator against its definition in fractions (golden/generate_stats_judges.py), and over many drawn samples. */
#include <math.h>

#include "eval/report/agreement.h"
#include "eval/stats/agreement/gwet.h"
#include "eval/stats/models/prediction_powered.h"
#include "tests/common/report_study.h"
#include "tests/common/stats_cases.h"
#include "tests/common/test.h"

enum { MAX = 2048 };

static uint64_t number(struct lk_stream *s, uint64_t n) { return lk_stream_bounded(s, n); }

static void gwet_against_irrcac(void **state) {
    (void)state;
    struct stats_golden golden;
    uint64_t checksum = STATS_CHECKSUM_START;
    stats_golden_open(&golden, "gwet", 18);
    for (int c = 0; c < (int)golden.n_cases; c++) {
        struct lk_stream s = stats_stream("gwet", c);
        size_t n = 1 + (size_t)number(&s, 50);
        int k = 2 + (int)number(&s, 3), levels = 2 + (int)number(&s, 5);
        uint64_t agree = number(&s, 8), missing = number(&s, 4);
        int32_t counts[64 * 8] = {0};
        for (size_t i = 0; i < n; i++) {
            uint64_t first = c % 3 ? 1 + number(&s, (uint64_t)levels) : 1u + !number(&s, 12);
            for (int r = 0; r < k; r++) {
                uint64_t value = number(&s, 8) < agree ? first : 1 + number(&s, (uint64_t)levels);
                if (number(&s, 16) < missing) value = 0;
                checksum = stats_checksum(checksum, &(double){(double)value}, 1);
                if (value) counts[i * (size_t)levels + value - 1]++;
            }
        }
        for (int w = 0; w < 3; w++) {
            const double *expected = stats_row(&golden, c) + 6 * w;
            struct lk_gwet g;
            assert_ok(lk_gwet_ac(counts, n, levels, (enum lk_weights)w, &g));
            if (isnan(expected[0])) {
                if (g.ac.n > 1) assert_non_null(g.ac.undefined);
                continue;
            }
            const double got[] = {g.ac.value, g.observed, g.expected, g.standard_error, g.ac.low, g.ac.high};
            assert_null(g.ac.undefined);
            for (int v = 0; v < 4; v++) stats_assert_value("gwet", c, got[v], expected[v]);
            /* the peer's quantiles of Student's t are right to nine digits */
            for (int v = 4; v < 6; v++) stats_assert_close("interval", c, got[v], expected[v], 1e-8, 1e-8);
        }
    }
    stats_golden_finish(&golden, checksum);
}

static void judged_case(struct lk_stream *s, size_t n, uint64_t good, double *y, double *f, uint64_t *checksum) {
    for (size_t i = 0; i < n; i++) {
        y[i] = 1 + (double)number(s, 5);
        f[i] = number(s, 8) < good ? y[i] : 1 + (double)number(s, 5);
        if (checksum) *checksum = stats_checksum(stats_checksum(*checksum, &y[i], 1), &f[i], 1);
    }
}

static void means_against_ppi_py(void **state) {
    static const double lambdas[] = {-1, 0, 0.5, 1};
    static double y[MAX], f[MAX], other_y[MAX], other[MAX];
    (void)state;
    struct stats_golden golden;
    uint64_t checksum = STATS_CHECKSUM_START;
    stats_golden_open(&golden, "prediction_powered", 3);
    for (int c = 0; c < (int)golden.n_cases; c++) {
        struct lk_stream s = stats_stream("prediction_powered", c);
        size_t n = 2 + (size_t)number(&s, 60), n_other = 1 + (size_t)number(&s, 200);
        uint64_t good = number(&s, 9);
        judged_case(&s, n, good, y, f, &checksum);
        judged_case(&s, n_other, good, other_y, other, NULL);
        double lambda = lambdas[number(&s, 4)];
        checksum = stats_checksum(stats_checksum(checksum, other, n_other), &lambda, 1);
        const double *expected = stats_row(&golden, c);
        struct lk_prediction_powered p;
        assert_ok(lk_prediction_powered_mean(y, f, n, other, n_other, lambda, 0.95, &p));
        stats_assert_value("mean", c, p.estimate.value, expected[0]);
        stats_assert_value("low", c, p.estimate.low, expected[1]);
        stats_assert_value("high", c, p.estimate.high, expected[2]);
    }
    stats_golden_finish(&golden, checksum);
}

static void difference_by_definition(void **state) {
    static double y[MAX], f[MAX];
    static unsigned char rated[MAX];
    static int32_t stratum[MAX];
    (void)state;
    struct stats_golden golden;
    uint64_t checksum = STATS_CHECKSUM_START;
    stats_golden_open(&golden, "difference", 6);
    for (int c = 0; c < (int)golden.n_cases; c++) {
        struct lk_stream s = stats_stream("difference", c);
        int n_strata = 1 + (int)number(&s, 12);
        uint64_t good = number(&s, 9);
        size_t n = 0;
        for (int h = 0; h < n_strata; h++) {
            size_t n_rated = (size_t)number(&s, c % 4 ? 6 : 60), all = n_rated + (size_t)number(&s, 20);
            judged_case(&s, all, good, y + n, f + n, &checksum);
            checksum = stats_checksum(checksum, &(double){(double)n_rated}, 1);
            for (size_t i = 0; i < all; i++) {
                stratum[n + i] = h;
                rated[n + i] = i < n_rated;
                if (i >= n_rated) y[n + i] = NAN; /* is not read */
            }
            n += all;
        }
        const double *expected = stats_row(&golden, c);
        struct lk_prediction_powered p;
        assert_ok(lk_difference_estimate(f, y, rated, stratum, n, n_strata, 0.95, &p));
        if (isnan(expected[0])) {
            assert_non_null(p.estimate.undefined);
            continue;
        }
        const double z = 1.959963984540054;
        const double alone = (p.rated_only.high - p.rated_only.low) / (2 * z);
        const double got[] = {p.estimate.value, p.standard_error, p.rated_only.value, alone, p.correlation};
        for (int v = 0; v < 5; v++) stats_assert_value("difference", c, got[v], expected[v]);
        assert_int_equal(p.merged_strata, (int)expected[5]);
        stats_assert_value("low", c, p.estimate.low, expected[0] - z * expected[1]);
    }
    stats_golden_finish(&golden, checksum);
}

/* 2,000 draws of 20 from each of 10 strata of 60: the interval holds the mean of all 600 as often as it says, a judge
 * who is often right makes it narrower, and one who knows nothing makes it no wider. */
static void coverage_of_draws(void **state) {
    static double y[600], f[600];
    static unsigned char rated[600];
    static int32_t stratum[600];
    (void)state;
    for (int good = 0; good < 8; good += 6) {
        struct lk_stream s = stats_stream("coverage", good);
        int covered = 0, n_draws = 2000;
        double width = 0, alone = 0, mean = 0;
        judged_case(&s, 600, (uint64_t)good, y, f, NULL);
        for (int i = 0; i < 600; i++) stratum[i] = i / 60, mean += y[i] / 600;
        for (int d = 0; d < n_draws; d++) {
            struct lk_prediction_powered p;
            for (int h = 0; h < 10; h++) {
                int left = 20;
                for (int i = 0; i < 60; i++)
                    left -= rated[60 * h + i] = number(&s, (uint64_t)(60 - i)) < (uint64_t)left;
            }
            assert_ok(lk_difference_estimate(f, y, rated, stratum, 600, 10, 0.95, &p));
            covered += p.estimate.low <= mean && mean <= p.estimate.high;
            width += p.estimate.high - p.estimate.low;
            alone += p.rated_only.high - p.rated_only.low;
        }
        printf("right in %d of 8: %.1f %% covered, width %.3f of that without a judge\n", good, 0.05 * covered,
               width / alone);
        assert_in_range(covered, 1860, 1960); /* 93 to 98 % */
        assert_true(good ? width < 0.75 * alone : width < 1.01 * alone);
    }
}

/* Scores of a pair of judges who differ by chance over all, and by `extra` in a part of Qwen's. */
static void judge_all(struct lk_dataset *data, struct lk_stream *s, uint64_t extra) {
    for (size_t i = 0; i < data->n_items; i++) {
        struct lk_item *item = &data->items[i];
        int of_source = item->source % 3, truth = 2 + (int)number(s, 2) + (of_source == 0);
        item->judge[0][LK_AXIS_SKIN_TONE] = (uint8_t)(truth + (int)number(s, 2));
        item->judge[1][LK_AXIS_SKIN_TONE] = (uint8_t)(truth - (int)number(s, 2));
        if (item->model == 2 && number(s, 8) < extra) item->judge[0][LK_AXIS_SKIN_TONE]++;
    }
}

/* A judge who favours Qwen's pictures is found; of 2,000 studies without one, 5 % are found, by either contrast. */
static void own_family(void **state) {
    (void)state;
    struct lk_dataset data;
    struct lk_stream s = stats_stream("own_family", 0);
    struct lk_kinship kin;
    int found[2] = {0};
    lk_dataset_init(&data);
    for (int i = 0; i < 28 * 2 * 3; i++) add_item(&data, i % 3, i / 6 * 3, i / 3 % 2, LK_ARM_EDITED);
    for (int study = 0; study < 2000; study++) {
        judge_all(&data, &s, 0);
        for (int c = 0; c < 2; c++) {
            assert_ok(lk_judges_kinship(&data, LK_AXIS_SKIN_TONE, c, 0.95, &kin));
            found[c] += kin.p < 0.05;
        }
    }
    printf("found without cause: %.2f %%, %.2f %%\n", found[0] * 0.05, found[1] * 0.05);
    for (int c = 0; c < 2; c++) assert_in_range(found[c], 70, 130);
    judge_all(&data, &s, 6);
    assert_ok(lk_judges_kinship(&data, LK_AXIS_SKIN_TONE, false, 0.95, &kin));
    printf("0.75 planted: %.2f [%.2f, %.2f], p %.1g\n", kin.difference.value, kin.difference.low, kin.difference.high,
           kin.p);
    assert_true(kin.p < 1e-4 && kin.difference.low < 0.75 && kin.difference.high > 0.75);
    assert_int_equal(kin.difference.n, 28);
    assert_ok(lk_judges_kinship(&data, LK_AXIS_SKIN_TONE, true, 0.95, &kin)); /* Step1X has half of the weight */
    assert_true(kin.difference.low < 0.375 && kin.difference.high > 0.375 && kin.difference.high < 0.75);
    assert_ok(lk_judges_kinship(&data, LK_AXIS_RACE_DRIFT, false, 0.95, &kin)); /* no scores */
    assert_non_null(kin.difference.undefined);
    assert_true(isnan(kin.p));
    lk_dataset_free(&data);
}

/* Judges who see drift everywhere, raters who rate a third: what raters would say of all is within the interval, and
 * the judges alone are far from it. With every output rated there is nothing left to estimate. */
static void calibrated_to_people(void **state) {
    (void)state;
    struct lk_dataset data;
    struct lk_stream s = stats_stream("calibrated", 0);
    struct lk_prediction_powered p;
    const struct lk_thresholds thresholds = options_of(1).thresholds;
    const struct lk_group all = LK_GROUP_ANY;
    int64_t judged, drifted = 0;
    lk_dataset_init(&data);
    for (int i = 0; i < 84 * 4 * 3; i++) {
        struct lk_item *item = add_item(&data, i % 3, i / 12, i / 3 % 4, LK_ARM_EDITED);
        int truth = 1 + 2 * !number(&s, 4);
        drifted += truth == 3;
        item->score[LK_AXIS_RACE_DRIFT] = (uint8_t)(number(&s, 4) ? truth + (truth == 1 && !number(&s, 3)) * 2 : 3);
        item->human_mean[LK_AXIS_EDIT_SUCCESS] = NAN;
        if (!number(&s, 3)) item->human_majority[LK_AXIS_RACE_DRIFT] = (uint8_t)truth;
        item->score[LK_AXIS_EDIT_SUCCESS] = 5;
        item->human_mean[LK_AXIS_EDIT_SUCCESS] = 4;
    }
    double truth = (double)drifted / (double)data.n_items;
    assert_ok(lk_calibrated(&data, &all, LK_MEASURE_RACE_DRIFT, &thresholds, 0.95, &p, &judged));
    printf("%.3f: judges %.3f, calibrated %.3f [%.3f, %.3f], %.0f for %zu ratings\n", truth, p.judged_only,
           p.estimate.value, p.estimate.low, p.estimate.high, p.effective_n, p.estimate.n);
    assert_int_equal(judged, 84 * 4 * 3);
    assert_true(p.judged_only > truth + 0.1 && p.estimate.low < truth && truth < p.estimate.high);
    assert_true(p.effective_n > 1.1 * (double)p.estimate.n);
    assert_ok(lk_calibrated(&data, &all, LK_N_MEASURES, &thresholds, 0.95, &p, &judged));
    assert_true(fabs(p.estimate.value - 4) < 1e-12 && p.judged_only == 5 && p.estimate.low == p.estimate.high);
    struct lk_group one = all;
    one.race = 2;
    assert_ok(lk_calibrated(&data, &one, LK_MEASURE_RACE_DRIFT, &thresholds, 0.95, &p, &judged));
    assert_int_equal(judged, 12 * 4 * 3);
    lk_dataset_free(&data);
}

static void degenerate(void **state) {
    (void)state;
    struct lk_prediction_powered p;
    struct lk_gwet g;
    const double y[] = {1, 2, INFINITY}, f[] = {1, 1, 1};
    const unsigned char none[3] = {0}, two[] = {1, 1, 0};
    const int32_t outside[] = {0, 1, 2}, counts[] = {2, 0, 2, 0}, one_each[] = {1, 0, 0, 1}, bad[] = {1, -1};
    assert_ok(lk_prediction_powered_mean(y, f, 1, f, 3, -1, 0.95, &p));
    assert_string_equal(p.estimate.undefined, "fewer than two items are rated");
    assert_ok(lk_prediction_powered_mean(y, f, 2, f, 0, -1, 0.95, &p));
    assert_string_equal(p.estimate.undefined, "every judged item is rated");
    assert_fails(lk_prediction_powered_mean(y, f, 3, f, 1, -1, 0.95, &p), LK_E_INPUT, "rating 2: expected a number");
    assert_ok(lk_difference_estimate(f, y, none, NULL, 3, 1, 0.95, &p));
    assert_string_equal(p.rated_only.undefined, "fewer than two items are rated");
    assert_ok(lk_difference_estimate(f, y, two, NULL, 3, 1, 0.95, &p)); /* a judge who always says the same */
    assert_true(p.lambda == 0 && p.correlation == 0 && p.effective_n == 2 && p.estimate.value == 1.5);
    assert_fails(lk_difference_estimate(f, y, two, outside, 3, 2, 0.95, &p), LK_E_INPUT, "stratum of item 2");
    assert_ok(lk_gwet_ac(counts, 2, 2, LK_WEIGHTS_NONE, &g));
    assert_true(g.ac.value == 1 && g.prevalence == 1 && g.p == 1 && g.n_compared == 2);
    assert_ok(lk_gwet_ac(counts, 4, 1, LK_WEIGHTS_NONE, &g));
    assert_string_equal(g.ac.undefined, "there is one label only");
    assert_ok(lk_gwet_ac(one_each, 2, 2, LK_WEIGHTS_NONE, &g));
    assert_string_equal(g.ac.undefined, "no item has two ratings");
    assert_fails(lk_gwet_ac(bad, 1, 2, LK_WEIGHTS_NONE, &g), LK_E_INPUT, "expected 0 to 65535, got -1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gwet_against_irrcac),
        cmocka_unit_test(means_against_ppi_py),
        cmocka_unit_test(difference_by_definition),
        cmocka_unit_test(coverage_of_draws),
        cmocka_unit_test(own_family),
        cmocka_unit_test(calibrated_to_people),
        cmocka_unit_test(degenerate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
