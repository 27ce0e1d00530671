/* Statistics of the drawn units themselves. */
#include "eval/stats/resampling/bootstrap.h"

#include <omp.h>
#include <stdbool.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/resampling/resample.h"
#include "eval/study/random.h"

/* What a thread needs: a list of drawn units, the caller's scratch, a row of statistics. Rounded up to cache lines. */
struct workspace {
    unsigned char *bytes;
    size_t scratch_at, out_at, stride;
    int n_threads;
};

static size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

static enum lk_code workspace_make(struct workspace *work, const struct lk_resampling *how, size_t n_drawn,
                                   size_t scratch_bytes, int n_statistics) {
    work->n_threads = lk_resampling_threads(how);
    work->scratch_at = round_up(n_drawn * sizeof(int32_t));
    work->out_at = work->scratch_at + round_up(scratch_bytes);
    work->stride = work->out_at + round_up((size_t)n_statistics * sizeof(double));
    work->bytes = lk_malloc(work->stride * (size_t)work->n_threads);
    if (!work->bytes) return lk_fail(LK_E_NOMEM, "bootstrap: no memory for %d threads", work->n_threads);
    return LK_OK;
}

static size_t append_cluster(const struct lk_clusters *clusters, size_t c, int32_t *drawn, size_t n) {
    if (!clusters->units) {
        drawn[n] = (int32_t)c;
        return n + 1;
    }
    size_t length = clusters->start[c + 1] - clusters->start[c];
    memcpy(drawn + n, clusters->units + clusters->start[c], length * sizeof *drawn);
    return n + length;
}

static size_t draw(const struct lk_clusters *clusters, uint64_t seed, uint64_t b, int32_t *drawn) {
    struct lk_stream stream;
    lk_stream_numbered(&stream, seed, "boot|", b);
    size_t n = 0;
    for (size_t i = 0; i < clusters->n; i++)
        n = append_cluster(clusters, (size_t)lk_stream_bounded(&stream, clusters->n), drawn, n);
    return n;
}

static size_t leave_out(const struct lk_clusters *clusters, size_t left_out, int32_t *drawn) {
    size_t n = 0;
    for (size_t c = 0; c < clusters->n; c++)
        if (c != left_out) n = append_cluster(clusters, c, drawn, n);
    return n;
}

/* One statistic per resample, or per cluster left out. */
static enum lk_code run(size_t n_units, const struct lk_resampling *how, bool jackknife, lk_statistic statistic,
                        const void *context, size_t scratch_bytes, int n_statistics, double *values) {
    struct lk_clusters clusters;
    struct workspace work;
    LK_TRY(lk_clusters_make(n_units, how, &clusters));
    enum lk_code rc = workspace_make(&work, how, clusters.n * clusters.longest, scratch_bytes, n_statistics);
    if (rc) {
        lk_clusters_free(&clusters);
        return rc;
    }
    int64_t n_rounds = jackknife ? (int64_t)clusters.n : how->n_replicates;
#pragma omp parallel for schedule(static) num_threads(work.n_threads)
    for (int64_t b = 0; b < n_rounds; b++) {
        unsigned char *mine = work.bytes + (size_t)omp_get_thread_num() * work.stride;
        int32_t *drawn = (int32_t *)(void *)mine;
        double *out = (double *)(void *)(mine + work.out_at);
        size_t n = jackknife ? leave_out(&clusters, (size_t)b, drawn) : draw(&clusters, how->seed, (uint64_t)b, drawn);
        statistic(drawn, n, context, mine + work.scratch_at, out);
        for (int s = 0; s < n_statistics; s++) values[(size_t)s * (size_t)n_rounds + (size_t)b] = out[s];
    }
    lk_free(work.bytes);
    lk_clusters_free(&clusters);
    return LK_OK;
}

enum lk_code lk_bootstrap(size_t n_units, const struct lk_resampling *how, lk_statistic statistic, const void *context,
                          size_t scratch_bytes, int n_statistics, double *replicates) {
    return run(n_units, how, false, statistic, context, scratch_bytes, n_statistics, replicates);
}

enum lk_code lk_jackknife(size_t n_units, const struct lk_resampling *how, lk_statistic statistic, const void *context,
                          size_t scratch_bytes, int n_statistics, double *values) {
    return run(n_units, how, true, statistic, context, scratch_bytes, n_statistics, values);
}
