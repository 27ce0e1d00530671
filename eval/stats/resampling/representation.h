/* How the groups of generated pictures compare with what was to be expected: shares, their distance from a target, and
 * what a mitigation changes. */
#pragma once

#include "eval/stats/resampling/bootstrap.h"

/* Shares RR_g = n_g / sum of counts [n_groups]. LK_E_INPUT: a negative count. All 0: NaN each. */
enum lk_code lk_representation_rates(const int64_t *counts, int n_groups, double *rates);

/* Statistical parity difference: sum of |RR_g - target_g|, 0 to 2. Undefined without counts. LK_E_INPUT: a target that
 * is not a share each, 1 in sum to 1e-9. */
enum lk_code lk_spd(const int64_t *counts, int n_groups, const double *target, struct lk_number *out);

/* BiasAmp = SPD - SPD of a reference. Both intervals move by the same amount. */
struct lk_number lk_bias_amplification(const struct lk_number *spd, double reference_spd);

/* A mitigation against its base, by seeds: images [n_seeds] of both arms that share a seed. Resamples draw seeds, both
 * images together; permutations swap the arms of a seed. */
struct lk_spd_change {
    struct lk_number base, other; /* SPD with intervals */
    struct lk_number change;      /* other - base; the change of BiasAmp too, when both have one reference */
    struct lk_test test;          /* p = (1 + #{|change*| >= |change| - 1e-12}) / (B + 1) */
};

/* SPD, its change and Cohen's h of each group's share (other against base) for many sets of labels, each as if it were
 * alone: sets of one size share their draws, and equal sets their results. Labels are groups 0..n_groups-1, -1 where an
 * image has none (no face): counted, not used. Intervals are percentile ones; what is drawn are images, with `other`
 * seeds. What is not wanted is NULL; without `other` there is only spd[0]. */
struct lk_representation {
    const int32_t *base, *other; /* [n] */
    size_t n;
    int n_groups;
    const double *target;     /* for spd and test */
    struct lk_number *spd[3]; /* of base, of other, other - base */
    struct lk_number *h;      /* [n_groups] */
    struct lk_test *test;
};
enum { LK_REPRESENTATION_MAX_GROUPS = 255 };
/* how->clusters is not used. LK_E_INPUT as above, and for more groups than that. */
enum lk_code lk_representation_resample(const struct lk_representation *sets, size_t n_sets,
                                        const struct lk_resampling *how);
