#include "kernels/cuda/elementwise.h"

#define MOST_THREADS 256
#define MOST_GRID_Y  65535

struct lk_cuda_grid lk_cuda_elementwise_grid(int64_t rows, int64_t n, enum lk_dtype dtype) {
    const int64_t vectors = lk_cuda_div_up(n, LK_CUDA_WIDTH(dtype));
    unsigned width = 1;
    while (width < MOST_THREADS && width < vectors) width *= 2;
    const unsigned height = MOST_THREADS / width;
    const int64_t blocks = lk_cuda_div_up(rows, height);
    return (struct lk_cuda_grid){
        .grid = {(unsigned)lk_cuda_div_up(vectors, width), (unsigned)(blocks < MOST_GRID_Y ? blocks : MOST_GRID_Y)},
        .block = {width, height}};
}

static bool alike(const struct lk_tensor *a, const struct lk_tensor *y) {
    return !a || lk_tensor_row_numel(a) == lk_tensor_row_numel(y);
}

struct lk_cuda_elementwise lk_cuda_elementwise_arguments(const struct lk_tensor *y, const struct lk_tensor *a,
                                                         const struct lk_tensor *b) {
    struct lk_cuda_elementwise args = {.y = y->data,
                                       .a = a->data,
                                       .b = b ? b->data : NULL,
                                       .rows = y->shape[0],
                                       .n = lk_tensor_row_numel(y),
                                       .ld_y = y->ld,
                                       .ld_a = a->ld,
                                       .ld_b = b ? b->ld : 0};
    args.vector = lk_cuda_aligned(y) && lk_cuda_aligned(a) && (!b || lk_cuda_aligned(b));
    if (alike(a, y) && alike(b, y) && lk_tensor_is_dense(y) && lk_tensor_is_dense(a) && (!b || lk_tensor_is_dense(b))) {
        args.n *= args.rows;
        args.rows = 1;
        args.vector = (uintptr_t)args.y % 16 == 0 && (uintptr_t)args.a % 16 == 0 && (uintptr_t)args.b % 16 == 0;
    }
    return args;
}
