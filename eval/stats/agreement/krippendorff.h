/* Krippendorff's alpha: agreement of any number of raters with missing answers. Peer: krippendorff.alpha. */
#pragma once

#include "eval/stats/resampling/bootstrap.h"

enum lk_measurement { LK_NOMINAL, LK_ORDINAL, LK_INTERVAL, LK_RATIO, LK_N_MEASUREMENTS };
const char *lk_measurement_name(enum lk_measurement level); /* "ordinal" */

/* ratings [n_units, n_raters], NaN where there is none. Units with fewer than two ratings do not count; out->n is the
 * number of those that do. Undefined when none does or when all ratings are equal. Ratio: two values of sum 0 are taken
 * to agree. LK_E_INPUT: an infinite rating. */
enum lk_code lk_krippendorff_alpha(const double *ratings, size_t n_units, int n_raters, enum lk_measurement level,
                                   struct lk_number *out);

/* All four levels (out [LK_N_MEASUREMENTS]) with percentile intervals; what is resampled are the units. The ratings may
 * have at most 32 different values. Resamples whose ratings are all equal do not count. */
enum lk_code lk_krippendorff_intervals(const double *ratings, size_t n_units, int n_raters,
                                       const struct lk_resampling *how, struct lk_number *out);
