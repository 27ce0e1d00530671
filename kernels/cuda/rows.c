#include "kernels/cuda/rows.h"

#include "kernels/cuda/elementwise.h"

#define SMALL_BLOCK 256

struct lk_cuda_grid lk_cuda_row_grid(int64_t n_rows, int64_t n) {
    const int64_t vectors = lk_cuda_div_up(n, LK_CUDA_VECTOR);
    unsigned team = 1;
    while (team < 32 && team < vectors) team *= 2;
    if (n > 1024) team = n > 8192 ? 1024 : SMALL_BLOCK;
    const unsigned teams = team < SMALL_BLOCK ? SMALL_BLOCK / team : 1;
    return (struct lk_cuda_grid){.grid = {(unsigned)lk_cuda_div_up(n_rows, teams)}, .block = {team, teams}};
}

struct lk_cuda_row_norm lk_cuda_row_norm_arguments(const struct lk_tensor *y, const struct lk_tensor *x,
                                                   const struct lk_tensor *w) {
    const int64_t n = x->shape[x->n_dims - 1];
    struct lk_cuda_row_norm args = {.y = y->data,
                                    .x = x->data,
                                    .w = w ? w->data : NULL,
                                    .n_rows = x->n_dims > 1 ? x->shape[0] : 1,
                                    .per_row = x->n_dims > 1 ? lk_tensor_row_numel(x) / n : 1,
                                    .n = n,
                                    .ld_y = y->ld,
                                    .ld_x = x->ld,
                                    .w_bf16 = w && w->dtype == LK_BF16};
    args.vector = lk_cuda_aligned(y) && lk_cuda_aligned(x) && (uintptr_t)args.w % 16 == 0 &&
                  (args.per_row == 1 || n % LK_CUDA_VECTOR == 0);
    return args;
}
