/* y = residual + r(gate r(act(r(x wT + bias)))), on the CUDA cores: any shape, dtype and alignment.
 * Layout: x [M, K] and w [N, K] with rows a distance apart.
 * Tile: 16 x 16 outputs per block of 256 threads, K in steps of 16. Shared memory: 2176 bytes. sm_80 or newer.
 * Deterministic: an output is one chain of fma in the order of K. */
#include "kernels/cuda/epilogue.cuh"

constexpr int TILE = 16;

template <class T> __device__ __forceinline__ void linear(const lk_cuda_linear &args) {
    __shared__ float x_tile[TILE][TILE + 1], w_tile[TILE][TILE + 1];
    const int column = threadIdx.x, row = threadIdx.y;
    const int64_t m0 = (int64_t)blockIdx.x * TILE, n0 = (int64_t)blockIdx.y * TILE;
    float sum = 0.0f;
    for (int64_t k = 0; k < args.k; k += TILE) {
        const bool inside = k + column < args.k;
        const int64_t m = m0 + row, n = n0 + row;
        x_tile[row][column] = inside && m < args.m ? to_f32(((const T *)args.x)[m * args.ld_x + k + column]) : 0.0f;
        w_tile[row][column] = inside && n < args.n ? element(args.w, n * args.ld_w + k + column, args.w_bf16) : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; i++) sum = fmaf(x_tile[row][i], w_tile[column][i], sum);
        __syncthreads();
    }
    const int64_t m = m0 + row, n = n0 + column;
    if (m < args.m && n < args.n) ((T *)args.y)[m * args.ld_y + n] = linear_epilogue<T>(args, m, n, sum);
}
LK_VARIANTS(linear, lk_cuda_linear)
