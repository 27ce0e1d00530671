/* Conversions lane by lane: all that convert.c has no vector code for. */
#pragma once

#include "tools/gpusim/numerics/numerics.h"

gpusim_num_fn *num_convert_any(enum gpusim_num_type to, enum gpusim_num_type from, enum gpusim_num_rounding rounding,
                               unsigned flags);
