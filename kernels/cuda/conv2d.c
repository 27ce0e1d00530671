#include "kernels/cuda/gemm/gemm.h"

#define CHUNK   8   /* elements of 16 bytes */
#define THREADS 256 /* of conv2d_weights */

/* Whether the filters lie in the order of K already. */
static bool in_order(const struct lk_conv2d *op, const struct lk_filters *f) {
    return op->taps_first || f->kt * f->kh * f->kw == 1;
}

static int64_t packed_row(const struct lk_filters *f) {
    return lk_cuda_div_up(f->kh * f->kw * f->channels, CHUNK) * CHUNK;
}

static size_t packed_bytes(const struct lk_conv2d *op, const struct lk_filters *f) {
    return in_order(op, f) ? 0 : (size_t)(f->n * packed_row(f)) * lk_dtype_size(op->w->dtype);
}

/* Behind the packed filters, where cuDNN's begins. */
static size_t after_packed(const struct lk_conv2d *op, const struct lk_filters *f) {
    return (packed_bytes(op, f) + LK_ARENA_ALIGN - 1) / LK_ARENA_ALIGN * LK_ARENA_ALIGN;
}

size_t lk_cuda_conv2d_scratch(const struct lk_device *dev, const struct lk_conv2d *op) {
    const struct lk_cudnn *dnn = ((const struct lk_cuda_device *)dev)->cudnn;
    struct lk_filters f = lk_filters_of(op);
    return dnn ? after_packed(op, &f) + lk_cudnn_scratch(dnn, op) : packed_bytes(op, &f);
}

static enum lk_code pack_weights(struct lk_device *dev, const struct lk_conv2d *op, const struct lk_filters *f,
                                 void *scratch) {
    const struct lk_cuda_conv2d_weights args = {.packed = scratch,
                                                .w = op->w->data,
                                                .ld = packed_row(f),
                                                .n = (int32_t)f->n,
                                                .channels = (int32_t)f->channels,
                                                .kt = (int32_t)f->kt,
                                                .taps = (int32_t)(f->kh * f->kw)};
    const struct lk_cuda_grid grid = {.grid = {(unsigned)lk_cuda_div_up(f->n * args.ld, THREADS)}, .block = {THREADS}};
    return lk_cuda_launch(dev, "conv2d", LK_CUDA_VARIANT("conv2d_weights", op->w->dtype), &grid, &args);
}

static void picture(struct lk_cuda_gemm *args, const struct lk_conv2d *op, const struct lk_filters *f) {
    args->x = op->x->data;
    args->channels = (int32_t)f->channels;
    args->ld_x = f->channels;
    args->height = (int32_t)op->x->shape[0] * op->upsample;
    args->width = (int32_t)op->x->shape[1] * op->upsample;
    args->width_in = (int32_t)op->x->shape[1];
    args->width_out = (int32_t)op->y->shape[1];
    args->kernel_width = (int32_t)f->kw;
    args->stride = op->stride;
    args->shift = op->upsample == 2;
    args->pad_top = op->pad_top;
    args->pad_left = op->pad_left;
}

/* Whether the picture's coordinates fit the 16 bits that a thread keeps them in. */
static bool small(const struct lk_cuda_gemm *args, const struct lk_conv2d *op) {
    const int64_t most = LK_CUDA_MOST_PAD;
    return op->pad_top <= most && op->pad_left <= most && op->y->shape[0] * op->stride <= 3 * most &&
           op->y->shape[1] * op->stride <= 3 * most && (int64_t)args->height * args->width <= INT32_MAX;
}

static struct lk_tensor pixels_by_channels(const struct lk_tensor *t) {
    return LK_TENSOR(t->data, t->dtype, t->shape[0] * t->shape[1], t->shape[2]);
}

/* As rows of pixels; one row for all lies 0 elements apart. */
static struct lk_tensor residual_rows(const struct lk_conv2d *op) {
    if (op->residual->n_dims == 3) return pixels_by_channels(op->residual);
    struct lk_tensor rows = pixels_by_channels(op->y);
    rows.data = op->residual->data;
    rows.ld = 0;
    return rows;
}

/* For kernels that do not leave them. */
static enum lk_code sums_from_memory(struct lk_device *dev, const struct lk_conv2d *op) {
    return lk_cuda_keeps_group_sums(op->y, op->group_sums) ? lk_cuda_group_sums(dev, op->y, op->group_sums) : LK_OK;
}

bool lk_cuda_conv2d_is_rgb(const struct lk_conv2d *op) {
    const struct lk_filters f = lk_filters_of(op);
    return op->x->dtype == LK_BF16 && op->w->dtype == LK_BF16 && f.channels == 3 && f.kh == 3 && f.kw == 3 &&
           op->stride == 1 && op->upsample == 1 && (uintptr_t)op->x->data % 16 == 0;
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

enum lk_code lk_cuda_conv2d(struct lk_device *dev, const struct lk_conv2d *op, void *scratch) {
    const struct lk_filters f = lk_filters_of(op);
    const struct lk_tensor y = pixels_by_channels(op->y);
    struct lk_tensor residual;
    struct lk_linear epilogue = {.y = &y, .bias = op->bias};
    if (op->residual) {
        residual = residual_rows(op);
        epilogue.residual = &residual;
    }
    struct lk_cuda_gemm args;
    LK_TRY(lk_cuda_gemm_arguments(&args, &epilogue, f.kh * f.kw * f.channels));
    picture(&args, op, &f);
    args.slabs = lk_cuda_group_slabs_of(op->y, op->group_sums);
    args.w = in_order(op, &f) ? op->w->data : scratch;
    args.ld_w = in_order(op, &f) ? f.kh * f.kw * f.channels : packed_row(&f);
    args.w_bf16 = op->w->dtype == LK_BF16;
    if (!in_order(op, &f)) LK_TRY(pack_weights(dev, op, &f, scratch));
    if (lk_cuda_device_of(dev)->cudnn) {
        bool taken;
        LK_TRY(lk_cudnn_conv2d(dev, op, args.w, args.ld_w, (unsigned char *)scratch + after_packed(op, &f), &taken));
        if (taken) return sums_from_memory(dev, op);
    }
    if (lk_cuda_conv2d_is_rgb(op) && small(&args, op)) {
        bool sums;
        LK_TRY(lk_cuda_conv2d_rgb(dev, &args, &sums));
        return sums ? LK_OK : sums_from_memory(dev, op);
    }
    const bool whole_chunks = op->x->dtype == LK_BF16 && f.channels % CHUNK == 0 && (uintptr_t)args.x % 16 == 0 &&
                              (uintptr_t)args.w % 16 == 0 && small(&args, op);
    if (!whole_chunks) return lk_cuda_gemm_launch_gathered(dev, op->x->dtype, &args);
    const struct lk_cuda_gemm_tile *few =
        lk_cuda_conv2d_tile_few(args.m, args.n, lk_cuda_device_of(dev)->n_multiprocessors);
    if (!few) return lk_cuda_gemm_launch(dev, "conv2d", lk_cuda_conv2d_tile(args.n, args.slabs.to), &args);
    args.slabs.to = NULL;
    LK_TRY(lk_cuda_gemm_launch(dev, "conv2d", few, &args));
    return sums_from_memory(dev, op);
}
