/* A column of numbers in short. */
#pragma once

#include "eval/stats/stats.h"

struct lk_summary {
    size_t n;
    double mean, sd; /* sd with n - 1, as numpy.std(x, ddof=1); NaN with fewer than two */
    double minimum, maximum;
    const char *undefined; /* no values */
};

/* The power of two e for which the values, divided by 2^e, lie within 1 of 0, so that their squares neither overflow
 * nor vanish. It costs no bit. NaN is left out; 0 when there is nothing but zeros. */
int lk_exponent_of(const double *values, size_t n);

/* values [n]; NaN is a missing value, left out. LK_E_INPUT: an infinite one, or an infinite sd. */
enum lk_code lk_summarise(const double *values, size_t n, struct lk_summary *out);
