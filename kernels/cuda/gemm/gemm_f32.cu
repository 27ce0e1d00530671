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

/* What a step of DEPTH takes from A and w, or, beyond K, from low and up. */
__device__ __forceinline__ void gather_step(const lk_cuda_gemm &args, int x_row, int w_row, int k, float (&x)[8],
                                            float (&w)[8]) {
    const int more = k - (args.k + DEPTH - 1) / DEPTH * DEPTH;
    if (more >= 0) {
        gather_row(args.low, args.ld_low, args.m, args.rank, x_row, more, x);
        gather_row(args.up, args.ld_up, args.n, args.rank, w_row, more, w);
        return;
    }
    gather_patch(args, x_row, k, x);
    if (!args.w_bf16) {
        gather_row(args.w, args.ld_w, args.n, args.k, w_row, k, w);
        return;
    }
    bf16 narrow[8];
    gather_row(args.w, args.ld_w, args.n, args.k, w_row, k, narrow);
#pragma unroll
    for (int i = 0; i < 8; i++) w[i] = to_f32(narrow[i]);
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
    const int end = (args.k + DEPTH - 1) / DEPTH * DEPTH + args.rank; /* low and up have steps of their own */
    gather_step(args, row_tile * BM + from_row, column_tile * BN + from_row, from_k, next_a, next_b);
#pragma unroll 1
    for (int k = 0; k < end; k += DEPTH) {
        put_column(a + from_k, from_row, next_a);
        put_column(b + from_k, place_of(from_row), next_b);
        __syncthreads();
        if (k + DEPTH < end)
            gather_step(args, row_tile * BM + from_row, column_tile * BN + from_row, k + DEPTH + from_k, next_a,
                        next_b);
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
    const int y_column = column_tile * BN + column;
    if (y_column >= args.n) return;
#pragma unroll
    for (int m = 0; m < 4; m++) {
        const int y_row = row_tile * BM + row + m;
        if (y_row >= args.m) return;
        finish<float>(args.out, y_row, y_column, args.n - y_column,
                      {{c[m][0], c[m][1], c[m][2], c[m][3], c[m][4], c[m][5], c[m][6], c[m][7]}});
    }
}
