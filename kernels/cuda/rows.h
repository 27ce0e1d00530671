/* How kernels that reduce a row share it. A row belongs to a team of threads, whose size follows from the row's length
 * and dtype alone: up to 1024 elements 1 to 32 threads of one warp, several teams to a block of 256, so that a thread
 * keeps up to 32 elements and few threads idle; a block of 256 threads up to 8192; one of 512 beyond. Thread t of
 * a team of T has the vectors of 16 bytes t, t + T, t + 2 T... and adds its elements in that order; then the team's
 * sums are added as a balanced tree of each warp and the warps' sums in order. So a row's bits depend on its length
 * only. */
#pragma once

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/cuda.h"

struct lk_cuda_grid lk_cuda_row_grid(int64_t n_rows, int64_t n, enum lk_dtype dtype);

/* rows, per_row, n and distances for a norm over the last dimension of x. LK_E_INTERNAL for rows longer than the
 * kernels can count. */
enum lk_code lk_cuda_row_norm_arguments(struct lk_cuda_row_norm *args, const struct lk_tensor *y,
                                        const struct lk_tensor *x, const struct lk_tensor *w);
