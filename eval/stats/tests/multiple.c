#include "eval/stats/tests/multiple.h"

#include <stdlib.h>

#include "engine/base/alloc.h"

struct entry {
    double p;
    size_t at;
};

static int ascending(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->p != y->p) return x->p < y->p ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

const char *lk_adjustment_name(enum lk_adjustment method) {
    static const char *const names[] = {"Bonferroni", "Holm", "Benjamini-Hochberg", "Benjamini-Yekutieli"};
    return names[method];
}

/* From the smallest p up: each times the number of hypotheses that are left, never below the one before. */
static void step_down(const struct entry *sorted, size_t n, double *adjusted) {
    double before = 0;
    for (size_t i = 0; i < n; i++) {
        double value = sorted[i].p * (double)(n - i);
        if (value > before) before = value;
        adjusted[sorted[i].at] = before > 1 ? 1 : before;
    }
}

/* From the largest p down: each divided by its rank's share, never above the one after. */
static void step_up(const struct entry *sorted, size_t n, double factor, double *adjusted) {
    double after = 1;
    for (size_t i = n; i-- > 0;) {
        double value = sorted[i].p / ((double)(i + 1) / (double)n / factor);
        if (value < after) after = value;
        adjusted[sorted[i].at] = after;
    }
}

enum lk_code lk_adjust_p(const double *p, size_t n, enum lk_adjustment method, double *adjusted) {
    for (size_t i = 0; i < n; i++)
        if (!(p[i] >= 0 && p[i] <= 1))
            return lk_fail(LK_E_INPUT, "adjust_p: p[%zu]: expected a number in [0, 1], got %g", i, p[i]);
    struct entry *sorted = lk_malloc(n * sizeof *sorted);
    if (!sorted) return lk_fail(LK_E_NOMEM, "adjust_p: no memory for %zu tests", n);
    for (size_t i = 0; i < n; i++) sorted[i] = (struct entry){p[i], i};
    if (n) qsort(sorted, n, sizeof *sorted, ascending);
    double harmonic = 0;
    for (size_t i = 1; i <= n; i++) harmonic += 1 / (double)i;
    if (method == LK_ADJUST_BONFERRONI)
        for (size_t i = 0; i < n; i++)
            adjusted[sorted[i].at] = sorted[i].p * (double)n > 1 ? 1 : sorted[i].p * (double)n;
    else if (method == LK_ADJUST_HOLM)
        step_down(sorted, n, adjusted);
    else
        step_up(sorted, n, method == LK_ADJUST_BENJAMINI_YEKUTIELI ? harmonic : 1, adjusted);
    lk_free(sorted);
    return LK_OK;
}
