/* The vectors of packed_columns.h, as a compiler sees them: two or one of the machine's registers. */
#pragma once

#include "eval/stats/packed_columns.h"

typedef uint16_t lk_fields_16 __attribute__((vector_size(LK_PACKED_BYTES)));
typedef uint32_t lk_fields_32 __attribute__((vector_size(LK_PACKED_BYTES)));
