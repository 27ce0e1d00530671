#define LK_SUM    lk_packed_sum_16
#define LK_VECTOR lk_fields_16
#include "eval/stats/packed_sums_impl.h"
#undef LK_SUM
#undef LK_VECTOR
#define LK_SUM    lk_packed_sum_32
#define LK_VECTOR lk_fields_32
#include "eval/stats/packed_sums_impl.h"
