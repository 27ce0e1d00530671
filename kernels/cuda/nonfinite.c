#include "kernels/cuda/elementwise.h"

/* The one op that waits for the device: its result is the host's. */
enum lk_code lk_cuda_nonfinite(struct lk_device *dev, const struct lk_nonfinite *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    struct lk_cuda_report report;
    struct lk_cuda_elementwise args = lk_cuda_elementwise_arguments(op->x, op->x, NULL);
    args.y = (void *)(uintptr_t)cuda->report;
    struct lk_cuda_grid grid = lk_cuda_elementwise_grid(args.rows, args.n, op->x->dtype);
    LK_TRY(lk_cuda_launch(dev, "nonfinite", LK_CUDA_VARIANT("nonfinite", op->x->dtype), &grid, &args));
    LK_TRY(lk_cuda_wait(cuda, &report));
    *op->count += (int64_t)report.nonfinite;
    return LK_OK;
}
