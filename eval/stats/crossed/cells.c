/* From outputs to the table of sources and prompts: seeds averaged, models combined, missing cells filled. */
#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/crossed/crossed.h"

enum { FILL_STEPS = 10000 };

void lk_crossed_cells(const double *y, int n_sources, int n_prompts, int n_models, int n_seeds, const double *u,
                      double *z, double *within) {
    double squares = 0, df = 0;
    size_t n = (size_t)n_sources * (size_t)n_prompts, seeds = (size_t)n_seeds;
    for (size_t i = 0; i < n; i++) {
        z[i] = 0;
        for (int m = 0; m < n_models; m++, y += seeds) {
            double sum = 0, count = 0;
            for (size_t r = 0; r < seeds; r++)
                if (!isnan(y[r])) {
                    sum += y[r];
                    count++;
                }
            double mean = count > 0 ? sum / count : NAN;
            if (u[m] == 0) continue;
            z[i] += u[m] * mean;
            for (size_t r = 0; r < seeds; r++)
                if (!isnan(y[r])) squares += (y[r] - mean) * (y[r] - mean);
            if (count > 1) df += count - 1;
        }
    }
    if (within) *within = df > 0 ? squares / df : 0;
}

enum lk_code lk_crossed_fill(double *z, int n_sources, int n_prompts, double *share_seen) {
    size_t n_s = (size_t)n_sources, n_p = (size_t)n_prompts, n = n_s * n_p, seen = 0;
    double sum = 0, size = 1;
    for (size_t i = 0; i < n; i++)
        if (!isnan(z[i])) {
            sum += z[i];
            size = fmax(size, fabs(z[i]));
            seen++;
        }
    *share_seen = n ? (double)seen / (double)n : 0;
    if (seen == 0 || seen == n) return LK_OK;
    double *row = lk_malloc((n_s + n_p) * sizeof *row), *column = row + n_s;
    size_t *missing = lk_malloc((n - seen) * sizeof *missing), n_missing = 0;
    if (!row || !missing) {
        lk_free(row);
        lk_free(missing);
        return lk_fail(LK_E_NOMEM, "crossed: no memory for a table of %zu x %zu", n_s, n_p);
    }
    for (size_t i = 0; i < n; i++)
        if (isnan(z[i])) {
            missing[n_missing++] = i;
            z[i] = sum / (double)seen;
        }
    for (int step = 0; step < FILL_STEPS; step++) {
        double mean = 0, change = 0;
        memset(row, 0, (n_s + n_p) * sizeof *row);
        for (size_t i = 0; i < n; i++) {
            row[i / n_p] += z[i] / (double)n_p;
            column[i % n_p] += z[i] / (double)n_s;
            mean += z[i] / (double)n;
        }
        for (size_t k = 0; k < n_missing; k++) {
            double fitted = row[missing[k] / n_p] + column[missing[k] % n_p] - mean;
            change = fmax(change, fabs(fitted - z[missing[k]]));
            z[missing[k]] = fitted;
        }
        if (change < 1e-13 * size) break;
    }
    lk_free(row);
    lk_free(missing);
    return LK_OK;
}

void lk_crossed_sparse(const double *z, int n_sources, int n_prompts, bool *source, bool *prompt) {
    size_t n_p = (size_t)n_prompts;
    for (int s = 0; s < n_sources; s++) {
        int missing = 0;
        for (size_t p = 0; p < n_p; p++) missing += isnan(z[(size_t)s * n_p + p]) != 0;
        source[s] = 2 * missing > n_prompts;
    }
    for (size_t p = 0; p < n_p; p++) {
        int missing = 0;
        for (int s = 0; s < n_sources; s++) missing += isnan(z[(size_t)s * n_p + p]) != 0;
        prompt[p] = 2 * missing > n_sources;
    }
}
