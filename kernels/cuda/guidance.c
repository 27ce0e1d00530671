#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/rows.h"

enum lk_code lk_cuda_guidance(struct lk_device *dev, const struct lk_guidance *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_guidance args = {.y = op->y->data,
                                    .cond = op->cond->data,
                                    .uncond = op->uncond->data,
                                    .n_rows = op->y->shape[0],
                                    .n = op->y->shape[1],
                                    .rescale = op->kind == LK_GUIDANCE_RESCALE,
                                    .scale = op->scale,
                                    .power = op->power};
    if (args.n > INT32_MAX / 2) return lk_fail(LK_E_INTERNAL, "guidance: rows of %lld are too long", (long long)args.n);
    args.vector = args.n % LK_CUDA_WIDTH(op->y->dtype) == 0 && lk_cuda_aligned(op->y) && lk_cuda_aligned(op->cond) &&
                  lk_cuda_aligned(op->uncond);
    struct lk_cuda_grid grid = lk_cuda_row_grid(args.n_rows, args.n, op->y->dtype);
    return lk_cuda_launch(dev, "guidance", LK_CUDA_VARIANT("guidance", op->y->dtype), &grid, &args);
}
