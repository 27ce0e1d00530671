/* A column of numbers in short. */
#pragma once

#include "eval/stats/stats.h"

struct lk_summary {
    size_t n;
    double mean, sd; /* sd with n - 1, as numpy.std(x, ddof=1); NaN with fewer than two */
    double minimum, maximum;
    const char *undefined; /* no values */
};

/* values [n]; NaN is a missing value, left out. LK_E_INPUT: an infinite one. */
enum lk_code lk_summarise(const double *values, size_t n, struct lk_summary *out);
