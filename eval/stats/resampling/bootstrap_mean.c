/* The mean of the drawn units, without a list of them: of eight resamples side by side, each number is added as it is
 * drawn. */
#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/resampling/bootstrap.h"
#include "eval/stats/resampling/draws.h"
#include "eval/stats/resampling/resample.h"

static void mean_of_drawn(const int32_t *drawn, size_t n, const void *context, void *scratch, double *out) {
    (void)scratch;
    const double *values = context;
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += values[drawn[i]];
    *out = n ? sum / (double)n : NAN;
}

/* Resamples first..first + 7 of units that are drawn each by itself: the same sums in the same order. */
static void eight_means(const double *values, size_t n, uint64_t seed, uint64_t first, double *means) {
    struct lk_lanes lanes;
    uint32_t draws[LK_DRAWS_BLOCK * LK_DRAW_LANES];
    double sums[LK_DRAW_LANES] = {0};
    lk_lanes_numbered(&lanes, seed, "boot|", first);
    for (size_t from = 0; from < n; from += LK_DRAWS_BLOCK) {
        size_t count = n - from < LK_DRAWS_BLOCK ? n - from : LK_DRAWS_BLOCK;
        lk_lanes_bounded(&lanes, (uint32_t)n, 0, count, draws);
        for (size_t i = 0; i < count; i++)
            for (size_t lane = 0; lane < LK_DRAW_LANES; lane++) sums[lane] += values[draws[i * LK_DRAW_LANES + lane]];
    }
    for (size_t lane = 0; lane < LK_DRAW_LANES; lane++) means[lane] = sums[lane] / (double)n;
}

static enum lk_code resample(const double *values, size_t n, const struct lk_resampling *how, double *means) {
    if (how->clusters) return lk_bootstrap(n, how, mean_of_drawn, values, 0, 1, means);
#pragma omp parallel for schedule(static) num_threads(lk_resampling_threads(how))
    for (int b = 0; b < how->n_replicates; b += LK_DRAW_LANES) {
        double block[LK_DRAW_LANES];
        int left = how->n_replicates - b;
        eight_means(values, n, how->seed, (uint64_t)b, block);
        memcpy(means + b, block, (size_t)(left < LK_DRAW_LANES ? left : LK_DRAW_LANES) * sizeof *means);
    }
    return LK_OK;
}

static void mean_of_totals(const double *totals, const void *context, void *scratch, double *out) {
    (void)context;
    (void)scratch;
    *out = totals[0] > 0 ? totals[1] / totals[0] : NAN;
}

/* From sums: in the time of one pass, where the mean of each list of units left takes their square. */
static enum lk_code jackknife(const double *values, size_t n, const struct lk_resampling *how, double *out) {
    double *columns = lk_malloc(2 * n * sizeof *columns);
    if (!columns) return lk_fail(LK_E_NOMEM, "bootstrap: no memory for %zu units", n);
    for (size_t i = 0; i < n; i++) {
        columns[2 * i] = 1;
        columns[2 * i + 1] = values[i];
    }
    struct lk_tally tally = {n, 2, 1, columns, NULL, NULL};
    enum lk_code rc = lk_jackknife_totals(&tally, how, mean_of_totals, NULL, 0, 1, out);
    lk_free(columns);
    return rc;
}

enum lk_code lk_bootstrap_mean(const double *values, size_t n, const struct lk_resampling *how,
                               enum lk_interval_kind kind, struct lk_number *out) {
    *out = (struct lk_number){.n = n, .undefined = n ? NULL : "no unit"};
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i])) {
            memset(out, 0, sizeof *out);
            return lk_fail(LK_E_INPUT, "bootstrap: value %zu: expected a finite number, got %g", i, values[i]);
        }
    if (!n) return LK_OK;
    size_t n_drawn;
    LK_TRY(lk_resampling_units(n, how, &n_drawn));
    size_t n_means = (size_t)how->n_replicates;
    double *means = lk_malloc((n_means + n_drawn) * sizeof *means);
    if (!means) return lk_fail(LK_E_NOMEM, "bootstrap: no memory for %d replicates", how->n_replicates);
    for (size_t i = 0; i < n; i++) out->value += values[i];
    out->value /= (double)n;
    enum lk_code rc = resample(values, n, how, means);
    if (!rc && kind == LK_INTERVAL_BCA) rc = jackknife(values, n, how, means + n_means);
    if (!rc) rc = lk_interval_of_kind(means, how, kind, means + n_means, n_drawn, out);
    lk_free(means);
    return rc;
}
