#include "kernels/cuda/elementwise.h"

enum lk_code lk_cuda_activation(struct lk_device *dev, const struct lk_activation *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_elementwise args = lk_cuda_elementwise_arguments(op->y, op->x, NULL);
    args.act = op->act;
    struct lk_cuda_grid grid = lk_cuda_elementwise_grid(args.rows, args.n, op->y->dtype);
    return lk_cuda_launch(dev, "activation", LK_CUDA_VARIANT("activation", op->y->dtype), &grid, &args);
}
