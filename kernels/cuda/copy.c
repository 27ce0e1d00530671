#include "kernels/cuda/elementwise.h"

static const char *kernel_for(enum lk_dtype to, enum lk_dtype from) {
    if (to == from) return LK_CUDA_VARIANT("copy", to);
    return to == LK_BF16 ? "copy_f32_to_bf16" : "copy_bf16_to_f32";
}

enum lk_code lk_cuda_copy(struct lk_device *dev, const struct lk_copy *op, void *scratch) {
    (void)scratch;
    const enum lk_dtype to = op->y->dtype, from = op->x->dtype;
    struct lk_cuda_elementwise args = lk_cuda_elementwise_arguments(op->y, op->x, NULL);
    struct lk_cuda_grid grid = lk_cuda_elementwise_grid(args.rows, args.n, to == from ? to : LK_F32);
    return lk_cuda_launch(dev, "copy", kernel_for(to, from), &grid, &args);
}
