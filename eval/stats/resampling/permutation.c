#include "eval/stats/resampling/permutation.h"

#include <math.h>
#include <omp.h>
#include <stdbool.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/resampling/draws.h"
#include "eval/stats/resampling/resample.h"
#include "eval/study/random.h"

#define TEST_OF(n_units)                                                                                               \
    (struct lk_test) { .name = "permutation test", .method = "permutation", .n = (n_units) }

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

void lk_permutation_compare(const double *statistics, int n, struct lk_test *out) {
    int reached = 0, counted = 0;
    for (int b = 0; b < n; b++) {
        counted += !isnan(statistics[b]);
        reached += fabs(statistics[b]) >= fabs(out->statistic) - 1e-12;
    }
    out->p = (double)(1 + reached) / (counted + 1);
}

static bool exists(double statistic, struct lk_test *out) {
    out->statistic = isnan(statistic) ? 0 : statistic;
    if (isnan(statistic)) out->undefined = "the statistic does not exist";
    return !isnan(statistic);
}

static enum lk_code run(const struct observed *o, const struct lk_clusters *clusters, const struct lk_resampling *how,
                        struct lk_test *out) {
    double *statistics = lk_malloc((size_t)how->n_replicates * sizeof *statistics);
    void *scratch = lk_malloc(o->scratch_bytes);
    enum lk_code rc = LK_OK;
    if (!statistics || !scratch) {
        rc = lk_fail(LK_E_NOMEM, "permutation: no memory for %d permutations", how->n_replicates);
    } else if (exists(o->statistic(o->labels, o->n, o->context, scratch), out)) {
        rc = permutations(o, clusters, how, statistics);
        if (!rc) lk_permutation_compare(statistics, how->n_replicates, out);
    }
    lk_free(statistics);
    lk_free(scratch);
    return rc;
}

enum lk_code lk_permutation_test(const int32_t *labels, size_t n, const struct lk_resampling *how,
                                 lk_label_statistic statistic, const void *context, size_t scratch_bytes,
                                 struct lk_test *out) {
    *out = TEST_OF(n);
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

enum { CHUNK = 1 << 15, DRAWS = 256 }; /* units whose values are summed in 32 bits; draws of each lane at a time */

/* Values that are whole numbers or halves, doubled, with labels in bytes: 0, 1, 2 for the others. */
struct small {
    size_t n;
    int16_t *values;
    unsigned char *labels;
    double count[2], sum; /* of both labels, of all values */
    bool two_labels;      /* and no other */
};

static enum lk_code small_make(const double *values, const int32_t *labels, size_t n, struct small *out) {
    *out = (struct small){.n = n, .values = lk_malloc(n * sizeof *out->values), .labels = lk_malloc(n)};
    if (!out->values || !out->labels) {
        lk_free(out->values);
        lk_free(out->labels);
        return lk_fail(LK_E_NOMEM, "permutation: no memory for %zu units", n);
    }
    for (size_t i = 0; i < n; i++) {
        out->values[i] = (int16_t)(2 * values[i]);
        out->labels[i] = labels[i] == 0 || labels[i] == 1 ? (unsigned char)labels[i] : 2;
        if (out->labels[i] < 2) out->count[out->labels[i]]++;
        out->sum += values[i];
    }
    out->two_labels = out->count[0] + out->count[1] == (double)n;
    return LK_OK;
}

static bool are_small(const double *values, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(fabs(values[i]) < 16384) || 2 * values[i] != floor(2 * values[i])) return false;
    return true;
}

/* The sum of the values of one label, exact. */
static double sum_of(const struct small *small, const unsigned char *labels, unsigned char label) {
    int64_t sum = 0;
    for (size_t from = 0; from < small->n; from += CHUNK) {
        size_t end = small->n - from < CHUNK ? small->n : from + CHUNK;
        int32_t part = 0;
#pragma omp simd reduction(+ : part)
        for (size_t i = from; i < end; i++) part += small->values[i] & -(labels[i] == label);
        sum += part;
    }
    return (double)sum / 2;
}

/* Permutations first..first + 7, each from its own stream as lk_stream_shuffle draws from it. labels [LK_DRAW_LANES,
 * n]. */
static void permute_block(const struct small *small, uint64_t seed, int first, int n_lanes, unsigned char *labels,
                          double *statistics) {
    struct lk_lanes lanes;
    uint32_t draws[DRAWS * LK_DRAW_LANES];
    size_t n = small->n;
    for (size_t lane = 0; lane < LK_DRAW_LANES; lane++) memcpy(labels + lane * n, small->labels, n);
    lk_lanes_numbered(&lanes, seed, "perm|", (uint64_t)first);
    for (size_t left = n, count; left > 1; left -= count) {
        count = left - 1 < DRAWS ? left - 1 : DRAWS;
        lk_lanes_bounded(&lanes, (uint32_t)left, 1, count, draws);
        for (size_t lane = 0; lane < LK_DRAW_LANES; lane++) {
            unsigned char *mine = labels + lane * n;
            for (size_t i = 0; i < count; i++) {
                size_t j = draws[i * LK_DRAW_LANES + lane];
                unsigned char label = mine[left - 1 - i];
                mine[left - 1 - i] = mine[j];
                mine[j] = label;
            }
        }
    }
    for (int lane = 0; lane < n_lanes; lane++) {
        const unsigned char *mine = labels + (size_t)lane * n;
        double sum = sum_of(small, mine, 1), rest = small->two_labels ? small->sum - sum : sum_of(small, mine, 0);
        statistics[first + lane] = sum / small->count[1] - rest / small->count[0];
    }
}

static enum lk_code permute_small(const struct small *small, const struct lk_resampling *how, struct lk_test *out) {
    int n_threads = lk_resampling_threads(how), n = how->n_replicates;
    double *statistics = lk_malloc((size_t)n * sizeof *statistics);
    size_t stride = round_up(LK_DRAW_LANES * small->n);
    unsigned char *work = lk_malloc(stride * (size_t)n_threads);
    enum lk_code rc = LK_OK;
    if (!statistics || !work) {
        rc = lk_fail(LK_E_NOMEM, "permutation: no memory for %d permutations", n);
    } else {
#pragma omp parallel for schedule(dynamic) num_threads(n_threads)
        for (int first = 0; first < n; first += LK_DRAW_LANES)
            permute_block(small, how->seed, first, n - first < LK_DRAW_LANES ? n - first : LK_DRAW_LANES,
                          work + (size_t)omp_get_thread_num() * stride, statistics);
        lk_permutation_compare(statistics, n, out);
    }
    lk_free(statistics);
    lk_free(work);
    return rc;
}

enum lk_code lk_permutation_means(const double *values, const int32_t *labels, size_t n,
                                  const struct lk_resampling *how, struct lk_test *out) {
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return lk_fail(LK_E_INPUT, "permutation: value %zu: expected a finite number, got %g", i, values[i]);
    if (!n || how->clusters || !are_small(values, n))
        return lk_permutation_test(labels, n, how, difference_of_means, values, 0, out);
    *out = TEST_OF(n);
    size_t n_units;
    LK_TRY(lk_resampling_units(n, how, &n_units)); /* checks how */
    if (!exists(difference_of_means(labels, n, values, NULL), out)) return LK_OK;
    struct small small;
    LK_TRY(small_make(values, labels, n, &small));
    enum lk_code rc = permute_small(&small, how, out);
    lk_free(small.values);
    lk_free(small.labels);
    return rc;
}
