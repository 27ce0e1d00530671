#include "kernels/cuda/arguments.h"
#include "kernels/cuda/cuda.h"

#define TILE 16

static const void *data_of(const struct lk_tensor *t) { return t ? t->data : NULL; }

size_t lk_cuda_linear_scratch(const struct lk_device *dev, const struct lk_linear *op) {
    (void)dev, (void)op;
    return 0;
}

enum lk_code lk_cuda_linear(struct lk_device *dev, const struct lk_linear *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_linear args = {.y = op->y->data,
                                  .x = op->x->data,
                                  .w = op->w->data,
                                  .bias = data_of(op->bias),
                                  .gate = data_of(op->gate),
                                  .residual = data_of(op->residual),
                                  .m = op->x->shape[0],
                                  .n = op->w->shape[0],
                                  .k = op->x->shape[1],
                                  .ld_y = op->y->ld,
                                  .ld_x = op->x->ld,
                                  .ld_w = op->w->ld,
                                  .ld_residual = op->residual ? op->residual->ld : 0,
                                  .w_bf16 = op->w->dtype == LK_BF16,
                                  .bias_bf16 = op->bias && op->bias->dtype == LK_BF16,
                                  .round_before_bias = op->round_before_bias,
                                  .act = op->act};
    struct lk_cuda_grid grid = {
        .grid = {(unsigned)lk_cuda_div_up(args.m, TILE), (unsigned)lk_cuda_div_up(args.n, TILE)},
        .block = {TILE, TILE}};
    return lk_cuda_launch(dev, "linear", LK_CUDA_VARIANT("linear", op->x->dtype), &grid, &args);
}
