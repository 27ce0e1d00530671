/* Disagreement is a sum over pairs of values, observed within units and expected over all. Nominal, interval and
 * ordinal need only sums of squares: values (for ordinal: their mid-ranks) have squared distances. */
#include "eval/stats/agreement/krippendorff.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/summary.h"

enum { VALUES_MAX = 32 };

static const char *const no_units = "no unit with two or more ratings";
static const char *const all_equal = "all ratings are equal";

const char *lk_measurement_name(enum lk_measurement level) {
    static const char *const names[] = {"nominal", "ordinal", "interval", "ratio"};
    return names[level];
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The pairable ratings: those of units with two or more. */
struct coded {
    double *values;  /* [n_values], ascending */
    double *counts;  /* [n_values]: how often each occurs */
    int32_t *paired; /* [n_units]: ratings, 0 or at least 2 */
    int32_t *codes;  /* of each unit in turn, ascending: which values its ratings have ... */
    int32_t *times;  /* ... and how many of them each */
    size_t *first;   /* [n_units + 1] of codes and times */
    size_t n_values, n_units, n_used;
    int n_raters;
};

static void coded_free(struct coded *coded) {
    lk_free(coded->values);
    lk_free(coded->counts);
    lk_free(coded->paired);
    lk_free(coded->codes);
    lk_free(coded->times);
    lk_free(coded->first);
}

static int ascending_codes(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

static int32_t code_of(const struct coded *coded, double value) {
    size_t low = 0, high = coded->n_values;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (coded->values[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return (int32_t)low;
}

/* Unit u's values and how often it has each. */
static void code_unit(const double *unit, size_t u, struct coded *coded) {
    int32_t *codes = coded->codes + coded->first[u], *times = coded->times + coded->first[u];
    size_t n = 0, n_codes = 0;
    for (int r = 0; r < coded->n_raters && coded->paired[u]; r++)
        if (!isnan(unit[r])) codes[n++] = code_of(coded, unit[r]);
    if (n) qsort(codes, n, sizeof *codes, ascending_codes);
    for (size_t i = 0; i < n; i++) {
        if (!i || codes[i] != codes[n_codes - 1]) {
            times[n_codes] = 0;
            codes[n_codes++] = codes[i];
        }
        times[n_codes - 1]++;
    }
    coded->first[u + 1] = coded->first[u] + n_codes;
}

static void code_ratings(const double *ratings, struct coded *coded) {
    size_t width = (size_t)coded->n_raters, n = 0;
    for (size_t u = 0; u < coded->n_units; u++) {
        const double *unit = ratings + u * width;
        int32_t present = 0;
        for (size_t r = 0; r < width; r++) present += !isnan(unit[r]);
        coded->paired[u] = present < 2 ? 0 : present;
        coded->n_used += present >= 2;
        for (size_t r = 0; r < width && present >= 2; r++)
            if (!isnan(unit[r])) coded->values[n++] = unit[r];
    }
    if (n) qsort(coded->values, n, sizeof *coded->values, ascending);
    for (size_t i = 0; i < n; i++) {
        if (!i || coded->values[i] != coded->values[coded->n_values - 1]) {
            coded->counts[coded->n_values] = 0;
            coded->values[coded->n_values++] = coded->values[i];
        }
        coded->counts[coded->n_values - 1]++;
    }
    coded->first[0] = 0;
    for (size_t u = 0; u < coded->n_units; u++) code_unit(ratings + u * width, u, coded);
}

static enum lk_code coded_make(const double *ratings, size_t n_units, int n_raters, struct coded *coded) {
    memset(coded, 0, sizeof *coded);
    if (n_raters < 1 || n_units > INT32_MAX)
        return lk_fail(LK_E_INPUT, "alpha: expected 1 rater or more and under 2^31 units, got %d and %zu", n_raters,
                       n_units);
    size_t n = n_units * (size_t)n_raters;
    for (size_t i = 0; i < n; i++)
        if (isinf(ratings[i]))
            return lk_fail(LK_E_INPUT, "alpha: unit %zu: expected finite ratings", i / (size_t)n_raters);
    coded->n_units = n_units;
    coded->n_raters = n_raters;
    coded->values = lk_malloc(n * sizeof *coded->values);
    coded->counts = lk_malloc(n * sizeof *coded->counts);
    coded->codes = lk_malloc(n * sizeof *coded->codes);
    coded->times = lk_malloc(n * sizeof *coded->times);
    coded->paired = lk_malloc(n_units * sizeof *coded->paired);
    coded->first = lk_malloc((n_units + 1) * sizeof *coded->first);
    if (!coded->values || !coded->counts || !coded->codes || !coded->times || !coded->paired || !coded->first) {
        coded_free(coded);
        return lk_fail(LK_E_NOMEM, "alpha: no memory for %zu units of %d raters", n_units, n_raters);
    }
    code_ratings(ratings, coded);
    return LK_OK;
}

/* Where each value lies on the scale on which differences are squared: mid-ranks for ordinal, the values around their
 * mean for interval, divided by a power of two so that squares neither overflow nor vanish. */
static void place(const struct coded *coded, enum lk_measurement level, double *places) {
    const int exponent = lk_exponent_of(coded->values, coded->n_values);
    double n = 0, sum = 0;
    for (size_t v = 0; v < coded->n_values; v++) {
        places[v] = ldexp(coded->values[v], -exponent) - ldexp(coded->values[0], -exponent);
        sum += coded->counts[v] * places[v];
        if (level == LK_ORDINAL) places[v] = n + coded->counts[v] / 2;
        n += coded->counts[v];
    }
    for (size_t v = 0; v < coded->n_values && level != LK_ORDINAL; v++) places[v] -= sum / n;
}

static double squared_distance(enum lk_measurement level, const double *places, const double *values, int32_t c,
                               int32_t k) {
    if (c == k) return 0;
    if (level == LK_NOMINAL) return 1;
    double apart = places[c] - places[k];
    if (level == LK_RATIO) {
        const double scale = fmax(fabs(values[c]), fabs(values[k])) > 1 ? 0.25 : 1,
                     sum = values[c] * scale + values[k] * scale;
        apart = sum == 0 ? 0 : (values[c] * scale - values[k] * scale) / sum;
    }
    return apart * apart;
}

static double observed(const struct coded *coded, enum lk_measurement level, const double *places) {
    double total = 0;
    for (size_t u = 0; u < coded->n_units; u++) {
        double sum = 0;
        for (size_t i = coded->first[u]; i < coded->first[u + 1]; i++)
            for (size_t j = coded->first[u]; j < i; j++)
                sum += (double)coded->times[i] * coded->times[j] *
                       squared_distance(level, places, coded->values, coded->codes[i], coded->codes[j]);
        if (sum > 0) total += 2 * sum / (coded->paired[u] - 1);
    }
    return total;
}

static double expected(const struct coded *coded, enum lk_measurement level, const double *places) {
    double n = 0, sum = 0, squares = 0;
    for (size_t v = 0; v < coded->n_values; v++) n += coded->counts[v];
    if (level == LK_RATIO) {
        for (size_t c = 0; c < coded->n_values; c++)
            for (size_t k = 0; k < c; k++)
                squares += coded->counts[c] * coded->counts[k] *
                           squared_distance(level, places, coded->values, (int32_t)c, (int32_t)k);
        return 2 * squares / (n - 1);
    }
    for (size_t v = 0; v < coded->n_values; v++) {
        double place = level == LK_NOMINAL ? coded->counts[v] : places[v];
        sum += coded->counts[v] * place;
        squares += level == LK_NOMINAL ? 0 : coded->counts[v] * place * place;
    }
    if (level == LK_NOMINAL) return (n * n - sum) / (n - 1);
    return 2 * (n * squares - sum * sum) / (n - 1);
}

static void measure(const struct coded *coded, enum lk_measurement level, double *places, struct lk_number *out) {
    *out = (struct lk_number){.n = coded->n_used};
    if (!coded->n_used) {
        out->undefined = no_units;
        return;
    }
    place(coded, level, places);
    double by_chance = coded->n_values > 1 ? expected(coded, level, places) : 0;
    if (!(by_chance > 0))
        out->undefined = all_equal;
    else
        out->value = 1 - observed(coded, level, places) / by_chance;
}

enum lk_code lk_krippendorff_alpha(const double *ratings, size_t n_units, int n_raters, enum lk_measurement level,
                                   struct lk_number *out) {
    struct coded coded;
    memset(out, 0, sizeof *out);
    LK_TRY(coded_make(ratings, n_units, n_raters, &coded));
    double *places = lk_calloc(coded.n_values, sizeof *places);
    if (places) measure(&coded, level, places, out);
    bool done = places;
    lk_free(places);
    coded_free(&coded);
    return done ? LK_OK : lk_fail(LK_E_NOMEM, "alpha: no memory for the values");
}

/* Columns of a unit for resampling, in whole numbers: how often each value occurs, and the pairs of each two values.
 * Its cell is the number of its ratings, by which its pairs are divided. */
static size_t n_pairs(size_t n_values) { return n_values * (n_values + 1) / 2; }

static void unit_columns(const struct coded *coded, size_t u, double *columns) {
    double *pairs = columns + coded->n_values;
    for (size_t i = coded->first[u]; i < coded->first[u + 1]; i++) {
        size_t a = (size_t)coded->codes[i];
        double times = columns[a] = coded->times[i];
        for (size_t j = coded->first[u]; j < i; j++)
            pairs[a * (a + 1) / 2 + (size_t)coded->codes[j]] = times * coded->times[j];
        pairs[a * (a + 1) / 2 + a] = times * (times - 1) / 2;
    }
}

/* Alpha of all levels from the sums of a resample. */
static void alpha_of_totals(const double *totals, const void *context, void *scratch, double *out) {
    const struct coded *all = context;
    size_t v = all->n_values, width = v + n_pairs(v);
    double *counts = scratch, *pairs = counts + v, *places = pairs + n_pairs(v);
    memset(scratch, 0, width * sizeof *counts);
    for (int m = 2; m <= all->n_raters; m++)
        for (size_t c = 0; c < width; c++)
            counts[c] += c < v ? totals[(size_t)m * width + c] : totals[(size_t)m * width + c] / (m - 1);
    struct coded drawn = *all;
    drawn.counts = counts;
    for (int level = 0; level < LK_N_MEASUREMENTS; level++) {
        place(&drawn, level, places);
        size_t n_present = 0;
        for (size_t c = 0; c < v; c++) n_present += counts[c] > 0;
        double sum = 0, by_chance = n_present > 1 ? expected(&drawn, level, places) : 0;
        for (size_t a = 0; a < v; a++)
            for (size_t b = 0; b < a; b++)
                sum +=
                    pairs[a * (a + 1) / 2 + b] * squared_distance(level, places, all->values, (int32_t)a, (int32_t)b);
        out[level] = by_chance > 0 ? 1 - 2 * sum / by_chance : NAN;
    }
}

static enum lk_code resample(const struct coded *coded, const struct lk_resampling *how, struct lk_number *out) {
    size_t v = coded->n_values, width = v + n_pairs(v), n = (size_t)how->n_replicates;
    double *columns = lk_calloc(coded->n_units * width, sizeof *columns);
    double *replicates = lk_malloc(LK_N_MEASUREMENTS * n * sizeof *replicates);
    enum lk_code rc = LK_OK;
    if (!columns || !replicates) {
        rc = lk_fail(LK_E_NOMEM, "alpha: no memory for %zu replicates", n);
    } else {
        for (size_t u = 0; u < coded->n_units; u++) unit_columns(coded, u, columns + u * width);
        struct lk_tally tally = {coded->n_units, (int)width, coded->n_raters + 1, columns, coded->paired, NULL};
        rc = lk_bootstrap_totals(&tally, how, alpha_of_totals, coded, (width + v) * sizeof(double), LK_N_MEASUREMENTS,
                                 replicates);
        if (!rc) rc = lk_intervals_percentile(replicates, n, how, out, LK_N_MEASUREMENTS);
    }
    lk_free(columns);
    lk_free(replicates);
    return rc;
}

enum lk_code lk_krippendorff_intervals(const double *ratings, size_t n_units, int n_raters,
                                       const struct lk_resampling *how, struct lk_number *out) {
    struct coded coded;
    double places[VALUES_MAX];
    memset(out, 0, LK_N_MEASUREMENTS * sizeof *out);
    LK_TRY(coded_make(ratings, n_units, n_raters, &coded));
    enum lk_code rc = LK_OK;
    if (coded.n_values > VALUES_MAX)
        rc = lk_fail(LK_E_INPUT, "alpha: expected at most %d different ratings for intervals, got %zu", VALUES_MAX,
                     coded.n_values);
    for (int level = 0; level < LK_N_MEASUREMENTS && !rc; level++) measure(&coded, level, places, &out[level]);
    if (!rc && !out[LK_NOMINAL].undefined) rc = resample(&coded, how, out);
    coded_free(&coded);
    return rc;
}
