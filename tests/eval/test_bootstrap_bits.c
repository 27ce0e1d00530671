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
            hash = add_number(hash, &lk_disparity_of(results, g, m)->number);
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
     {{0xac3e293fe7827ff6, 0x672a13ee181a9607, 0xb92e06f9be90a087, 0xd60c6a3c6e5803d2},
      {0xac3e293fe7827ff6, 0x672a13ee181a9607, 0xb92e06f9be90a087, 0xd60c6a3c6e5803d2}},
     {{0xcfd95cc10cb7f514, 0xe594e9fcf8bfb76d, 0x1a304c47a842bb48, 0x037ebb480e26b9ae},
      {0xed4d761186f6591a, 0x5694b24d8e62964f, 0xfa13151a9d1631e9, 0x24002f183b6f18c4}},
     {{0x914fa375cbf3d228, 0x232e72acba04520b, 0xa5f9cf74e628ad87, 0x5889a7ed47d8e82d},
      {0xe07a20245a299297, 0x7cbec9da0ad9f850, 0x8a0a3e1d4e41e1df, 0x173eababce803767}},
     {{0xdfd3352d4d0094fb, 0xc97ea4bdd22f084c, 0xf5ec460806b16b53, 0xb9c8543cafca79a2},
      {0xd973468d1a776c3e, 0x739e3c9354949339, 0xa2127fd70a95b1c0, 0x3cfb3c5fa09c4b55}},
     {{0xd586b860867504e0, 0xb7b4a4d3b4545c1f, 0x9a1912d080a45a3d, 0x16f2a91eb75d8f81},
      {0x8b83030e76317da7, 0x60301fe6dd12820a, 0xfafee1c5e30497de, 0xb9e95f397928e35e}},
     {{0x039a0b7512aaf147, 0xc1d1c01f244916a9, 0, 0}, {0x90c275be24b78830, 0xfbcc3953560d42dd, 0, 0}}};

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
