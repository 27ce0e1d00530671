#pragma once

#include "numerics/wmma.h"

/* What wmma ops refer to. */
struct gpusim_wmma {
    struct gpusim_num_wmma shape;
    enum gpusim_num_wmma_matrix matrix;
    int type;     /* of the matrix that is loaded or stored */
    int per_unit; /* elements in what is loaded at once: 1, or those of 32 bits */
    bool column;
    bool half_c, half_d; /* product: only one is, the other is f32 */
};
