#include "eval/stats/summary.h"
#include "eval/stats/double_double.h"

#include <float.h>
#include <math.h>
#include <string.h>

int lk_exponent_of(const double *values, size_t n) {
    double largest = 0;
    int exponent;
    for (size_t i = 0; i < n; i++)
        if (fabs(values[i]) > largest) largest = fabs(values[i]);
    frexp(largest, &exponent);
    return exponent;
}

size_t lk_nearest_mean(const double *values, size_t n) {
    const int exponent = lk_exponent_of(values, n);
    double mean = 0, nearest = INFINITY, count = 0;
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(values[i])) mean += ldexp(values[i], -exponent), count++;
    mean /= count;
    for (size_t i = 0; i < n; i++) {
        double off = fabs(ldexp(values[i], -exponent) - mean);
        if (off < nearest) at = i, nearest = off;
    }
    return at;
}

struct lk_origin lk_origin_of(const double *values, size_t n) {
    const int exponent = lk_exponent_of(values, n);
    const double value = n ? values[lk_nearest_mean(values, n)] : 0;
    return (struct lk_origin){exponent, isnan(value) ? 0 : ldexp(value, -exponent)};
}

enum lk_code lk_summarise(const double *values, size_t n, struct lk_summary *out) {
    memset(out, 0, sizeof *out);
    double sum = 0, squares = 0, rest = 0;
    int exponent = lk_exponent_of(values, n);
    for (size_t i = 0; i < n; i++) {
        if (isinf(values[i])) return lk_fail(LK_E_INPUT, "mean: value %zu: expected a finite number", i);
        if (isnan(values[i])) continue;
        if (!out->n || values[i] < out->minimum) out->minimum = values[i];
        if (!out->n || values[i] > out->maximum) out->maximum = values[i];
        out->n++;
        sum += ldexp(values[i], -exponent);
    }
    out->sd = NAN;
    if (!out->n) {
        out->undefined = "no values";
        return LK_OK;
    }
    double count = (double)out->n, mean = sum / count;
    out->mean = ldexp(mean, exponent);
    for (size_t i = 0; i < n; i++) {
        if (isnan(values[i])) continue;
        double off = ldexp(values[i], -exponent) - mean;
        squares += off * off;
        rest += off; /* what rounding the mean left */
    }
    if (out->n > 1) out->sd = ldexp(sqrt(fmax(squares - rest * rest / count, 0) / (count - 1)), exponent);
    return isinf(out->sd) ? lk_fail(LK_E_INPUT, "the standard deviation is beyond %g; give smaller numbers", DBL_MAX)
                          : LK_OK;
}
