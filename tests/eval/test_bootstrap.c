/* Resampling: draws by definition, intervals against numpy and scipy on the same draws, the study's vector, and
 * the same bits with any number of threads. */
#include <math.h>
#include <stdbool.h>

#include "eval/stats/resampling/bootstrap_rates.h"
#include "eval/stats/resampling/permutation.h"
#include "eval/stats/quantile.h"
#include "tests/common/stats_cases.h"
#include "tests/common/test.h"

enum { MAX = 32, N_COLUMNS = 10 };

struct data {
    size_t n;
    double x[MAX];
    int32_t clusters[MAX], groups[MAX];
};

static void make(struct data *d, int number, uint64_t *checksum) {
    static const enum stats_kind kinds[] = {STATS_SCORES, STATS_FINE, STATS_BINARY, STATS_CONSTANT, STATS_SCORES};
    struct lk_stream s = stats_stream("bootstrap", number);
    double flat[3 * MAX];
    d->n = 1 + lk_stream_bounded(&s, 24);
    stats_values(&s, d->x, d->n, kinds[number % 5]);
    for (size_t i = 0; i < d->n; i++) d->clusters[i] = (int32_t)lk_stream_bounded(&s, 6) * 3 - 5;
    for (size_t i = 0; i < d->n; i++) d->groups[i] = (int32_t)lk_stream_bounded(&s, 4) - 1;
    for (size_t i = 0; i < d->n; i++) {
        flat[i] = d->x[i];
        flat[d->n + i] = d->clusters[i];
        flat[2 * d->n + i] = d->groups[i];
    }
    *checksum = stats_checksum(*checksum, flat, 3 * d->n);
}

static void check(const char *what, int number, const struct lk_number *got, const double *expected) {
    stats_assert_close(what, number, got->low, isnan(expected[0]) ? 0 : expected[0], 1e-10, 1e-12);
    stats_assert_close(what, number, got->high, isnan(expected[0]) ? 0 : expected[1], 1e-10, 1e-12);
}

/* A difference of groups as a callback over the drawn units sees it. */
static void difference_of_drawn(const int32_t *drawn, size_t n, const void *context, void *scratch, double *out) {
    (void)scratch;
    const struct data *d = context;
    double sum[2] = {0, 0}, count[2] = {0, 0};
    for (size_t i = 0; i < n; i++) {
        int32_t group = d->groups[drawn[i]];
        if (group != 0 && group != 1) continue;
        sum[group] += d->x[drawn[i]];
        count[group]++;
    }
    *out = count[0] > 0 && count[1] > 0 ? sum[1] / count[1] - sum[0] / count[0] : NAN;
}

static void check_difference(const struct data *d, int number, const struct lk_resampling *how) {
    for (int kind = 0; kind < 2; kind++) {
        struct lk_number fast, slow;
        assert_ok(lk_bootstrap_difference(d->x, d->groups, d->n, how, (enum lk_interval_kind)kind, &fast));
        assert_ok(lk_bootstrap_number(d->n, how, difference_of_drawn, d, 0, (enum lk_interval_kind)kind, &slow));
        assert_int_equal(fast.undefined != NULL, slow.undefined != NULL);
        stats_assert_close("difference", number, fast.value, slow.value, 1e-12, 1e-14);
        stats_assert_close("difference low", number, fast.low, slow.low, 1e-12, 1e-14);
        stats_assert_close("difference high", number, fast.high, slow.high, 1e-12, 1e-14);
    }
}

/* Largest minus smallest mean of the three groups; NaN with fewer than two. */
static void range_of_means(const int32_t *drawn, size_t n, const void *context, void *scratch, double *out) {
    (void)scratch;
    const struct data *d = context;
    double sum[3] = {0}, count[3] = {0}, low = INFINITY, high = -INFINITY;
    int n_groups = 0;
    for (size_t i = 0; i < n; i++) {
        int group = d->groups[drawn[i]];
        if (group < 0) continue;
        sum[group] += d->x[drawn[i]];
        count[group]++;
    }
    for (int g = 0; g < 3; g++) {
        if (count[g] == 0) continue;
        n_groups++;
        low = fmin(low, sum[g] / count[g]);
        high = fmax(high, sum[g] / count[g]);
    }
    *out = n_groups ? high - low : NAN;
}

static void check_case(const struct data *d, int number, const double *expected) {
    struct lk_resampling plain = {.seed = (uint64_t)number, .n_replicates = 99, .confidence = 0.95}, clustered = plain;
    clustered.clusters = d->clusters;
    struct lk_number mean;
    assert_ok(lk_bootstrap_mean(d->x, d->n, &plain, LK_INTERVAL_PERCENTILE, &mean));
    check("percentile", number, &mean, expected);
    assert_ok(lk_bootstrap_mean(d->x, d->n, &plain, LK_INTERVAL_BCA, &mean));
    check("bca", number, &mean, expected + 2);
    assert_ok(lk_bootstrap_mean(d->x, d->n, &clustered, LK_INTERVAL_PERCENTILE, &mean));
    check("cluster", number, &mean, expected + 4);
    const struct lk_grouping groupings[] = {{NULL, 1}, {d->groups, 3}};
    struct lk_rates rates = {d->n, 1, d->x, 2, groupings};
    struct lk_rate_results *results;
    assert_ok(lk_bootstrap_rates(&rates, &clustered, &results));
    check("cluster, by totals", number, lk_rate_of(results, 0, 0, 0), expected + 4);
    lk_rate_results_free(results);
    assert_ok(lk_bootstrap_rates(&rates, &plain, &results));
    check("percentile, by totals", number, lk_rate_of(results, 0, 0, 0), expected);
    const struct lk_disparity *disparity = lk_disparity_of(results, 1, 0);
    assert_int_equal(disparity->number.undefined != NULL, isnan(expected[6]));
    lk_rate_results_free(results);
    struct lk_number range;
    assert_ok(lk_bootstrap_number(d->n, &plain, range_of_means, d, 0, LK_INTERVAL_PERCENTILE, &range));
    check("disparity", number, &range, expected + 6);
    check_difference(d, number, &plain);
    check_difference(d, number, &clustered);
    struct lk_test test;
    assert_ok(lk_permutation_means(d->x, d->groups, d->n, &plain, &test));
    stats_assert_close("permutation", number, test.undefined ? NAN : test.p, expected[8], 1e-12, 0);
    assert_ok(lk_permutation_means(d->x, d->groups, d->n, &clustered, &test));
    stats_assert_close("swap", number, test.undefined ? NAN : test.p, expected[9], 1e-12, 0);
}

static void against_numpy_and_scipy(void **state) {
    (void)state;
    struct stats_golden golden;
    stats_golden_open(&golden, "bootstrap", N_COLUMNS);
    uint64_t checksum = STATS_CHECKSUM_START;
    for (int c = 0; c < (int)golden.n_cases; c++) {
        struct data d;
        make(&d, c, &checksum);
        check_case(&d, c, golden.values + N_COLUMNS * c);
    }
    assert_true(checksum == golden.inputs);
    stats_golden_close(&golden);
}

static void mean_of(const int32_t *drawn, size_t n, const void *context, void *scratch, double *out) {
    (void)scratch;
    *out = 0;
    for (size_t i = 0; i < n; i++) *out += ((const double *)context)[drawn[i]] / (double)n;
}

static void vectors_of_the_study(void **state) {
    (void)state;
    const double data[] = {0, 0, 1, 0, 1, 1, 0, 0, 0, 1}, first5[] = {0.5, 0.1, 0.4, 0.4, 0.2};
    struct lk_resampling how = LK_RESAMPLING;
    double replicates[1000], sum = 0;
    assert_ok(lk_bootstrap(10, &how, mean_of, data, 0, 1, replicates));
    for (int b = 0; b < 1000; b++) sum += replicates[b];
    for (int b = 0; b < 5; b++) stats_assert_close("bootstrap_mean", b, replicates[b], first5[b], 1e-12, 0);
    stats_assert_close("mean of replicates", 0, sum / 1000, 0.4141, 1e-12, 0);
    struct lk_number mean;
    assert_ok(lk_bootstrap_mean(data, 10, &how, LK_INTERVAL_PERCENTILE, &mean));
    assert_true(mean.value == 0.4 && mean.low == 0.1 && mean.high == 0.7);
    const double q[] = {0.025, 0.5, 0.975}, expected[] = {0.11000000000000001, 0.4, 1.52};
    for (int i = 0; i < 3; i++) {
        double x[] = {0.8, 0.1, 1.6, 0.4, 0.2};
        stats_assert_close("percentile_linear", i, lk_quantile(x, 5, q[i]), expected[i], 1e-15, 0);
    }
}

/* Selection against a sorted copy: ties, sorted and reversed inputs. */
static void quantiles_of_all_kinds(void **state) {
    (void)state;
    struct lk_stream s;
    lk_stream_seed(&s, 7);
    for (int round = 0; round < 400; round++) {
        double x[200], sorted[200];
        size_t n = 1 + lk_stream_bounded(&s, 200), levels = 1 + lk_stream_bounded(&s, 300);
        for (size_t i = 0; i < n; i++) x[i] = (double)lk_stream_bounded(&s, levels);
        memcpy(sorted, x, sizeof sorted);
        for (size_t i = 1; i < n; i++)
            for (size_t j = i; j > 0 && sorted[j] < sorted[j - 1]; j--) {
                double value = sorted[j];
                sorted[j] = sorted[j - 1];
                sorted[j - 1] = value;
            }
        if (round % 3 == 1) memcpy(x, sorted, sizeof x);
        for (size_t i = 0; i < n && round % 3 == 2; i++) x[i] = sorted[n - 1 - i];
        size_t k = lk_stream_bounded(&s, n);
        assert_true(n == 1 || lk_quantile(x, n, (double)k / (double)(n - 1)) >= sorted[k] - 1e-9);
        assert_true(n == 1 || fabs(lk_quantile(x, n, (double)k / (double)(n - 1)) - sorted[k]) < 1e-9);
        assert_true(lk_quantile(x, n, 0) == sorted[0] && lk_quantile(x, n, 1) == sorted[n - 1]);
    }
}

/* From one side of a pivot as from a selection among all, also where the sample that the pivot comes from misleads. */
static void quantiles_of_tails(void **state) {
    (void)state;
    enum { N = 5000 };
    static double x[N], reordered[N], scratch[N];
    const double qs[] = {0, 0.001, 0.025, 0.3, 0.5, 0.975, 0.999, 1};
    struct lk_stream s;
    lk_stream_seed(&s, 8);
    for (int round = 0; round < 60; round++) {
        size_t n = round % 2 ? N - lk_stream_bounded(&s, 300) : 1 + lk_stream_bounded(&s, N);
        uint64_t levels = 1 + lk_stream_bounded(&s, round % 3 ? 100000 : 5), pick = round % 5 == 4;
        for (size_t i = 0; i < n; i++) {
            x[i] = (double)lk_stream_bounded(&s, levels) - 3;
            if (pick && n >= 256 && i % (n / 256) == 0) x[i] = round % 10 == 4 ? -1e6 : 1e6; /* all of the sample */
        }
        for (size_t k = 0; k < sizeof qs / sizeof *qs; k++) {
            memcpy(reordered, x, sizeof x);
            double expected = lk_quantile(reordered, n, qs[k]);
            memcpy(reordered, x, sizeof x);
            assert_true(lk_quantile_of(x, n, qs[k], scratch) == expected);
            assert_memory_equal(x, reordered, n * sizeof *x);
        }
    }
}

enum { N_UNITS = 600, N_MEASURES = 3 };

/* Synthetic items: three measures, of which the last is often not valid; groups of 7, 3 and 600 (bins of their own). */
static void items(double *values, int32_t *race, int32_t *model, int32_t *fine, int32_t *source) {
    struct lk_stream s;
    lk_stream_seed(&s, 3);
    for (int i = 0; i < N_UNITS; i++) {
        race[i] = i % 7;
        model[i] = i % 11 ? i % 3 : -1;
        fine[i] = i;
        source[i] = i % 84;
        values[3 * i] = (double)lk_stream_bounded(&s, 2);
        values[3 * i + 1] = (double)(1 + lk_stream_bounded(&s, 5));
        values[3 * i + 2] = lk_stream_bounded(&s, 3) ? (double)(3 + lk_stream_bounded(&s, 13)) / 3 : NAN;
    }
}

static bool same_numbers(const struct lk_number *a, const struct lk_number *b) {
    return a->value == b->value && a->low == b->low && a->high == b->high && a->n == b->n &&
           a->undefined == b->undefined;
}

static void same_bits_with_any_number_of_threads(void **state) {
    (void)state;
    double values[N_UNITS * N_MEASURES];
    int32_t race[N_UNITS], model[N_UNITS], fine[N_UNITS], source[N_UNITS];
    items(values, race, model, fine, source);
    const struct lk_grouping groupings[] = {{race, 7}, {model, 3}, {fine, N_UNITS}, {NULL, 1}};
    struct lk_rates rates = {N_UNITS, N_MEASURES, values, 4, groupings};
    double successes[N_UNITS];
    for (int i = 0; i < N_UNITS; i++) successes[i] = values[N_MEASURES * i];
    for (int clustered = 0; clustered < 2; clustered++) {
        struct lk_rate_results *one = NULL;
        struct lk_test first;
        for (int threads = 1; threads <= 4; threads++) {
            struct lk_resampling how = {42, 101, 0.95, clustered ? source : NULL, threads};
            struct lk_rate_results *results;
            struct lk_test test;
            assert_ok(lk_bootstrap_rates(&rates, &how, &results));
            how.clusters = clustered ? race : NULL;
            assert_ok(lk_permutation_means(successes, model, N_UNITS, &how, &test));
            if (!one) {
                one = results;
                first = test;
                continue;
            }
            assert_true(test.p == first.p && test.statistic == first.statistic);
            for (int g = 0; g < 4; g++)
                for (int m = 0; m < N_MEASURES; m++) {
                    const struct lk_disparity *a = lk_disparity_of(one, g, m), *b = lk_disparity_of(results, g, m);
                    assert_true(same_numbers(&a->number, &b->number) && a->highest == b->highest);
                    for (int i = 0; i < groupings[g].n_groups; i++)
                        assert_true(same_numbers(lk_rate_of(one, g, i, m), lk_rate_of(results, g, i, m)));
                }
            lk_rate_results_free(results);
        }
        lk_rate_results_free(one);
    }
}

/* The rate of one group as a callback over the drawn units sees it. */
struct group_rate {
    const double *values;
    const int32_t *group;
    int wanted, measure;
};

static void rate_of_group(const int32_t *drawn, size_t n, const void *context, void *scratch, double *out) {
    (void)scratch;
    const struct group_rate *rate = context;
    double sum = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
        double value = rate->values[N_MEASURES * drawn[i] + rate->measure];
        if (rate->group[drawn[i]] != rate->wanted || isnan(value)) continue;
        sum += value;
        count++;
    }
    *out = count > 0 ? sum / count : NAN;
}

/* Of one measure that is always valid. */
static void rate_of_group_alone(const int32_t *drawn, size_t n, const void *context, void *scratch, double *out) {
    (void)scratch;
    const struct group_rate *rate = context;
    double sum = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
        if (rate->group[drawn[i]] != rate->wanted) continue;
        sum += rate->values[drawn[i]];
        count++;
    }
    *out = count > 0 ? sum / count : NAN;
}

static void rates_are_those_of_the_drawn_units(void **state) {
    (void)state;
    double values[N_UNITS * N_MEASURES];
    int32_t race[N_UNITS], model[N_UNITS], fine[N_UNITS], source[N_UNITS];
    items(values, race, model, fine, source);
    const struct lk_grouping groupings[] = {{race, 7}, {model, 3}};
    struct lk_rates rates = {N_UNITS, N_MEASURES, values, 2, groupings};
    for (int clustered = 0; clustered < 2; clustered++) {
        struct lk_resampling how = {11, 120, 0.9, clustered ? source : NULL, 2};
        struct lk_rate_results *results;
        assert_ok(lk_bootstrap_rates(&rates, &how, &results));
        for (int m = 0; m < N_MEASURES; m++) {
            struct group_rate wanted = {values, model, 2, m};
            struct lk_number slow;
            assert_ok(lk_bootstrap_number(N_UNITS, &how, rate_of_group, &wanted, 0, LK_INTERVAL_PERCENTILE, &slow));
            const struct lk_number *fast = lk_rate_of(results, 1, 2, m);
            stats_assert_close("value", m, fast->value, slow.value, 1e-12, 0);
            stats_assert_close("low", m, fast->low, slow.low, 1e-12, 0);
            stats_assert_close("high", m, fast->high, slow.high, 1e-12, 0);
        }
        const struct lk_disparity *by_race = lk_disparity_of(results, 0, 1);
        assert_true(by_race->number.value == lk_rate_of(results, 0, by_race->highest, 1)->value -
                                                 lk_rate_of(results, 0, by_race->lowest, 1)->value);
        lk_rate_results_free(results);
    }
}

static double spread(const struct lk_number *number) { return number->high - number->low; }

/* Confidences from scipy. 3 clusters in group 0, 5 in group 1, 4 in neither: each rate's interval is the percentile
 * interval of the same resamples at the confidence that its own clusters ask for, the disparity's that of both. */
static void expanded_percentiles(void **state) {
    (void)state;
    enum { OF = 4, N = 12 * OF, B = 400 };
    stats_assert_value("12 of 12", 0, lk_expanded_confidence(0.95, 12, 11), 0.978486770166895);
    stats_assert_value("12 and 12 of 84", 0, lk_expanded_confidence(0.95, 84, 22), 0.9630511570957699);
    stats_assert_value("84", 0, lk_expanded_confidence(0.95, 84, 83), 0.9545974351591894);
    stats_assert_value("12 and 5", 0, lk_expanded_df(12, 5), 7.55106888361045);
    stats_assert_value("12 and 12", 0, lk_expanded_df(12, 12), 22);
    assert_true(lk_expanded_confidence(0.95, 12, 0) == 1 && lk_expanded_df(1, 12) == 0);
    double values[N], replicates[B];
    int32_t group[N], cluster[N], mixed[N], all[N] = {0};
    struct lk_stream s = stats_stream("expanded", 0);
    stats_values(&s, values, N, STATS_FINE);
    for (int i = 0; i < N; i++) {
        cluster[i] = i / OF;
        group[i] = i / OF < 3 ? 0 : i / OF < 8 ? 1 : -1;
        mixed[i] = i % 2;
    }
    const struct lk_grouping groupings[] = {{group, 2}, {mixed, 2}, {all, 1}};
    const struct lk_rates rates = {N, 1, values, 3, groupings};
    struct lk_resampling how = {3, B, 0.95, cluster, 1};
    struct lk_rate_results *results;
    struct lk_number expected, difference;
    assert_ok(lk_bootstrap_rates(&rates, &how, &results));
    for (int g = 0; g < 3; g++) {
        const struct lk_grouping *of = &groupings[g < 2 ? 0 : 2];
        struct group_rate wanted = {values, of->group, g < 2 ? g : 0, 0};
        double df = g < 2 ? (g ? 4 : 2) : 11;
        assert_ok(lk_bootstrap(N, &how, rate_of_group_alone, &wanted, 0, 1, replicates));
        assert_ok(lk_interval_percentile(replicates, B, lk_expanded_confidence(0.95, 12, df), &expected));
        const struct lk_number *got = lk_rate_expanded_of(results, g < 2 ? 0 : 2, wanted.wanted, 0);
        stats_assert_close("low", g, got->low, expected.low, 1e-12, 1e-12);
        stats_assert_close("high", g, got->high, expected.high, 1e-12, 1e-12);
        assert_true(spread(got) >= spread(lk_rate_of(results, g < 2 ? 0 : 2, wanted.wanted, 0)));
    }
    /* a difference of groups that share no cluster has fewer degrees of freedom than one within clusters */
    for (int m = 0; m < 2; m++) {
        const int32_t *of = m ? mixed : group;
        assert_ok(lk_bootstrap_difference(values, of, N, &how, LK_INTERVAL_EXPANDED, &difference));
        struct lk_resampling wide = how;
        wide.confidence = lk_expanded_confidence(0.95, 12, m ? 11 : lk_expanded_df(3, 5));
        assert_ok(lk_bootstrap_difference(values, of, N, &wide, LK_INTERVAL_PERCENTILE, &expected));
        assert_true(difference.low == expected.low && difference.high == expected.high);
    }
    lk_rate_results_free(results);
}

static void totals_themselves(const double *totals, const void *context, void *scratch, double *out) {
    (void)scratch;
    memcpy(out, totals, *(const size_t *)context * sizeof *out);
}

/* Whole numbers and halves are summed several to a word, in fields of 16, 21 or 32 bits, or not: a column of quarters
 * prevents it. */
static void packed_sums_are_the_sums(void **state) {
    (void)state;
    enum { N = 300, CELLS = 5, B = 40, MAX_COLUMNS = 40 };
    static double whole[N * MAX_COLUMNS], mixed[N * (MAX_COLUMNS + 1)];
    static double packed[CELLS * MAX_COLUMNS * B], plain[CELLS * (MAX_COLUMNS + 1) * B];
    const double largest[] = {1, 200, 600, 5000, 14000000, 4e9};
    const int widths[] = {1, 2, 3, 4, 5, 7, 12, 23, 24, 25, MAX_COLUMNS};
    int32_t cells[N], clusters[N];
    struct lk_stream s;
    lk_stream_seed(&s, 5);
    for (int round = 0; round < 132; round++) {
        int width = widths[round % 11];
        double unit = round % 5 == 1 ? 0.5 : 1;
        for (int i = 0; i < N; i++) {
            cells[i] = round % 4 ? (int32_t)lk_stream_bounded(&s, CELLS + 1) - 1 : 2;
            clusters[i] = i / 10;
            for (int c = 0; c < width; c++)
                mixed[i * (width + 1) + c] = whole[i * width + c] =
                    unit * (double)lk_stream_bounded(&s, (uint64_t)largest[round % 6] + 1);
            mixed[i * (width + 1) + width] = 0.25;
        }
        struct lk_resampling how = {(uint64_t)round, B, 0.95, round % 2 ? clusters : NULL, 2};
        struct lk_tally a = {N, width, CELLS, whole, cells, NULL}, b = {N, width + 1, CELLS, mixed, cells, NULL};
        size_t n_a = (size_t)(CELLS * width), n_b = (size_t)(CELLS * (width + 1));
        assert_ok(lk_bootstrap_totals(&a, &how, totals_themselves, &n_a, 0, (int)n_a, packed));
        assert_ok(lk_bootstrap_totals(&b, &how, totals_themselves, &n_b, 0, (int)n_b, plain));
        for (int cell = 0; cell < CELLS; cell++)
            for (int c = 0; c < width; c++)
                assert_memory_equal(packed + (cell * width + c) * B, plain + (cell * (width + 1) + c) * B,
                                    B * sizeof(double));
    }
}

static void degenerate(void **state) {
    (void)state;
    struct lk_resampling how = LK_RESAMPLING, bad = how;
    struct lk_number number;
    struct lk_rate_results *results;
    struct lk_test test;
    const double one[] = {3}, invalid[] = {NAN, NAN}, infinite[] = {INFINITY};
    const int32_t outside[] = {0, 7}, labels[] = {1, 1};
    assert_ok(lk_bootstrap_mean(NULL, 0, &how, LK_INTERVAL_BCA, &number));
    assert_non_null(number.undefined);
    assert_ok(lk_bootstrap_mean(one, 1, &how, LK_INTERVAL_BCA, &number));
    assert_true(!number.undefined && number.value == 3 && number.low == 0);
    assert_ok(lk_bootstrap_mean(one, 1, &how, LK_INTERVAL_PERCENTILE, &number));
    assert_true(number.low == 3 && number.high == 3);
    assert_fails(lk_bootstrap_mean(infinite, 1, &how, LK_INTERVAL_BCA, &number), LK_E_INPUT, "finite");
    bad.n_replicates = 0;
    assert_fails(lk_bootstrap_mean(one, 1, &bad, LK_INTERVAL_BCA, &number), LK_E_INPUT, "replicates");
    bad = how;
    bad.confidence = 1;
    assert_fails(lk_bootstrap_mean(one, 1, &bad, LK_INTERVAL_BCA, &number), LK_E_INPUT, "confidence");
    const struct lk_grouping all[] = {{NULL, 2}}, wrong[] = {{outside, 2}};
    struct lk_rates rates = {2, 1, invalid, 1, all};
    assert_ok(lk_bootstrap_rates(&rates, &how, &results));
    assert_true(lk_rate_of(results, 0, 0, 0)->undefined && lk_disparity_of(results, 0, 0)->highest == -1);
    lk_rate_results_free(results);
    rates.n_units = 0;
    assert_ok(lk_bootstrap_rates(&rates, &how, &results));
    assert_true(lk_rate_of(results, 0, 1, 0)->undefined && lk_disparity_of(results, 0, 0)->number.undefined);
    lk_rate_results_free(results);
    rates = (struct lk_rates){2, 1, invalid, 1, wrong};
    assert_fails(lk_bootstrap_rates(&rates, &how, &results), LK_E_INPUT, "grouping 0, unit 1");
    rates = (struct lk_rates){1, 1, infinite, 1, all};
    assert_fails(lk_bootstrap_rates(&rates, &how, &results), LK_E_INPUT, "finite");
    assert_ok(lk_bootstrap_difference(invalid, labels, 2, &how, LK_INTERVAL_BCA, &number));
    assert_non_null(number.undefined);
    assert_ok(lk_bootstrap_difference(NULL, NULL, 0, &how, LK_INTERVAL_BCA, &number));
    assert_non_null(number.undefined);
    assert_ok(lk_permutation_means(invalid, labels, 0, &how, &test));
    assert_non_null(test.undefined);
    const double pair[] = {1, 2};
    assert_ok(lk_permutation_means(pair, labels, 2, &how, &test));
    assert_non_null(test.undefined);
}

static enum lk_code all_calls(void) {
    const double x[] = {1, 2, NAN, 5};
    const int32_t labels[] = {0, 1, 0, 1}, clusters[] = {1, 1, 2, 2};
    struct lk_resampling how = {1, 20, 0.95, clusters, 2};
    const struct lk_grouping groupings[] = {{labels, 2}, {NULL, 1}};
    struct lk_rates rates = {4, 1, x, 2, groupings};
    struct lk_rate_results *results;
    struct lk_number number;
    struct lk_test test;
    LK_TRY(lk_bootstrap_mean(x, 2, &how, LK_INTERVAL_BCA, &number));
    LK_TRY(lk_bootstrap_rates(&rates, &how, &results));
    lk_rate_results_free(results);
    LK_TRY(lk_bootstrap_difference(x, labels, 4, &how, LK_INTERVAL_BCA, &number));
    return lk_permutation_means(x, labels, 2, &how, &test);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    test_every_allocation(all_calls, 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_numpy_and_scipy),
        cmocka_unit_test(vectors_of_the_study),
        cmocka_unit_test(quantiles_of_all_kinds),
        cmocka_unit_test(quantiles_of_tails),
        cmocka_unit_test(same_bits_with_any_number_of_threads),
        cmocka_unit_test(rates_are_those_of_the_drawn_units),
        cmocka_unit_test(expanded_percentiles),
        cmocka_unit_test(packed_sums_are_the_sums),
        cmocka_unit_test(degenerate),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
