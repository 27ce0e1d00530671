#include "kernels/cuda/elementwise.h"

enum lk_code lk_cuda_channel_affine(struct lk_device *dev, const struct lk_channel_affine *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_channel_affine args = {.y = op->y->data,
                                          .x = op->x->data,
                                          .mean = op->mean->data,
                                          .std = op->std->data,
                                          .rows = op->x->shape[0],
                                          .n = op->x->shape[1],
                                          .ld_y = op->y->ld,
                                          .ld_x = op->x->ld,
                                          .stat_bf16 = op->mean->dtype == LK_BF16,
                                          .normalize = op->normalize,
                                          .inverse_std = op->inverse_std};
    args.vector =
        lk_cuda_aligned(op->y) && lk_cuda_aligned(op->x) && lk_cuda_aligned(op->mean) && lk_cuda_aligned(op->std);
    struct lk_cuda_grid grid = lk_cuda_elementwise_grid(args.rows, args.n, op->x->dtype);
    return lk_cuda_launch(dev, "channel_affine", LK_CUDA_VARIANT("channel_affine", op->x->dtype), &grid, &args);
}
