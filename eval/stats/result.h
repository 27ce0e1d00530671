/* What the tests of this folder begin and end with. */
#pragma once

#include <math.h>

#include "eval/stats/stats.h"

/* LK_E_INPUT unless all are finite; what: "pearson: x". */
enum lk_code lk_check_finite(const char *what, const double *values, size_t n);

/* The result that says why there is none. */
static inline enum lk_code lk_undefined(struct lk_test *test, const char *why) {
    *test = (struct lk_test){.name = test->name, .n = test->n, .undefined = why};
    return LK_OK;
}

/* Of two steps at right angles. hypot of newer C libraries is not in older ones. */
static inline double lk_length(double a, double b) { return sqrt(a * a + b * b); }
