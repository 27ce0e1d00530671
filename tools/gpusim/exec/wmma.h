#pragma once

#include "numerics/wmma.h"

/* What wmma ops refer to. */
struct gpusim_wmma {
    struct gpusim_num_wmma shape;
    enum gpusim_num_wmma_matrix matrix;
    enum gpusim_num_type type; /* of the matrix that is loaded or stored */
    bool column;
};
