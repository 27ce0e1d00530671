/* Statistics of sums over the drawn units, eight resamples at a time: their draws come from streams side by side, each
 * counts how often what it draws was drawn, and the counts of four at once are multiplied by the rows. */
#include <math.h>
#include <omp.h>
#include <stdbool.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/resampling/draws.h"
#include "eval/stats/resampling/tally_rows.h"

enum { DRAWS = 256 }; /* at a time: with the counts of one lane they stay in the first cache */

static enum lk_code check(const struct lk_tally *tally) {
    if (tally->n_columns < 1 || tally->n_cells < 1)
        return lk_fail(LK_E_INPUT, "bootstrap: totals: expected 1 column and cell or more, got %d and %d",
                       tally->n_columns, tally->n_cells);
    for (size_t i = 0; tally->cells && i < tally->n_units; i++)
        if (tally->cells[i] < -1 || tally->cells[i] >= tally->n_cells)
            return lk_fail(LK_E_INPUT, "bootstrap: unit %zu: expected a cell below %d or -1, got %d", i, tally->n_cells,
                           tally->cells[i]);
    const struct lk_cell_groups *groups = tally->groups;
    if (groups && (groups->n_groupings < 1 || groups->n_groups < 1))
        return lk_fail(LK_E_INPUT, "bootstrap: totals: expected 1 grouping and group or more, got %d and %d",
                       groups->n_groupings, groups->n_groups);
    for (size_t i = 0; groups && i < (size_t)tally->n_cells * (size_t)groups->n_groupings; i++)
        if (groups->of_cell[i] < -1 || groups->of_cell[i] >= groups->n_groups)
            return lk_fail(LK_E_INPUT, "bootstrap: cell %zu: expected a group below %d or -1, got %d",
                           i / (size_t)groups->n_groupings, groups->n_groups, groups->of_cell[i]);
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

void lk_tally_groups(const struct lk_tally *tally, const double *cell_totals, double *totals) {
    const struct lk_cell_groups *groups = tally->groups;
    size_t width = (size_t)tally->n_columns;
    memset(totals, 0, (size_t)groups->n_groups * width * sizeof *totals);
    for (int cell = 0; cell < tally->n_cells; cell++)
        for (int g = 0; g < groups->n_groupings; g++) {
            int32_t group = groups->of_cell[cell * groups->n_groupings + g];
            if (group >= 0)
                add_row(cell_totals + (size_t)cell * width, tally->n_columns, 1, totals + (size_t)group * width);
        }
}

/* What a thread works with; offsets in bytes. */
struct layout {
    size_t counts_lane; /* between the counts of two lanes, in counts */
    size_t sums_at, cells_at, totals_at, out_at, out_lane, scratch_at, stride;
};

/* What all threads read. */
struct job {
    const struct lk_tally *tally;
    const struct lk_resampling *how;
    const struct lk_clusters *clusters;
    const struct lk_tally_rows *rows;
    lk_totals_statistic statistic;
    const void *context;
    int n_statistics;
    int64_t n_rounds;
    struct layout at;
};

static size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

static void lay_out(struct job *job, size_t scratch_bytes) {
    const struct lk_tally_rows *rows = job->rows;
    struct layout *at = &job->at;
    size_t row_bytes = (size_t)rows->n_columns * sizeof(double);
    size_t sums_bytes = LK_PACKED_LANES * lk_packed_sums_bytes(&rows->packed, rows->layout.n_groups);
    at->counts_lane = round_up(rows->n_counts * sizeof(uint32_t)) / sizeof(uint32_t);
    at->sums_at = LK_DRAW_LANES * at->counts_lane * sizeof(uint32_t);
    at->cells_at = at->sums_at + round_up(rows->packed.vectors ? sums_bytes : 0);
    at->totals_at =
        at->cells_at + round_up(rows->packed.vectors ? 0 : LK_PACKED_LANES * rows->layout.n_cells * row_bytes);
    at->out_at = at->totals_at + round_up(rows->layout.n_groups * row_bytes);
    at->out_lane = round_up((size_t)job->n_statistics * sizeof(double)) / sizeof(double);
    at->scratch_at = at->out_at + LK_DRAW_LANES * at->out_lane * sizeof(double);
    at->stride = at->scratch_at + round_up(scratch_bytes);
}

/* How often each row or cluster was drawn in resamples first..first + 7: counts [LK_DRAW_LANES, counts_lane]. */
static void draw(const struct job *job, uint64_t first, uint32_t one, uint32_t *counts) {
    struct lk_lanes lanes;
    uint32_t draws[DRAWS * LK_DRAW_LANES];
    size_t n = job->clusters->n, lane_size = job->at.counts_lane;
    const int32_t *of_draw = job->rows->of_draw;
    memset(counts, 0, LK_DRAW_LANES * lane_size * sizeof *counts);
    lk_lanes_numbered(&lanes, job->how->seed, "boot|", first);
    for (size_t from = 0; from < n; from += DRAWS) {
        size_t count = n - from < DRAWS ? n - from : DRAWS;
        lk_lanes_bounded(&lanes, (uint32_t)n, 0, count, draws);
        for (size_t lane = 0; lane < LK_DRAW_LANES; lane++) {
            uint32_t *of_lane = counts + lane * lane_size;
#pragma GCC unroll 8
            for (size_t i = 0; i < count; i++) of_lane[of_draw[draws[i * LK_DRAW_LANES + lane]]] += one;
        }
    }
}

/* Sums of LK_PACKED_LANES resamples in doubles, row by row, so that a row and its counts are read once for all of them
 * and no sum waits for another's: cells [LK_PACKED_LANES, n_cells, n_columns]. */
static void sum_in_doubles(const struct job *job, const uint32_t *counts, double *cells) {
    enum { ROWS = 256 };
    const struct lk_tally_rows *rows = job->rows;
    size_t width = (size_t)rows->n_columns, stride = rows->layout.n_cells * width;
    double weights[ROWS][LK_PACKED_LANES];
    memset(cells, 0, LK_PACKED_LANES * stride * sizeof *cells);
    for (size_t cell = 0; cell < rows->layout.n_cells; cell++) {
        size_t end = rows->first_row[cell + 1];
        for (size_t from = rows->first_row[cell]; from < end; from += ROWS) {
            size_t n = end - from < ROWS ? end - from : ROWS;
            for (size_t lane = 0; lane < LK_PACKED_LANES; lane++)
                for (size_t i = 0; i < n; i++) {
                    int32_t at = rows->count_of_row[from + i];
                    weights[i][lane] = (int32_t)counts[lane * job->at.counts_lane + (size_t)at];
                }
            for (size_t c = 0; c < width; c++) {
                double sums[LK_PACKED_LANES], *to = cells + cell * width + c;
                const double *column = rows->by_column + c * rows->n + from;
                for (size_t lane = 0; lane < LK_PACKED_LANES; lane++) sums[lane] = to[lane * stride];
                for (size_t i = 0; i < n; i++)
                    for (size_t lane = 0; lane < LK_PACKED_LANES; lane++) sums[lane] += weights[i][lane] * column[i];
                for (size_t lane = 0; lane < LK_PACKED_LANES; lane++) to[lane * stride] = sums[lane];
            }
        }
    }
}

/* What the statistic of a lane is computed from; every LK_PACKED_LANES lanes the next ones are summed. */
static const double *totals_of(const struct job *job, const uint32_t *counts, size_t lane, unsigned char *work) {
    const struct lk_tally_rows *rows = job->rows;
    const struct lk_packed_columns *packed = &rows->packed;
    double *totals = (double *)(void *)(work + job->at.totals_at), *cells = (double *)(void *)(work + job->at.cells_at);
    unsigned char *sums = work + job->at.sums_at;
    size_t of_four = lane % LK_PACKED_LANES, lane_size = job->at.counts_lane;
    if (packed->vectors) {
        if (!of_four) lk_packed_sums(packed, &rows->layout, counts + lane * lane_size, lane_size, sums);
        size_t bytes = lk_packed_sums_bytes(packed, rows->layout.n_groups);
        lk_packed_totals(packed, rows->layout.n_groups, sums + of_four * bytes, totals);
        return totals;
    }
    if (!of_four) sum_in_doubles(job, counts + lane * lane_size, cells);
    cells += of_four * rows->layout.n_cells * (size_t)rows->n_columns;
    if (!job->tally->groups || rows->grouped) return cells;
    lk_tally_groups(job->tally, cells, totals);
    return totals;
}

/* Rounds first..first + 7, as far as there are any. */
static void run_block(const struct job *job, int64_t first, unsigned char *work, double *values) {
    const struct lk_packed_columns *packed = &job->rows->packed;
    uint32_t *counts = (uint32_t *)(void *)work, one = packed->vectors ? lk_packed_one(packed) : 1;
    double *out = (double *)(void *)(work + job->at.out_at);
    size_t n_lanes = job->n_rounds - first < LK_DRAW_LANES ? (size_t)(job->n_rounds - first) : LK_DRAW_LANES;
    draw(job, (uint64_t)first, one, counts);
    for (size_t lane = 0; lane < n_lanes; lane++)
        job->statistic(totals_of(job, counts, lane, work), job->context, work + job->at.scratch_at,
                       out + lane * job->at.out_lane);
    for (size_t s = 0; s < (size_t)job->n_statistics; s++)
        for (size_t lane = 0; lane < n_lanes; lane++)
            values[s * (size_t)job->n_rounds + (size_t)first + lane] = out[lane * job->at.out_lane + s];
}

static enum lk_code run_blocks(const struct job *job, double *values) {
    int n_threads = lk_resampling_threads(job->how);
    unsigned char *work = lk_malloc(job->at.stride * (size_t)n_threads);
    if (!work) return lk_fail(LK_E_NOMEM, "bootstrap: no memory for %d threads", n_threads);
#pragma omp parallel for schedule(dynamic) num_threads(n_threads)
    for (int64_t first = 0; first < job->n_rounds; first += LK_DRAW_LANES)
        run_block(job, first, work + (size_t)omp_get_thread_num() * job->at.stride, values);
    lk_free(work);
    return LK_OK;
}

enum lk_code lk_bootstrap_totals(const struct lk_tally *tally, const struct lk_resampling *how,
                                 lk_totals_statistic statistic, const void *context, size_t scratch_bytes,
                                 int n_statistics, double *replicates) {
    struct lk_clusters clusters;
    struct lk_tally_rows rows;
    LK_TRY(check(tally));
    LK_TRY(lk_clusters_make(tally->n_units, how, &clusters));
    enum lk_code rc = lk_tally_rows_make(tally, &clusters, &rows);
    if (!rc) {
        struct job job = {.tally = tally,
                          .how = how,
                          .clusters = &clusters,
                          .rows = &rows,
                          .statistic = statistic,
                          .context = context,
                          .n_statistics = n_statistics,
                          .n_rounds = how->n_replicates};
        lay_out(&job, scratch_bytes);
        rc = run_blocks(&job, replicates);
        lk_tally_rows_free(&rows);
    }
    lk_clusters_free(&clusters);
    return rc;
}

/* What is taken from the sums of all: the units of one cluster, or one unit. */
static void take_out(const struct lk_tally *tally, const struct lk_clusters *clusters, size_t c, double *cells) {
    size_t from = clusters->start ? clusters->start[c] : c, to = clusters->start ? clusters->start[c + 1] : c + 1;
    size_t width = (size_t)tally->n_columns;
    for (size_t i = from; i < to; i++) {
        size_t unit = clusters->units ? (size_t)clusters->units[i] : i;
        int32_t cell = tally->cells ? tally->cells[unit] : 0;
        if (cell >= 0) add_row(tally->columns + unit * width, tally->n_columns, -1, cells + (size_t)cell * width);
    }
}

enum lk_code lk_jackknife_totals(const struct lk_tally *tally, const struct lk_resampling *how,
                                 lk_totals_statistic statistic, const void *context, size_t scratch_bytes,
                                 int n_statistics, double *values) {
    struct lk_clusters clusters;
    LK_TRY(check(tally));
    LK_TRY(lk_clusters_make(tally->n_units, how, &clusters));
    size_t n_cells = (size_t)tally->n_cells * (size_t)tally->n_columns;
    size_t n_groups = tally->groups ? (size_t)tally->groups->n_groups * (size_t)tally->n_columns : 0;
    double *all = lk_malloc((2 * n_cells + n_groups + (size_t)n_statistics) * sizeof *all);
    void *scratch = lk_malloc(scratch_bytes);
    enum lk_code rc = all && scratch ? LK_OK : lk_fail(LK_E_NOMEM, "bootstrap: no memory for %zu sums", n_cells);
    if (!rc) lk_tally_totals(tally, all);
    for (size_t c = 0; c < clusters.n && !rc; c++) {
        double *cells = all + n_cells, *groups = cells + n_cells, *out = groups + n_groups;
        memcpy(cells, all, n_cells * sizeof *cells);
        take_out(tally, &clusters, c, cells);
        if (tally->groups) lk_tally_groups(tally, cells, groups);
        statistic(tally->groups ? groups : cells, context, scratch, out);
        for (size_t s = 0; s < (size_t)n_statistics; s++) values[s * clusters.n + c] = out[s];
    }
    lk_free(all);
    lk_free(scratch);
    lk_clusters_free(&clusters);
    return rc;
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
