#include "engine/bf16.h"
#include "kernels/cuda/elementwise.h"

enum lk_code lk_cuda_euler_step(struct lk_device *dev, const struct lk_euler_step *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_elementwise args = lk_cuda_elementwise_arguments(op->x, op->v, NULL);
    args.factor = op->x->dtype == LK_BF16 ? lk_round_bf16(op->dt) : op->dt;
    struct lk_cuda_grid grid = lk_cuda_elementwise_grid(args.rows, args.n, op->x->dtype);
    return lk_cuda_launch(dev, "euler_step", LK_CUDA_VARIANT("euler_step", op->x->dtype), &grid, &args);
}
