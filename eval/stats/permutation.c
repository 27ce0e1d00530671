#include "eval/stats/permutation.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "engine/alloc.h"
#include "eval/stats/resample.h"
#include "eval/study/random.h"

/* Shuffles the labels of each cluster. block [longest cluster] is scratch. */
static void permute(const struct lk_clusters *clusters, struct lk_stream *stream, int32_t *labels, int32_t *block) {
    for (size_t c = 0; c < clusters->n; c++) {
        const int32_t *units = clusters->units + clusters->start[c];
        size_t n = clusters->start[c + 1] - clusters->start[c];
        for (size_t i = 0; i < n; i++) block[i] = labels[units[i]];
        lk_stream_shuffle(stream, block, n);
        for (size_t i = 0; i < n; i++) labels[units[i]] = block[i];
    }
}

static size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

struct observed {
    const int32_t *labels;
    size_t n;
    lk_label_statistic statistic;
    const void *context;
    size_t scratch_bytes;
};

/* The statistics of all permutations, [n_replicates]. */
static enum lk_code permutations(const struct observed *o, const struct lk_clusters *clusters,
                                 const struct lk_resampling *how, double *statistics) {
    int n_threads = lk_resampling_threads(how);
    size_t block_at = round_up(o->n * sizeof(int32_t));
    size_t scratch_at = block_at + round_up((clusters->units ? clusters->longest : 1) * sizeof(int32_t));
    size_t stride = scratch_at + round_up(o->scratch_bytes);
    unsigned char *work = lk_malloc(stride * (size_t)n_threads);
    if (!work) return lk_fail(LK_E_NOMEM, "permutation: no memory for %d threads", n_threads);
#pragma omp parallel for schedule(static) num_threads(n_threads)
    for (int b = 0; b < how->n_replicates; b++) {
        unsigned char *mine = work + (size_t)omp_get_thread_num() * stride;
        int32_t *labels = (int32_t *)(void *)mine;
        struct lk_stream stream;
        lk_stream_numbered(&stream, how->seed, "perm|", (uint64_t)b);
        memcpy(labels, o->labels, o->n * sizeof *labels);
        if (clusters->units)
            permute(clusters, &stream, labels, (int32_t *)(void *)(mine + block_at));
        else
            lk_stream_shuffle(&stream, labels, o->n);
        statistics[b] = o->statistic(labels, o->n, o->context, mine + scratch_at);
    }
    lk_free(work);
    return LK_OK;
}

static enum lk_code run(const struct observed *o, const struct lk_clusters *clusters, const struct lk_resampling *how,
                        struct lk_test *out) {
    double *statistics = lk_malloc((size_t)how->n_replicates * sizeof *statistics);
    void *scratch = lk_malloc(o->scratch_bytes);
    enum lk_code rc = LK_OK;
    if (!statistics || !scratch) {
        rc = lk_fail(LK_E_NOMEM, "permutation: no memory for %d permutations", how->n_replicates);
    } else {
        out->statistic = o->statistic(o->labels, o->n, o->context, scratch);
        if (isnan(out->statistic)) {
            out->statistic = 0;
            out->undefined = "the statistic does not exist";
        } else {
            rc = permutations(o, clusters, how, statistics);
        }
    }
    if (!rc && !out->undefined) {
        int reached = 0, counted = 0;
        for (int b = 0; b < how->n_replicates; b++) {
            counted += !isnan(statistics[b]);
            reached += fabs(statistics[b]) >= fabs(out->statistic) - 1e-12;
        }
        out->p = (double)(1 + reached) / (counted + 1);
    }
    lk_free(statistics);
    lk_free(scratch);
    return rc;
}

enum lk_code lk_permutation_test(const int32_t *labels, size_t n, const struct lk_resampling *how,
                                 lk_label_statistic statistic, const void *context, size_t scratch_bytes,
                                 struct lk_test *out) {
    *out = (struct lk_test){.name = "permutation test", .method = "permutation", .n = n};
    if (!n) {
        out->undefined = "no unit";
        return LK_OK;
    }
    struct lk_clusters clusters;
    LK_TRY(lk_clusters_make(n, how, &clusters));
    struct observed observed = {labels, n, statistic, context, scratch_bytes};
    enum lk_code rc = run(&observed, &clusters, how, out);
    lk_clusters_free(&clusters);
    return rc;
}

static double difference_of_means(const int32_t *labels, size_t n, const void *context, void *scratch) {
    (void)scratch;
    const double *values = context;
    double sum[2] = {0, 0}, count[2] = {0, 0};
    for (size_t i = 0; i < n; i++)
        if (labels[i] == 0 || labels[i] == 1) {
            sum[labels[i]] += values[i];
            count[labels[i]]++;
        }
    return count[0] > 0 && count[1] > 0 ? sum[1] / count[1] - sum[0] / count[0] : NAN;
}

enum lk_code lk_permutation_means(const double *values, const int32_t *labels, size_t n,
                                  const struct lk_resampling *how, struct lk_test *out) {
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return lk_fail(LK_E_INPUT, "permutation: value %zu: expected a finite number, got %g", i, values[i]);
    return lk_permutation_test(labels, n, how, difference_of_means, values, 0, out);
}
