#include "kernels/cuda/elementwise.h"

enum lk_code lk_cuda_pixels(struct lk_device *dev, const struct lk_pixels *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_elementwise args = lk_cuda_elementwise_arguments(op->y, op->x, NULL);
    struct lk_cuda_grid grid =
        lk_cuda_elementwise_grid(args.rows, args.n, op->x->dtype == LK_U8 ? op->y->dtype : op->x->dtype);
    const char *kernel = op->x->dtype == LK_U8 ? LK_CUDA_VARIANT("pixels_from_bytes", op->y->dtype)
                                               : LK_CUDA_VARIANT("pixels_to_bytes", op->x->dtype);
    return lk_cuda_launch(dev, "pixels", kernel, &grid, &args);
}
