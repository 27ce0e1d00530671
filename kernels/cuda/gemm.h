/* The host side of matrix products (gemm.cuh), for linear and conv2d. */
#pragma once

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/cuda.h"

/* A tile that gemm.cuh was compiled for. */
struct lk_cuda_gemm_tile {
    const char *linear, *conv2d; /* kernels */
    int rows, columns, threads;
    size_t shared; /* bytes */
};

/* The tile for N columns of bf16 weights: never by M. */
const struct lk_cuda_gemm_tile *lk_cuda_gemm_tile(int64_t n);
/* The tile that serves few rows, with the same bits. */
const struct lk_cuda_gemm_tile *lk_cuda_gemm_tile_few(void);

/* What linear and conv2d have in common. y [M, N]; gate and residual may be NULL. LK_E_INTERNAL for more than the
 * kernels can count. */
enum lk_code lk_cuda_gemm_arguments(struct lk_cuda_gemm *args, const struct lk_linear *epilogue, int64_t k);

/* Launch of one of the tiles; kernel: the tile's name for the module. */
enum lk_code lk_cuda_gemm_launch(struct lk_device *dev, const char *module, const char *kernel,
                                 const struct lk_cuda_gemm_tile *tile, struct lk_cuda_gemm *args);
/* Launch of the kernels that gather element by element: any alignment, both dtypes. */
enum lk_code lk_cuda_gemm_launch_gathered(struct lk_device *dev, enum lk_dtype dtype, struct lk_cuda_gemm *args);
