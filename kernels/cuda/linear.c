#include "kernels/cuda/gemm.h"

#define FEW_ROWS 32

size_t lk_cuda_linear_scratch(const struct lk_device *dev, const struct lk_linear *op) {
    (void)dev, (void)op;
    return 0;
}

enum lk_code lk_cuda_linear(struct lk_device *dev, const struct lk_linear *op, void *scratch) {
    (void)scratch;
    const int64_t most_bytes = UINT32_MAX; /* from a row to the next */
    struct lk_cuda_gemm args;
    LK_TRY(lk_cuda_gemm_arguments(&args, op, op->x->shape[1]));
    args.x = op->x->data;
    args.w = op->w->data;
    args.ld_x = op->x->ld;
    args.ld_w = op->w->ld;
    args.w_bf16 = op->w->dtype == LK_BF16;
    const bool whole_chunks = op->x->dtype == LK_BF16 && lk_cuda_aligned(op->x) && lk_cuda_aligned(op->w) &&
                              2 * args.ld_x <= most_bytes && 2 * args.ld_w <= most_bytes;
    if (whole_chunks) {
        const struct lk_cuda_gemm_tile *tile = args.m <= FEW_ROWS ? lk_cuda_gemm_tile_few() : lk_cuda_gemm_tile(args.n);
        return lk_cuda_gemm_launch(dev, "linear", tile->linear, tile, &args);
    }
    /* Rows of x are the pixels of one picture row, under a kernel of one pixel. */
    args.height = args.kernel_width = args.stride = 1;
    args.width = args.width_in = args.width_out = args.m;
    args.channels = args.k;
    return lk_cuda_gemm_launch_gathered(dev, op->x->dtype, &args);
}
