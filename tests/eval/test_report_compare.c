/* Two runs beside each other: planted differences are found, none is claimed where there is none, and equivalence is
 * not claimed at the margin itself. Data sets and seeds are fixed; with LIKENESS_TEST_FULL there are 200 of each. */
#include <math.h>

#include "eval/report/compare.h"
#include "eval/scores/fields.h"
#include "eval/stats/models/cluster_means.h"
#include "tests/common/planted.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/stats_cases.h"
#include "tests/common/test.h"

static struct lk_dataset runs[2];

static int set_up(void **state) {
    (void)state;
    for (int r = 0; r < 2; r++) {
        lk_dataset_init(&runs[r]);
        assert_ok(planted_items(&runs[r]));
    }
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    for (int r = 0; r < 2; r++) lk_dataset_free(&runs[r]);
    return 0;
}

static struct planted design_of(double drift) {
    struct planted design = {.shared = 0.3, .judge_error = {0.1, 0.2}};
    for (int r = 0; r < LK_N_RACES; r++) {
        design.soft_erasure[r] = 0.2;
        for (int m = 0; m < LK_N_MODELS; m++) design.race_drift[r][m] = drift;
    }
    return design;
}

static struct lk_compare how_to(const struct lk_dataset *a, const struct lk_dataset *b, double margin) {
    return (struct lk_compare){.runs = {a, b},
                               .names = {"bf16", "nf4"},
                               .hashes = {"a", "b"},
                               .title = "compared",
                               .date = "",
                               .thresholds = LK_THRESHOLDS_DEFAULT,
                               .alpha = 0.05,
                               .margin = margin};
}

/* A row of compare_all.csv. */
struct row {
    double pairs, a, b, change, low, high, p, holm, equivalent;
    char result[64];
};

static double number_of(const struct lk_fields *fields, const char *name) {
    const struct lk_field *field = lk_fields_find(fields, name);
    return field ? strtod(field->text, NULL) : NAN;
}

static struct row row_of(const char *folder, const char *measure) {
    struct lk_records records;
    struct row row = {0};
    char path[512];
    size_t n;
    bool more = true;
    snprintf(path, sizeof path, "%s/tables/compare_all.csv", folder);
    char *text = test_read(path, &n);
    assert_ok(lk_records_open(&records, text, n, path));
    while (!lk_records_next_strict(&records, &more) && more) {
        const struct lk_fields *f = &records.fields;
        if (strcmp(lk_fields_find(f, "Measure")->text, measure)) continue;
        row = (struct row){number_of(f, "Pairs"),
                           number_of(f, "A"),
                           number_of(f, "B"),
                           number_of(f, "B − A"),
                           number_of(f, "B − A low"),
                           number_of(f, "B − A high"),
                           number_of(f, "p by source"),
                           number_of(f, "Holm"),
                           number_of(f, "p of equivalence"),
                           ""};
        const struct lk_field *result = lk_fields_find(f, "Result");
        snprintf(row.result, sizeof row.result, "%s", result ? result->text : "");
    }
    lk_records_close(&records);
    free(text);
    return row;
}

static struct row compare(const struct lk_dataset *a, const struct lk_dataset *b, double margin, const char *measure) {
    struct lk_compare how = how_to(a, b, margin);
    const char *folder = test_path("compared");
    assert_ok(lk_report_compare(&how, folder));
    return row_of(test_path("compared"), measure);
}

/* The same run twice is the same; a difference is that of the two rates. */
static void runs_that_are_equal_and_that_are_not(void **state) {
    (void)state;
    struct planted low = design_of(0.15), high = design_of(0.3);
    assert_ok(planted_scores(&runs[0], &low, 5, 0));
    assert_ok(planted_scores(&runs[1], &high, 6, 0));
    struct row row = compare(&runs[0], &runs[0], 0.05, "Race change");
    assert_true(row.pairs == PLANTED_ITEMS && row.change == 0 && row.p == 1 && row.equivalent == 0);
    assert_string_equal(row.result, "equivalent");
    row = compare(&runs[0], &runs[1], 0.05, "Race change");
    assert_true(fabs(row.change - (row.b - row.a)) < 1e-12 && row.low < row.change && row.change < row.high);
    assert_true(row.low > 0.05 && row.holm < 1e-6 && row.equivalent > 0.99);
    assert_string_equal(row.result, "differs");
    assert_true(row_of(test_path("compared"), "Soft erasure").holm > 0.05);
    size_t n;
    char *page = test_read(test_path("compared/report.html"), &n);
    assert_non_null(strstr(page, "nf4 differs from bf16 in "));
    assert_non_null(strstr(page, "That no difference is shown is not equivalence."));
    free(page);
}

/* A mitigation's run has the other arm alone: an output's counterpart is then that of the same source and prompt. */
static void before_and_after_a_mitigation(void **state) {
    (void)state;
    struct lk_dataset arms[2];
    struct planted design = design_of(0.3);
    for (int r = 0; r < LK_N_RACES; r++) design.repaired[r] = 0.5;
    assert_ok(planted_scores(&runs[0], &design, 7, 0));
    for (int arm = 0; arm < 2; arm++) lk_dataset_init(&arms[arm]);
    for (size_t i = 0; i < runs[0].n_items; i++) {
        const struct lk_item *item = &runs[0].items[i];
        int32_t at;
        assert_ok(lk_dataset_item(&arms[item->arm], item->id, strlen(item->id), &at));
        memcpy(arms[item->arm].items[at].score, item->score, LK_N_AXES);
    }
    struct row row = compare(&arms[LK_ARM_EDITED], &arms[LK_ARM_PRESERVED], 0.05, "Race change");
    assert_true(row.pairs == 500 && row.high < 0);
    assert_string_equal(row.result, "differs");
    struct lk_compare how = how_to(&arms[LK_ARM_EDITED], &arms[LK_ARM_PRESERVED], 0.05);
    struct lk_dataset empty;
    lk_dataset_init(&empty);
    how.runs[1] = &empty;
    assert_fails(lk_report_compare(&how, test_path("none")), LK_E_INPUT, "no output is in both");
    lk_dataset_free(&empty);
    for (int arm = 0; arm < 2; arm++) lk_dataset_free(&arms[arm]);
}

/* What a report writes of its outputs is read again; what is none is named. */
static void items_come_back(void **state) {
    (void)state;
    struct lk_dataset back;
    struct planted design = design_of(0.3);
    const struct lk_run run = {"r", "0123", 1, 1};
    size_t n;
    lk_dataset_init(&back);
    assert_ok(planted_scores(&runs[0], &design, 8, 0));
    memset(runs[0].items[3].score, 0, LK_N_AXES);
    assert_ok(lk_report_items_write(&runs[0], &run, test_path(".")));
    char *text = test_read(test_path("items.csv"), &n);
    assert_ok(lk_report_items_read(&back, text, n, "items.csv"));
    free(text);
    assert_int_equal(back.n_items, runs[0].n_items);
    for (size_t i = 0; i < back.n_items; i++) {
        assert_string_equal(back.items[i].id, runs[0].items[i].id);
        assert_memory_equal(back.items[i].score, runs[0].items[i].score, LK_N_AXES);
    }
    static const char bad[] = "item_id,race_drift\nflux_20s_male_black_O-01,7\n", none[] = "a,b\n1,2\n";
    assert_fails(lk_report_items_read(&back, bad, sizeof bad - 1, "x.csv"), LK_E_INPUT, "x.csv: line 2: race_drift");
    assert_fails(lk_report_items_read(&back, none, sizeof none - 1, "x.csv"), LK_E_INPUT, "item_id");
    lk_dataset_free(&back);
}

/* Of runs that do not differ few are said to, of runs that differ by the margin few are called equivalent. */
static void claims_are_as_rare_as_alpha_says(void **state) {
    (void)state;
    struct planted before = design_of(0.2), after = design_of(0.3);
    int n = test_is_full() ? 200 : 6, n_different = 0, n_equivalent = 0, n_missed = 0, n_found = 0;
    double margin = planted_drift_rate(&after, 0.3) - planted_drift_rate(&before, 0.2);
    for (int set = 0; set < n; set++) {
        assert_ok(planted_scores(&runs[0], &before, 11, (uint64_t)set));
        assert_ok(planted_scores(&runs[1], &before, 12, (uint64_t)set));
        struct row row = compare(&runs[0], &runs[1], margin, "Race change");
        n_different += row.p <= 0.05;
        n_missed += row.equivalent > 0.05;
        assert_ok(planted_scores(&runs[1], &after, 13, (uint64_t)set));
        row = compare(&runs[0], &runs[1], margin, "Race change");
        n_equivalent += row.equivalent <= 0.05;
        n_found += row.p <= 0.05 && row.low > 0;
    }
    printf("of %d: %d equal ones said to differ, %d not called equivalent; planted: %d found, %d called equivalent\n",
           n, n_different, n_missed, n_found, n_equivalent);
    assert_true(n_different <= 0.05 * n + 3 * sqrt(0.05 * n) && n_equivalent <= 0.05 * n + 3 * sqrt(0.05 * n));
    assert_true(n_missed <= 0.2 * n && n_found >= 0.95 * n);
}

/* Of clusters of one: statsmodels' DescrStatsW.ttost_mean. */
static void equivalence_against_statsmodels(void **state) {
    (void)state;
    enum { MOST = 120 };
    static const uint64_t most[] = {12, 50, 120};
    struct stats_golden golden;
    stats_golden_open(&golden, "equivalence", 3);
    uint64_t checksum = STATS_CHECKSUM_START;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        struct lk_stream stream = stats_stream("equivalence", c);
        const double *expected = stats_row(&golden, c);
        double x[MOST], d[MOST];
        int32_t cluster[MOST];
        size_t n = 1 + lk_stream_bounded(&stream, most[c / 6 % 3]);
        double shift = (double)lk_stream_bounded(&stream, 3) / 2;
        stats_values(&stream, x, n, c % 6);
        stats_values(&stream, d, n, c % 6);
        for (size_t i = 0; i < n; i++) {
            d[i] = x[i] - d[i] + shift;
            cluster[i] = (int32_t)(7 * i);
        }
        double margin = (double)(1 + lk_stream_bounded(&stream, 40)) / 8;
        checksum = stats_checksum(stats_checksum(checksum, d, n), &margin, 1);
        struct lk_cluster_mean mean;
        assert_ok(lk_cluster_mean(d, cluster, n, 0.95, &mean));
        struct lk_equivalence got = lk_cluster_equivalence(&mean, margin);
        if (isnan(expected[0])) {
            assert_true(n < 2 ? got.undefined != NULL : got.p == 0 || got.p == 1);
            continue;
        }
        assert_null(got.undefined);
        stats_assert_p("equivalence", c, got.p, expected[0]);
        stats_assert_p("above -margin", c, got.p_low, expected[1]);
        stats_assert_p("below margin", c, got.p_high, expected[2]);
    }
    stats_golden_finish(&golden, checksum);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_that_are_equal_and_that_are_not),
        cmocka_unit_test(before_and_after_a_mitigation),
        cmocka_unit_test(items_come_back),
        cmocka_unit_test(claims_are_as_rare_as_alpha_says),
        cmocka_unit_test(equivalence_against_statsmodels),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
