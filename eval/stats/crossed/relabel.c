/* Relabellings, one after the other, and the adjusted p of what they give. */
#include "eval/stats/crossed/relabel_internal.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/study/random.h"

enum { ALL = 20000, DRAWN = 4999 };
#define REACHED     1e-9 /* by so little below, a relabelling's t counts as the observed one */
#define NO_VARIANCE 1e-20

double lk_studentised(double difference, double source, double prompt, double cell) {
    const double least = fmin(source, prompt), sum = cell >= least ? fmax(source, prompt) : source + prompt - cell;
    if (sum > NO_VARIANCE) return fabs(difference) / sqrt(sum);
    return fabs(difference) > 1e-9 ? INFINITY : 0;
}

/* Items of one stratum, from order[begin] to order[end - 1]. */
struct strata {
    int n, n_strata;
    int32_t *order, *begin, *labels, *sorted;
};

static int by_value(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static enum lk_code make_strata(int n, const int32_t *of, struct strata *out) {
    *out = (struct strata){.n = n};
    const size_t rows = (size_t)n;
    out->order = lk_malloc((4 * rows + 1) * sizeof *out->order);
    if (!out->order) return lk_fail(LK_E_NOMEM, "crossed: no memory for relabellings of %d", n);
    out->begin = out->order + rows;
    out->labels = out->begin + rows + 1;
    out->sorted = out->labels + rows;
    int at = 0;
    for (int i = 0; i < n; i++) {
        bool seen = false;
        for (int k = 0; k < i && !seen; k++) seen = of[k] == of[i];
        if (seen) continue;
        out->begin[out->n_strata++] = at;
        for (int k = i; k < n; k++)
            if (of[k] == of[i]) out->order[at++] = k;
    }
    out->begin[out->n_strata] = n;
    return LK_OK;
}

/* How many arrangements there are, at most `most`. */
static double arrangements(const struct strata *s, double most) {
    double all = 1;
    for (int k = 0; k < s->n_strata; k++) {
        int alike = 0;
        for (int i = s->begin[k]; i < s->begin[k + 1]; i++) {
            alike = i > s->begin[k] && s->sorted[i] == s->sorted[i - 1] ? alike + 1 : 1;
            all *= (double)(i - s->begin[k] + 1) / alike;
            if (all > 64 * most) return all;
        }
    }
    return floor(all + 0.5);
}

/* The next arrangement in order; false, and the first again, behind the last. */
static bool next_arrangement(int32_t *x, int n) {
    int i = n - 1, k = n - 1;
    while (i > 0 && x[i - 1] >= x[i]) i--;
    if (i > 0) {
        while (x[k] <= x[i - 1]) k--;
        const int32_t swap = x[i - 1];
        x[i - 1] = x[k], x[k] = swap;
    }
    for (int a = i, b = n - 1; a < b; a++, b--) {
        const int32_t swap = x[a];
        x[a] = x[b], x[b] = swap;
    }
    return i > 0;
}

static void scatter(const struct strata *s, int32_t *labels) {
    for (int i = 0; i < s->n; i++) labels[s->order[i]] = s->sorted[i];
}

static void gather(const struct strata *s, const int32_t *labels) {
    for (int i = 0; i < s->n; i++) s->sorted[i] = labels[s->order[i]];
}

static double largest_of(const double *t, size_t n) {
    double largest = 0;
    for (size_t i = 0; i < n; i++) largest = fmax(largest, t[i]);
    return largest;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of how many relabellings the largest t is at least t. */
static size_t n_reached(const struct lk_relabelled *r, double t) {
    size_t low = 0, high = r->n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (r->largest[middle] >= t - REACHED)
            high = middle;
        else
            low = middle + 1;
    }
    return r->n - low;
}

static double p_of(const struct lk_relabelled *r, double t) {
    const double n = (double)n_reached(r, t);
    return r->exact ? n / (double)r->n : (1 + n) / (double)(r->n + 1);
}

double lk_relabelled_critical(const struct lk_relabelled *r, double alpha) {
    for (size_t i = 0; i < r->n; i++)
        if (p_of(r, r->largest[i]) <= alpha) return r->largest[i];
    return INFINITY;
}

/* What a thread works with. */
struct worker {
    struct strata strata; /* labels and sorted are its own */
    double *t, *room;     /* t [2, n_columns, n_levels] */
};

struct work {
    lk_statistic_fn *statistic;
    const void *context;
    const int32_t *labels;
    uint64_t seed;
    size_t cells;
};

static void relabel_once(const struct work *w, struct worker *by, double *largest) {
    scatter(&by->strata, by->strata.labels);
    w->statistic(w->context, by->room, by->strata.labels, by->t, by->t + w->cells);
    *largest = largest_of(by->t, w->cells);
}

static void draw(const struct work *w, struct worker *by, size_t b, double *largest) {
    struct strata *s = &by->strata;
    struct lk_stream stream;
    gather(s, w->labels);
    lk_stream_numbered(&stream, w->seed, "perm|", b + 1);
    for (int k = 0; k < s->n_strata; k++)
        lk_stream_shuffle(&stream, s->sorted + s->begin[k], (size_t)(s->begin[k + 1] - s->begin[k]));
    relabel_once(w, by, largest);
}

static void go_over(const struct work *w, struct worker *by, double *largest, size_t n) {
    struct strata *s = &by->strata;
    for (size_t b = 0; b < n; b++) {
        relabel_once(w, by, &largest[b]);
        for (int k = 0; k < s->n_strata; k++)
            if (next_arrangement(s->sorted + s->begin[k], s->begin[k + 1] - s->begin[k])) break;
    }
}

static void run(const struct work *w, struct worker *workers, int n_threads, struct lk_relabelled *out) {
    w->statistic(w->context, workers[0].room, w->labels, out->t, out->difference);
    if (out->exact) {
        go_over(w, &workers[0], out->largest, out->n);
    } else {
#pragma omp parallel for schedule(static) num_threads(n_threads)
        for (size_t b = 0; b < out->n; b++) draw(w, &workers[omp_get_thread_num()], b, &out->largest[b]);
    }
    qsort(out->largest, out->n, sizeof *out->largest, by_size);
    for (size_t i = 0; i < w->cells; i++) out->p[i] = out->t[i] > 0 ? p_of(out, out->t[i]) : 1;
}

enum lk_code lk_relabel(int n, const int32_t *labels, const int32_t *strata, const struct lk_relabel *how,
                        lk_statistic_fn *statistic, const void *context, size_t n_room, struct lk_relabelled *out) {
    const size_t cells = (size_t)out->n_columns * (size_t)out->n_levels, rows = (size_t)n;
    const int n_threads = omp_get_max_threads();
    const struct work work = {statistic, context, labels, how->seed, cells};
    struct strata s;
    enum lk_code rc = make_strata(n, strata, &s);
    struct worker *workers = lk_calloc((size_t)n_threads, sizeof *workers);
    double *room = lk_calloc((size_t)n_threads * (2 * cells + n_room), sizeof *room);
    int32_t *own = lk_malloc((size_t)n_threads * 2 * rows * sizeof *own);
    if (!rc && (!workers || !room || !own)) rc = lk_fail(LK_E_NOMEM, "crossed: no memory for relabellings of %d", n);
    if (!rc) {
        gather(&s, labels);
        for (int k = 0; k < s.n_strata; k++)
            qsort(s.sorted + s.begin[k], (size_t)(s.begin[k + 1] - s.begin[k]), sizeof *s.sorted, by_value);
        const double all = arrangements(&s, ALL);
        out->exact = all <= ALL;
        out->n = out->exact ? (size_t)all : how->n ? (size_t)how->n : DRAWN;
        out->t = lk_calloc(3 * cells + out->n, sizeof *out->t);
        if (!out->t) rc = lk_fail(LK_E_NOMEM, "crossed: no memory for %zu relabellings", out->n);
    }
    if (!rc) {
        out->difference = out->t + cells;
        out->p = out->difference + cells;
        out->largest = out->p + cells;
        for (int i = 0; i < n_threads; i++) {
            workers[i] = (struct worker){s, room + (size_t)i * (2 * cells + n_room), NULL};
            workers[i].room = workers[i].t + 2 * cells;
            workers[i].strata.labels = own + (size_t)i * 2 * rows;
            workers[i].strata.sorted = workers[i].strata.labels + rows;
            memcpy(workers[i].strata.sorted, s.sorted, rows * sizeof *s.sorted);
        }
        run(&work, workers, n_threads, out);
    }
    lk_free(workers);
    lk_free(room);
    lk_free(own);
    lk_free(s.order);
    return rc;
}

void lk_relabelled_free(struct lk_relabelled *r) {
    lk_free(r->t);
    *r = (struct lk_relabelled){0};
}
