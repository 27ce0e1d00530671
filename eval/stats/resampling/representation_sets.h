/* Inside of the representation files. */
#pragma once

#include "eval/stats/resampling/representation.h"

enum lk_code lk_representation_check_target(const double *target, int n_groups);
