/* A planted defect: one kernel with it (NAME_bad) and one without (NAME_ok). The lines that a report may name are marked
 * "@NAME". */
#pragma once

#define TWIN(name)                                                                                                     \
    extern "C" __global__ void name##_bad(int *a, int *b, int *c, int n) { name<1>(a, b, c, n); }                      \
    extern "C" __global__ void name##_ok(int *a, int *b, int *c, int n) { name<0>(a, b, c, n); }
#define DEFECT(name)                                                                                                   \
    template <int bad> __device__ __forceinline__ void name(int *a, int *b, int *c, int n);                            \
    TWIN(name)                                                                                                         \
    template <int bad> __device__ __forceinline__ void name(int *a, int *b, int *c, int n)
#define T (int)threadIdx.x
#define I (int)(blockIdx.x * blockDim.x + threadIdx.x)
