#include <math.h>

#include "kernels/cuda/rows.h"

enum lk_code lk_cuda_l2_norm(struct lk_device *dev, const struct lk_l2_norm *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_row_norm args;
    LK_TRY(lk_cuda_row_norm_arguments(&args, op->y, op->x, op->w));
    args.gain = (float)sqrt((double)args.n);
    args.act = op->act;
    struct lk_cuda_grid grid = lk_cuda_row_grid(args.n_rows * args.per_row, args.n, op->x->dtype);
    return lk_cuda_launch(dev, "l2_norm", LK_CUDA_VARIANT("l2_norm", op->x->dtype), &grid, &args);
}
