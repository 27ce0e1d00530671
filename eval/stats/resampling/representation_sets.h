/* Inside of the representation files. */
#pragma once

#include "eval/stats/resampling/representation.h"

enum lk_code lk_representation_check_target(const double *target, int n_groups);
/* bounds [3] of spd [3], from rows of n resamples, two of each arm: along the signs, and at most. scratch [2, n]. */
void lk_representation_bounds(const struct lk_representation *set, const double *rows, size_t n, double confidence,
                              const struct lk_number spd[3], double *scratch, struct lk_number bounds[3]);
