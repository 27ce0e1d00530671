#include "kernels/cuda/gemm/gemm.h"

#define FEW_ROWS    32
#define PLAIN_ALIGN 256 /* bytes */

/* The bf16 matrix that a quantised weight is turned into: it comes first in the scratch. */
static struct lk_tensor plain_weight(const struct lk_linear *op, void *scratch) {
    return LK_TENSOR(scratch, LK_BF16, op->w->shape[0], op->w->shape[1]);
}
static size_t plain_bytes(const struct lk_tensor *plain) {
    return (lk_tensor_bytes(plain) + PLAIN_ALIGN - 1) / PLAIN_ALIGN * PLAIN_ALIGN;
}

size_t lk_cuda_linear_scratch(const struct lk_device *dev, const struct lk_linear *op) {
    struct lk_tensor plain = plain_weight(op, NULL);
    struct lk_linear with_plain = *op;
    size_t bytes = 0;
    if (lk_tensor_is_quantized(op->w)) {
        bytes = plain_bytes(&plain);
        with_plain.w = &plain;
    }
    return bytes + (((const struct lk_cuda_device *)dev)->cublaslt ? lk_cublaslt_scratch(&with_plain) : 0);
}

static enum lk_code arguments_of(const struct lk_linear *op, struct lk_cuda_gemm *args) {
    LK_TRY(lk_cuda_gemm_arguments(args, op, op->x->shape[1]));
    args->x = op->x->data;
    args->w = op->w->data;
    args->ld_x = op->x->ld;
    args->ld_w = op->w->ld;
    args->w_bf16 = op->w->dtype == LK_BF16;
    return LK_OK;
}

/* Whether the tiles of linear.cu can take it. */
static bool whole_chunks(const struct lk_linear *op) {
    const int64_t most = UINT32_MAX / sizeof(uint16_t); /* from a row to the next */
    return op->x->dtype == LK_BF16 && lk_cuda_aligned(op->x) && lk_cuda_aligned(op->w) && op->x->ld <= most &&
           op->w->ld <= most;
}

enum lk_code lk_cuda_linear_by(struct lk_device *dev, const struct lk_linear *op,
                               const struct lk_cuda_gemm_tile *tile) {
    struct lk_cuda_gemm args;
    LK_TRY(arguments_of(op, &args));
    if (tile && whole_chunks(op)) return lk_cuda_gemm_launch(dev, "linear", tile, &args);
    /* Rows of x are the pixels of one picture row, under a kernel of one pixel. */
    args.height = args.kernel_width = args.stride = 1;
    args.width = args.width_in = args.width_out = args.m;
    args.channels = args.k;
    return lk_cuda_gemm_launch_gathered(dev, op->x->dtype, &args);
}

enum lk_code lk_cuda_linear(struct lk_device *dev, const struct lk_linear *op, void *scratch) {
    if (lk_tensor_is_quantized(op->w)) {
        const struct lk_tensor plain = plain_weight(op, scratch);
        struct lk_linear with_plain = *op;
        with_plain.w = &plain;
        LK_TRY(lk_cuda_dequantize(dev, op->w, scratch));
        return lk_cuda_linear(dev, &with_plain, (char *)scratch + plain_bytes(&plain));
    }
    if (lk_cuda_device_of(dev)->cublaslt) {
        bool taken;
        LK_TRY(lk_cublaslt_linear(dev, op, scratch, &taken));
        if (taken) return LK_OK;
    }
    return lk_cuda_linear_by(dev, op,
                             op->x->shape[0] <= FEW_ROWS ? lk_cuda_linear_tile_few()
                                                         : lk_cuda_linear_tile(op->w->shape[0], op->w->shape[1]));
}
