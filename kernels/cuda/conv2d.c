#include "kernels/cuda/arguments.h"
#include "kernels/cuda/cuda.h"

#define CHANNELS 32 /* of a block */
#define PIXELS   8

static const void *data_of(const struct lk_tensor *t) { return t ? t->data : NULL; }

size_t lk_cuda_conv2d_scratch(const struct lk_device *dev, const struct lk_conv2d *op) {
    (void)dev, (void)op;
    return 0;
}

enum lk_code lk_cuda_conv2d(struct lk_device *dev, const struct lk_conv2d *op, void *scratch) {
    (void)scratch;
    const struct lk_tensor *x = op->x, *y = op->y, *w = op->w;
    struct lk_cuda_conv2d args = {.y = y->data,
                                  .x = x->data,
                                  .w = w->data,
                                  .bias = data_of(op->bias),
                                  .residual = data_of(op->residual),
                                  .h_in = (int32_t)x->shape[0],
                                  .w_in = (int32_t)x->shape[1],
                                  .c_in = (int32_t)x->shape[2],
                                  .h_out = (int32_t)y->shape[0],
                                  .w_out = (int32_t)y->shape[1],
                                  .c_out = (int32_t)y->shape[2],
                                  .kt = w->n_dims == 5 ? (int32_t)w->shape[2] : 1,
                                  .kh = (int32_t)w->shape[w->n_dims - 2],
                                  .kw = (int32_t)w->shape[w->n_dims - 1],
                                  .stride = op->stride,
                                  .upsample = op->upsample,
                                  .pad_top = op->pad_top,
                                  .pad_left = op->pad_left,
                                  .w_bf16 = w->dtype == LK_BF16,
                                  .bias_bf16 = op->bias && op->bias->dtype == LK_BF16};
    const int64_t pixels = (int64_t)args.h_out * args.w_out;
    struct lk_cuda_grid grid = {
        .grid = {(unsigned)lk_cuda_div_up(pixels, PIXELS), (unsigned)lk_cuda_div_up(args.c_out, CHANNELS)},
        .block = {CHANNELS, PIXELS}};
    return lk_cuda_launch(dev, "conv2d", LK_CUDA_VARIANT("conv2d", x->dtype), &grid, &args);
}
