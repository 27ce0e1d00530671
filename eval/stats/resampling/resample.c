#include "eval/stats/resampling/resample.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"

struct labelled {
    int32_t id, unit;
};

static int by_id_then_unit(const void *a, const void *b) {
    const struct labelled *x = a, *y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return x->unit < y->unit ? -1 : x->unit > y->unit;
}

int lk_resampling_threads(const struct lk_resampling *how) {
    return how->n_threads > 0 ? how->n_threads : omp_get_max_threads();
}

void lk_clusters_free(struct lk_clusters *clusters) {
    lk_free(clusters->of_unit);
    lk_free(clusters->start);
    lk_free(clusters->units);
    memset(clusters, 0, sizeof *clusters);
}

static void number_clusters(const struct labelled *sorted, size_t n_units, struct lk_clusters *out) {
    for (size_t i = 0; i < n_units; i++) {
        if (!i || sorted[i].id != sorted[i - 1].id) out->start[out->n++] = i;
        out->of_unit[sorted[i].unit] = (int32_t)(out->n - 1);
        out->units[i] = sorted[i].unit;
    }
    out->start[out->n] = n_units;
    for (size_t c = 0; c < out->n; c++)
        if (out->start[c + 1] - out->start[c] > out->longest) out->longest = out->start[c + 1] - out->start[c];
}

enum lk_code lk_clusters_make(size_t n_units, const struct lk_resampling *how, struct lk_clusters *out) {
    memset(out, 0, sizeof *out);
    if (!n_units || n_units > INT32_MAX)
        return lk_fail(LK_E_INPUT, "bootstrap: units: expected 1 to 2^31 - 1, got %zu", n_units);
    if (how->n_replicates < 1)
        return lk_fail(LK_E_INPUT, "bootstrap: replicates: expected 1 or more, got %d", how->n_replicates);
    if (!(how->confidence > 0 && how->confidence < 1))
        return lk_fail(LK_E_INPUT, "bootstrap: confidence: expected a share between 0 and 1, got %g", how->confidence);
    out->n = n_units;
    out->longest = 1;
    if (!how->clusters) return LK_OK;
    struct labelled *sorted = lk_malloc(n_units * sizeof *sorted);
    out->of_unit = lk_malloc(n_units * sizeof *out->of_unit);
    out->units = lk_malloc(n_units * sizeof *out->units);
    out->start = lk_malloc((n_units + 1) * sizeof *out->start);
    if (!sorted || !out->of_unit || !out->units || !out->start) {
        lk_free(sorted);
        lk_clusters_free(out);
        return lk_fail(LK_E_NOMEM, "bootstrap: no memory for %zu units", n_units);
    }
    for (size_t i = 0; i < n_units; i++) sorted[i] = (struct labelled){how->clusters[i], (int32_t)i};
    qsort(sorted, n_units, sizeof *sorted, by_id_then_unit);
    out->n = 0;
    number_clusters(sorted, n_units, out);
    lk_free(sorted);
    return LK_OK;
}

enum lk_code lk_resampling_units(size_t n_units, const struct lk_resampling *how, size_t *n) {
    struct lk_clusters clusters;
    LK_TRY(lk_clusters_make(n_units, how, &clusters));
    *n = clusters.n;
    lk_clusters_free(&clusters);
    return LK_OK;
}
