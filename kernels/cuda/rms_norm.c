#include "kernels/cuda/rows.h"

enum lk_code lk_cuda_rms_norm(struct lk_device *dev, const struct lk_rms_norm *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_row_norm args;
    LK_TRY(lk_cuda_row_norm_arguments(&args, op->y, op->x, op->w));
    args.eps = op->eps;
    args.round_before_weight = op->round_before_weight;
    struct lk_cuda_grid grid = lk_cuda_row_grid(args.n_rows * args.per_row, args.n, op->x->dtype);
    return lk_cuda_launch(dev, "rms_norm", LK_CUDA_VARIANT("rms_norm", op->x->dtype), &grid, &args);
}
