#include "eval/stats/double_double.h"
#include "eval/stats/tests/correlation.h"
#include "eval/stats/tests/product_moment.h"
#include "eval/stats/result.h"
#include "eval/stats/special/special.h"
#include "eval/stats/summary.h"

#include <math.h>
#include <stdbool.h>

#include "engine/base/alloc.h"

void lk_product_moment(double r, double rest, struct lk_test *test) {
    test->statistic = fmax(-1, fmin(1, r));
    test->df = (double)test->n - 2;
    test->p = rest > 0 ? lk_beta(0.5 * test->df, 0.5, (struct lk_share){fmin(rest, 1), fmin(r * r, 1)}) : 0;
}

/* Distances from the first value, scaled and of twice the digits: exact. */
static void move(const double *x, size_t n, struct lk_dd *out) {
    const int exponent = lk_exponent_of(x, n);
    for (size_t i = 0; i < n; i++) out[i] = lk_dd_sum(ldexp(x[i], -exponent), -ldexp(x[0], -exponent));
}

/* Takes the mean away; the sum of squares. */
static struct lk_dd center(struct lk_dd *x, size_t n) {
    struct lk_dd mean = {0}, squares = {0};
    for (size_t i = 0; i < n; i++) mean = lk_dd_add(mean, x[i]);
    mean = lk_dd_divide(mean, lk_dd_of((double)n));
    for (size_t i = 0; i < n; i++) {
        x[i] = lk_dd_subtract(x[i], mean);
        squares = lk_dd_add(squares, lk_dd_multiply(x[i], x[i]));
    }
    return squares;
}

static struct lk_dd products(const struct lk_dd *x, const struct lk_dd *y, size_t n) {
    struct lk_dd sum = {0};
    for (size_t i = 0; i < n; i++) sum = lk_dd_add(sum, lk_dd_multiply(x[i], y[i]));
    return sum;
}

/* How far the points lie above the line through the first point and the one that is farthest from it along x: with all
 * digits of each, and exactly 0 on the line. */
static void above_line(const struct lk_dd *x, const struct lk_dd *y, size_t n, struct lk_dd *out) {
    size_t far = 0;
    for (size_t i = 1; i < n; i++)
        if (fabs(x[i].hi) > fabs(x[far].hi)) far = i;
    for (size_t i = 0; i < n; i++) out[i] = lk_dd_divide(lk_dd_cross(y[i], x[far], x[i], y[far]), x[far]);
}

/* 1 - r^2 is what the regression of y on x leaves: p is in its digits where r is near 1. scratch [3, n]. */
static void correlate(const double *x, const double *y, size_t n, struct lk_dd *scratch, struct lk_test *test) {
    struct lk_dd *dx = scratch, *dy = scratch + n, *off = scratch + 2 * n;
    move(x, n, dx);
    move(y, n, dy);
    above_line(dx, dy, n, off);
    const struct lk_dd sxx = center(dx, n), syy = center(dy, n), sxy = products(dx, dy, n);
    center(off, n);
    const struct lk_dd slope = lk_dd_divide(products(dx, off, n), sxx);
    double left = 0;
    for (size_t i = 0; i < n; i++) {
        double rest = lk_dd_subtract(off[i], lk_dd_multiply(slope, dx[i])).hi;
        left += rest * rest;
    }
    lk_product_moment(sxy.hi / sqrt(sxx.hi) / sqrt(syy.hi), left / syy.hi, test);
}

static bool varies(const double *x, size_t n) {
    for (size_t i = 1; i < n; i++)
        if (x[i] != x[0]) return true;
    return false;
}

static void fisher_interval(const struct lk_test *test, double confidence, struct lk_number *interval) {
    double r = test->statistic, z = atanh(r), n = (double)test->n;
    double reach = n > 3 ? lk_normal_quantile(0.5 + 0.5 * confidence) / sqrt(n - 3) : INFINITY;
    *interval = (struct lk_number){.value = r, .low = r, .high = r, .n = test->n};
    if (fabs(r) == 1) return;
    interval->low = tanh(z - reach);
    interval->high = tanh(z + reach);
}

enum lk_code lk_pearson(const double *x, const double *y, size_t n, double confidence, struct lk_test *test,
                        struct lk_number *interval) {
    *test = (struct lk_test){.name = "Pearson r", .method = "Student's t", .n = n};
    LK_TRY(lk_check_finite("pearson: x", x, n));
    LK_TRY(lk_check_finite("pearson: y", y, n));
    if (interval && !(confidence > 0 && confidence < 1))
        return lk_fail(LK_E_INPUT, "pearson: confidence: expected a number between 0 and 1, got %g", confidence);
    if (n < 3) {
        lk_undefined(test, "fewer than three pairs");
    } else {
        struct lk_dd *scratch = n < SIZE_MAX / 64 ? lk_malloc(3 * n * sizeof *scratch) : NULL;
        if (!scratch) return lk_fail(LK_E_NOMEM, "pearson: out of memory for %zu pairs", n);
        if (varies(x, n) && varies(y, n))
            correlate(x, y, n, scratch, test);
        else
            lk_undefined(test, "one of the two is constant");
        lk_free(scratch);
    }
    if (interval && test->undefined)
        *interval = (struct lk_number){.n = n, .undefined = test->undefined};
    else if (interval)
        fisher_interval(test, confidence, interval);
    return LK_OK;
}
