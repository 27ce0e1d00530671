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
 * image has none (no face): counted, not used. Intervals of spd and h are percentile ones; what is drawn are images,
 * with `other` seeds. What is not wanted is NULL; without `other` there is only spd[0] and bounds[0].
 *
 * A distance is never below 0, so that resamples of one near its target lie above it and their percentiles may exclude
 * it. bounds have the same values in intervals that hold them. With e = RR* - RR of a resample and sign(g) that of
 * RR_g - target_g:
 *
 *     low   SPD - the 1 - 0.7 alpha quantile of sum over g of sign(g) e_g, or of |e_g| where the sign is not known:
 *           where RR_g and target_g are within 2 sqrt(2 log log n) standard errors (twice Hansen's)
 *     high  SPD + the 1 - 0.3 alpha quantile of sum over g of -sign(g) e_g
 *
 * Both are widened to Clopper-Pearson's ends of the shares of sets of groups, of up to 12 groups: resamples of pictures
 * that are all of one group are all alike, and the truth is held in 95 % and more from one picture on.
 *
 * SPD is the largest of all choices of signs: the true SPD is at least what the signs of RR say, and SPD exceeds it at
 * most by the sum in low. The change's ends are those of a difference of two such numbers (MOVER, Zou and Donner 2008),
 * correlated as the sums in high are, with the mean of the sum in low, a bias, added and not squared. Both quantiles
 * are expanded as those of few clusters are (bootstrap.h). */
struct lk_representation {
    const int32_t *base, *other; /* [n] */
    size_t n;
    int n_groups;
    const double *target;     /* for spd and test */
    struct lk_number *spd[3]; /* of base, of other, other - base */
    struct lk_number *bounds[3];
    struct lk_number *h; /* [n_groups] */
    struct lk_test *test;
};
enum { LK_REPRESENTATION_MAX_GROUPS = 255 };
/* how->clusters is not used. LK_E_INPUT as above, and for more groups than that. */
enum lk_code lk_representation_resample(const struct lk_representation *sets, size_t n_sets,
                                        const struct lk_resampling *how);
