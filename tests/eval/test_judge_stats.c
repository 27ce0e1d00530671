/* Statistics of judges: Gwet's coefficient against irrCAC, prediction-powered means against ppi_py, the difference
 * estimator against its definition in fractions (golden/generate_stats_judges.py), and over many drawn samples. */
#include <math.h>

#include "eval/report/agreement.h"
#include "eval/stats/agreement/gwet.h"
#include "eval/stats/models/prediction_powered.h"
#include "eval/stats/special/special.h"
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
            for (int v = 4; v < 6; v++) stats_assert_close("interval", c, got[v], fmax(-1, expected[v]), 1e-8, 1e-8);
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
    stats_golden_open(&golden, "difference", 8);
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
        const double got[] = {p.estimate.value,   p.error.standard_error,       p.estimate.high,
                              p.rated_only.value, p.error_rated.standard_error, p.rated_only.high,
                              p.correlation};
        for (int v = 0; v < 7; v++) /* scipy's quantiles of Student's t are right to nine digits */
            stats_assert_close("difference", c, got[v], expected[v], v % 3 == 2 ? 1e-8 : 1e-10, 1e-10);
        assert_int_equal(p.merged_strata, (int)expected[7]);
        stats_assert_close("low", c, p.estimate.low, 2 * expected[0] - expected[2], 1e-8, 1e-8);
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
            assert_ok(lk_judges_kinship(&data, LK_AXIS_SKIN_TONE, LK_KIN_JUDGES, c, 0.95, &kin));
            found[c] += kin.p < 0.05;
        }
    }
    printf("found without cause: %.2f %%, %.2f %%\n", found[0] * 0.05, found[1] * 0.05);
    for (int c = 0; c < 2; c++) assert_in_range(found[c], 70, 130);
    judge_all(&data, &s, 6);
    assert_ok(lk_judges_kinship(&data, LK_AXIS_SKIN_TONE, LK_KIN_JUDGES, false, 0.95, &kin));
    printf("0.75 planted: %.2f [%.2f, %.2f], p %.1g\n", kin.difference.value, kin.difference.low, kin.difference.high,
           kin.p);
    assert_true(kin.p < 1e-4 && kin.difference.low < 0.75 && kin.difference.high > 0.75);
    assert_int_equal(kin.difference.n, 28);
    assert_ok(lk_judges_kinship(&data, LK_AXIS_SKIN_TONE, LK_KIN_JUDGES, true, 0.95, &kin)); /* Step1X: half */
    assert_true(kin.difference.low < 0.375 && kin.difference.high > 0.375 && kin.difference.high < 0.75);
    assert_ok(lk_judges_kinship(&data, LK_AXIS_RACE_DRIFT, LK_KIN_JUDGES, false, 0.95, &kin)); /* no scores */
    assert_non_null(kin.difference.undefined);
    assert_true(isnan(kin.p));
    /* raters who see what the secondary judge sees: the primary alone is apart from them, by 0.5 for all and Qwen's */
    for (size_t i = 0; i < data.n_items; i++) {
        struct lk_item *item = &data.items[i];
        item->human_mean[LK_AXIS_SKIN_TONE] = i % 7 ? item->judge[1][LK_AXIS_SKIN_TONE] + 0.5 : NAN;
    }
    assert_ok(lk_judges_kinship(&data, LK_AXIS_SKIN_TONE, LK_KIN_PRIMARY, false, 0.95, &kin));
    assert_true(kin.p < 1e-4 && kin.difference.low < 0.75 && kin.difference.high > 0.75);
    assert_ok(lk_judges_kinship(&data, LK_AXIS_SKIN_TONE, LK_KIN_SECONDARY, false, 0.95, &kin));
    assert_true(kin.difference.value == 0 && isnan(kin.p) && kin.difference.n > 20);
    lk_dataset_free(&data);
}

/* Six outputs of which the secondary judge gives more, one of which it gives less: 16 of 128 ways are as uneven. */
static void leaning_by_hand(void **state) {
    (void)state;
    struct lk_dataset data;
    struct lk_lean lean;
    struct lk_group group = LK_GROUP_ANY;
    lk_dataset_init(&data);
    for (int i = 0; i < 20; i++) {
        struct lk_item *item = add_item(&data, i / 10, 4 * (i % 10), 1, LK_ARM_EDITED);
        item->judge[0][LK_AXIS_RACE_DRIFT] = i == 9 ? 0 : 3;
        item->judge[1][LK_AXIS_RACE_DRIFT] = i < 6 ? 4 : i == 6 ? 1 : 3;
    }
    group.model = 0;
    assert_ok(lk_judges_lean(&data, &group, LK_AXIS_RACE_DRIFT, 0.95, &lean));
    assert_true(lean.n == 9 && lean.higher == 6 && lean.lower == 1 && lean.sum[0] == 27 && lean.sum[1] == 31);
    assert_near(lean.sign.p, 0.125, 1e-12);
    assert_near(lean.difference.value, 4.0 / 9, 1e-12);
    /* one output a source: the interval of a mean, 2.306004 the quantile of t with 8 degrees of freedom */
    double error = sqrt((6 * 25.0 / 81 + 2 * 16.0 / 81 + 22 * 22.0 / 81) / 8 / 9);
    assert_near(lean.difference.high - lean.difference.low, 2 * 2.306004135204166 * error, 1e-9);
    group.model = 1;
    assert_ok(lk_judges_lean(&data, &group, LK_AXIS_RACE_DRIFT, 0.95, &lean));
    assert_true(lean.n == 10 && lean.difference.value == 0 && !lean.higher && !lean.lower);
    struct lk_report_options options = options_of(5);
    options.judges[0] = "Qwen2.5-VL-7B", options.judges[1] = "mistral3";
    struct lk_report *report = build(&data, &options);
    const struct lk_table *table = study_table(report, "t_judge_groups");
    assert_int_equal(table->n_rows, 8); /* of one axis: 4 races of one model, 3 of the other, and their heading */
    assert_string_equal(table->rows[0].cells[0].text, lk_factor_display(LK_FACTOR_AXIS, LK_AXIS_RACE_DRIFT));
    lk_report_free(report);
    lk_dataset_free(&data);
}

/* Tables that show scores say which judge is related to which editor; others do not, nor without such a judge. */
static void kin_stand_below_tables(void **state) {
    (void)state;
    static const char *const with[] = {"table_12", "disparities_all", "t_judge", "t_test", "vlm_human_agreement"};
    static const char *const without[] = {"table_1", "table_16", "findings_raters"};
    struct lk_dataset data;
    small_study(&data, 14, 2, 3);
    for (size_t i = 0; i < data.n_items; i++)
        for (int a = 0; a < LK_N_AXES; a++) {
            data.items[i].judge[1][a] = data.items[i].judge[0][a] = data.items[i].score[a];
            data.items[i].human_mean[a] = data.items[i].human_majority[a] = data.items[i].score[a];
        }
    for (int named = 0; named < 2; named++) {
        struct lk_report_options options = options_of(5);
        if (named) options.judges[0] = "gpt-4o", options.judges[1] = "Qwen2.5-VL-7B";
        struct lk_report *report = build(&data, &options);
        for (size_t i = 0; i < sizeof with / sizeof *with; i++) {
            const struct lk_table *table = study_table(report, with[i]);
            const char *at = table->note ? strstr(table->note, "Judges related to editors: Qwen2.5-VL-7B is of the "
                                                               "family that encodes the prompts of Qwen-Image-Edit "
                                                               "and Step1X-Edit.")
                                         : NULL;
            if (!at != !named) fail_msg("%s: %s", with[i], table->note);
            if (named) assert_null(strstr(table->note, "gpt"));
        }
        assert_int_equal(strstr(study_table(report, "t_kinship")->note, "named as neither") != NULL, !named);
        for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
            const struct lk_table *table = study_table(report, without[i]);
            assert_true(!table->no_data && (!table->note || !strstr(table->note, "related to editors")));
        }
        lk_report_free(report);
    }
    lk_dataset_free(&data);
}

static struct lk_prediction_powered calibrated(const struct lk_dataset *data, struct lk_calibration c, int64_t n) {
    static struct lk_thresholds thresholds;
    struct lk_prediction_powered p;
    int64_t judged;
    thresholds = options_of(1).thresholds;
    c.thresholds = &thresholds, c.confidence = 0.95;
    assert_ok(lk_calibrated(data, &c, &p, &judged));
    assert_int_equal(judged, n);
    return p;
}

/* Judges who see drift everywhere, raters who rate a third: what raters would say of all is within the interval, and
 * the judges alone are far from it. With every output rated there is nothing left to estimate. */
static void calibrated_to_people(void **state) {
    (void)state;
    struct lk_dataset data;
    struct lk_stream s = stats_stream("calibrated", 0);
    const struct lk_group all = LK_GROUP_ANY;
    int64_t drifted = 0;
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
    struct lk_calibration c = {all, LK_MEASURE_RACE_DRIFT, false, NULL, 0};
    struct lk_prediction_powered p = calibrated(&data, c, 84 * 4 * 3);
    printf("%.3f: judges %.3f, calibrated %.3f [%.3f, %.3f], %.0f for %zu ratings\n", truth, p.judged_only,
           p.estimate.value, p.estimate.low, p.estimate.high, p.effective_n, p.estimate.n);
    assert_true(p.judged_only > truth + 0.1 && p.estimate.low < truth && truth < p.estimate.high);
    assert_true(p.effective_n > 1.1 * (double)p.estimate.n);
    c.measure = LK_N_MEASURES;
    p = calibrated(&data, c, 84 * 4 * 3);
    assert_true(fabs(p.estimate.value - 4) < 1e-12 && p.judged_only == 5 && p.estimate.low == p.estimate.high);
    c.measure = LK_MEASURE_RACE_DRIFT, c.group.race = 2;
    calibrated(&data, c, 12 * 4 * 3);
    c.change = true; /* without the other arm */
    calibrated(&data, c, 0);
    lk_dataset_free(&data);
}

enum { DRAWN_SOURCES = 84, DRAWN_PROMPTS = 3, DRAWN_PAIRS = DRAWN_SOURCES * DRAWN_PROMPTS * 2 };

/* Pairs that drift more without the feature prompt and more where the race is 1; judges who say so of half as many. */
static void pairs_of_both_arms(struct lk_dataset *data, struct lk_stream *s, uint8_t *truth) {
    lk_dataset_init(data);
    for (int i = 0; i < 2 * DRAWN_PAIRS; i++) {
        int arm = i % 2, source = i / 2 / (DRAWN_PROMPTS * 2);
        struct lk_item *item = add_item(data, i / 2 % 2, source, i / 4 % DRAWN_PROMPTS, arm);
        uint64_t drifts = number(s, 10) < 2u + 3u * !arm + 3u * (item->race == 1);
        truth[i] = drifts ? 4 : 1;
        item->score[LK_AXIS_RACE_DRIFT] = drifts && number(s, 2) ? 4 : 1;
    }
    lk_dataset_pair(data);
}

/* Raters rate every second pair of the study, drawn anew: of 500 such studies the intervals of what the feature prompt
 * changes, and of how much one race differs from another, hold the truth in 93 to 97 of 100. */
static void changes_and_differences_are_covered(void **state) {
    (void)state;
    static uint8_t truth[2 * DRAWN_PAIRS];
    struct lk_dataset data;
    struct lk_stream s = stats_stream("pairs", 0);
    double change = 0, rate[LK_N_RACES] = {0};
    int covered[2] = {0}, n_draws = 500;
    const struct lk_group all = LK_GROUP_ANY;
    pairs_of_both_arms(&data, &s, truth);
    for (int i = 0; i < 2 * DRAWN_PAIRS; i++) {
        change += (data.items[i].arm ? 1.0 : -1.0) * (truth[i] == 4) / DRAWN_PAIRS;
        if (!data.items[i].arm) rate[data.items[i].race] += (truth[i] == 4) / (12.0 * DRAWN_PROMPTS * 2);
    }
    for (int d = 0; d < n_draws; d++) {
        for (int i = 0; i < 2 * DRAWN_PAIRS; i += 2)
            for (int k = 0, rated = (int)number(&s, 2); k < 2; k++)
                data.items[i + k].human_majority[LK_AXIS_RACE_DRIFT] = rated ? truth[i + k] : 0;
        struct lk_calibration c = {all, LK_MEASURE_RACE_DRIFT, true, NULL, 0};
        struct lk_prediction_powered p = calibrated(&data, c, DRAWN_PAIRS);
        covered[0] += p.estimate.low <= change && change <= p.estimate.high;
        if (!d) assert_true(p.judged_only > change + 0.05); /* judges alone see half of it */
        c.change = false;
        struct lk_prediction_powered of[2];
        for (int race = 0; race < 2; race++) {
            c.group = lk_group_with(all, LK_FACTOR_RACE, race);
            of[race] = calibrated(&data, c, 12 * DRAWN_PROMPTS * 2);
        }
        double v[2] = {pow(of[0].error.standard_error, 2), pow(of[1].error.standard_error, 2)};
        double difference = of[0].estimate.value - of[1].estimate.value, error = sqrt(v[0] + v[1]);
        double df = pow(v[0] + v[1], 2) / (v[0] * v[0] / of[0].error.df + v[1] * v[1] / of[1].error.df);
        double reach = lk_t_quantile(0.975, df) * error;
        covered[1] += fabs(difference - (rate[0] - rate[1])) <= reach;
        if (d) continue;
        for (int i = 0; i < 2 * DRAWN_PAIRS; i++) data.items[i].n_ratings = 2;
        struct lk_report_options options = options_of(5);
        struct lk_report *report = build(&data, &options);
        char name[128];
        snprintf(name, sizeof name, "%s less %s", lk_factor_display(LK_FACTOR_RACE, 0),
                 lk_factor_display(LK_FACTOR_RACE, 1));
        const struct lk_table_row *row =
            find_row(study_table(report, "calibrated_groups"), lk_measure_name(LK_MEASURE_RACE_DRIFT), name);
        assert_near(row->cells[1].value, of[0].judged_only - of[1].judged_only, 1e-9);
        assert_near(row->cells[3].value, difference, 1e-9);
        assert_near(row->cells[3].high - row->cells[3].low, 2 * reach, 1e-9);
        assert_near(row->cells[4].value, lk_t_two_sided(difference / error, df), 1e-9);
        row = find_row(study_table(report, "calibrated_change"), lk_measure_name(LK_MEASURE_RACE_DRIFT), "All");
        assert_near(row->cells[5].value, p.estimate.value, 1e-12);
        lk_report_free(report);
    }
    printf("covered: change %.1f %%, difference %.1f %%\n", 100.0 * covered[0] / n_draws, 100.0 * covered[1] / n_draws);
    for (int i = 0; i < 2; i++) assert_in_range(covered[i], 460, 490);
    lk_dataset_free(&data);
}

/* Two ratings give an interval of Student's t far beyond all rates: what is printed ends at 0 and 1. */
static void intervals_end_where_rates_do(void **state) {
    (void)state;
    struct lk_dataset data;
    lk_dataset_init(&data);
    for (int i = 0; i < 6; i++) score(add_item(&data, 0, 3, i, LK_ARM_EDITED), 4, 3, 1 + i % 2 * 3, 1, 3);
    for (int i = 0; i < 2; i++)
        data.items[i].human_majority[LK_AXIS_RACE_DRIFT] = i ? 4 : 1, data.items[i].n_ratings = 2;
    struct lk_report_options options = options_of(5);
    struct lk_report *report = build(&data, &options);
    const struct lk_table_row *row =
        find_row(study_table(report, "calibrated"), lk_measure_name(LK_MEASURE_RACE_DRIFT), "All");
    assert_near(row->cells[4].value, 0.5, 1e-12);
    assert_true(row->cells[4].low == 0 && row->cells[4].high == 1);
    lk_report_free(report);
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
        cmocka_unit_test(leaning_by_hand),
        cmocka_unit_test(kin_stand_below_tables),
        cmocka_unit_test(calibrated_to_people),
        cmocka_unit_test(changes_and_differences_are_covered),
        cmocka_unit_test(intervals_end_where_rates_do),
        cmocka_unit_test(degenerate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
