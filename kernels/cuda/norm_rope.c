#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/rows.h"

#define MOST_PAIRS 512 /* 16 for each of 32 threads */

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
    if (args.n_rows * args.n_heads > INT32_MAX)
        return lk_fail(LK_E_INTERNAL, "norm_rope: %lld heads are too many", (long long)(args.n_rows * args.n_heads));
    const int vector = LK_CUDA_WIDTH(x->dtype) / 2; /* pairs */
    args.vector = lk_cuda_aligned(x) && args.pairs % vector == 0 && (uintptr_t)args.norm_w % 16 == 0;
    if (op->cos) {
        args.cos = op->cos->data;
        args.sin = op->sin->data;
        args.ld_table = op->cos->ld;
        args.vector = args.vector && lk_cuda_aligned(op->cos) && lk_cuda_aligned(op->sin);
        if (op->sin->ld != op->cos->ld && args.n_rows > 1)
            return lk_fail(LK_E_INTERNAL, "norm_rope: cos and sin with different distances of rows");
    }
    struct lk_cuda_grid grid = lk_cuda_row_grid(args.n_rows * args.n_heads, 2 * args.pairs, x->dtype);
    return lk_cuda_launch(dev, "norm_rope", LK_CUDA_VARIANT("norm_rope", x->dtype), &grid, &args);
}
