#include "eval/stats/agreement/gwet.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/special/special.h"

static double ratings_of(const int32_t *item, int k) {
    double n = 0;
    for (int i = 0; i < k; i++) n += item[i];
    return n;
}

/* Weighted agreement of one item's pairs of raters; 0 for fewer than two. */
static double agreement(const int32_t *item, int k, enum lk_weights weights) {
    double sum = 0, n = ratings_of(item, k);
    if (n < 2) return 0;
    for (int i = 0; i < k; i++) {
        double alike = -1;
        for (int j = 0; j < k; j++) alike += (1 - lk_label_distance(weights, i, j, k)) * item[j];
        if (item[i]) sum += item[i] * alike;
    }
    return sum / (n * (n - 1));
}

/* What one item adds to the coefficient, through agreement and through how common its labels are: the variance is that
 * of a mean of these. */
static double variance(const int32_t *counts, size_t n_items, int k, enum lk_weights weights, const double *share,
                       double spread, const struct lk_gwet *g) {
    double n = (double)g->ac.n, ac = g->ac.value, sum = 0;
    for (size_t i = 0; i < n_items; i++) {
        const int32_t *item = counts + i * (size_t)k;
        double ratings = ratings_of(item, k), chance = 0;
        if (ratings == 0) continue;
        for (int j = 0; j < k; j++) chance += item[j] * (1 - share[j]) / ratings;
        double of_pairs = agreement(item, k, weights) - (ratings >= 2 ? g->expected : 0);
        double part = n / (double)g->n_compared * of_pairs - 2 * (1 - ac) * (spread * chance - g->expected);
        part = part / (1 - g->expected) - ac;
        sum += part * part;
    }
    if (sum < 1e-26 * n) sum = 0; /* what rounding left */
    return sum / (n * (n - 1));
}

static void measure(const int32_t *counts, size_t n_items, int k, enum lk_weights weights, double *share,
                    struct lk_gwet *g) {
    double weight_sum = 0;
    for (size_t i = 0; i < n_items; i++) {
        const int32_t *item = counts + i * (size_t)k;
        double ratings = ratings_of(item, k);
        if (ratings == 0) continue;
        g->ac.n++;
        g->n_compared += ratings >= 2;
        g->observed += agreement(item, k, weights);
        for (int j = 0; j < k; j++) share[j] += item[j] / ratings;
    }
    g->p = 1;
    g->ac.undefined = !g->n_compared ? "no item has two ratings" : k < 2 ? "there is one label only" : NULL;
    if (g->ac.undefined) return;
    double n = (double)g->ac.n;
    g->observed /= (double)g->n_compared;
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) weight_sum += 1 - lk_label_distance(weights, i, j, k);
    double spread = weight_sum / ((double)k * (k - 1));
    for (int j = 0; j < k; j++) {
        share[j] /= n;
        g->prevalence = fmax(g->prevalence, share[j]);
        g->expected += spread * share[j] * (1 - share[j]);
    }
    g->ac.value = g->ac.low = g->ac.high = (g->observed - g->expected) / (1 - g->expected);
    if (g->ac.n < 2) {
        g->ac.low = g->ac.high = 0;
        g->ac.no_interval = "there is one item";
        return;
    }
    g->standard_error = sqrt(variance(counts, n_items, k, weights, share, spread, g));
    double reach = lk_t_quantile(0.975, n - 1) * g->standard_error;
    g->ac.low = fmax(-1, g->ac.value - reach);
    g->ac.high = fmin(1, g->ac.value + reach);
    if (g->standard_error > 0) g->p = lk_t_two_sided(g->ac.value / g->standard_error, n - 1);
}

enum lk_code lk_gwet_ac(const int32_t *counts, size_t n_items, int n_labels, enum lk_weights weights,
                        struct lk_gwet *out) {
    memset(out, 0, sizeof *out);
    if (n_labels < 1 || n_labels > LK_LABELS_MAX)
        return lk_fail(LK_E_INPUT, "agreement: labels: expected 1 to %d levels, got %d", LK_LABELS_MAX, n_labels);
    for (size_t i = 0; i < n_items * (size_t)n_labels; i++)
        if (counts[i] < 0 || counts[i] > UINT16_MAX)
            return lk_fail(LK_E_INPUT, "agreement: counts: expected 0 to %d, got %d", UINT16_MAX, (int)counts[i]);
    double *share = lk_calloc((size_t)n_labels, sizeof *share);
    if (!share) return lk_fail(LK_E_NOMEM, "agreement: no memory for %d labels", n_labels);
    measure(counts, n_items, n_labels, weights, share, out);
    lk_free(share);
    return LK_OK;
}
