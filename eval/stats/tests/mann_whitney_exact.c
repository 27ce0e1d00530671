/* The numbers of orders with U = u are the coefficients of the Gaussian binomial coefficient (m + n over m). They are
 * counted in integers of 128 bits where all of them together fit; else as probabilities, by the recursion of Mann and
 * Whitney, which only adds. */
#include "eval/stats/tests/mann_whitney_exact.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/special/special.h"

__extension__ typedef unsigned __int128 uint128;

static const double most_products = 20000; /* m n for the recursion, whose time is (m n)^2 / 4 */
static const double most_counted = 2e6;    /* m n for counting, whose time is m^2 n */

static bool is_counted(double m, double n) { return m * n <= most_counted && lk_log_choose(m + n, m) < 126.9 * M_LN2; }

bool lk_mann_whitney_has_exact(size_t fewer, size_t more) {
    double m = (double)fewer, n = (double)more;
    return m * n <= most_products || is_counted(m, n);
}

/* Product of (1 - q^(n + i)) / (1 - q^i), i = 1 ... m, whose coefficients sum to (m + n over m). What overflows on the
 * way does so modulo 2^128 and comes back. */
static enum lk_code count_orders(size_t m, size_t n, size_t u, double *p) {
    size_t top = m * n;
    uint128 *counts = lk_calloc(top + 1, sizeof *counts), above = 0, all = 0;
    if (!counts) return lk_fail(LK_E_NOMEM, "mann_whitney: out of memory for %zu values of U", top + 1);
    counts[0] = 1;
    for (size_t i = 1; i <= m; i++) {
        for (size_t k = top + 1; k-- > n + i;) counts[k] -= counts[k - n - i];
        for (size_t k = i; k <= top; k++) counts[k] += counts[k - i];
    }
    for (size_t k = 0; k <= top; k++) {
        all += counts[k];
        if (k >= u) above += counts[k];
    }
    lk_free(counts);
    *p = (double)above / (double)all;
    return LK_OK;
}

/* rows[i] is the distribution for samples of i and j; with one value more in the second sample, the largest of all is
 * in the first with probability i / (i + j) and is then above j others. */
static enum lk_code add_probabilities(size_t m, size_t n, size_t u, double *p) {
    size_t top = m * n;
    double *rows = lk_calloc((m + 1) * (top + 1), sizeof *rows);
    if (!rows) return lk_fail(LK_E_NOMEM, "mann_whitney: out of memory for %zu values of U", top + 1);
    for (size_t i = 0; i <= m; i++) rows[i * (top + 1)] = 1;
    for (size_t j = 1; j <= n; j++)
        for (size_t i = 1; i <= m; i++) {
            double *row = rows + i * (top + 1), *shorter = row - (top + 1);
            double first = (double)i / (double)(i + j), second = (double)j / (double)(i + j);
            for (size_t k = i * j + 1; k-- > 0;) row[k] = second * row[k] + (k >= j ? first * shorter[k - j] : 0);
        }
    double above = 0;
    for (size_t k = top + 1; k-- > u;) above += rows[m * (top + 1) + k];
    lk_free(rows);
    *p = above;
    return LK_OK;
}

enum lk_code lk_mann_whitney_upper(size_t fewer, size_t more, size_t u, double *p) {
    if (is_counted((double)fewer, (double)more)) return count_orders(fewer, more, u, p);
    return add_probabilities(fewer, more, u, p);
}
