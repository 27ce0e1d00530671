#include "kernels/cuda/elementwise.h"

enum lk_code lk_cuda_gated_act(struct lk_device *dev, const struct lk_gated_act *op, void *scratch) {
    (void)scratch;
    const int64_t n = op->y->shape[1];
    struct lk_tensor gate = lk_tensor_cols(op->x, 0, n), value = lk_tensor_cols(op->x, n, n);
    struct lk_cuda_elementwise args = lk_cuda_elementwise_arguments(op->y, &gate, &value);
    args.act = op->act;
    struct lk_cuda_grid grid = lk_cuda_elementwise_grid(args.rows, args.n, op->y->dtype);
    return lk_cuda_launch(dev, "gated_act", LK_CUDA_VARIANT("gated_act", op->y->dtype), &grid, &args);
}
