/* Adds the number of NaN and Inf in x to the report.
 * Layout: rows with a distance each, or one dense row; a thread takes 16 bytes of neighbouring elements
 * (elementwise.h). Tile: up to 256 threads, 2048 elements. Shared memory: 32 bytes, counts of warps. sm_80 or newer.
 * Deterministic: integers are added, in any order. */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/runtime/report.h"

template <class T> __device__ __forceinline__ void nonfinite(const lk_cuda_elementwise &args) {
    __shared__ unsigned of_warps[8];
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    unsigned count = 0;
    for_each_run<width<T>>(args.rows, args.n, [&](int64_t row, int64_t column, int n) {
        const elements<width<T>> x = load<width<T>>((const T *)args.a + row * args.ld_a + column, n, args.vector);
#pragma unroll
        for (int i = 0; i < width<T>; i++) count += (__float_as_uint(x.v[i]) & 0x7f800000u) == 0x7f800000u;
    });
    for (int distance = 16; distance; distance /= 2) count += __shfl_xor_sync(0xffffffffu, count, distance);
    if (thread % 32 == 0) of_warps[thread / 32] = count;
    __syncthreads();
    if (thread == 0) {
        for (int warp = 1; warp < 8; warp++) count += of_warps[warp];
        if (count) atomicAdd(&((lk_cuda_report *)args.y)->nonfinite, (unsigned long long)count);
    }
}
LK_VARIANTS(nonfinite, lk_cuda_elementwise)
