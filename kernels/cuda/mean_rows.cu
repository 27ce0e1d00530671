/* y = r(r(sum of rows) / n).
 * Layout: rows with a distance; a thread has a column, so that a warp reads 32 neighbouring ones.
 * Tile: 128 columns. Shared memory: none. sm_80 or newer.
 * Deterministic: a column's rows are added in double in ascending order. */
#include "kernels/cuda/common.cuh"

template <class T> __device__ __forceinline__ void mean_rows(const lk_cuda_mean_rows &args) {
    const int64_t column = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= args.n) return;
    const T *x = (const T *)args.x + column;
    double sum = 0.0;
    for (int64_t row = 0; row < args.rows; row++) sum += (double)to_f32(x[row * args.ld_x]);
    ((T *)args.y)[column] = from_f32<T>(rounded<T>((float)sum) / (float)args.rows);
}
LK_VARIANTS(mean_rows, lk_cuda_mean_rows)
