#include "eval/stats/agreement/fleiss.h"

#include <stdbool.h>
#include <string.h>

#include "engine/base/alloc.h"

enum { COUNT_MAX = 65535 };

static int64_t ratings_of(const int32_t *counts, int n_categories) {
    int64_t sum = 0;
    for (int c = 0; c < n_categories; c++) sum += counts[c];
    return sum;
}

static enum lk_code check(const int32_t *counts, size_t n_items, int n_categories) {
    if (n_categories < 1 || n_categories > COUNT_MAX)
        return lk_fail(LK_E_INPUT, "fleiss: categories: expected 1 to %d, got %d", COUNT_MAX, n_categories);
    for (size_t i = 0; i < n_items; i++) {
        const int32_t *item = counts + i * (size_t)n_categories;
        for (int c = 0; c < n_categories; c++)
            if (item[c] < 0 || item[c] > COUNT_MAX)
                return lk_fail(LK_E_INPUT, "fleiss: item %zu: expected counts of 0 to %d, got %d", i, COUNT_MAX,
                               item[c]);
        if (ratings_of(item, n_categories) > COUNT_MAX)
            return lk_fail(LK_E_INPUT, "fleiss: item %zu: expected at most %d ratings", i, COUNT_MAX);
    }
    return LK_OK;
}

/* The number of ratings, 2 or more, that most items have; 0 when none has. */
static int commonest(const int32_t *counts, size_t n_items, int n_categories, size_t *n_with) {
    int best = 0;
    for (size_t i = 0; i < n_items; i++) n_with[ratings_of(counts + i * (size_t)n_categories, n_categories)]++;
    for (int m = 2; m <= COUNT_MAX; m++)
        if (n_with[m] && (!best || n_with[m] >= n_with[best])) best = m;
    return best;
}

/* totals [n_categories], zeroed. All sums are of whole numbers. */
static void measure(const int32_t *counts, size_t n_items, int n_categories, int64_t *totals, struct lk_fleiss *out) {
    double agreeing = 0, m = out->n_raters;
    for (size_t i = 0; i < n_items; i++) {
        const int32_t *item = counts + i * (size_t)n_categories;
        if (ratings_of(item, n_categories) != out->n_raters) continue;
        out->kappa.n++;
        for (int c = 0; c < n_categories; c++) {
            agreeing += (double)item[c] * (item[c] - 1);
            totals[c] += item[c];
        }
    }
    out->left_out = n_items - out->kappa.n;
    if (!out->kappa.n) {
        out->kappa.undefined = "no item with two or more ratings";
        return;
    }
    double n = (double)out->kappa.n, squares = 0;
    bool single = false;
    for (int c = 0; c < n_categories; c++) {
        double share = (double)totals[c] / (n * m);
        squares += share * share;
        single |= (double)totals[c] == n * m;
    }
    out->observed = agreeing / (n * m * (m - 1));
    out->expected = squares;
    if (single)
        out->kappa.undefined = "all ratings are of one category";
    else
        out->kappa.value = (out->observed - out->expected) / (1 - out->expected);
}

enum lk_code lk_fleiss_kappa(const int32_t *counts, size_t n_items, int n_categories, int n_raters,
                             struct lk_fleiss *out) {
    memset(out, 0, sizeof *out);
    LK_TRY(check(counts, n_items, n_categories));
    if (n_raters == 1 || n_raters < 0 || n_raters > COUNT_MAX)
        return lk_fail(LK_E_INPUT, "fleiss: raters: expected 2 or more (or 0), got %d", n_raters);
    size_t *n_with = lk_calloc(COUNT_MAX + 1, sizeof *n_with);
    int64_t *totals = lk_calloc((size_t)n_categories, sizeof *totals);
    enum lk_code rc = LK_OK;
    if (!n_with || !totals) {
        rc = lk_fail(LK_E_NOMEM, "fleiss: no memory for %d categories", n_categories);
    } else {
        out->n_raters = n_raters ? n_raters : commonest(counts, n_items, n_categories, n_with);
        if (!out->n_raters) {
            out->left_out = n_items;
            out->kappa.undefined = "no item with two or more ratings";
        } else {
            measure(counts, n_items, n_categories, totals, out);
        }
    }
    lk_free(n_with);
    lk_free(totals);
    return rc;
}
