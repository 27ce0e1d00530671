#pragma once

#include "tools/gpusim/numerics/numerics.h"

/* fn, or with a seed (gpusim_num_jitter) the same with other bits. */
gpusim_num_fn *gpusim_num_jittered(enum gpusim_num_op op, enum gpusim_num_type type, unsigned flags, gpusim_num_fn *fn);
