#include "eval/stats/tests/rank.h"
#include "eval/stats/tests/rank_tests.h"
#include "eval/stats/result.h"
#include "eval/stats/special/special.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"

enum { AUTO_EXACT_N = 50, MOST_EXACT_N = 1000 };

struct signed_ranks {
    double plus, minus;
    double n, n_zero; /* differences that count, and those among them (pratt) or at all that are 0 */
    struct lk_ties ties;
};

static double rounded(double value) {
    double scaled = value * 1e10;
    return isfinite(scaled) ? rint(scaled) / 1e10 : value;
}

/* work [3 n]: differences, their absolute values, ranks. */
static enum lk_code rank_differences(const double *differences, size_t n, const struct lk_wilcoxon_options *options,
                                     double *work, struct signed_ranks *out) {
    size_t used = 0;
    double *d = work, *size = work + n, *ranks = work + 2 * n;
    *out = (struct signed_ranks){0};
    for (size_t i = 0; i < n; i++) {
        double value = options->keep_digits ? differences[i] : rounded(differences[i]);
        out->n_zero += value == 0;
        if (value == 0 && options->zero_method == LK_ZERO_WILCOX) continue;
        d[used] = value;
        size[used++] = fabs(value);
    }
    LK_TRY(lk_rank(size, used, ranks, &out->ties));
    for (size_t i = 0; i < used; i++) {
        double half = d[i] == 0 && options->zero_method == LK_ZERO_ZSPLIT ? 0.5 * ranks[i] : 0;
        out->plus += d[i] > 0 ? ranks[i] : half;
        out->minus += d[i] < 0 ? ranks[i] : half;
    }
    out->n = (double)used;
    return LK_OK;
}

static double normal_p(const struct signed_ranks *r, const struct lk_wilcoxon_options *options) {
    double n = r->n, mean = n * (n + 1) / 4, variance = n * (n + 1) * (2 * n + 1), cubes = r->ties.cubes;
    if (options->zero_method == LK_ZERO_PRATT) {
        double zero = r->n_zero;
        mean -= zero * (zero + 1) / 4;
        variance -= zero * (zero + 1) * (2 * zero + 1);
        cubes -= zero * zero * zero - zero;
    }
    double excess = r->plus - mean, half = options->continuity ? 0.5 : 0;
    double deviation = sqrt((variance - 0.5 * cubes) / 24);
    switch (options->alternative) {
    case LK_LESS:
        return lk_normal_cdf((excess + half) / deviation);
    case LK_GREATER:
        return lk_normal_sf((excess - half) / deviation);
    case LK_TWO_SIDED:
        break;
    }
    return fmin(2 * lk_normal_sf((excess == 0 ? 0 : fabs(fabs(excess) - half)) / deviation), 1);
}

/* P(W <= w), w at most half the greatest sum: each rank is on the positive side with probability 1/2. */
static enum lk_code lower_tail(size_t n, size_t w, double *p) {
    double *shares = lk_calloc(w + 1, sizeof *shares);
    if (!shares) return lk_fail(LK_E_NOMEM, "wilcoxon: out of memory for %zu sums of ranks", w + 1);
    shares[0] = 1;
    for (size_t rank = 1; rank <= n; rank++)
        for (size_t k = w + 1; k-- > 0;) shares[k] = 0.5 * (shares[k] + (k >= rank ? shares[k - rank] : 0));
    *p = 0;
    for (size_t k = 0; k <= w; k++) *p += shares[k];
    lk_free(shares);
    return LK_OK;
}

/* P(W <= w) for any w. */
static enum lk_code at_most(size_t n, size_t w, double *p) {
    size_t all = n * (n + 1) / 2;
    if (w >= all) {
        *p = 1;
        return LK_OK;
    }
    if (w <= all / 2) return lower_tail(n, w, p);
    LK_TRY(lower_tail(n, all - w - 1, p));
    *p = 1 - *p;
    return LK_OK;
}

static enum lk_code exact_p(const struct signed_ranks *r, enum lk_alternative alternative, double *p) {
    size_t n = (size_t)r->n;
    if (alternative == LK_LESS) return at_most(n, (size_t)r->plus, p);
    if (alternative == LK_GREATER) return at_most(n, (size_t)r->minus, p);
    LK_TRY(at_most(n, (size_t)fmin(r->plus, r->minus), p));
    *p = fmin(2 * *p, 1);
    return LK_OK;
}

enum lk_code lk_wilcoxon(const double *differences, size_t n, const struct lk_wilcoxon_options *options,
                         struct lk_test *test) {
    static const struct lk_wilcoxon_options defaults = {0};
    if (!options) options = &defaults;
    *test = (struct lk_test){.name = "Wilcoxon signed-rank T", .method = "asymptotic"};
    LK_TRY(lk_check_finite("wilcoxon: differences", differences, n));
    if (!n) return lk_undefined(test, "no pairs");
    double *work = n < SIZE_MAX / 64 ? lk_malloc(3 * n * sizeof *work) : NULL;
    if (!work) return lk_fail(LK_E_NOMEM, "wilcoxon: out of memory for %zu pairs", n);
    struct signed_ranks ranks;
    enum lk_code rc = rank_differences(differences, n, options, work, &ranks);
    lk_free(work);
    if (rc) return rc;
    test->n = (size_t)ranks.n;
    if (ranks.n_zero == (double)n) return lk_undefined(test, "every difference is 0");
    double most = options->method == LK_P_EXACT ? MOST_EXACT_N : options->method == LK_P_AUTO ? AUTO_EXACT_N : 0;
    if (ranks.n <= most && ranks.n_zero == 0 && ranks.ties.pairs == 0) {
        test->method = "exact";
        LK_TRY(exact_p(&ranks, options->alternative, &test->p));
    } else {
        test->p = normal_p(&ranks, options);
    }
    test->statistic = options->alternative == LK_TWO_SIDED ? fmin(ranks.plus, ranks.minus) : ranks.plus;
    test->effect = (ranks.plus - ranks.minus) / (ranks.plus + ranks.minus);
    test->effect_name = "matched rank-biserial r";
    return LK_OK;
}
