#include "eval/stats/tests/count_tests.h"
#include "eval/stats/result.h"
#include "eval/stats/special/special.h"

#include <math.h>

/* Tables whose probabilities differ by less are equally probable: two different quotients of factorials this close need
 * counts far beyond those of a study, and rounding stays under it. */
static const double tie = 1 + 1e-10;

struct hypergeometric {
    double row, column, all, least, most; /* the first row's and the first column's sum; a's range */
};

/* P(a + 1) / P(a). */
static double step_up(const struct hypergeometric *h, double a) {
    return (h->row - a) * (h->column - a) / ((a + 1) * (h->all - h->row - h->column + a + 1));
}

struct sums {
    double below, at, above, improbable; /* P relative to the mode's: under a, at a, over a; no more probable than a */
};

/* From the mode outwards in both directions every probability is the one before times a quotient under 1: nothing
 * overflows, and what underflows does not count. */
static void add_side(const struct hypergeometric *h, double mode, double observed, double end, double p_observed,
                     struct sums *sums) {
    double direction = end < mode ? -1 : 1, p = 1;
    for (double a = mode; a != end;) {
        double next = a + direction;
        p = direction > 0 ? p * step_up(h, a) : p / step_up(h, next);
        a = next;
        if (p == 0) break;
        *(a < observed ? &sums->below : a > observed ? &sums->above : &sums->at) += p;
        if (p <= p_observed * tie) sums->improbable += p;
    }
}

static double relative_p(const struct hypergeometric *h, double mode, double observed) {
    double p = 1;
    for (double a = mode; a < observed && p > 0; a++) p *= step_up(h, a);
    for (double a = mode; a > observed && p > 0; a--) p /= step_up(h, a - 1);
    return p;
}

static double p_of(const struct sums *s, enum lk_alternative alternative) {
    double all = s->below + s->at + s->above;
    switch (alternative) {
    case LK_LESS:
        return (s->below + s->at) / all;
    case LK_GREATER:
        return (s->above + s->at) / all;
    case LK_TWO_SIDED:
        break;
    }
    return fmin(s->improbable / all, 1);
}

enum lk_code lk_fisher_exact(const int64_t table[4], enum lk_alternative alternative, struct lk_test *test) {
    *test = (struct lk_test){.name = "Fisher's exact test", .method = "exact"};
    int64_t limit = (int64_t)1 << 31; /* the loops take about 40 standard deviations */
    for (int i = 0; i < 4; i++)
        if (table[i] < 0 || table[i] > limit)
            return lk_fail(LK_E_INPUT, "fisher_exact: count %d: expected 0 to 2^31, got %lld", i, (long long)table[i]);
    double a = (double)table[0], b = (double)table[1], c = (double)table[2], d = (double)table[3];
    struct hypergeometric h = {.row = a + b, .column = a + c, .all = a + b + c + d};
    test->n = (size_t)h.all;
    if (a + b == 0 || c + d == 0) return lk_undefined(test, "a row is empty");
    if (a + c == 0 || b + d == 0) return lk_undefined(test, "a column is empty");
    h.least = fmax(0, h.row + h.column - h.all);
    h.most = fmin(h.row, h.column);
    double mode = floor((h.row + 1) * (h.column + 1) / (h.all + 2));
    mode = fmin(h.most, fmax(h.least, mode));
    double p_observed = relative_p(&h, mode, a);
    struct sums sums = {0};
    *(mode < a ? &sums.below : mode > a ? &sums.above : &sums.at) += 1;
    if (1 <= p_observed * tie) sums.improbable += 1;
    add_side(&h, mode, a, h.least, p_observed, &sums);
    add_side(&h, mode, a, h.most, p_observed, &sums);
    test->statistic = a * d / (b * c); /* no row and no column is empty: not 0 / 0 */
    test->p = p_of(&sums, alternative);
    return LK_OK;
}
