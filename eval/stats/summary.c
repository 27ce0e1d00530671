#include "eval/stats/summary.h"

#include <math.h>
#include <string.h>

enum lk_code lk_summarise(const double *values, size_t n, struct lk_summary *out) {
    memset(out, 0, sizeof *out);
    double sum = 0, squares = 0, rest = 0;
    for (size_t i = 0; i < n; i++) {
        if (isinf(values[i])) return lk_fail(LK_E_INPUT, "mean: value %zu: expected a finite number", i);
        if (isnan(values[i])) continue;
        if (!out->n || values[i] < out->minimum) out->minimum = values[i];
        if (!out->n || values[i] > out->maximum) out->maximum = values[i];
        out->n++;
        sum += values[i];
    }
    out->sd = NAN;
    if (!out->n) {
        out->undefined = "no values";
        return LK_OK;
    }
    double count = (double)out->n;
    out->mean = sum / count;
    for (size_t i = 0; i < n; i++) {
        if (isnan(values[i])) continue;
        double off = values[i] - out->mean;
        squares += off * off;
        rest += off; /* what rounding the mean left */
    }
    if (out->n > 1) out->sd = sqrt(fmax(squares - rest * rest / count, 0) / (count - 1));
    return LK_OK;
}
