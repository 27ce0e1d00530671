#include "eval/stats/tests/rank.h"
#include "eval/stats/result.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "engine/base/alloc.h"

enum { LEVELS = 256 }; /* of whole numbers that are counted rather than sorted */

enum lk_code lk_check_finite(const char *what, const double *values, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return lk_fail(LK_E_INPUT,
                           "%s: value %zu: expected a finite number, got %g; leave missing answers out first", what, i,
                           values[i]);
    return LK_OK;
}

static void count_tie(struct lk_ties *ties, size_t n_equal) {
    double t = (double)n_equal;
    ties->pairs += t * (t - 1) / 2;
    ties->cubes += t * t * t - t;
    ties->triples += t * (t - 1) * (t - 2);
    ties->weighted += t * (t - 1) * (2 * t + 5);
    if (n_equal > ties->largest) ties->largest = n_equal;
}

static bool are_levels(const double *values, size_t n, double *least) {
    double most = values[0];
    *least = values[0];
    for (size_t i = 0; i < n; i++) {
        if (!(fabs(values[i]) < 1e9) || values[i] != (double)(int64_t)values[i]) return false;
        if (values[i] < *least) *least = values[i];
        if (values[i] > most) most = values[i];
    }
    return most - *least < LEVELS;
}

static void rank_levels(const double *values, size_t n, double least, double *ranks, struct lk_ties *ties) {
    size_t counts[LEVELS] = {0}, before = 0;
    double rank_of[LEVELS];
    for (size_t i = 0; i < n; i++) counts[(size_t)(values[i] - least)]++;
    for (int level = 0; level < LEVELS; before += counts[level++]) {
        rank_of[level] = (double)before + 0.5 * (double)(counts[level] + 1);
        count_tie(ties, counts[level]);
    }
    for (size_t i = 0; i < n; i++) ranks[i] = rank_of[(size_t)(values[i] - least)];
}

/* from[low, middle) and from[middle, high) into to[low, high). */
static uint64_t merge(const struct lk_entry *from, struct lk_entry *to, size_t low, size_t middle, size_t high) {
    uint64_t inversions = 0;
    size_t left = low, right = middle;
    for (size_t i = low; i < high; i++) {
        if (left < middle && (right == high || !(from[right].key < from[left].key))) {
            to[i] = from[left++];
        } else {
            to[i] = from[right++];
            inversions += middle - left;
        }
    }
    return inversions;
}

uint64_t lk_merge_sort(struct lk_entry *entries, struct lk_entry *spare, size_t n) {
    uint64_t inversions = 0;
    struct lk_entry *from = entries, *to = spare;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t low = 0; low < n; low += 2 * width) {
            size_t middle = low + width < n ? low + width : n, high = middle + width < n ? middle + width : n;
            inversions += merge(from, to, low, middle, high);
        }
        struct lk_entry *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != entries) memcpy(entries, from, n * sizeof *entries);
    return inversions;
}

static void rank_sorted(const struct lk_entry *entries, size_t n, double *ranks, struct lk_ties *ties) {
    for (size_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && entries[end].key == entries[first].key;) end++;
        count_tie(ties, end - first);
        for (size_t i = first; i < end; i++) ranks[entries[i].index] = 0.5 * (double)(first + end + 1);
    }
}

enum lk_code lk_rank(const double *values, size_t n, double *ranks, struct lk_ties *ties) {
    *ties = (struct lk_ties){0};
    if (!n) return LK_OK;
    double least;
    if (are_levels(values, n, &least)) {
        rank_levels(values, n, least, ranks, ties);
        return LK_OK;
    }
    struct lk_entry *entries = n < SIZE_MAX / 64 ? lk_malloc(2 * n * sizeof *entries) : NULL;
    if (!entries) return lk_fail(LK_E_NOMEM, "rank: out of memory for %zu values", n);
    for (size_t i = 0; i < n; i++) entries[i] = (struct lk_entry){values[i], i};
    lk_merge_sort(entries, entries + n, n);
    rank_sorted(entries, n, ranks, ties);
    lk_free(entries);
    return LK_OK;
}
