#include "kernels/cuda/rows.h"

#include "kernels/cuda/elementwise.h"

#define SMALL_BLOCK 256
#define LARGE_BLOCK 512       /* of 128 registers a thread at most */
#define MOST_SMALL  1024      /* elements of a row that a warp takes */
#define MOST_KEPT   32        /* elements of a thread that stay in registers */
#define MOST_ROW    (1 << 30) /* elements, so that 32 bits count them */

/* Of one warp: the team with the fewest idle threads; a row's 128 bytes at a time where there is a choice. */
static unsigned small_team(int64_t vectors, int64_t most_kept) {
    static const unsigned teams[] = {8, 16, 32, 4, 2};
    unsigned best = 1;
    int64_t least_idle = INT64_MAX;
    if (vectors == 1) return 1;
    for (size_t i = 0; i < sizeof teams / sizeof *teams; i++) {
        const int64_t each = lk_cuda_div_up(vectors, teams[i]), idle = each * teams[i] - vectors;
        if (each > most_kept || idle >= least_idle) continue;
        least_idle = idle;
        best = teams[i];
    }
    return best;
}

struct lk_cuda_grid lk_cuda_row_grid(int64_t n_rows, int64_t n, enum lk_dtype dtype) {
    const int64_t width = LK_CUDA_WIDTH(dtype);
    unsigned team = n > 8192 ? LARGE_BLOCK : SMALL_BLOCK;
    if (n <= MOST_SMALL) team = small_team(lk_cuda_div_up(n, width), MOST_KEPT / width);
    const unsigned teams = team < SMALL_BLOCK ? SMALL_BLOCK / team : 1;
    return (struct lk_cuda_grid){.grid = {(unsigned)lk_cuda_div_up(n_rows, teams)}, .block = {team, teams}};
}

enum lk_code lk_cuda_row_norm_arguments(struct lk_cuda_row_norm *args, const struct lk_tensor *y,
                                        const struct lk_tensor *x, const struct lk_tensor *w) {
    const int64_t n = x->shape[x->n_dims - 1];
    if (n > MOST_ROW) return lk_fail(LK_E_INTERNAL, "cuda: a row of %lld elements is too long", (long long)n);
    *args = (struct lk_cuda_row_norm){.y = y->data,
                                      .x = x->data,
                                      .w = w ? w->data : NULL,
                                      .n_rows = x->n_dims > 1 ? x->shape[0] : 1,
                                      .per_row = x->n_dims > 1 ? lk_tensor_row_numel(x) / n : 1,
                                      .n = n,
                                      .ld_y = y->ld,
                                      .ld_x = x->ld,
                                      .w_bf16 = w && w->dtype == LK_BF16};
    args->vector =
        lk_cuda_aligned(y) && lk_cuda_aligned(x) && (uintptr_t)args->w % 16 == 0 && n % LK_CUDA_WIDTH(x->dtype) == 0;
    return LK_OK;
}
