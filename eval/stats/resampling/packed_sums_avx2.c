#include "eval/stats/resampling/packed_columns.h"

#if defined(__x86_64__)
#define LK_SUM    lk_packed_sum_16_avx2
#define LK_VECTOR lk_16x16
#define LK_COUNTS lk_32x8
#include "eval/stats/resampling/packed_sums_impl.h"
#undef LK_SUM
#undef LK_VECTOR
#undef LK_COUNTS
#define LK_SUM    lk_packed_sum_32_avx2
#define LK_VECTOR lk_32x8
#define LK_COUNTS lk_32x8
#include "eval/stats/resampling/packed_sums_impl.h"
#endif
