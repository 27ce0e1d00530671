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
/* Of the scratch: where they are small, the matrix of the op before has a place too. */
static size_t plain_room(size_t bytes) { return bytes <= LK_PLAIN_SMALL ? LK_CUDA_PLAIN * bytes : bytes; }

static bool overlap(const struct lk_cuda_plain *p, uintptr_t at, size_t bytes) {
    return p->weight && p->at < at + bytes && at < p->at + p->bytes;
}

void lk_cuda_plain_forget(struct lk_cuda_device *cuda, uintptr_t at, size_t bytes) {
    for (int i = 0; i < LK_CUDA_PLAIN; i++)
        if (overlap(&cuda->plain[i], at, bytes)) cuda->plain[i].weight = NULL;
}

/* *out: the matrix of w, the op's weight: one that is known, or made in `scratch`, of plain_room(bytes). What lies
 * where the op writes is known no more. */
static enum lk_code find_or_make_plain(struct lk_device *dev, const struct lk_tensor *w, void *scratch, size_t bytes,
                                       void **out) {
    struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    struct lk_cuda_plain *known = cuda->plain;
    struct lk_cuda_plain made = {.weight = cuda->packed, .bytes = bytes, .epoch = lk_weights_epoch()};
    const uintptr_t begin = (uintptr_t)scratch;
    for (int i = 0; i < LK_CUDA_PLAIN; i++)
        if (known[i].weight && known[i].weight == made.weight && known[i].bytes == bytes &&
            known[i].epoch == made.epoch)
            made.at = known[i].at;
    if (!made.at) {
        made.at = overlap(&known[0], begin, bytes) ? begin + plain_room(bytes) - bytes : begin;
        lk_cuda_plain_forget(cuda, made.at, bytes);
        LK_TRY(lk_cuda_dequantize(dev, w, (void *)made.at));
    }
    if (known[0].weight && known[0].at != made.at) known[1] = known[0];
    known[0] = made;
    *out = (void *)made.at;
    return LK_OK;
}

size_t lk_cuda_linear_scratch(const struct lk_device *dev, const struct lk_linear *op) {
    struct lk_tensor plain = plain_weight(op, NULL);
    struct lk_linear with_plain = *op;
    size_t bytes = 0;
    if (lk_tensor_is_quantized(op->w)) {
        bytes = plain_room(plain_bytes(&plain));
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
    if (!op->low) return LK_OK;
    args->low = op->low->data;
    args->up = op->up->data;
    args->ld_low = op->low->ld;
    args->ld_up = op->up->ld;
    args->rank = (int32_t)op->low->shape[1];
    return LK_OK;
}

/* Whether the tiles of linear.cu can take it. */
static bool whole_chunks(const struct lk_linear *op) {
    const struct lk_tensor *const read[] = {op->x, op->w, op->low, op->up};
    const int64_t most = UINT32_MAX / sizeof(uint16_t); /* from a row to the next */
    bool whole = op->x->dtype == LK_BF16;
    for (int i = 0; i < (op->low ? 4 : 2); i++) whole &= lk_cuda_aligned(read[i]) && read[i]->ld <= most;
    return whole;
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

/* Rows [first, first + n) of y. */
static enum lk_code some_rows(struct lk_device *dev, const struct lk_linear *op, const struct lk_cuda_gemm_tile *tile,
                              int64_t first, int64_t n) {
    const struct lk_tensor y = lk_tensor_rows(op->y, first, n), x = lk_tensor_rows(op->x, first, n);
    struct lk_tensor residual, low, out = y;
    struct lk_linear part = *op;
    if (op->residual) residual = lk_tensor_rows(op->residual, first, n), part.residual = &residual;
    if (op->low) low = lk_tensor_rows(op->low, first, n), part.low = &low;
    part.y = &out, part.x = &x;
    return lk_cuda_linear_by(dev, &part, tile);
}

enum lk_code lk_cuda_linear(struct lk_device *dev, const struct lk_linear *op, void *scratch) {
    if (lk_tensor_is_quantized(op->w)) {
        struct lk_tensor plain = plain_weight(op, scratch);
        struct lk_linear with_plain = *op;
        const size_t bytes = plain_bytes(&plain), all = lk_cuda_linear_scratch(dev, op);
        char *rest = (char *)scratch + plain_room(bytes);
        lk_cuda_plain_forget(lk_cuda_device_of(dev), (uintptr_t)rest, all - plain_room(bytes));
        LK_TRY(find_or_make_plain(dev, op->w, scratch, bytes, &plain.data));
        with_plain.w = &plain;
        return lk_cuda_linear(dev, &with_plain, rest);
    }
    if (lk_cuda_device_of(dev)->cublaslt && !op->low) { /* it cannot go on with a sum */
        bool taken;
        LK_TRY(lk_cublaslt_linear(dev, op, scratch, &taken));
        if (taken) return LK_OK;
    }
    const int64_t m = op->x->shape[0], n = op->w->shape[0], k = op->w->shape[1];
    const struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    const struct lk_cuda_gemm_tile *tile =
        m <= FEW_ROWS ? lk_cuda_linear_tile_few()
                      : lk_cuda_linear_tile_small(m, n, k, cuda->most_shared, cuda->n_multiprocessors);
    if (tile || !whole_chunks(op)) return lk_cuda_linear_by(dev, op, tile);
    tile = lk_cuda_linear_tile(n, k, cuda->most_shared);
    const int64_t whole = lk_cuda_linear_whole_waves(tile, m, n, k, cuda);
    LK_TRY(some_rows(dev, op, tile, 0, whole));
    return whole < m ? some_rows(dev, op, lk_cuda_linear_tile_rest(), whole, m - whole) : LK_OK;
}
