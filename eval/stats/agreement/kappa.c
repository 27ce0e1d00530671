#include "eval/stats/agreement/kappa.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/double_double.h"
#include "eval/stats/special/special.h"

double lk_label_distance(enum lk_weights weights, int i, int j, int n_labels) {
    double apart = n_labels > 1 ? fabs((double)(i - j)) / (n_labels - 1) : 0;
    if (weights == LK_WEIGHTS_LINEAR) return apart;
    if (weights == LK_WEIGHTS_QUADRATIC) return apart * apart;
    return i != j;
}

/* Distances in whole levels: their unit, which lk_label_distance divides by, falls out of everything below. */
static double levels_apart(enum lk_weights weights, int i, int j) {
    double apart = weights == LK_WEIGHTS_NONE ? i != j : abs(i - j);
    return weights == LK_WEIGHTS_QUADRATIC ? apart * apart : apart;
}

static struct lk_dd of_count(double a, double b) { return lk_dd_multiply(lk_dd_of(a), lk_dd_of(b)); }

/* kappa = 1 - observed / expected distance, as (expected - observed) / expected: the difference of sums of whole
 * numbers has its digits where kappa is near 0. *chance: the expected distance; *left: 1 - kappa. */
static double kappa_of(const int64_t *table, const double *row, const double *column, int k, enum lk_weights weights,
                       double n, double *chance, double *left) {
    struct lk_dd expected = {0}, difference = {0}, observed = {0};
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            const struct lk_dd apart = lk_dd_of(levels_apart(weights, i, j));
            struct lk_dd by_chance = lk_dd_multiply(apart, of_count(row[i], column[j]));
            struct lk_dd there = lk_dd_multiply(apart, of_count((double)table[i * k + j], n));
            expected = lk_dd_add(expected, by_chance);
            observed = lk_dd_add(observed, there);
            difference = lk_dd_add(difference, lk_dd_subtract(by_chance, there));
        }
    *chance = expected.hi / n / n;
    *left = expected.hi > 0 ? observed.hi / expected.hi : 0;
    return expected.hi > 0 ? difference.hi / expected.hi : 0;
}

/* The delta method's variances, of w_ij - (w_i. + w_.j)(1 - kappa) over the observed pairs and of w_ij - w_i. - w_.j
 * over the pairs expected by chance, written with distances 1 - w, of which only small ones are summed where nearly all
 * labels are one. chance: the expected distance; left: 1 - kappa. scratch [2, k]. */
static void standard_errors(const int64_t *table, const double *row, const double *column, int k,
                            enum lk_weights weights, double n, double chance, double left, double *scratch,
                            struct lk_kappa *out) {
    double *from_row = scratch, *from_column = scratch + k, sum = 0, sum_null = 0;
    for (int i = 0; i < k; i++) {
        from_row[i] = from_column[i] = 0;
        for (int j = 0; j < k; j++) {
            from_row[i] += levels_apart(weights, i, j) * column[j] / n;
            from_column[i] += levels_apart(weights, j, i) * row[j] / n;
        }
    }
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            double apart = levels_apart(weights, i, j), beyond = from_row[i] + from_column[j] - chance;
            double off = left * beyond - apart, off_null = beyond - apart;
            sum += (double)table[i * k + j] / n * off * off;
            sum_null += row[i] / n * (column[j] / n) * off_null * off_null;
        }
    if (sum_null < 1e-24 * chance) sum_null = 0; /* what rounding left */
    out->standard_error = sqrt(sum / n) / chance;
    out->standard_error_null = sqrt(sum_null / n) / chance;
}

static void measure(const int64_t *table, int k, enum lk_weights weights, double *scratch, struct lk_kappa *out) {
    double *row = scratch, *column = scratch + k, n = 0, exact = 0, within = 0, chance, left;
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            double count = (double)table[i * k + j];
            row[i] += count;
            column[j] += count;
            n += count;
            if (i == j) exact += count;
            if (abs(i - j) <= 1) within += count;
        }
    out->kappa.n = (size_t)n;
    if (n == 0) {
        out->kappa.undefined = "no pair of labels";
        return;
    }
    out->exact = exact / n;
    out->within_one = within / n;
    out->kappa.value = kappa_of(table, row, column, k, weights, n, &chance, &left);
    if (!(chance > 0)) {
        out->kappa.value = 0;
        out->kappa.undefined = "both gave one and the same label throughout";
        return;
    }
    standard_errors(table, row, column, k, weights, n, chance, left, scratch + 2 * k, out);
    double reach = lk_normal_quantile(0.975) * out->standard_error;
    out->kappa.low = fmax(-1, out->kappa.value - reach);
    out->kappa.high = fmin(1, out->kappa.value + reach);
    out->p = 1;
    if (out->standard_error_null > 0) {
        out->z = out->kappa.value / out->standard_error_null;
        out->p = 2 * lk_normal_sf(fabs(out->z));
    }
}

enum lk_code lk_cohen_kappa_table(const int64_t *table, int n_labels, enum lk_weights weights, struct lk_kappa *out) {
    memset(out, 0, sizeof *out);
    if (n_labels < 1 || n_labels > LK_LABELS_MAX)
        return lk_fail(LK_E_INPUT, "kappa: labels: expected 1 to %d levels, got %d", LK_LABELS_MAX, n_labels);
    for (int i = 0; i < n_labels * n_labels; i++)
        if (table[i] < 0 || table[i] > INT64_C(1) << 40)
            return lk_fail(LK_E_INPUT, "kappa: table: expected counts, got %lld", (long long)table[i]);
    double *scratch = lk_calloc((size_t)n_labels * 4, sizeof *scratch);
    if (!scratch) return lk_fail(LK_E_NOMEM, "kappa: no memory for %d labels", n_labels);
    measure(table, n_labels, weights, scratch, out);
    lk_free(scratch);
    return LK_OK;
}

enum lk_code lk_cohen_kappa(const int32_t *a, const int32_t *b, size_t n, int32_t first, int32_t last,
                            enum lk_weights weights, struct lk_kappa *out) {
    memset(out, 0, sizeof *out);
    int64_t levels = (int64_t)last - first + 1;
    if (levels < 1 || levels > LK_LABELS_MAX)
        return lk_fail(LK_E_INPUT, "kappa: labels: expected 1 to %d levels, got %d to %d", LK_LABELS_MAX, first, last);
    int k = (int)levels;
    int64_t *table = lk_calloc((size_t)k * (size_t)k, sizeof *table);
    if (!table) return lk_fail(LK_E_NOMEM, "kappa: no memory for a table of %d labels", k);
    for (size_t i = 0; i < n; i++)
        if (a[i] >= first && a[i] <= last && b[i] >= first && b[i] <= last)
            table[(size_t)(a[i] - first) * (size_t)k + (size_t)(b[i] - first)]++;
    enum lk_code rc = lk_cohen_kappa_table(table, k, weights, out);
    lk_free(table);
    return rc;
}
