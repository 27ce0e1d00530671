#include "eval/stats/representation.h"

#include <math.h>
#include <string.h>

#include "engine/alloc.h"
#include "eval/stats/permutation.h"
#include "eval/stats/proportion.h"

static enum lk_code check_target(const double *target, int n_groups) {
    double sum = 0;
    if (n_groups < 1) return lk_fail(LK_E_INPUT, "representation: expected 1 group or more, got %d", n_groups);
    for (int g = 0; g < n_groups; g++) {
        if (!(target[g] >= 0 && target[g] <= 1))
            return lk_fail(LK_E_INPUT, "representation: target of group %d: expected a share, got %g", g, target[g]);
        sum += target[g];
    }
    if (!(fabs(sum - 1) <= 1e-9))
        return lk_fail(LK_E_INPUT, "representation: target: expected shares that sum to 1, got %.12g", sum);
    return LK_OK;
}

static enum lk_code check_groups(const int32_t *groups, size_t n, int n_groups) {
    for (size_t i = 0; i < n; i++)
        if (groups[i] < -1 || groups[i] >= n_groups)
            return lk_fail(LK_E_INPUT, "representation: image %zu: expected a group below %d or -1, got %d", i,
                           n_groups, groups[i]);
    return LK_OK;
}

enum lk_code lk_representation_rates(const int64_t *counts, int n_groups, double *rates) {
    int64_t sum = 0;
    for (int g = 0; g < n_groups; g++) {
        if (counts[g] < 0 || counts[g] > INT64_C(1) << 40)
            return lk_fail(LK_E_INPUT, "representation: group %d: expected a count, got %lld", g, (long long)counts[g]);
        sum += counts[g];
    }
    for (int g = 0; g < n_groups; g++) rates[g] = sum ? (double)counts[g] / (double)sum : NAN;
    return LK_OK;
}

/* NaN without counts. */
static double spd_of(const double *counts, int n_groups, const double *target) {
    double sum = 0, spd = 0;
    for (int g = 0; g < n_groups; g++) sum += counts[g];
    if (!(sum > 0)) return NAN;
    for (int g = 0; g < n_groups; g++) spd += fabs(counts[g] / sum - target[g]);
    return spd;
}

static void set(struct lk_number *out, double value, size_t n) {
    *out = (struct lk_number){.n = n};
    if (isnan(value))
        out->undefined = "no image with a label";
    else
        out->value = value;
}

enum lk_code lk_spd(const int64_t *counts, int n_groups, const double *target, struct lk_number *out) {
    memset(out, 0, sizeof *out);
    LK_TRY(check_target(target, n_groups));
    double *rates = lk_malloc((size_t)n_groups * sizeof *rates);
    if (!rates) return lk_fail(LK_E_NOMEM, "representation: no memory for %d groups", n_groups);
    enum lk_code rc = lk_representation_rates(counts, n_groups, rates);
    size_t n = 0;
    for (int g = 0; g < n_groups && !rc; g++) {
        n += (size_t)counts[g];
        rates[g] = (double)counts[g];
    }
    if (!rc) set(out, spd_of(rates, n_groups, target), n);
    lk_free(rates);
    return rc;
}

struct lk_number lk_bias_amplification(const struct lk_number *spd, double reference_spd) {
    struct lk_number out = *spd;
    if (out.undefined) return out;
    out.value -= reference_spd;
    out.low -= reference_spd;
    out.high -= reference_spd;
    return out;
}

struct arms {
    const double *target;
    int n_groups, n_arms;
};

/* One column per arm and group: 1 where the unit's image of that arm is of that group. */
static double *indicator_columns(const int32_t *const *arms, int n_arms, size_t n, int n_groups) {
    size_t width = (size_t)n_arms * (size_t)n_groups;
    double *columns = lk_calloc(n * width, sizeof *columns);
    if (!columns) return NULL;
    for (size_t i = 0; i < n; i++)
        for (int a = 0; a < n_arms; a++)
            if (arms[a][i] >= 0) columns[i * width + (size_t)(a * n_groups + arms[a][i])] = 1;
    return columns;
}

/* SPD of each arm, then of two arms second - first. */
static void spd_of_totals(const double *totals, const void *context, void *scratch, double *out) {
    (void)scratch;
    const struct arms *arms = context;
    for (int a = 0; a < arms->n_arms; a++) out[a] = spd_of(totals + a * arms->n_groups, arms->n_groups, arms->target);
    if (arms->n_arms == 2) out[2] = out[1] - out[0];
}

static double share(const double *counts, int n_groups, int g) {
    double sum = 0;
    for (int i = 0; i < n_groups; i++) sum += counts[i];
    return sum > 0 ? counts[g] / sum : NAN;
}

static void h_of_totals(const double *totals, const void *context, void *scratch, double *out) {
    (void)scratch;
    int n = ((const struct arms *)context)->n_groups;
    for (int g = 0; g < n; g++) out[g] = lk_cohen_h(share(totals + n, n, g), share(totals, n, g));
}

/* Statistics of the arms' counts with their intervals. numbers [n_statistics]. */
static enum lk_code resample(const int32_t *const *images, size_t n, const struct arms *arms,
                             lk_totals_statistic statistic, int n_statistics, const struct lk_resampling *how,
                             struct lk_number *numbers) {
    size_t width = (size_t)arms->n_arms * (size_t)arms->n_groups, n_replicates = (size_t)how->n_replicates;
    double *columns = indicator_columns(images, arms->n_arms, n, arms->n_groups);
    double *totals = lk_malloc((width + (size_t)n_statistics * (n_replicates + 1)) * sizeof *totals);
    enum lk_code rc = LK_OK;
    if (!columns || !totals) {
        rc = lk_fail(LK_E_NOMEM, "representation: no memory for %zu images", n);
    } else {
        double *values = totals + width, *replicates = values + n_statistics;
        struct lk_tally tally = {n, (int)width, 1, columns, NULL, NULL};
        lk_tally_totals(&tally, totals);
        statistic(totals, arms, NULL, values);
        size_t n_labelled = 0;
        for (size_t c = 0; c < width; c++) n_labelled += (size_t)totals[c];
        for (int s = 0; s < n_statistics; s++) set(&numbers[s], values[s], n_labelled);
        if (n) rc = lk_bootstrap_totals(&tally, how, statistic, arms, 0, n_statistics, replicates);
        if (n && !rc) rc = lk_intervals_percentile(replicates, n_replicates, how, numbers, (size_t)n_statistics);
    }
    lk_free(columns);
    lk_free(totals);
    return rc;
}

static size_t labelled(const int32_t *groups, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += groups[i] >= 0;
    return count;
}

static enum lk_code check_replicates(const struct lk_resampling *how) {
    if (how->n_replicates < 1)
        return lk_fail(LK_E_INPUT, "representation: replicates: expected 1 or more, got %d", how->n_replicates);
    return LK_OK;
}

enum lk_code lk_spd_interval(const int32_t *groups, size_t n, int n_groups, const double *target,
                             const struct lk_resampling *how, struct lk_number *out) {
    memset(out, 0, sizeof *out);
    LK_TRY(check_target(target, n_groups));
    LK_TRY(check_groups(groups, n, n_groups));
    LK_TRY(check_replicates(how));
    struct arms arms = {target, n_groups, 1};
    return resample(&groups, n, &arms, spd_of_totals, 1, how, out);
}

/* For the permutation: images of both arms in one row, base first; a label says which arm an image is taken for. */
struct swapped {
    const int32_t *groups;
    const struct arms *arms;
};

static double change_of_labels(const int32_t *labels, size_t n, const void *context, void *scratch) {
    const struct swapped *swapped = context;
    double *counts = scratch, out[3];
    memset(counts, 0, 2 * (size_t)swapped->arms->n_groups * sizeof *counts);
    for (size_t i = 0; i < n; i++)
        if (swapped->groups[i] >= 0) counts[labels[i] * swapped->arms->n_groups + swapped->groups[i]]++;
    spd_of_totals(counts, swapped->arms, NULL, out);
    return out[2];
}

static enum lk_code permute(const int32_t *base, const int32_t *other, size_t n_seeds, const struct arms *arms,
                            const struct lk_resampling *how, struct lk_test *out) {
    int32_t *groups = lk_malloc(6 * n_seeds * sizeof *groups);
    if (!groups) return lk_fail(LK_E_NOMEM, "representation: no memory for %zu seeds", n_seeds);
    int32_t *labels = groups + 2 * n_seeds, *seeds = labels + 2 * n_seeds;
    for (size_t i = 0; i < n_seeds; i++)
        for (size_t a = 0; a < 2; a++) {
            groups[2 * i + a] = a ? other[i] : base[i];
            labels[2 * i + a] = (int32_t)a;
            seeds[2 * i + a] = (int32_t)i;
        }
    struct lk_resampling within = *how;
    struct swapped swapped = {groups, arms};
    within.clusters = seeds;
    enum lk_code rc = lk_permutation_test(labels, 2 * n_seeds, &within, change_of_labels, &swapped,
                                          2 * (size_t)arms->n_groups * sizeof(double), out);
    out->name = "permutation of arms within seeds";
    lk_free(groups);
    return rc;
}

enum lk_code lk_spd_compare(const int32_t *base, const int32_t *other, size_t n_seeds, int n_groups,
                            const double *target, const struct lk_resampling *how, struct lk_spd_change *out) {
    memset(out, 0, sizeof *out);
    LK_TRY(check_target(target, n_groups));
    LK_TRY(check_groups(base, n_seeds, n_groups));
    LK_TRY(check_groups(other, n_seeds, n_groups));
    LK_TRY(check_replicates(how));
    const int32_t *const images[] = {base, other};
    struct arms arms = {target, n_groups, 2};
    struct lk_number numbers[3];
    LK_TRY(resample(images, n_seeds, &arms, spd_of_totals, 3, how, numbers));
    out->base = numbers[0];
    out->other = numbers[1];
    out->change = numbers[2];
    out->base.n = labelled(base, n_seeds);
    out->other.n = labelled(other, n_seeds);
    out->change.n = n_seeds;
    return permute(base, other, n_seeds, &arms, how, &out->test);
}

enum lk_code lk_representation_effects(const int32_t *base, const int32_t *other, size_t n_seeds, int n_groups,
                                       const struct lk_resampling *how, struct lk_number *h) {
    if (n_groups < 1) return lk_fail(LK_E_INPUT, "representation: expected 1 group or more, got %d", n_groups);
    memset(h, 0, (size_t)n_groups * sizeof *h);
    LK_TRY(check_groups(base, n_seeds, n_groups));
    LK_TRY(check_groups(other, n_seeds, n_groups));
    LK_TRY(check_replicates(how));
    const int32_t *const images[] = {base, other};
    struct arms arms = {NULL, n_groups, 2};
    return resample(images, n_seeds, &arms, h_of_totals, n_groups, how, h);
}
