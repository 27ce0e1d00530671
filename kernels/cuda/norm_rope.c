#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/rows.h"

#define MOST_PAIRS 512 /* RUNS of 8 pairs for each of 32 threads */

/* A team has as many threads as there are runs of 8 pairs, up to a warp. */
static struct lk_cuda_grid grid_of(int64_t n_rows, int64_t pairs) {
    const int64_t runs = lk_cuda_div_up(pairs, LK_CUDA_VECTOR);
    unsigned team = 1;
    while (team < 32 && team < runs) team *= 2;
    const unsigned teams = 256 / team;
    return (struct lk_cuda_grid){.grid = {(unsigned)lk_cuda_div_up(n_rows, teams)}, .block = {team, teams}};
}

enum lk_code lk_cuda_norm_rope(struct lk_device *dev, const struct lk_norm_rope *op, void *scratch) {
    (void)scratch;
    const struct lk_tensor *x = op->x, *w = op->norm_w;
    const bool bf16 = x->dtype == LK_BF16;
    struct lk_cuda_norm_rope args = {.x = x->data,
                                     .norm_w = w ? w->data : NULL,
                                     .n_rows = x->shape[0],
                                     .n_heads = x->shape[1],
                                     .ld_x = x->ld,
                                     .pairs = (int32_t)(x->shape[2] / 2),
                                     .w_bf16 = w && w->dtype == LK_BF16,
                                     .interleaved = op->pairing == LK_ROPE_INTERLEAVED,
                                     .round_before_weight = op->round_before_weight,
                                     .round_products = op->round_products && bf16,
                                     .eps = op->eps};
    if (args.pairs > MOST_PAIRS)
        return lk_fail(LK_E_INTERNAL, "norm_rope: head_dim: expected at most %d, got %d", 2 * MOST_PAIRS,
                       2 * args.pairs);
    args.vector = lk_cuda_aligned(x) && args.pairs % LK_CUDA_VECTOR == 0 && (uintptr_t)args.norm_w % 16 == 0;
    if (op->cos) {
        args.cos = op->cos->data;
        args.sin = op->sin->data;
        args.ld_table = op->cos->ld;
        args.vector = args.vector && lk_cuda_aligned(op->cos) && lk_cuda_aligned(op->sin);
        if (op->sin->ld != op->cos->ld && args.n_rows > 1)
            return lk_fail(LK_E_INTERNAL, "norm_rope: cos and sin with different distances of rows");
    }
    struct lk_cuda_grid grid = grid_of(args.n_rows * args.n_heads, args.pairs);
    return lk_cuda_launch(dev, "norm_rope", LK_CUDA_VARIANT("norm_rope", x->dtype), &grid, &args);
}
