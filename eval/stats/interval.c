/* Intervals from replicates. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/resampling/bootstrap.h"
#include "eval/stats/quantile.h"
#include "eval/stats/resampling/resample.h"
#include "eval/stats/special/special.h"

static size_t keep_existing(const double *replicates, size_t n, double *kept) {
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(replicates[i])) kept[n_kept++] = replicates[i];
    return n_kept;
}

static size_t count_existing(const double *replicates, size_t n) {
    size_t n_missing = 0;
#pragma omp simd reduction(+ : n_missing)
    for (size_t i = 0; i < n; i++) n_missing += isnan(replicates[i]);
    return n - n_missing;
}

void lk_interval_percentile_in(const double *replicates, size_t n, double confidence, double *scratch,
                               struct lk_number *number) {
    size_t n_kept = count_existing(replicates, n);
    if (n_kept < n) {
        keep_existing(replicates, n, scratch + n);
        replicates = scratch + n;
    }
    number->low = number->high = 0;
    if (!n_kept) return;
    double tail = (100 - 100 * confidence) / 2 / 100; /* 0.025 exactly for 95 % */
    number->low = lk_quantile_of(replicates, n_kept, tail, scratch);
    number->high = lk_quantile_of(replicates, n_kept, 1 - tail, scratch);
}

enum lk_code lk_interval_percentile(const double *replicates, size_t n, double confidence, struct lk_number *number) {
    double *scratch = lk_malloc(2 * n * sizeof *scratch);
    if (!scratch) return lk_fail(LK_E_NOMEM, "bootstrap: no memory for %zu replicates", n);
    lk_interval_percentile_in(replicates, n, confidence, scratch, number);
    lk_free(scratch);
    return LK_OK;
}

enum lk_code lk_intervals_percentile_each(const double *replicates, size_t n, const struct lk_resampling *how,
                                          const double *confidence, struct lk_number *numbers, size_t n_numbers) {
    int n_threads = lk_resampling_threads(how);
    double *scratch = lk_malloc(2 * n * (size_t)n_threads * sizeof *scratch);
    if (!scratch) return lk_fail(LK_E_NOMEM, "bootstrap: no memory for %zu replicates", n);
#pragma omp parallel for schedule(dynamic) num_threads(n_threads)
    for (size_t i = 0; i < n_numbers; i++)
        if (!numbers[i].undefined)
            lk_interval_percentile_in(replicates + i * n, n, confidence ? confidence[i] : how->confidence,
                                      scratch + 2 * n * (size_t)omp_get_thread_num(), &numbers[i]);
    lk_free(scratch);
    return LK_OK;
}

enum lk_code lk_intervals_percentile(const double *replicates, size_t n, const struct lk_resampling *how,
                                     struct lk_number *numbers, size_t n_numbers) {
    return lk_intervals_percentile_each(replicates, n, how, NULL, numbers, n_numbers);
}

double lk_expanded_confidence(double confidence, double n_drawn, double df) {
    if (!(df >= 1) || !(n_drawn > 1)) return 1;
    double t = lk_t_quantile((1 - confidence) / 2, df); /* below 0 */
    return 1 - 2 * lk_normal_cdf(sqrt(n_drawn / (n_drawn - 1)) * t);
}

double lk_expanded_df(double n1, double n2) {
    if (!(n1 > 1 && n2 > 1)) return 0;
    double sum = 1 / n1 + 1 / n2;
    return sum * sum / (1 / (n1 * n1 * (n1 - 1)) + 1 / (n2 * n2 * (n2 - 1)));
}

/* The skewness of the estimator, from what it becomes without each unit. NaN when that never varies. */
static double acceleration(const double *jackknife, size_t n) {
    double mean = 0, cubes = 0, squares = 0, count = (double)n;
    for (size_t i = 0; i < n; i++) mean += jackknife[i];
    mean /= count;
    for (size_t i = 0; i < n; i++) {
        double influence = (count - 1) * (mean - jackknife[i]) / count;
        cubes += influence * influence * influence;
        squares += influence * influence;
    }
    return squares > 0 ? cubes / (squares * sqrt(squares)) / 6 : NAN;
}

static double shifted(double z, double bias, double a) {
    return lk_normal_cdf(bias + (bias + z) / (1 - a * (bias + z)));
}

static const char only_one[] = "there is one unit to draw from";

enum lk_code lk_interval_bca(const double *replicates, size_t n, const double *jackknife, size_t n_jackknife,
                             double confidence, struct lk_number *number) {
    double *kept = lk_malloc(n * sizeof *kept);
    if (!kept) return lk_fail(LK_E_NOMEM, "bootstrap: no memory for %zu replicates", n);
    size_t n_kept = keep_existing(replicates, n, kept), below = 0, at_most = 0;
    for (size_t i = 0; i < n_kept; i++) {
        below += kept[i] < number->value;
        at_most += kept[i] <= number->value;
    }
    double a = acceleration(jackknife, n_jackknife);
    number->low = number->high = 0;
    if (n_jackknife < 2)
        number->no_interval = only_one;
    else if (isnan(a))
        number->no_interval = "without any one unit the value is the same, so that BCa has no acceleration";
    else if (!at_most || below == n_kept)
        number->no_interval = "the value lies beyond all resamples, so that BCa has no bias";
    if (!number->no_interval && at_most > 0 && below < n_kept && isfinite(a)) {
        double bias = lk_normal_quantile((double)(below + at_most) / (2 * (double)n_kept));
        double tail = (100 - 100 * confidence) / 2 / 100, z = lk_normal_quantile(tail);
        number->low = lk_quantile(kept, n_kept, shifted(z, bias, a));
        number->high = lk_quantile(kept, n_kept, shifted(-z, bias, a));
    }
    lk_free(kept);
    return LK_OK;
}

enum lk_code lk_interval_of_kind(const double *replicates, const struct lk_resampling *how, enum lk_interval_kind kind,
                                 const double *jackknife, size_t n_drawn, struct lk_number *number) {
    size_t n = (size_t)how->n_replicates;
    double drawn = (double)n_drawn, confidence = how->confidence;
    if (n_drawn < 2) number->no_interval = only_one;
    if (kind == LK_INTERVAL_BCA) return lk_interval_bca(replicates, n, jackknife, n_drawn, confidence, number);
    if (kind == LK_INTERVAL_EXPANDED) confidence = lk_expanded_confidence(confidence, drawn, drawn - 1);
    return lk_interval_percentile(replicates, n, confidence, number);
}

static enum lk_code fill(size_t n_units, size_t n_drawn, const struct lk_resampling *how, lk_statistic statistic,
                         const void *context, size_t scratch_bytes, enum lk_interval_kind kind, double *values,
                         struct lk_number *out) {
    double *left_out = values + how->n_replicates;
    LK_TRY(lk_bootstrap(n_units, how, statistic, context, scratch_bytes, 1, values));
    if (kind == LK_INTERVAL_BCA) LK_TRY(lk_jackknife(n_units, how, statistic, context, scratch_bytes, 1, left_out));
    return lk_interval_of_kind(values, how, kind, left_out, n_drawn, out);
}

enum lk_code lk_bootstrap_number(size_t n_units, const struct lk_resampling *how, lk_statistic statistic,
                                 const void *context, size_t scratch_bytes, enum lk_interval_kind kind,
                                 struct lk_number *out) {
    *out = (struct lk_number){.n = n_units};
    if (!n_units) {
        out->undefined = "no unit";
        return LK_OK;
    }
    size_t n_drawn;
    LK_TRY(lk_resampling_units(n_units, how, &n_drawn));
    int32_t *all = lk_malloc(n_units * sizeof *all);
    void *scratch = lk_malloc(scratch_bytes);
    double *values = lk_malloc(((size_t)how->n_replicates + n_drawn) * sizeof *values);
    enum lk_code rc = LK_OK;
    if (!all || !scratch || !values) {
        rc = lk_fail(LK_E_NOMEM, "bootstrap: no memory for %zu units", n_units);
    } else {
        for (size_t i = 0; i < n_units; i++) all[i] = (int32_t)i;
        statistic(all, n_units, context, scratch, &out->value);
        if (isnan(out->value)) {
            out->value = 0;
            out->undefined = "the statistic does not exist";
        } else {
            rc = fill(n_units, n_drawn, how, statistic, context, scratch_bytes, kind, values, out);
        }
    }
    lk_free(all);
    lk_free(scratch);
    lk_free(values);
    return rc;
}
