#include "kernels/cuda/cuda.h"
#include "kernels/cuda/arguments.h"

#define COLUMNS 128

enum lk_code lk_cuda_mean_rows(struct lk_device *dev, const struct lk_mean_rows *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_mean_rows args = {op->y->data, op->x->data, op->x->shape[0], op->x->shape[1], op->x->ld};
    struct lk_cuda_grid grid = {.grid = {(unsigned)lk_cuda_div_up(args.n, COLUMNS)}, .block = {COLUMNS}};
    return lk_cuda_launch(dev, "mean_rows", LK_CUDA_VARIANT("mean_rows", op->x->dtype), &grid, &args);
}
