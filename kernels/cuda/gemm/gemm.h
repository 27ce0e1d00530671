/* The host side of matrix products (gemm.cuh), for linear and conv2d. */
#pragma once

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/cuda.h"

/* A kernel with its tile. */
struct lk_cuda_gemm_tile {
    const char *kernel;
    int rows, columns, threads, blocks; /* blocks: of an SM, where shared memory is enough */
    size_t shared;                      /* bytes */
};

/* The tile for bf16 weights [N, K] and many rows. most_shared: bytes that the device gives a block, of which no bit
 * depends. slabs: it must have them. */
const struct lk_cuda_gemm_tile *lk_cuda_linear_tile(int64_t n, int64_t k, size_t most_shared);
const struct lk_cuda_gemm_tile *lk_cuda_conv2d_tile(int64_t n, bool slabs);
/* A smaller one for a picture of m pixels where the tiles of that one leave more than half of the multiprocessors idle,
 * else NULL: the same bits, without slabs. */
const struct lk_cuda_gemm_tile *lk_cuda_conv2d_tile_few(int64_t m, int64_t n, int n_multiprocessors);
/* The same of a linear layer with m rows. */
const struct lk_cuda_gemm_tile *lk_cuda_linear_tile_small(int64_t m, int64_t n, int64_t k, size_t most_shared,
                                                          int n_multiprocessors);
/* The rows, of m, that this tile takes in whole waves over all SMs, where the others take less time by
 * lk_cuda_linear_tile_rest than in a last wave that leaves most SMs idle; else m. The same bits. */
int64_t lk_cuda_linear_whole_waves(const struct lk_cuda_gemm_tile *tile, int64_t m, int64_t n, int64_t k,
                                   const struct lk_cuda_device *cuda);
const struct lk_cuda_gemm_tile *lk_cuda_linear_tile_rest(void);
/* The tile that serves few rows, with the same bits. */
const struct lk_cuda_gemm_tile *lk_cuda_linear_tile_few(void);

/* Whether conv2d_rgb.cu may serve it, and its launch: a picture of three channels; w as conv2d packs it. sums: whether
 * it leaves those that were asked for. */
bool lk_cuda_conv2d_is_rgb(const struct lk_conv2d *op);
enum lk_code lk_cuda_conv2d_rgb(struct lk_device *dev, const struct lk_cuda_gemm *args, bool *sums);

/* w, quantised, as a dense bf16 matrix at `out` (dequantize.cu). */
enum lk_code lk_cuda_dequantize(struct lk_device *dev, const struct lk_tensor *w, void *out);

/* Linear by this tile, or element by element where the tiles need other alignment or dtypes, or for a tile of NULL. */
enum lk_code lk_cuda_linear_by(struct lk_device *dev, const struct lk_linear *op, const struct lk_cuda_gemm_tile *tile);

/* Whether sums of y are kept: conv2d fills them, group_norm relies on them. By shape and dtype alone. */
bool lk_cuda_keeps_group_sums(const struct lk_tensor *y, const struct lk_tensor *sums);
/* Where the tiles put them. */
struct lk_cuda_group_slabs lk_cuda_group_slabs_of(const struct lk_tensor *y, const struct lk_tensor *sums);
/* Fills them from a picture in memory: the bits that the tiles give. */
enum lk_code lk_cuda_group_sums(struct lk_device *dev, const struct lk_tensor *y, const struct lk_tensor *sums);

/* What linear and conv2d have in common. y [M, N]; gate and residual may be NULL. LK_E_INTERNAL for more than the
 * kernels can count. */
enum lk_code lk_cuda_gemm_arguments(struct lk_cuda_gemm *args, const struct lk_linear *epilogue, int64_t k);

enum lk_code lk_cuda_gemm_launch(struct lk_device *dev, const char *module, const struct lk_cuda_gemm_tile *tile,
                                 struct lk_cuda_gemm *args);
/* Launch of the kernels that gather element by element: any alignment, both dtypes. */
enum lk_code lk_cuda_gemm_launch_gathered(struct lk_device *dev, enum lk_dtype dtype, struct lk_cuda_gemm *args);
