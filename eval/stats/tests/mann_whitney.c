#include "eval/stats/tests/mann_whitney_exact.h"
#include "eval/stats/tests/rank.h"
#include "eval/stats/tests/rank_tests.h"
#include "eval/stats/result.h"
#include "eval/stats/special/special.h"

#include <math.h>

#include "engine/base/alloc.h"

enum { AUTO_EXACT_N = 8 };

static enum lk_code rank_both(const double *x, size_t nx, const double *y, size_t ny, double *u, struct lk_ties *ties) {
    size_t n = nx + ny;
    double *both = lk_calloc(2 * n, sizeof *both), sum = 0;
    if (!both) return lk_fail(LK_E_NOMEM, "mann_whitney: out of memory for %zu values", n);
    for (size_t i = 0; i < n; i++) both[i] = i < nx ? x[i] : y[i - nx];
    enum lk_code rc = lk_rank(both, n, both + n, ties);
    for (size_t i = 0; !rc && i < nx; i++) sum += both[n + i];
    lk_free(both);
    *u = sum - 0.5 * (double)nx * (double)(nx + 1);
    return rc;
}

/* The U whose upper tail the alternative asks for. */
static double tail_of(double u, double nx, double ny, enum lk_alternative alternative) {
    double other = nx * ny - u;
    if (alternative == LK_TWO_SIDED) return fmax(u, other);
    return alternative == LK_GREATER ? u : other;
}

static double normal_p(double tail, double nx, double ny, const struct lk_ties *ties, bool continuity) {
    double n = nx + ny, variance = nx * ny / 12 * (n + 1 - ties->cubes / (n * (n - 1)));
    return lk_normal_sf((tail - 0.5 * nx * ny - (continuity ? 0.5 : 0)) / sqrt(variance));
}

enum lk_code lk_mann_whitney(const double *x, size_t nx, const double *y, size_t ny,
                             const struct lk_mann_whitney_options *options, struct lk_test *test) {
    static const struct lk_mann_whitney_options defaults = {0};
    if (!options) options = &defaults;
    *test = (struct lk_test){.name = "Mann-Whitney U", .method = "asymptotic", .n = nx + ny};
    LK_TRY(lk_check_finite("mann_whitney: x", x, nx));
    LK_TRY(lk_check_finite("mann_whitney: y", y, ny));
    if (!nx || !ny) return lk_undefined(test, "a group is empty");
    struct lk_ties ties;
    double u = 0, p = 0;
    LK_TRY(rank_both(x, nx, y, ny, &u, &ties));
    if (ties.largest == nx + ny) return lk_undefined(test, "all values are equal");
    double tail = tail_of(u, (double)nx, (double)ny, options->alternative);
    size_t fewer = nx < ny ? nx : ny, more = nx < ny ? ny : nx;
    bool exact = options->method == LK_P_EXACT || (options->method == LK_P_AUTO && fewer <= AUTO_EXACT_N);
    if (exact && ties.pairs == 0 && lk_mann_whitney_has_exact(fewer, more)) {
        test->method = "exact";
        LK_TRY(lk_mann_whitney_upper(fewer, more, (size_t)tail, &p));
    } else {
        p = normal_p(tail, (double)nx, (double)ny, &ties, !options->no_continuity);
    }
    test->p = fmin(options->alternative == LK_TWO_SIDED ? 2 * p : p, 1);
    test->statistic = u;
    test->effect = 2 * u / ((double)nx * (double)ny) - 1;
    test->effect_name = "rank-biserial r";
    return LK_OK;
}
