#include "eval/stats/tests/correlation.h"
#include "eval/stats/tests/product_moment.h"
#include "eval/stats/tests/rank.h"
#include "eval/stats/result.h"

#include <math.h>

#include "engine/base/alloc.h"

enum lk_code lk_spearman(const double *x, const double *y, size_t n, struct lk_test *test) {
    *test = (struct lk_test){.name = "Spearman rho", .method = "Student's t", .n = n};
    LK_TRY(lk_check_finite("spearman: x", x, n));
    LK_TRY(lk_check_finite("spearman: y", y, n));
    if (n < 3) return lk_undefined(test, "fewer than three pairs");
    double *rx = n < SIZE_MAX / 64 ? lk_malloc(2 * n * sizeof *rx) : NULL;
    if (!rx) return lk_fail(LK_E_NOMEM, "spearman: out of memory for %zu pairs", n);
    double *ry = rx + n;
    struct lk_ties tx, ty;
    enum lk_code rc = lk_rank(x, n, rx, &tx);
    if (!rc) rc = lk_rank(y, n, ry, &ty);
    if (!rc && (tx.largest == n || ty.largest == n)) {
        lk_undefined(test, "one of the two is constant");
    } else if (!rc) {
        double sxx = 0, syy = 0, sxy = 0, middle = (double)n + 1;
        for (size_t i = 0; i < n; i++) { /* twice the ranks: whole numbers, so that the sums are exact */
            double dx = 2 * rx[i] - middle, dy = 2 * ry[i] - middle;
            sxx += dx * dx;
            syy += dy * dy;
            sxy += dx * dy;
        }
        /* 1 - r^2 as a difference of exact products. */
        double product = sxx * syy, square = sxy * sxy;
        double rest = (product - square) + (fma(sxx, syy, -product) - fma(sxy, sxy, -square));
        lk_product_moment(sxy / sqrt(product), rest / product, test);
    }
    lk_free(rx);
    return rc;
}
