/* How elementwise kernels cover rows: a thread takes 8 neighbouring elements; a block is as wide as a row needs, up to
 * 256 threads, and takes several rows where rows are short. Tensors that are all dense count as one long row. */
#pragma once

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/cuda.h"

#define LK_CUDA_VECTOR 8 /* elements of one thread */

struct lk_cuda_grid lk_cuda_elementwise_grid(int64_t rows, int64_t n);

/* Arguments for y = f(a, b); b may be NULL. Rows are those of y: a and b may be wider. */
struct lk_cuda_elementwise lk_cuda_elementwise_arguments(const struct lk_tensor *y, const struct lk_tensor *a,
                                                         const struct lk_tensor *b);
