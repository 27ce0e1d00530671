/* The vectors of packed_columns.h in registers of 16 bytes, which every machine has, and of 32. */
#pragma once

#include "eval/stats/resampling/packed_columns.h"

typedef uint16_t lk_16x8 __attribute__((vector_size(16)));
typedef uint32_t lk_32x4 __attribute__((vector_size(16)));
typedef uint16_t lk_16x16 __attribute__((vector_size(32)));
typedef uint32_t lk_32x8 __attribute__((vector_size(32)));
