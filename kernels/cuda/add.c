#include "kernels/cuda/elementwise.h"

enum lk_code lk_cuda_add(struct lk_device *dev, const struct lk_add *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_elementwise args = lk_cuda_elementwise_arguments(op->y, op->a, op->b);
    struct lk_cuda_grid grid = lk_cuda_elementwise_grid(args.rows, args.n, op->y->dtype);
    return lk_cuda_launch(dev, "add", LK_CUDA_VARIANT("add", op->y->dtype), &grid, &args);
}
