#include "eval/t2i/rebalance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/study/random.h"

#define SLACK 1e-9 /* of an image: 20 x 0.45 is 9, whatever its last bit says */

static int64_t least(double target, double tolerance, int64_t n) {
    double bound = ceil((double)n * (target - tolerance) - SLACK);
    return bound > 0 ? (int64_t)bound : 0;
}

static int64_t most(double target, double tolerance, int64_t n, int64_t available) {
    int64_t bound = (int64_t)floor(fmin((double)n * (target + tolerance) + SLACK, (double)n));
    return bound < available ? bound : available;
}

static bool feasible(const int64_t *available, const double *target, int n_groups, double tolerance, int64_t n) {
    int64_t low = 0, high = 0;
    for (int g = 0; g < n_groups; g++) {
        int64_t from = least(target[g], tolerance, n), to = most(target[g], tolerance, n, available[g]);
        if (from > to) return false;
        low += from;
        high += to;
    }
    return low <= n && n <= high;
}

/* The sum of squares is convex in each count, so the nearest counts are found one image at a time. available NULL: as
 * many as are wanted. */
static void nearest(const int64_t *available, const double *target, int n_groups, double tolerance, int64_t n,
                    int64_t *counts) {
    int64_t left = n;
    for (int g = 0; g < n_groups; g++) left -= counts[g] = least(target[g], tolerance, n);
    for (; left > 0; left--) {
        int best = -1;
        double best_lack = 0;
        for (int g = 0; g < n_groups; g++) {
            double lack = (double)n * target[g] - (double)counts[g];
            if (counts[g] >= most(target[g], tolerance, n, available ? available[g] : n)) continue;
            if (best < 0 || lack > best_lack + SLACK) {
                best = g;
                best_lack = lack;
            }
        }
        counts[best]++;
    }
}

/* The group with the fewest images for its least share. */
static int shortest(const int64_t *available, const double *target, int n_groups, double tolerance) {
    int worst = 0;
    double worst_supply = INFINITY;
    for (int g = 0; g < n_groups; g++) {
        double need = target[g] - tolerance, supply = need > 0 ? (double)available[g] / need : INFINITY;
        if (supply < worst_supply) {
            worst = g;
            worst_supply = supply;
        }
    }
    return worst;
}

static enum lk_code check(const double *target, int n_groups, double tolerance) {
    double sum = 0;
    for (int g = 0; g < n_groups; g++) {
        if (!(target[g] >= 0 && target[g] <= 1))
            return lk_fail(LK_E_INPUT, "post-filter: target of group %d: expected a share, got %g", g, target[g]);
        sum += target[g];
    }
    if (n_groups < 1 || !(fabs(sum - 1) <= 1e-9))
        return lk_fail(LK_E_INPUT, "post-filter: target: expected shares that sum to 1, got %.12g", sum);
    if (!(tolerance >= 0 && tolerance <= 1))
        return lk_fail(LK_E_INPUT, "post-filter: tolerance: expected a share, got %g", tolerance);
    return LK_OK;
}

void lk_quotas(const double *target, int n_groups, int64_t n, int64_t *quotas) {
    nearest(NULL, target, n_groups, 1, n, quotas);
}

enum lk_code lk_rebalance_counts(const int64_t *available, const double *target, int n_groups, double tolerance,
                                 int64_t *counts, int64_t *n_kept, int *missing) {
    *n_kept = 0;
    *missing = -1;
    LK_TRY(check(target, n_groups, tolerance));
    int64_t n = 0;
    for (int g = 0; g < n_groups; g++) {
        if (available[g] < 0 || available[g] > INT32_MAX)
            return lk_fail(LK_E_INPUT, "post-filter: group %d: expected a count, got %lld", g, (long long)available[g]);
        n += available[g];
        counts[g] = 0;
    }
    while (n >= 2 && !feasible(available, target, n_groups, tolerance, n)) n--;
    if (n < 2) {
        *missing = shortest(available, target, n_groups, tolerance);
        return LK_OK;
    }
    *n_kept = n;
    nearest(available, target, n_groups, tolerance, n, counts);
    return LK_OK;
}

/* Keeps counts[g] images of each group. order [n] is scratch. */
static enum lk_code keep(const int32_t *groups, size_t n, const char *const *names, int n_groups, uint64_t seed,
                         const int64_t *counts, int32_t *order, bool *kept) {
    char label[256];
    memset(kept, 0, n * sizeof *kept);
    for (int g = 0; g < n_groups; g++) {
        if (snprintf(label, sizeof label, "post|%s", names[g]) >= (int)sizeof label)
            return lk_fail(LK_E_INPUT, "post-filter: group %d: expected a name of under 250 bytes", g);
        struct lk_stream stream;
        lk_stream_named(&stream, seed, label);
        size_t n_members = 0;
        for (size_t i = 0; i < n; i++)
            if (groups[i] == g) order[n_members++] = (int32_t)i;
        lk_stream_shuffle(&stream, order, n_members);
        for (int64_t i = 0; i < counts[g]; i++) kept[order[i]] = true;
    }
    return LK_OK;
}

enum lk_code lk_rebalance(const int32_t *groups, size_t n, const char *const *names, const double *target, int n_groups,
                          double tolerance, uint64_t seed, bool *kept, int64_t *counts, int64_t *n_kept) {
    *n_kept = 0;
    if (n_groups < 1 || n > INT32_MAX)
        return lk_fail(LK_E_INPUT, "post-filter: expected groups and under 2^31 images, got %d and %zu", n_groups, n);
    int64_t *available = lk_calloc((size_t)n_groups, sizeof *available);
    int32_t *order = lk_malloc(n * sizeof *order);
    enum lk_code rc = LK_OK;
    int missing = -1;
    if (!available || !order) rc = lk_fail(LK_E_NOMEM, "post-filter: no memory for %zu images", n);
    for (size_t i = 0; i < n && !rc; i++) {
        if (groups[i] < -1 || groups[i] >= n_groups)
            rc = lk_fail(LK_E_INPUT, "post-filter: image %zu: expected a group below %d or -1, got %d", i, n_groups,
                         groups[i]);
        else if (groups[i] >= 0)
            available[groups[i]]++;
    }
    if (!rc) rc = lk_rebalance_counts(available, target, n_groups, tolerance, counts, n_kept, &missing);
    if (!rc && missing >= 0)
        rc =
            lk_fail(LK_E_INPUT,
                    "post-filter: group \"%s\": expected at least a share of %g to a tolerance of %g, got %lld images; "
                    "add images of that group or raise the tolerance",
                    names[missing], target[missing], tolerance, (long long)available[missing]);
    if (!rc) rc = keep(groups, n, names, n_groups, seed, counts, order, kept);
    lk_free(available);
    lk_free(order);
    return rc;
}
