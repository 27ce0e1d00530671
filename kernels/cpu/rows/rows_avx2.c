#if defined(__x86_64__)
#define LK_ROWS lk_rows_avx2
#include "kernels/cpu/rows/rows_impl.h"
#endif
