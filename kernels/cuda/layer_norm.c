#include "kernels/cuda/rows.h"

static const void *data_of(const struct lk_tensor *t) { return t ? t->data : NULL; }

enum lk_code lk_cuda_layer_norm(struct lk_device *dev, const struct lk_layer_norm *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_row_norm args;
    LK_TRY(lk_cuda_row_norm_arguments(&args, op->y, op->x, op->weight));
    args.bias = data_of(op->bias);
    args.bias_bf16 = op->bias && op->bias->dtype == LK_BF16;
    args.shift = data_of(op->shift);
    args.scale = data_of(op->scale);
    args.eps = op->eps;
    args.vector = args.vector && ((uintptr_t)args.bias | (uintptr_t)args.shift | (uintptr_t)args.scale) % 16 == 0;
    struct lk_cuda_grid grid = lk_cuda_row_grid(args.n_rows, args.n, op->x->dtype);
    return lk_cuda_launch(dev, "layer_norm", LK_CUDA_VARIANT("layer_norm", op->x->dtype), &grid, &args);
}
