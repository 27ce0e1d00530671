/* The bits of replicates, intervals and p-values, pinned: drawing, counting and summing may become faster, not
 * different. Cases with whole numbers, halves and fractions, clusters, groups, and numbers of units and of resamples
 * that fill no block, under one to four threads and every instruction level of the machine. */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/stats/resampling/bootstrap_rates.h"
#include "eval/stats/agreement/krippendorff.h"
#include "eval/stats/resampling/permutation.h"
#include "engine/base/isa.h"
#include "tests/common/stats_cases.h"
#include "tests/common/test.h"

enum { N_MAX = 66001, N_MEASURES = 4, N_FINE = 97 };

static double values[N_MAX * N_MEASURES];
static int32_t race[N_MAX], model[N_MAX], fine[N_MAX], source[N_MAX];

/* 0 and 1; halves 1 to 5, some missing; the same validity again; thirds, quarters or whole numbers below 0, by kind. */
static void make(size_t n, int kind) {
    struct lk_stream s;
    lk_stream_seed(&s, (uint64_t)kind + n);
    for (size_t i = 0; i < n; i++) {
        double *row = values + i * N_MEASURES;
        race[i] = (int32_t)(i % 7);
        model[i] = i % 11 ? (int32_t)lk_stream_bounded(&s, 3) : -1;
        fine[i] = (int32_t)(i % N_FINE);
        source[i] = (int32_t)(lk_stream_bounded(&s, 84) * lk_stream_bounded(&s, 2)) * 5 - 60;
        row[1] = (double)(2 + lk_stream_bounded(&s, 9)) / 2;
        row[0] = row[1] <= 2;
        row[2] = row[1] <= 3.5;
        row[3] = (double)lk_stream_bounded(&s, 40) - 10 * (kind == 3);
        if (kind == 1) row[3] /= 3;
        if (kind == 2) row[3] *= 1000;
        if (lk_stream_bounded(&s, 9) == 0) row[1] = row[2] = NAN;
    }
}

static uint64_t add_number(uint64_t hash, const struct lk_number *number) {
    const double numbers[] = {number->value, number->low, number->high, (double)number->n};
    return stats_checksum(hash, numbers, 4);
}

static uint64_t of_rates(size_t n, const struct lk_resampling *how) {
    const struct lk_grouping groupings[] = {{race, 7}, {model, 3}, {fine, N_FINE}, {NULL, 1}};
    const struct lk_rates rates = {n, N_MEASURES, values, 4, groupings};
    struct lk_rate_results *results;
    uint64_t hash = STATS_CHECKSUM_START;
    assert_ok(lk_bootstrap_rates(&rates, how, &results));
    for (int g = 0; g < 4; g++)
        for (int m = 0; m < N_MEASURES; m++) {
            for (int k = 0; k < groupings[g].n_groups; k++) hash = add_number(hash, lk_rate_of(results, g, k, m));
            hash = stats_checksum(hash, &lk_disparity_of(results, g, m)->number.value, 1);
        }
    lk_rate_results_free(results);
    return hash;
}

static void totals_themselves(const double *totals, const void *context, void *scratch, double *out) {
    (void)scratch;
    memcpy(out, totals, *(const size_t *)context * sizeof *out);
}

/* Of resamples, and of what is left without each unit or cluster. */
static uint64_t of_totals(size_t n, const struct lk_resampling *how) {
    size_t n_statistics = 3 * N_MEASURES, n_left_out;
    double *columns = lk_malloc(n * N_MEASURES * sizeof *columns);
    assert_non_null(columns);
    for (size_t i = 0; i < n * N_MEASURES; i++) columns[i] = isnan(values[i]) ? 0 : values[i];
    struct lk_tally tally = {n, N_MEASURES, 3, columns, model, NULL};
    assert_ok(lk_resampling_units(n, how, &n_left_out));
    if (n_left_out > 1000) n_left_out = 0;
    double *replicates = lk_malloc(n_statistics * ((size_t)how->n_replicates + n_left_out) * sizeof *replicates);
    assert_non_null(replicates);
    assert_ok(lk_bootstrap_totals(&tally, how, totals_themselves, &n_statistics, 0, (int)n_statistics, replicates));
    uint64_t hash = stats_checksum(STATS_CHECKSUM_START, replicates, n_statistics * (size_t)how->n_replicates);
    if (n_left_out) {
        assert_ok(lk_jackknife_totals(&tally, how, totals_themselves, &n_statistics, 0, (int)n_statistics, replicates));
        hash = stats_checksum(hash, replicates, n_statistics * n_left_out);
    }
    lk_free(columns);
    lk_free(replicates);
    return hash;
}

/* Means, differences, permutations and alpha of the last measure. */
static uint64_t of_numbers(size_t n, const struct lk_resampling *how) {
    double *x = lk_malloc(n * sizeof *x);
    assert_non_null(x);
    uint64_t hash = STATS_CHECKSUM_START;
    struct lk_number number, alpha[LK_N_MEASUREMENTS];
    struct lk_test test;
    for (int m = 1; m < N_MEASURES; m += 2) {
        for (size_t i = 0; i < n; i++) {
            x[i] = values[i * N_MEASURES + (size_t)m];
            if (isnan(x[i])) x[i] = 7;
        }
        assert_ok(lk_bootstrap_mean(x, n, how, LK_INTERVAL_PERCENTILE, &number));
        hash = add_number(hash, &number);
        assert_ok(lk_bootstrap_difference(x, model, n, how, LK_INTERVAL_PERCENTILE, &number));
        hash = add_number(hash, &number);
        for (int two = 0; two < 2; two++) {
            assert_ok(lk_permutation_means(x, two ? model : race, n, how, &test));
            hash = stats_checksum(hash, (double[]){test.statistic, test.p}, 2);
        }
    }
    for (size_t i = 0; i < n; i++) x[i] = i % 13 ? floor(fmod(fabs(x[i]), 7)) : NAN;
    if (n % 3 == 0 && how->n_replicates > 1) {
        struct lk_resampling plain = *how;
        plain.clusters = NULL;
        assert_ok(lk_krippendorff_intervals(x, n / 3, 3, &plain, alpha));
        for (int level = 0; level < LK_RATIO; level++) hash = add_number(hash, &alpha[level]);
    }
    lk_free(x);
    return hash;
}

static const struct {
    size_t n;
    int n_replicates;
} sizes[] = {{1, 8}, {5, 3}, {84, 101}, {600, 101}, {3000, 40}, {N_MAX, 3}};
enum { N_SIZES = sizeof sizes / sizeof *sizes, N_KINDS = 4 };

static const uint64_t pinned[N_SIZES][2][N_KINDS] =
    {/* without and with clusters */
     {{0x5fdc0bfbdd5115da, 0x3c90e99e3776ebeb, 0x18ff6dda61281baf, 0x5669c4e921f67b62},
      {0x5fdc0bfbdd5115da, 0x3c90e99e3776ebeb, 0x18ff6dda61281baf, 0x5669c4e921f67b62}},
     {{0x085ef6e185329d43, 0xe59052ddce44139f, 0x159659981f8f2237, 0xa36e437267fa9079},
      {0xbbd57f6c63f112d8, 0xe858f513ed267e2d, 0xb79293a577480ef4, 0xaeaea0032f1dd69c}},
     {{0x4ecfb909765f7e9b, 0xa016b32d4f3635ed, 0x78ce6d7c9d8b19c6, 0x560cfd54ed2ac857},
      {0xd460813a1e94b584, 0xb498a9ccb1ef03e8, 0x9948c1843606ab54, 0xb5cb1e3a33522609}},
     {{0x7066c3dca305c39b, 0xbab5724ada8335e0, 0x5796e7ed82b67d98, 0xb4a7645baa11feac},
      {0x01f96404dbfd4d9a, 0x01b4c2bd8004dfcd, 0x83177a5bb883ccfe, 0xaa54942eb63cd9cc}},
     {{0x1f42884b0be7bf77, 0xdbe5f64095cf2cc7, 0x68c1bdb5e71ebf36, 0x410b25ff8161cc0e},
      {0xb51050476df32f16, 0xb56897e4da345500, 0xdcb01369c0508286, 0xde736e41374a2588}},
     {{0xb9deb0f13dc52003, 0x32f64c6b9f0b24f0, 0, 0}, {0x5fa6c41b89da3543, 0xd0aa705a7cbdff88, 0, 0}}};

static void check(int at, int n_threads) {
    size_t n = sizes[at].n;
    for (int kind = 0; kind < (n < N_MAX ? N_KINDS : 2); kind++) {
        make(n, kind);
        for (int clustered = 0; clustered < 2; clustered++) {
            struct lk_resampling how = {40 + (uint64_t)at, sizes[at].n_replicates, 0.95, clustered ? source : NULL,
                                        n_threads};
            uint64_t hash = of_rates(n, &how) ^ 3 * of_totals(n, &how) ^ 5 * of_numbers(n, &how);
            if (hash != pinned[at][clustered][kind])
                fail_msg("%zu units, kind %d, clustered %d, %d threads, %s: other bits, 0x%016llx", n, kind, clustered,
                         n_threads, lk_cpu_isa_name(lk_cpu_isa()), (unsigned long long)hash);
        }
    }
}

static void with_any_number_of_threads(void **state) {
    (void)state;
    for (int at = 0; at < N_SIZES; at++)
        for (int n_threads = 1; n_threads <= (sizes[at].n > 1000 ? 1 : 4); n_threads++) check(at, n_threads);
}

static void with_any_instructions(void **state) {
    (void)state;
    enum lk_isa most = lk_cpu_isa();
    for (int isa = LK_ISA_PORTABLE; isa < (int)most; isa++) {
        lk_cpu_isa_set((enum lk_isa)isa);
        for (int at = 0; at < N_SIZES; at++) check(at, 1);
    }
    lk_cpu_isa_set(most);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_any_number_of_threads),
        cmocka_unit_test(with_any_instructions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
