#include "eval/stats/resampling/bootstrap_rates_clusters.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/resampling/resample.h"

void lk_rate_clusters_free(struct lk_rate_clusters *clusters) {
    lk_free(clusters->counts);
    lk_free(clusters->nested);
    lk_free(clusters->confidence);
    memset(clusters, 0, sizeof *clusters);
}

/* Counts cluster number c where it has not been counted yet. last [n_measures]: the number of the last cluster that was
 * counted, plus one. */
static void count_unit(const double *values, int n_measures, int32_t c, int32_t *last, int32_t *counts) {
    for (int m = 0; m < n_measures; m++) {
        if (isnan(values[m]) || last[m] == c + 1) continue;
        last[m] = c + 1;
        counts[m]++;
    }
}

/* One grouping: counts of its groups, which lie at first, and its own at whole. last is laid out as counts. */
static bool count_grouping(const struct lk_rates *rates, const struct lk_clusters *clusters, int grouping, size_t first,
                           size_t whole, int32_t *last, int32_t *counts) {
    const int32_t *group = rates->groupings[grouping].group;
    size_t n_measures = (size_t)rates->n_measures;
    bool nested = true;
    for (size_t c = 0; c < clusters->n; c++) {
        int32_t first_group = -1;
        for (size_t i = clusters->start[c]; i < clusters->start[c + 1]; i++) {
            size_t unit = (size_t)clusters->units[i];
            int32_t of = group ? group[unit] : 0;
            if (of < 0) continue;
            if (first_group < 0) first_group = of;
            nested &= of == first_group;
            const double *values = rates->values + unit * n_measures;
            size_t at = (first + (size_t)of) * n_measures, all = whole * n_measures;
            count_unit(values, rates->n_measures, (int32_t)c, last + at, counts + at);
            count_unit(values, rates->n_measures, (int32_t)c, last + all, counts + all);
        }
    }
    return nested;
}

enum lk_code lk_rate_clusters_make(const struct lk_rates *rates, const struct lk_resampling *how,
                                   struct lk_rate_clusters *out) {
    struct lk_clusters clusters;
    memset(out, 0, sizeof *out);
    LK_TRY(lk_clusters_make(rates->n_units, how, &clusters));
    out->n_drawn = clusters.n;
    for (int g = 0; g < rates->n_groupings; g++) out->n_groups += rates->groupings[g].n_groups;
    size_t n = (size_t)(out->n_groups + rates->n_groupings) * (size_t)rates->n_measures, first = 0;
    int32_t *last = lk_calloc(n, sizeof *last);
    out->counts = lk_calloc(n, sizeof *out->counts);
    out->nested = lk_calloc((size_t)rates->n_groupings, sizeof *out->nested);
    out->confidence = lk_calloc(n, sizeof *out->confidence);
    enum lk_code rc = LK_OK;
    if (!last || !out->counts || !out->nested || !out->confidence)
        rc = lk_fail(LK_E_NOMEM, "rates: no memory for the clusters of %d groups", out->n_groups);
    for (int g = 0; g < rates->n_groupings && !rc; g++) {
        out->nested[g] = count_grouping(rates, &clusters, g, first, (size_t)(out->n_groups + g), last, out->counts);
        first += (size_t)rates->groupings[g].n_groups;
    }
    for (size_t i = 0; i < n && !rc; i++)
        out->confidence[i] = lk_expanded_confidence(how->confidence, (double)out->n_drawn, out->counts[i] - 1);
    lk_free(last);
    lk_clusters_free(&clusters);
    if (rc) lk_rate_clusters_free(out);
    return rc;
}

double lk_rate_clusters_all(const struct lk_rate_clusters *clusters, int n_measures, int grouping, int measure,
                            int n_groups) {
    int n = clusters->counts[(clusters->n_groups + grouping) * n_measures + measure];
    return n - (clusters->nested[grouping] ? n_groups : 1);
}

double lk_rate_clusters_pair(const struct lk_rate_clusters *clusters, int n_measures, int grouping, int measure, int a,
                             int b) {
    double n_a = clusters->counts[a * n_measures + measure], n_b = clusters->counts[b * n_measures + measure];
    if (clusters->nested[grouping]) return lk_expanded_df(n_a, n_b);
    return lk_rate_clusters_all(clusters, n_measures, grouping, measure, 1);
}
