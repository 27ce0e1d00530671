#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/resampling/bootstrap.h"
#include "eval/stats/resampling/resample.h"

/* totals: of each group, the count and the sum. */
static void difference(const double *totals, const void *context, void *scratch, double *out) {
    (void)context;
    (void)scratch;
    *out = totals[0] > 0 && totals[2] > 0 ? totals[3] / totals[2] - totals[1] / totals[0] : NAN;
}

/* Clusters that have units in group 0, in group 1, and in both. */
static enum lk_code count_clusters(const struct lk_tally *tally, const struct lk_resampling *how, double count[3]) {
    struct lk_clusters clusters;
    LK_TRY(lk_clusters_make(tally->n_units, how, &clusters));
    for (size_t c = 0; c < clusters.n; c++) {
        bool in[2] = {false, false};
        size_t from = clusters.start ? clusters.start[c] : c, to = clusters.start ? clusters.start[c + 1] : c + 1;
        for (size_t i = from; i < to; i++) {
            int32_t cell = tally->cells[clusters.units ? (size_t)clusters.units[i] : i];
            if (cell >= 0) in[cell] = true;
        }
        count[0] += in[0];
        count[1] += in[1];
        count[2] += in[0] && in[1];
    }
    lk_clusters_free(&clusters);
    return LK_OK;
}

static enum lk_code fill(const struct lk_tally *tally, const struct lk_resampling *how, size_t n_drawn,
                         enum lk_interval_kind kind, double *replicates, struct lk_number *out) {
    size_t n = (size_t)how->n_replicates;
    LK_TRY(lk_bootstrap_totals(tally, how, difference, NULL, 0, 1, replicates));
    if (kind != LK_INTERVAL_BCA) {
        double confidence = how->confidence, count[3] = {0};
        if (kind == LK_INTERVAL_EXPANDED) {
            LK_TRY(count_clusters(tally, how, count));
            double df = count[2] > 0 ? count[0] + count[1] - count[2] - 1 : lk_expanded_df(count[0], count[1]);
            confidence = lk_expanded_confidence(confidence, (double)n_drawn, df);
        }
        return lk_interval_percentile(replicates, n, confidence, out);
    }
    LK_TRY(lk_jackknife_totals(tally, how, difference, NULL, 0, 1, replicates + n));
    return lk_interval_bca(replicates, n, replicates + n, n_drawn, how->confidence, out);
}

enum lk_code lk_bootstrap_difference(const double *values, const int32_t *groups, size_t n,
                                     const struct lk_resampling *how, enum lk_interval_kind kind,
                                     struct lk_number *out) {
    memset(out, 0, sizeof *out);
    out->undefined = "a group without units";
    if (!n) return LK_OK;
    size_t n_drawn;
    LK_TRY(lk_resampling_units(n, how, &n_drawn));
    double *columns = lk_malloc(2 * n * sizeof *columns);
    int32_t *cells = lk_malloc(n * sizeof *cells);
    double *replicates = lk_malloc(((size_t)how->n_replicates + n_drawn) * sizeof *replicates);
    enum lk_code rc = LK_OK;
    if (!columns || !cells || !replicates) {
        rc = lk_fail(LK_E_NOMEM, "bootstrap: no memory for %zu units", n);
    } else {
        for (size_t i = 0; i < n; i++) {
            columns[2 * i] = 1;
            columns[2 * i + 1] = isnan(values[i]) || values[i] == 0 ? 0 : values[i];
            cells[i] = !isnan(values[i]) && (groups[i] == 0 || groups[i] == 1) ? groups[i] : -1;
            out->n += cells[i] >= 0;
        }
        struct lk_tally tally = {n, 2, 2, columns, cells, NULL};
        double totals[4], value;
        lk_tally_totals(&tally, totals);
        difference(totals, NULL, NULL, &value);
        if (!isnan(value)) {
            out->value = value;
            out->undefined = NULL;
            rc = fill(&tally, how, n_drawn, kind, replicates, out);
        }
    }
    lk_free(columns);
    lk_free(cells);
    lk_free(replicates);
    return rc;
}
