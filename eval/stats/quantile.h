/* Quantiles by linear interpolation, numpy's default: of n values, quantile q lies at position (n - 1) q. */
#pragma once

#include <stddef.h>

/* values [n], n >= 1, without NaN; reordered (a selection, not a sort). q in [0, 1]. */
double lk_quantile(double *values, size_t n, double q);
/* The same of values that stay as they are; scratch [n]. Made for tails: most values are looked at once. */
double lk_quantile_of(const double *values, size_t n, double q, double *scratch);
