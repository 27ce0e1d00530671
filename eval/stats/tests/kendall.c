#include "eval/stats/tests/correlation.h"
#include "eval/stats/tests/rank.h"
#include "eval/stats/result.h"
#include "eval/stats/special/special.h"

#include <math.h>

#include "engine/base/alloc.h"

enum { EXACT_N = 33, EXACT_PAIRS = EXACT_N * (EXACT_N - 1) / 2 };

struct pairs {
    double all, discordant, joint; /* joint: tied in x and in y */
    struct lk_ties x, y;
};

/* Sorted by x and then y, the discordant pairs are those whose y stand in the wrong order. */
static enum lk_code count_pairs(const double *x, const double *y, size_t n, struct pairs *pairs) {
    double *rx = lk_calloc(2 * n, sizeof *rx), *ry = rx ? rx + n : NULL, base = 2 * (double)n + 2;
    struct lk_entry *entries = lk_calloc(2 * n, sizeof *entries);
    enum lk_code rc = LK_OK;
    if (!rx || !entries) rc = lk_fail(LK_E_NOMEM, "kendall: out of memory for %zu pairs", n);
    if (!rc) rc = lk_rank(x, n, rx, &pairs->x);
    if (!rc) rc = lk_rank(y, n, ry, &pairs->y);
    if (!rc) {
        for (size_t i = 0; i < n; i++) entries[i] = (struct lk_entry){2 * rx[i] * base + 2 * ry[i], i};
        lk_merge_sort(entries, entries + n, n);
        pairs->joint = 0;
        for (size_t i = 0, run = 0; i < n; i++) {
            run = i && entries[i].key == entries[i - 1].key ? run + 1 : 0;
            pairs->joint += (double)run;
        }
        for (size_t i = 0; i < n; i++) entries[i].key = ry[entries[i].index];
        pairs->discordant = (double)lk_merge_sort(entries, entries + n, n);
        pairs->all = (double)n * ((double)n - 1) / 2;
    }
    lk_free(entries);
    lk_free(rx);
    return rc;
}

/* Twice the probability of at most c pairs out of order among n in random order, c <= all / 2. */
static double exact_p(size_t n, size_t c) {
    if (c <= 1) {
        double p = 2;
        for (size_t i = 2; i < n + (c == 0) && p > 0; i++) p /= (double)i;
        return fmin(p, 1);
    }
    double now[EXACT_PAIRS / 2 + 1] = {1}, sums[EXACT_PAIRS / 2 + 1], p = 0;
    for (size_t size = 2; size <= n; size++) { /* a further element is out of order with 0 ... size - 1 others */
        for (size_t k = 0; k <= c; k++) sums[k] = now[k] + (k ? sums[k - 1] : 0);
        for (size_t k = 0; k <= c; k++) now[k] = (sums[k] - (k >= size ? sums[k - size] : 0)) / (double)size;
    }
    for (size_t k = 0; k <= c; k++) p += now[k];
    return fmin(2 * p, 1);
}

static double normal_p(size_t n_pairs, const struct pairs *pairs, double excess) {
    double n = (double)n_pairs, m = n * (n - 1);
    double variance = (m * (2 * n + 5) - pairs->x.weighted - pairs->y.weighted) / 18 +
                      2 * pairs->x.pairs * pairs->y.pairs / m + pairs->x.triples * pairs->y.triples / (9 * m * (n - 2));
    return fmin(2 * lk_normal_sf(fabs(excess) / sqrt(variance)), 1);
}

enum lk_code lk_kendall(const double *x, const double *y, size_t n, struct lk_test *test) {
    *test = (struct lk_test){.name = "Kendall tau-b", .method = "asymptotic", .n = n};
    LK_TRY(lk_check_finite("kendall: x", x, n));
    LK_TRY(lk_check_finite("kendall: y", y, n));
    if (n < 3) return lk_undefined(test, "fewer than three pairs");
    struct pairs pairs;
    LK_TRY(count_pairs(x, y, n, &pairs));
    if (pairs.x.largest == n || pairs.y.largest == n) return lk_undefined(test, "one of the two is constant");
    double excess = pairs.all - pairs.x.pairs - pairs.y.pairs + pairs.joint - 2 * pairs.discordant;
    double untied_x = pairs.all - pairs.x.pairs, untied_y = pairs.all - pairs.y.pairs;
    test->statistic = fmax(-1, fmin(1, excess / sqrt(untied_x) / sqrt(untied_y)));
    double fewest = fmin(pairs.discordant, pairs.all - pairs.discordant);
    if (pairs.x.pairs == 0 && pairs.y.pairs == 0 && (n <= EXACT_N || fewest <= 1)) {
        test->method = "exact";
        test->p = exact_p(n, (size_t)fewest);
    } else {
        test->p = normal_p(n, &pairs, excess);
    }
    return LK_OK;
}
