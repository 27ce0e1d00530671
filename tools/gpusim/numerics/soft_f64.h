/* Directed roundings of f64, which the host does not offer without changing its mode: integer arithmetic, one lane at
 * a time. NaN operands and results are the caller's business (lane_nan_f64 in arith_f64.c): here any NaN will do. */
#pragma once

#include "tools/gpusim/numerics/float_bits.h"

uint64_t num_soft_fma_f64(uint64_t a, uint64_t b, uint64_t c, enum gpusim_num_rounding rounding);
uint64_t num_soft_div_f64(uint64_t a, uint64_t b, enum gpusim_num_rounding rounding);
uint64_t num_soft_sqrt_f64(uint64_t a, enum gpusim_num_rounding rounding);
