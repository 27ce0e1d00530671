/* y = epilogue(A wT) for f32 A [M, K], w f32 or bf16 [N, K]: linear layers and convolutions.
 *
 * Layout: rows of K in global memory, any alignment; in shared memory 16 of K, transposed, so that a thread reads
 * neighbouring rows as vectors.
 * Tile: 64 x 64, 128 threads, 8 x 4 x 8 in registers; the next 16 of K are loaded while these are multiplied.
 * Shared memory: 10 KiB. sm_80 or newer.
 * Deterministic: an output is one chain of fused multiply-adds in ascending order of K; beyond K it meets zeros. */
#include "kernels/cuda/gemm/gemm_epilogue.cuh"
#include "kernels/cuda/gemm/gemm_gather.cuh"

constexpr int BM = LK_TILE_F32_SIDE, BN = LK_TILE_F32_SIDE, DEPTH = 16, THREADS = LK_TILE_F32_THREADS;
constexpr int PITCH = 80; /* floats */

/* Where column `column` of the tile lies: the eight of a thread in two fours, so far apart that neither reading fours
 * nor writing single elements meets a bank twice. */
__device__ __forceinline__ int place_of(int column) { return column / 8 * 4 + column / 4 % 2 * 48 + column % 4; }

__device__ __forceinline__ void gather_weights_f32(const lk_cuda_gemm &args, int row, int k, float (&e)[8]) {
    if (!args.w_bf16) {
        gather_weights(args, row, k, e);
        return;
    }
    bf16 narrow[8];
    gather_weights(args, row, k, narrow);
#pragma unroll
    for (int i = 0; i < 8; i++) e[i] = to_f32(narrow[i]);
}

__device__ __forceinline__ void put_column(float (*to)[PITCH], int row, const float (&e)[8]) {
#pragma unroll
    for (int i = 0; i < 8; i++) to[i][row] = e[i];
}

extern "C" __global__ void __launch_bounds__(THREADS, 4) gemm_f32(const lk_cuda_gemm args) {
    __shared__ __align__(16) float a[DEPTH][PITCH], b[DEPTH][PITCH];
    const int thread = threadIdx.x, row_tile = (int)blockIdx.x % args.row_tiles,
              column_tile = blockIdx.x / args.row_tiles;
    const int from_row = thread % 64, from_k = thread / 64 * 8; /* of the tile, that this thread loads */
    const int row = thread / 8 * 4, column = thread % 8 * 8;    /* of the tile, that this thread computes */
    float c[4][8] = {}, next_a[8], next_b[8];
    gather_patch(args, row_tile * BM + from_row, from_k, next_a);
    gather_weights_f32(args, column_tile * BN + from_row, from_k, next_b);
#pragma unroll 1
    for (int k = 0; k < args.k; k += DEPTH) {
        put_column(a + from_k, from_row, next_a);
        put_column(b + from_k, place_of(from_row), next_b);
        __syncthreads();
        if (k + DEPTH < args.k) {
            gather_patch(args, row_tile * BM + from_row, k + DEPTH + from_k, next_a);
            gather_weights_f32(args, column_tile * BN + from_row, k + DEPTH + from_k, next_b);
        }
#pragma unroll
        for (int i = 0; i < DEPTH; i++) {
            const float4 a0 = *(const float4 *)&a[i][row];
            const float4 b0 = *(const float4 *)&b[i][column / 2], b1 = *(const float4 *)&b[i][column / 2 + 48];
            const float av[4] = {a0.x, a0.y, a0.z, a0.w}, bv[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
#pragma unroll
            for (int m = 0; m < 4; m++)
#pragma unroll
                for (int n = 0; n < 8; n++) c[m][n] = fmaf(av[m], bv[n], c[m][n]);
        }
        __syncthreads();
    }
    const int first = column_tile * BN + column;
    if (first >= args.n) return;
#pragma unroll
    for (int m = 0; m < 4; m++) {
        const int y_row = row_tile * BM + row + m;
        if (y_row >= args.m) return;
        finish<float>(args.out, y_row, first, args.n - first,
                      {{c[m][0], c[m][1], c[m][2], c[m][3], c[m][4], c[m][5], c[m][6], c[m][7]}});
    }
}
