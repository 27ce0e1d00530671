#include "kernels/cuda/elementwise.h"

#define ROWS       LK_CUDA_EMBEDDING_ROWS
#define THREADS    128
#define MOST_GROUP 65535 /* blocks one above the other */

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
    args.before = (int32_t)((uintptr_t)args.ids / sizeof *args.ids % ROWS);
    args.vector = lk_cuda_aligned(op->y) && lk_cuda_aligned(table);
    const int64_t vectors = lk_cuda_div_up(args.n, LK_CUDA_WIDTH(op->y->dtype));
    unsigned width = ROWS; /* a thread has the id of one row */
    while (width < THREADS && width < vectors) width *= 2;
    const int64_t blocks = lk_cuda_div_up(lk_cuda_div_up(args.rows + args.before, ROWS), THREADS / width);
    const struct lk_cuda_grid grid = {
        .grid = {(unsigned)lk_cuda_div_up(vectors, width), (unsigned)(blocks < MOST_GROUP ? blocks : MOST_GROUP)},
        .block = {width, THREADS / width}};
    return lk_cuda_launch(dev, "embedding", LK_CUDA_VARIANT("embedding", op->y->dtype), &grid, &args);
}
