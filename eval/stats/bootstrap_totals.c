/* Statistics of sums over the drawn units. A resample is a count per unit; units that are alike (same cell and columns)
 * are one row, so that small-integer scores cost little. Of clusters, which come whole, only the sums by cell are kept.
 */
#include <math.h>
#include <omp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/alloc.h"
#include "eval/stats/packed_columns.h"
#include "eval/stats/resample.h"
#include "eval/study/random.h"

struct rows {
    size_t n;
    int n_columns;
    int32_t *of_unit;      /* [n_units] */
    int32_t *cell;         /* [n] */
    int32_t *cluster;      /* [n]; only read with clusters */
    double *multiplicity;  /* [n]: units that are alike */
    const double **column; /* [n] -> [n_columns] in the caller's memory, or in sums */
    double *sums;          /* [n, n_columns] with clusters, NULL without */
    struct lk_packed_columns packed;
};

/* For qsort, which takes no context: a unit with all that it is compared by. */
struct unit {
    const double *columns;
    size_t n_bytes;
    int32_t cell, cluster, index;
};

static int by_content(const void *a, const void *b) {
    const struct unit *x = a, *y = b;
    if (x->cell != y->cell) return x->cell < y->cell ? -1 : 1;
    if (x->cluster != y->cluster) return x->cluster < y->cluster ? -1 : 1;
    int order = memcmp(x->columns, y->columns, x->n_bytes);
    if (order) return order;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void rows_free(struct rows *rows) {
    lk_free(rows->of_unit);
    lk_free(rows->cell);
    lk_free(rows->cluster);
    lk_free(rows->multiplicity);
    lk_free(rows->column);
    lk_free(rows->sums);
    lk_packed_columns_free(&rows->packed);
    memset(rows, 0, sizeof *rows);
}

static void merge(const struct unit *units, size_t n_units, struct rows *rows) {
    for (size_t i = 0; i < n_units; i++) {
        const struct unit *u = &units[i];
        if (!i || u->cell != units[i - 1].cell || u->cluster != units[i - 1].cluster ||
            memcmp(u->columns, units[i - 1].columns, u->n_bytes)) {
            rows->cell[rows->n] = u->cell;
            rows->cluster[rows->n] = u->cluster;
            rows->column[rows->n] = u->columns;
            rows->multiplicity[rows->n++] = 0;
        }
        rows->multiplicity[rows->n - 1]++;
        rows->of_unit[u->index] = (int32_t)(rows->n - 1);
    }
}

/* Rows of the same cluster and cell become one, their sum. */
static bool sum_clusters(struct rows *rows) {
    size_t width = (size_t)rows->n_columns, n = 0;
    rows->sums = lk_calloc(rows->n, width * sizeof *rows->sums);
    if (!rows->sums) return false;
    for (size_t r = 0; r < rows->n; r++) {
        if (!r || rows->cell[r] != rows->cell[n - 1] || rows->cluster[r] != rows->cluster[n - 1]) {
            rows->cell[n] = rows->cell[r];
            rows->cluster[n++] = rows->cluster[r];
        }
        double *sum = rows->sums + (n - 1) * width;
        for (size_t c = 0; c < width; c++) sum[c] += rows->multiplicity[r] * rows->column[r][c];
    }
    for (size_t r = 0; r < n; r++) {
        rows->column[r] = rows->sums + r * width;
        rows->multiplicity[r] = 1;
    }
    rows->n = n;
    return true;
}

static enum lk_code rows_make(const struct lk_tally *tally, const struct lk_clusters *clusters, struct rows *rows) {
    size_t n = tally->n_units, width = (size_t)tally->n_columns;
    memset(rows, 0, sizeof *rows);
    rows->n_columns = tally->n_columns;
    struct unit *units = lk_malloc(n * sizeof *units);
    rows->of_unit = lk_malloc(n * sizeof *rows->of_unit);
    rows->cell = lk_malloc(n * sizeof *rows->cell);
    rows->cluster = lk_malloc(n * sizeof *rows->cluster);
    rows->multiplicity = lk_malloc(n * sizeof *rows->multiplicity);
    rows->column = lk_malloc(n * sizeof *rows->column);
    if (!units || !rows->of_unit || !rows->cell || !rows->cluster || !rows->multiplicity || !rows->column) {
        lk_free(units);
        rows_free(rows);
        return lk_fail(LK_E_NOMEM, "bootstrap: no memory for %zu units", n);
    }
    for (size_t i = 0; i < n; i++)
        units[i] = (struct unit){tally->columns + i * width, width * sizeof(double), tally->cells ? tally->cells[i] : 0,
                                 clusters->of_unit ? clusters->of_unit[i] : 0, (int32_t)i};
    qsort(units, n, sizeof *units, by_content);
    merge(units, n, rows);
    lk_free(units);
    enum lk_code rc =
        clusters->of_unit && !sum_clusters(rows) ? lk_fail(LK_E_NOMEM, "bootstrap: no memory for %zu units", n) : LK_OK;
    double most = (double)clusters->n * (clusters->of_unit ? 1 : (double)clusters->longest);
    if (!rc) rc = lk_pack_columns(rows->column, rows->n, rows->n_columns, most, &rows->packed);
    if (rc) rows_free(rows);
    return rc;
}

static enum lk_code check(const struct lk_tally *tally) {
    if (tally->n_columns < 1 || tally->n_cells < 1)
        return lk_fail(LK_E_INPUT, "bootstrap: totals: expected 1 column and cell or more, got %d and %d",
                       tally->n_columns, tally->n_cells);
    for (size_t i = 0; tally->cells && i < tally->n_units; i++)
        if (tally->cells[i] < -1 || tally->cells[i] >= tally->n_cells)
            return lk_fail(LK_E_INPUT, "bootstrap: unit %zu: expected a cell below %d or -1, got %d", i, tally->n_cells,
                           tally->cells[i]);
    for (size_t i = 0; i < tally->n_units * (size_t)tally->n_columns; i++)
        if (!isfinite(tally->columns[i]))
            return lk_fail(LK_E_INPUT, "bootstrap: unit %zu: expected a finite number, got %g",
                           i / (size_t)tally->n_columns, tally->columns[i]);
    return LK_OK;
}

static void add_row(const double *columns, int n, double weight, double *totals) {
#pragma omp simd
    for (int c = 0; c < n; c++) totals[c] += weight * columns[c];
}

static void sum_rows(const struct rows *rows, const double *weights, int n_cells, double *totals) {
    memset(totals, 0, (size_t)n_cells * (size_t)rows->n_columns * sizeof *totals);
    if (rows->packed.words) {
        lk_packed_totals(&rows->packed, rows->cell, weights, rows->n, totals);
        return;
    }
    for (size_t r = 0; r < rows->n; r++)
        if (weights[r] != 0 && rows->cell[r] >= 0)
            add_row(rows->column[r], rows->n_columns, weights[r],
                    totals + (size_t)rows->cell[r] * (size_t)rows->n_columns);
}

/* How often each row was drawn in replicate b. counts [n_clusters] is used with clusters only. */
static void draw(const struct rows *rows, const struct lk_clusters *clusters, uint64_t seed, uint64_t b, double *counts,
                 double *weights) {
    struct lk_stream stream;
    lk_stream_numbered(&stream, seed, "boot|", b);
    if (!clusters->of_unit) {
        memset(weights, 0, rows->n * sizeof *weights);
        for (size_t i = 0; i < clusters->n; i++) weights[rows->of_unit[lk_stream_bounded(&stream, clusters->n)]]++;
        return;
    }
    memset(counts, 0, clusters->n * sizeof *counts);
    for (size_t i = 0; i < clusters->n; i++) counts[lk_stream_bounded(&stream, clusters->n)]++;
    for (size_t r = 0; r < rows->n; r++) weights[r] = counts[rows->cluster[r]];
}

static void leave_out(const struct rows *rows, const struct lk_clusters *clusters, size_t left_out, double *weights) {
    memcpy(weights, rows->multiplicity, rows->n * sizeof *weights);
    if (!clusters->of_unit)
        weights[rows->of_unit[left_out]]--;
    else
        for (size_t r = 0; r < rows->n; r++)
            if ((size_t)rows->cluster[r] == left_out) weights[r] = 0;
}

struct layout {
    size_t counts_at, totals_at, out_at, scratch_at, stride; /* in doubles */
};

static struct layout layout_of(const struct lk_tally *tally, const struct rows *rows,
                               const struct lk_clusters *clusters, size_t scratch_bytes, int n_statistics) {
    struct layout at;
    at.counts_at = (rows->n + 7) / 8 * 8;
    at.totals_at = at.counts_at + (clusters->of_unit ? (clusters->n + 7) / 8 * 8 : 0);
    at.out_at = at.totals_at + ((size_t)tally->n_cells * (size_t)tally->n_columns + 7) / 8 * 8;
    at.scratch_at = at.out_at + ((size_t)n_statistics + 7) / 8 * 8;
    at.stride = at.scratch_at + (scratch_bytes + 63) / 64 * 8;
    return at;
}

static enum lk_code run(const struct lk_tally *tally, const struct lk_resampling *how, bool jackknife,
                        lk_totals_statistic statistic, const void *context, size_t scratch_bytes, int n_statistics,
                        double *values) {
    struct lk_clusters clusters;
    struct rows rows;
    LK_TRY(check(tally));
    LK_TRY(lk_clusters_make(tally->n_units, how, &clusters));
    enum lk_code rc = rows_make(tally, &clusters, &rows);
    if (rc) {
        lk_clusters_free(&clusters);
        return rc;
    }
    struct layout at = layout_of(tally, &rows, &clusters, scratch_bytes, n_statistics);
    int n_threads = lk_resampling_threads(how);
    double *work = lk_malloc(at.stride * (size_t)n_threads * sizeof *work);
    int64_t n_rounds = jackknife ? (int64_t)clusters.n : how->n_replicates;
    if (!work) rc = lk_fail(LK_E_NOMEM, "bootstrap: no memory for %d threads", n_threads);
    if (!rc) {
#pragma omp parallel for schedule(static) num_threads(n_threads)
        for (int64_t b = 0; b < n_rounds; b++) {
            double *weights = work + (size_t)omp_get_thread_num() * at.stride, *out = weights + at.out_at;
            if (jackknife)
                leave_out(&rows, &clusters, (size_t)b, weights);
            else
                draw(&rows, &clusters, how->seed, (uint64_t)b, weights + at.counts_at, weights);
            sum_rows(&rows, weights, tally->n_cells, weights + at.totals_at);
            statistic(weights + at.totals_at, context, weights + at.scratch_at, out);
            for (int s = 0; s < n_statistics; s++) values[(size_t)s * (size_t)n_rounds + (size_t)b] = out[s];
        }
    }
    lk_free(work);
    rows_free(&rows);
    lk_clusters_free(&clusters);
    return rc;
}

enum lk_code lk_bootstrap_totals(const struct lk_tally *tally, const struct lk_resampling *how,
                                 lk_totals_statistic statistic, const void *context, size_t scratch_bytes,
                                 int n_statistics, double *replicates) {
    return run(tally, how, false, statistic, context, scratch_bytes, n_statistics, replicates);
}

enum lk_code lk_jackknife_totals(const struct lk_tally *tally, const struct lk_resampling *how,
                                 lk_totals_statistic statistic, const void *context, size_t scratch_bytes,
                                 int n_statistics, double *values) {
    return run(tally, how, true, statistic, context, scratch_bytes, n_statistics, values);
}

void lk_tally_totals(const struct lk_tally *tally, double *totals) {
    memset(totals, 0, (size_t)tally->n_cells * (size_t)tally->n_columns * sizeof *totals);
    for (size_t i = 0; i < tally->n_units; i++) {
        int32_t cell = tally->cells ? tally->cells[i] : 0;
        if (cell >= 0)
            add_row(tally->columns + i * (size_t)tally->n_columns, tally->n_columns, 1,
                    totals + (size_t)cell * (size_t)tally->n_columns);
    }
}
