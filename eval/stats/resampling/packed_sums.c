#define LK_SUM    lk_packed_sum_16
#define LK_VECTOR lk_16x8
#define LK_COUNTS lk_32x4
#include "eval/stats/resampling/packed_sums_impl.h"
#undef LK_SUM
#undef LK_VECTOR
#undef LK_COUNTS
#define LK_SUM    lk_packed_sum_32
#define LK_VECTOR lk_32x4
#define LK_COUNTS lk_32x4
#include "eval/stats/resampling/packed_sums_impl.h"
