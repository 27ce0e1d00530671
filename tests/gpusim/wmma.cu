// One warp per block: C[16 * gridDim.y, ...] tiles of nvcuda::wmma, one kernel per shape and type. A is row-major
// [M, K], B column-major [K, N], C row-major [M, N] with M, N, K of the shape times the grid and `steps`.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

#define GEMM(NAME, M, N, K, FRAGMENT, MEMORY, SUM)                                                                     \
    extern "C" __global__ void NAME(const MEMORY *a, const MEMORY *b, SUM *c, int steps) {                             \
        wmma::fragment<wmma::matrix_a, M, N, K, FRAGMENT, wmma::row_major> fa;                                         \
        wmma::fragment<wmma::matrix_b, M, N, K, FRAGMENT, wmma::col_major> fb;                                         \
        wmma::fragment<wmma::accumulator, M, N, K, SUM> fc;                                                            \
        int k = steps * K, n = gridDim.x * N;                                                                          \
        SUM *tile = c + blockIdx.y * M * n + blockIdx.x * N;                                                           \
        wmma::load_matrix_sync(fc, tile, n, wmma::mem_row_major);                                                      \
        for (int i = 0; i < steps; i++) {                                                                              \
            wmma::load_matrix_sync(fa, a + blockIdx.y * M * k + i * K, k);                                             \
            wmma::load_matrix_sync(fb, b + blockIdx.x * N * k + i * K, k);                                             \
            wmma::mma_sync(fc, fa, fb, fc);                                                                            \
        }                                                                                                              \
        wmma::store_matrix_sync(tile, fc, n, wmma::mem_row_major);                                                     \
    }

GEMM(f16_square, 16, 16, 16, half, half, float)
GEMM(f16_tall, 32, 8, 16, half, half, float)
GEMM(f16_wide, 8, 32, 16, half, half, float)
GEMM(half_square, 16, 16, 16, half, half, half)
GEMM(half_wide, 8, 32, 16, half, half, half)
GEMM(bf16_square, 16, 16, 16, __nv_bfloat16, __nv_bfloat16, float)
GEMM(bf16_tall, 32, 8, 16, __nv_bfloat16, __nv_bfloat16, float)
GEMM(bf16_wide, 8, 32, 16, __nv_bfloat16, __nv_bfloat16, float)
GEMM(tf32_square, 16, 16, 8, wmma::precision::tf32, float, float)
GEMM(s8_square, 16, 16, 16, signed char, signed char, int)
GEMM(s8_tall, 32, 8, 16, signed char, signed char, int)
GEMM(s8_wide, 8, 32, 16, signed char, signed char, int)
