/* Agreement against scikit-learn, statsmodels, krippendorff and pingouin (golden/generate_stats_agreement.py), the test
 * vectors of the study, and degenerate inputs. */
#include <math.h>

#include "eval/stats/agreement/agreement_labels.h"
#include "eval/stats/agreement/fleiss.h"
#include "eval/stats/agreement/icc.h"
#include "eval/stats/agreement/kappa.h"
#include "eval/stats/agreement/krippendorff.h"
#include "tests/common/stats_cases.h"
#include "tests/common/test.h"

enum { MAX = 64 * 8 };

static double value_or_nan(const struct lk_number *number) { return number->undefined ? NAN : number->value; }

static void close_to(const char *what, int number, double got, double expected) {
    stats_assert_close(what, number, got, expected, 1e-10, 1e-11);
}

/* [n, k], NaN for missing; as ratings_case() of the generator. Returns n. */
static size_t ratings_case(struct lk_stream *s, int number, int *k, double *ratings, uint64_t *checksum) {
    size_t n = 1 + lk_stream_bounded(s, 40);
    *k = 2 + (int)lk_stream_bounded(s, 5);
    uint64_t missing = lk_stream_bounded(s, 5);
    int mode = number % 5;
    for (size_t i = 0; i < n; i++) {
        double first = 1 + (double)lk_stream_bounded(s, 5);
        for (int r = 0; r < *k; r++) {
            double value = first;
            if (mode == 0 || (mode == 1 && !lk_stream_bounded(s, 4)))
                value = 1 + (double)lk_stream_bounded(s, 5);
            else if (mode == 2)
                value = first / 2 + (double)(3 + lk_stream_bounded(s, 13)) / 3;
            else if (mode == 3)
                value = 1 + (double)lk_stream_bounded(s, 2);
            else if (mode == 4)
                value = lk_stream_bounded(s, 12) ? 3 : 1 + (double)lk_stream_bounded(s, 5);
            if (missing && lk_stream_bounded(s, 16) < missing) value = 0;
            ratings[i * (size_t)*k + (size_t)r] = value;
        }
    }
    *checksum = stats_checksum(*checksum, ratings, n * (size_t)*k);
    for (size_t i = 0; i < n * (size_t)*k; i++)
        if (ratings[i] == 0) ratings[i] = NAN;
    return n;
}

static void kappa_against_peers(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "kappa", 9);
    uint64_t checksum = STATS_CHECKSUM_START;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        struct lk_stream s = stats_stream("kappa", c);
        int32_t a[MAX], b[MAX];
        double flat[2 * MAX];
        size_t n = lk_stream_bounded(&s, 60);
        uint64_t levels = 2 + lk_stream_bounded(&s, 5), agree = lk_stream_bounded(&s, 4);
        for (size_t i = 0; i < n; i++) {
            a[i] = c % 7 ? (int32_t)lk_stream_bounded(&s, levels + 1) : 1;
            b[i] = lk_stream_bounded(&s, 4) < agree ? a[i] : c % 11 ? (int32_t)lk_stream_bounded(&s, levels + 1) : 1;
            flat[i] = a[i];
            flat[n + i] = b[i];
        }
        checksum = stats_checksum(checksum, flat, 2 * n);
        for (int w = 0; w < 3; w++) {
            struct lk_kappa kappa;
            const double *expected = golden.values + 9 * c + 3 * w;
            assert_ok(lk_cohen_kappa(a, b, n, 1, (int32_t)levels, (enum lk_weights)w, &kappa));
            close_to("kappa", c, value_or_nan(&kappa.kappa), expected[0]);
            if (kappa.kappa.undefined) continue;
            /* the peer's variances are differences of numbers near 1: the square root doubles what they lose */
            stats_assert_close("kappa se", c, kappa.standard_error, expected[1], 1e-10, 1e-7);
            if (expected[1] > 1e-3) close_to("kappa se", c, kappa.standard_error, expected[1]);
            if (expected[2] > 1e-3) close_to("kappa null se", c, kappa.standard_error_null, expected[2]);
            double reach = 1.959963984540054 * kappa.standard_error; /* the peer's goes beyond what kappa can be */
            close_to("kappa low", c, kappa.kappa.low, fmax(-1, kappa.kappa.value - reach));
            close_to("kappa high", c, kappa.kappa.high, fmin(1, kappa.kappa.value + reach));
        }
    }
    assert_true(checksum == golden.inputs);
    stats_golden_close(&golden);
}

static void fleiss_against_statsmodels(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "fleiss", 3);
    uint64_t checksum = STATS_CHECKSUM_START;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        struct lk_stream s = stats_stream("fleiss", c);
        double ratings[MAX], domain[MAX];
        int k, n_domain = 0;
        size_t n = ratings_case(&s, c, &k, ratings, &checksum);
        static int32_t counts[64 * MAX];
        memset(counts, 0, sizeof counts);
        int code[MAX];
        for (size_t i = 0; i < n * (size_t)k; i++) {
            code[i] = 0;
            while (code[i] < n_domain && domain[code[i]] != ratings[i]) code[i]++;
            if (!isnan(ratings[i]) && code[i] == n_domain) domain[n_domain++] = ratings[i];
        }
        int width = n_domain + 1; /* an unused category changes nothing */
        for (size_t i = 0; i < n * (size_t)k; i++)
            if (!isnan(ratings[i])) counts[i / (size_t)k * (size_t)width + (size_t)code[i]]++;
        struct lk_fleiss fleiss;
        assert_ok(lk_fleiss_kappa(counts, n, width, 0, &fleiss));
        close_to("fleiss", c, value_or_nan(&fleiss.kappa), golden.values[3 * c]);
        assert_int_equal(fleiss.n_raters, golden.values[3 * c + 1]);
        assert_int_equal(fleiss.left_out, golden.values[3 * c + 2]);
        assert_int_equal(fleiss.kappa.n + fleiss.left_out, n);
    }
    assert_true(checksum == golden.inputs);
    stats_golden_close(&golden);
}

static void alpha_against_krippendorff(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "alpha", LK_N_MEASUREMENTS);
    uint64_t checksum = STATS_CHECKSUM_START;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        struct lk_stream s = stats_stream("alpha", c);
        double ratings[MAX];
        int k;
        size_t n = ratings_case(&s, c, &k, ratings, &checksum);
        for (int level = 0; level < LK_N_MEASUREMENTS; level++) {
            struct lk_number alpha;
            assert_ok(lk_krippendorff_alpha(ratings, n, k, (enum lk_measurement)level, &alpha));
            close_to(lk_measurement_name((enum lk_measurement)level), c, value_or_nan(&alpha),
                     golden.values[LK_N_MEASUREMENTS * c + level]);
        }
    }
    assert_true(checksum == golden.inputs);
    stats_golden_close(&golden);
}

static void icc_against_pingouin(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "icc", 22);
    uint64_t checksum = STATS_CHECKSUM_START;
    int n_above_1 = 0, n_turned = 0; /* ICC(2,k) behind a denominator of 0 */
    for (int c = 0; c < (int)golden.n_cases; c++) {
        struct lk_stream s = stats_stream("icc", c);
        double ratings[MAX];
        const double *expected = golden.values + 22 * c;
        int k;
        size_t n = ratings_case(&s, c, &k, ratings, &checksum);
        struct lk_icc icc[LK_N_ICC];
        assert_ok(lk_icc(ratings, n, k, icc));
        for (int shift = -700; shift <= 700; shift += 1400) { /* squares would vanish, or overflow */
            double scaled[MAX];
            struct lk_icc same[LK_N_ICC];
            for (size_t i = 0; i < n * (size_t)k; i++) scaled[i] = ldexp(ratings[i], shift);
            assert_ok(lk_icc(scaled, n, k, same));
            for (int i = 0; i < LK_N_ICC; i++) {
                assert_memory_equal(&same[i].value.value, &icc[i].value.value, sizeof(double));
                assert_memory_equal(&same[i].f, &icc[i].f, sizeof(double));
            }
        }
        for (int i = 0; i < LK_N_ICC && !isnan(expected[0]); i++) {
            n_above_1 += expected[i] > 1;
            assert_int_equal(icc[i].value.undefined != NULL, expected[i] > 1);
            if (icc[i].value.undefined) continue;
            close_to(icc[i].name, c, icc[i].value.value, expected[i]);
            close_to("icc F", c, icc[i].f, expected[i == LK_ICC1 || i == LK_ICC1K ? 6 : 7]);
            stats_assert_close("icc p", c, icc[i].p, expected[i == LK_ICC1 || i == LK_ICC1K ? 8 : 9], 1e-8, 1e-300);
            if (isnan(expected[10 + 2 * i])) continue;
            bool turned = expected[10 + 2 * i] > expected[11 + 2 * i];
            n_turned += turned;
            assert_int_equal(icc[i].no_interval != NULL, turned);
            if (turned) continue;
            close_to("icc low", c, icc[i].value.low, expected[10 + 2 * i]);
            close_to("icc high", c, icc[i].value.high, expected[11 + 2 * i]);
        }
    }
    assert_true(checksum == golden.inputs);
    assert_true(n_above_1 == 1 && n_turned == 4);
    stats_golden_close(&golden);
}

static const double ratings_12x3[12][3] = {{1, 1, 1}, {1, 2, 1}, {2, 2, 3}, {3, 3, 3}, {5, 4, 5}, {1, 1, 2},
                                           {4, 4, 4}, {2, 3, 4}, {1, 1, 1}, {5, 5, 5}, {3, 2, 3}, {1, 3, 5}};
static const double reference_units[12][4] = {{1, 1, 1, NAN}, {2, 2, 3, 2},   {3, 3, 3, 3},     {3, 3, 3, 3},
                                              {2, 2, 2, 2},   {1, 2, 3, 4},   {4, 4, 4, 4},     {1, 1, 2, 1},
                                              {2, 2, 2, 2},   {5, 5, 5, NAN}, {1, 1, NAN, NAN}, {3, NAN, NAN, NAN}};

static void vectors_of_the_study(void **state) {
    (void)state;
    int32_t counts[12][5] = {{0}};
    for (int i = 0; i < 12; i++)
        for (int r = 0; r < 3; r++) counts[i][(int)ratings_12x3[i][r] - 1]++;
    struct lk_fleiss fleiss;
    assert_ok(lk_fleiss_kappa(&counts[0][0], 12, 5, 3, &fleiss));
    close_to("fleiss", 0, fleiss.kappa.value, 0.4319526627218933);
    const double small[] = {0.4477317554240632, 0.7417205200048205, 0.74293059125964};
    const double reference[] = {0.743421052631579, 0.8153875037548814, 0.8491071428571428, 0.7974027747116121};
    for (int level = 0; level < LK_N_MEASUREMENTS; level++) {
        struct lk_number alpha;
        assert_ok(lk_krippendorff_alpha(&ratings_12x3[0][0], 12, 3, (enum lk_measurement)level, &alpha));
        if (level < 3) close_to("alpha", level, alpha.value, small[level]);
        assert_ok(lk_krippendorff_alpha(&reference_units[0][0], 12, 4, (enum lk_measurement)level, &alpha));
        close_to("alpha reference", level, alpha.value, reference[level]);
        assert_int_equal(alpha.n, 11);
    }
    const int32_t a[] = {1, 2, 3, 4, 5, 1, 2, 3, 3, 4, 5, 5, 1, 2, 2, 1, 3, 4, 4, 2};
    const int32_t b[] = {1, 2, 2, 4, 5, 1, 1, 3, 4, 4, 5, 4, 2, 2, 3, 1, 3, 3, 5, 2};
    const double cohen[] = {0.4968553459119497, 0.7377049180327868, 0.8905608755129959};
    struct lk_kappa kappa;
    for (int w = 0; w < 3; w++) {
        assert_ok(lk_cohen_kappa(a, b, 20, 1, 5, (enum lk_weights)w, &kappa));
        close_to("cohen_20", w, kappa.kappa.value, cohen[w]);
    }
    assert_true(kappa.exact == 0.6 && kappa.within_one == 1);
    const int32_t c[] = {1, 1, 2, 5, 5, 1, 2, 5, 1, 2}, d[] = {1, 2, 2, 5, 2, 1, 2, 5, 1, 5};
    assert_ok(lk_cohen_kappa(c, d, 10, 1, 5, LK_WEIGHTS_QUADRATIC, &kappa));
    close_to("unused levels", 0, kappa.kappa.value, 0.6545454545454545);
}

/* The intervals' fast path against alpha computed anew from the drawn units. */
static void alpha_intervals(void **state) {
    (void)state;
    struct lk_resampling how = LK_RESAMPLING;
    how.n_replicates = 200;
    struct lk_number fast[LK_N_MEASUREMENTS], again[LK_N_MEASUREMENTS];
    assert_ok(lk_krippendorff_intervals(&reference_units[0][0], 12, 4, &how, fast));
    for (int level = 0; level < LK_N_MEASUREMENTS; level++) {
        double replicates[200], drawn[12][4];
        for (int b = 0; b < 200; b++) {
            struct lk_stream s;
            lk_stream_numbered(&s, 42, "boot|", (uint64_t)b);
            for (int i = 0; i < 12; i++) memcpy(drawn[i], reference_units[lk_stream_bounded(&s, 12)], sizeof drawn[i]);
            struct lk_number alpha;
            assert_ok(lk_krippendorff_alpha(&drawn[0][0], 12, 4, (enum lk_measurement)level, &alpha));
            replicates[b] = value_or_nan(&alpha);
        }
        struct lk_number expected = {.value = fast[level].value};
        assert_ok(lk_interval_percentile(replicates, 200, 0.95, &expected));
        close_to("alpha low", level, fast[level].low, expected.low);
        close_to("alpha high", level, fast[level].high, expected.high);
    }
    for (int threads = 1; threads <= 4; threads++) {
        how.n_threads = threads;
        assert_ok(lk_krippendorff_intervals(&reference_units[0][0], 12, 4, &how, again));
        assert_memory_equal(again, fast, sizeof fast);
    }
}

static void degenerate(void **state) {
    (void)state;
    struct lk_kappa kappa;
    struct lk_fleiss fleiss;
    struct lk_number alpha, alphas[LK_N_MEASUREMENTS];
    struct lk_icc icc[LK_N_ICC];
    struct lk_resampling how = LK_RESAMPLING;
    const int32_t same[] = {2, 2, 2}, missing[] = {0, 0, 0};
    assert_ok(lk_cohen_kappa(same, same, 3, 1, 5, LK_WEIGHTS_LINEAR, &kappa));
    assert_non_null(kappa.kappa.undefined);
    assert_ok(lk_cohen_kappa(same, missing, 3, 1, 5, LK_WEIGHTS_NONE, &kappa));
    assert_true(kappa.kappa.undefined && kappa.kappa.n == 0);
    assert_ok(lk_cohen_kappa(NULL, NULL, 0, 1, 1, LK_WEIGHTS_NONE, &kappa));
    assert_fails(lk_cohen_kappa(same, same, 3, 5, 1, LK_WEIGHTS_NONE, &kappa), LK_E_INPUT, "levels");
    const int64_t negative[] = {1, -1, 0, 0};
    assert_fails(lk_cohen_kappa_table(negative, 2, LK_WEIGHTS_NONE, &kappa), LK_E_INPUT, "counts");
    assert_ok(lk_fleiss_kappa(NULL, 0, 3, 0, &fleiss));
    assert_non_null(fleiss.kappa.undefined);
    const int32_t counts[] = {3, 0, 3, 0}, bad[] = {3, -1};
    assert_ok(lk_fleiss_kappa(counts, 2, 2, 3, &fleiss));
    assert_non_null(fleiss.kappa.undefined);
    assert_fails(lk_fleiss_kappa(bad, 1, 2, 0, &fleiss), LK_E_INPUT, "counts");
    assert_fails(lk_fleiss_kappa(counts, 2, 2, 1, &fleiss), LK_E_INPUT, "raters");
    const double none[] = {NAN, 1, NAN, NAN}, equal[] = {3, 3, 3, 3}, infinite[] = {1, INFINITY};
    assert_ok(lk_krippendorff_alpha(none, 2, 2, LK_INTERVAL, &alpha));
    assert_true(alpha.undefined && alpha.n == 0);
    assert_ok(lk_krippendorff_alpha(equal, 2, 2, LK_RATIO, &alpha));
    assert_non_null(alpha.undefined);
    assert_ok(lk_krippendorff_intervals(equal, 2, 2, &how, alphas));
    assert_non_null(alphas[LK_ORDINAL].undefined);
    assert_fails(lk_krippendorff_alpha(infinite, 1, 2, LK_RATIO, &alpha), LK_E_INPUT, "finite");
    assert_ok(lk_icc(none, 2, 2, icc));
    assert_non_null(icc[LK_ICC2].value.undefined);
    assert_ok(lk_icc(equal, 2, 2, icc));
    assert_non_null(icc[LK_ICC1].value.undefined);
    const double perfect[] = {1, 1, 2, 2, 4, 4};
    assert_ok(lk_icc(perfect, 3, 2, icc));
    assert_true(!icc[LK_ICC3].value.undefined && icc[LK_ICC3].value.value == 1 && icc[LK_ICC3].f_undefined);
    assert_fails(lk_icc(infinite, 1, 2, icc), LK_E_INPUT, "finite");
}

static enum lk_code all_calls(void) {
    const int32_t a[] = {1, 2, 3, 1}, counts[] = {2, 1, 0, 3, 1, 2};
    const double ratings[] = {1, 2, 2, 2, 3, 1, 5, 4};
    struct lk_kappa kappa;
    struct lk_fleiss fleiss;
    struct lk_number alphas[LK_N_MEASUREMENTS];
    struct lk_icc icc[LK_N_ICC];
    struct lk_resampling how = LK_RESAMPLING;
    how.n_replicates = 10;
    LK_TRY(lk_cohen_kappa(a, a, 4, 1, 5, LK_WEIGHTS_LINEAR, &kappa));
    LK_TRY(lk_fleiss_kappa(counts, 3, 2, 0, &fleiss));
    LK_TRY(lk_krippendorff_alpha(ratings, 4, 2, LK_INTERVAL, alphas));
    LK_TRY(lk_krippendorff_intervals(ratings, 4, 2, &how, alphas));
    return lk_icc(ratings, 4, 2, icc);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    test_every_allocation(all_calls, 10);
}

static void labels(void **state) {
    (void)state;
    const struct {
        double value;
        const char *study, *landis_koch;
    } cases[] = {{-0.1, "poor", "poor"},
                 {0, "poor", "slight"},
                 {0.2, "poor", "slight"},
                 {0.205, "poor", "fair"},
                 {0.4, "moderate", "fair"},
                 {0.5, "moderate", "moderate"},
                 {0.6, "substantial", "moderate"},
                 {0.8, "almost perfect", "substantial"},
                 {1, "almost perfect", "almost perfect"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(lk_agreement_label(LK_SCALE_STUDY, cases[i].value), cases[i].study);
        assert_string_equal(lk_agreement_label(LK_SCALE_LANDIS_KOCH, cases[i].value), cases[i].landis_koch);
    }
    assert_string_equal(lk_agreement_label(LK_SCALE_STUDY, NAN), "undefined");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kappa_against_peers),
        cmocka_unit_test(fleiss_against_statsmodels),
        cmocka_unit_test(alpha_against_krippendorff),
        cmocka_unit_test(icc_against_pingouin),
        cmocka_unit_test(vectors_of_the_study),
        cmocka_unit_test(alpha_intervals),
        cmocka_unit_test(degenerate),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
