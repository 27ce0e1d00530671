#include "kernels/cuda/elementwise.h"

enum lk_code lk_cuda_embedding(struct lk_device *dev, const struct lk_embedding *op, void *scratch) {
    (void)scratch;
    const struct lk_tensor *table = op->table;
    struct lk_cuda_embedding args = {.y = op->y->data,
                                     .table = table->data,
                                     .ids = op->ids->data,
                                     .report = (void *)(uintptr_t)lk_cuda_device_of(dev)->report,
                                     .rows = op->y->shape[0],
                                     .n = op->y->shape[1],
                                     .ld_y = op->y->ld,
                                     .ld_table = table->ld,
                                     .vocabulary = table->shape[0],
                                     .table_bf16 = table->dtype == LK_BF16};
    args.vector = lk_cuda_aligned(op->y) && lk_cuda_aligned(table);
    struct lk_cuda_grid grid = lk_cuda_elementwise_grid(args.rows, args.n, op->y->dtype);
    return lk_cuda_launch(dev, "embedding", LK_CUDA_VARIANT("embedding", op->y->dtype), &grid, &args);
}
