#include "eval/stats/tests/correlation.h"
#include "eval/stats/tests/product_moment.h"
#include "eval/stats/result.h"
#include "eval/stats/special/special.h"

#include <math.h>
#include <stdbool.h>

#include "engine/base/alloc.h"

void lk_product_moment(double r, double rest, struct lk_test *test) {
    test->statistic = fmax(-1, fmin(1, r));
    test->df = (double)test->n - 2;
    test->p = rest > 0 ? lk_beta(0.5 * test->df, 0.5, (struct lk_share){fmin(rest, 1), fmin(r * r, 1)}) : 0;
}

/* Brings the largest value near 1 by a power of two, so that squares neither overflow nor vanish; false when all values
 * are equal. */
static bool scale(const double *x, size_t n, double *out) {
    double most = 0;
    size_t n_equal = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs(x[i]));
        n_equal += x[i] == x[0];
    }
    int exponent;
    frexp(most, &exponent);
    for (size_t i = 0; i < n; i++) out[i] = ldexp(x[i], -exponent);
    return n_equal < n;
}

static double mean_of(const double *x, size_t n) {
    double sum = 0, left = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) left += x[i] - mean;
    return mean + left / (double)n;
}

/* x and y are scaled; y is used up. 1 - r^2 is what the regression of y on x leaves. */
static void correlate(const double *x, double *y, size_t n, struct lk_test *test) {
    double sxx = 0, syy = 0, sxy = 0, squares = 0, mean_x = mean_of(x, n), mean_y = mean_of(y, n);
    for (size_t i = 0; i < n; i++) {
        double dx = x[i] - mean_x, dy = y[i] - mean_y;
        sxx += dx * dx;
        syy += dy * dy;
        sxy += dx * dy;
    }
    for (size_t i = 0; i < n; i++) y[i] = fma(-sxy / sxx, x[i], y[i]);
    double mean_left = mean_of(y, n), along = 0; /* of x, what the slope's rounding left */
    for (size_t i = 0; i < n; i++) {
        double left = y[i] - mean_left;
        squares += left * left;
        along += left * (x[i] - mean_x);
    }
    squares -= along * along / sxx;
    lk_product_moment(sxy / sqrt(sxx * syy), squares / syy, test);
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
        double *scaled = n < SIZE_MAX / 64 ? lk_malloc(2 * n * sizeof *scaled) : NULL;
        if (!scaled) return lk_fail(LK_E_NOMEM, "pearson: out of memory for %zu pairs", n);
        bool x_varies = scale(x, n, scaled), y_varies = scale(y, n, scaled + n);
        if (x_varies && y_varies)
            correlate(scaled, scaled + n, n, test);
        else
            lk_undefined(test, "one of the two is constant");
        lk_free(scaled);
    }
    if (interval && test->undefined)
        *interval = (struct lk_number){.n = n, .undefined = test->undefined};
    else if (interval)
        fisher_interval(test, confidence, interval);
    return LK_OK;
}
