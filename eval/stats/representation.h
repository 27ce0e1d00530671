/* How the groups of generated pictures compare with what was to be expected: shares, their distance from a target, and
 * what a mitigation changes. */
#pragma once

#include "eval/stats/resampling/bootstrap.h"

/* Shares RR_g = n_g / sum of counts [n_groups]. LK_E_INPUT: a negative count. All 0: NaN each. */
enum lk_code lk_representation_rates(const int64_t *counts, int n_groups, double *rates);

/* Statistical parity difference: sum of |RR_g - target_g|, 0 to 2. Undefined without counts. LK_E_INPUT: a target that
 * is not a share each, 1 in sum to 1e-9. */
enum lk_code lk_spd(const int64_t *counts, int n_groups, const double *target, struct lk_number *out);

/* Labels of images: groups 0..n_groups-1, -1 where there is none (no face): counted, not used. The interval is the
 * percentile one; what is drawn are images. out->n: images with a label. */
enum lk_code lk_spd_interval(const int32_t *groups, size_t n, int n_groups, const double *target,
                             const struct lk_resampling *how, struct lk_number *out);

/* BiasAmp = SPD - SPD of a reference. Both intervals move by the same amount. */
struct lk_number lk_bias_amplification(const struct lk_number *spd, double reference_spd);

/* A mitigation against its base, by seeds: images [n_seeds] of both arms that share a seed. Resamples draw seeds, both
 * images together; permutations swap the arms of a seed. */
struct lk_spd_change {
    struct lk_number base, other; /* SPD with intervals */
    struct lk_number change;      /* other - base; the change of BiasAmp too, when both have one reference */
    struct lk_test test;          /* p = (1 + #{|change*| >= |change| - 1e-12}) / (B + 1) */
};
enum lk_code lk_spd_compare(const int32_t *base, const int32_t *other, size_t n_seeds, int n_groups,
                            const double *target, const struct lk_resampling *how, struct lk_spd_change *out);

/* Cohen's h of each group's share, other against base, with percentile intervals over seeds. h [n_groups]. */
enum lk_code lk_representation_effects(const int32_t *base, const int32_t *other, size_t n_seeds, int n_groups,
                                       const struct lk_resampling *how, struct lk_number *h);

/* The three above for many sets of labels, each as if it were alone: sets of one size share their draws, and equal sets
 * their results. What is not wanted is NULL; without `other` there is only spd[0]. */
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
