/* The compiled kernels inside the program: one fatbin per .cu file, put there by the build (CMakeLists.txt). Each has
 * PTX for compute_80 and machine code for sm_80 and sm_90. None when the build found no nvcc. */
#pragma once

#include <stddef.h>

struct lk_cuda_module {
    const char *name; /* "rms_norm" */
    const unsigned char *fatbin;
};

extern const struct lk_cuda_module lk_cuda_modules[];
extern const size_t lk_cuda_n_modules;

/* All kernels in them. */
extern const struct lk_cuda_kernel { const char *module, *name; } lk_cuda_kernels[];
extern const size_t lk_cuda_n_kernels;

extern const int lk_cuda_toolkit_major; /* that made the machine code: a driver of an older CUDA cannot load it */
