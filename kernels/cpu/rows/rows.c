#define LK_ROWS lk_rows_portable
#include "kernels/cpu/rows/rows_impl.h"
