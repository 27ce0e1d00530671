/* y = epilogue(x wT + low upT), bf16, rows of x and w 16-byte aligned: gemm.cuh, whose opening comment has layout,
 * tiles, shared memory and why it is deterministic. Rows without alignment: gemm_gathered.cu; f32: gemm_f32.cu. */
#include "kernels/cuda/gemm/gemm.cuh"

template <class Tile> __device__ __forceinline__ void linear(const lk_cuda_gemm &args) {
    int row_tile, column_tile;
    place(args, row_tile, column_tile);
    const int row = threadIdx.x / Tile::CHUNKS, chunk = threadIdx.x % Tile::CHUNKS;
    dense_rows<Tile> x(args.x, args.ld_x, row_tile * Tile::BM + row, args.m, chunk);
    dense_rows<Tile> w(args.w, args.ld_w, column_tile * Tile::BN + row, args.n, chunk);
    gemm<Tile, false, true>(args, x, w, row_tile, column_tile);
}

LK_GEMM_KERNEL(linear_256_bf16, tile_256, linear)
LK_GEMM_KERNEL(linear_128_bf16, tile_128, linear)
LK_GEMM_KERNEL(linear_64_bf16, tile_64, linear)
LK_GEMM_KERNEL(linear_flat_128_bf16, tile_flat_128, linear)
LK_GEMM_KERNEL(linear_flat_64_bf16, tile_flat_64, linear)
LK_GEMM_KERNEL(linear_few_bf16, tile_few, linear)
