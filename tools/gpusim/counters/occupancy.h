/* How many blocks of a kernel an SM holds, by the rules of compute capability 8.0. */
#pragma once

#include "exec/module.h"

/* Blocks of this shape that fit on an SM; 0 when the shape itself is impossible. `limit` (may be NULL) gets what there
 * is too little of. */
int gpusim_occupancy_limit(const struct gpusim_function *function, uint32_t threads, size_t dynamic_shared,
                           const char **limit);
