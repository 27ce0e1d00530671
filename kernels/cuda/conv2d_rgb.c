#include "kernels/cuda/gemm/gemm.h"

bool lk_cuda_conv2d_is_rgb(const struct lk_conv2d *op) {
    const struct lk_tensor *w = op->w;
    return op->x->dtype == LK_BF16 && w->dtype == LK_BF16 && w->shape[1] == 3 && w->shape[w->n_dims - 2] == 3 &&
           w->shape[w->n_dims - 1] == 3 && op->stride == 1 && op->upsample == 1 && (uintptr_t)op->x->data % 16 == 0;
}

enum lk_code lk_cuda_conv2d_rgb(struct lk_device *dev, const struct lk_cuda_gemm *args, bool *sums) {
    const int64_t height_out = args->m / args->width_out;
    const struct lk_cuda_grid grid = {.grid = {(unsigned)lk_cuda_div_up(args->width_out, LK_CUDA_RGB_COLUMNS),
                                               (unsigned)lk_cuda_div_up(height_out, LK_CUDA_RGB_ROWS),
                                               (unsigned)lk_cuda_div_up(args->n, LK_CUDA_RGB_CHANNELS)},
                                      .block = {32 * LK_CUDA_RGB_ROWS}};
    *sums = args->slabs.to && args->width_out % LK_GROUP_SLAB == 0;
    return lk_cuda_launch(dev, "conv2d_rgb", *sums ? "conv2d_rgb_slabs_bf16" : "conv2d_rgb_bf16", &grid, args);
}
