/* How elementwise kernels cover rows: a thread takes 16 bytes of neighbouring elements; a block is as wide as a row
 * needs, up to 256 threads, and takes several rows where rows are short. Tensors that are all dense count as one long
 * row. */
#pragma once

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/cuda.h"

/* Elements of a thread. */
#define LK_CUDA_WIDTH(dtype) ((dtype) == LK_BF16 ? 8 : 4)

struct lk_cuda_grid lk_cuda_elementwise_grid(int64_t rows, int64_t n, enum lk_dtype dtype);

/* Arguments for y = f(a, b); b may be NULL. Rows are those of y: a and b may be wider. */
struct lk_cuda_elementwise lk_cuda_elementwise_arguments(const struct lk_tensor *y, const struct lk_tensor *a,
                                                         const struct lk_tensor *b);
