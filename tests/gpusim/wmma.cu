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

// C and D of different types.
#define MIXED(NAME, C, D)                                                                                              \
    extern "C" __global__ void NAME(const half *a, const half *b, const C *c, D *d) {                                  \
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;                                          \
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;                                          \
        wmma::fragment<wmma::accumulator, 16, 16, 16, C> fc;                                                           \
        wmma::fragment<wmma::accumulator, 16, 16, 16, D> fd;                                                           \
        wmma::load_matrix_sync(fa, a, 16);                                                                             \
        wmma::load_matrix_sync(fb, b, 16);                                                                             \
        wmma::load_matrix_sync(fc, c, 16, wmma::mem_row_major);                                                        \
        wmma::mma_sync(fd, fa, fb, fc);                                                                                \
        wmma::store_matrix_sync(d, fd, 16, wmma::mem_row_major);                                                       \
    }
MIXED(mixed_to_f32, half, float)
MIXED(mixed_to_f16, float, half)

GEMM(f64_square, 8, 8, 4, double, double, double)

// A is row-major, B column-major, of 4-bit integers or bits; strides are in elements.
#define SMALL(NAME, K, TYPE, ...)                                                                                      \
    extern "C" __global__ void NAME(const void *a, const void *b, int *c, int steps) {                                 \
        wmma::fragment<wmma::matrix_a, 8, 8, K, wmma::experimental::precision::TYPE, wmma::row_major> fa;              \
        wmma::fragment<wmma::matrix_b, 8, 8, K, wmma::experimental::precision::TYPE, wmma::col_major> fb;              \
        wmma::fragment<wmma::accumulator, 8, 8, K, int> fc;                                                            \
        int k = steps * K;                                                                                             \
        wmma::load_matrix_sync(fc, c, 8, wmma::mem_row_major);                                                         \
        for (int i = 0; i < steps; i++) {                                                                              \
            wmma::load_matrix_sync(fa, (const int *)a + i * 4, k);                                                     \
            wmma::load_matrix_sync(fb, (const int *)b + i * 4, k);                                                     \
            __VA_ARGS__;                                                                                               \
        }                                                                                                              \
        wmma::store_matrix_sync(c, fc, 8, wmma::mem_row_major);                                                        \
    }
SMALL(s4_square, 32, s4, wmma::mma_sync(fc, fa, fb, fc))
SMALL(u4_square, 32, u4, wmma::mma_sync(fc, fa, fb, fc))
SMALL(b1_xor, 128, b1, wmma::bmma_sync(fc, fa, fb, fc, wmma::experimental::bmmaBitOpXOR))
SMALL(b1_and, 128, b1, wmma::bmma_sync(fc, fa, fb, fc, wmma::experimental::bmmaBitOpAND))
