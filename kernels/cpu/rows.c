#define LK_ROWS lk_rows_portable
#include "kernels/cpu/rows_impl.h"
