#include "kernels/cuda/elementwise.h"

#define MOST_BLOCKS  432 /* of pixels: four for each multiprocessor of an A100 */
#define LEAST_PIXELS 64
#define THREADS      256 /* of group_norm_sums */
#define NORM_BLOCKS  8   /* of group_norm for each multiprocessor */
#define ALIGN        64  /* bytes, of each part of the scratch */

/* Channels that a block of group_norm_sums takes at most. */
static int tile_channels(const struct lk_group_norm *op) { return THREADS * LK_CUDA_WIDTH(op->x->dtype); }

static size_t padded(size_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

static struct lk_cuda_group_norm arguments(const struct lk_group_norm *op) {
    const struct lk_tensor *x = op->x;
    struct lk_cuda_group_norm args = {.y = op->y->data,
                                      .x = x->data,
                                      .w = op->w->data,
                                      .b = op->b->data,
                                      .n_pixels = x->shape[0] * x->shape[1],
                                      .channels = (int32_t)x->shape[2],
                                      .n_groups = op->n_groups,
                                      .per_group = (int32_t)(x->shape[2] / op->n_groups),
                                      .w_bf16 = op->w->dtype == LK_BF16,
                                      .b_bf16 = op->b->dtype == LK_BF16,
                                      .act = op->act,
                                      .eps = op->eps};
    args.block_pixels = lk_cuda_div_up(args.n_pixels, MOST_BLOCKS);
    if (args.block_pixels < LEAST_PIXELS) args.block_pixels = LEAST_PIXELS;
    args.n_blocks = (int32_t)lk_cuda_div_up(args.n_pixels, args.block_pixels);
    args.tile_groups = tile_channels(op) / args.per_group;
    if (args.tile_groups > args.n_groups) args.tile_groups = args.n_groups;
    args.vector = ((uintptr_t)args.y | (uintptr_t)args.x) % 16 == 0 && args.channels % LK_CUDA_WIDTH(x->dtype) == 0 &&
                  args.tile_groups * args.per_group % LK_CUDA_WIDTH(x->dtype) == 0;
    return args;
}

static size_t partial_bytes(const struct lk_cuda_group_norm *args) {
    return padded((size_t)args->n_blocks * (size_t)args->n_groups * 2 * sizeof(double));
}

size_t lk_cuda_group_norm_scratch(const struct lk_device *dev, const struct lk_group_norm *op) {
    (void)dev;
    struct lk_cuda_group_norm args = arguments(op);
    return partial_bytes(&args) + 3 * padded((size_t)args.channels * sizeof(float));
}

enum lk_code lk_cuda_group_norm(struct lk_device *dev, const struct lk_group_norm *op, void *scratch) {
    struct lk_cuda_group_norm args = arguments(op);
    const size_t coefficients = padded((size_t)args.channels * sizeof(float));
    const enum lk_dtype dtype = op->x->dtype;
    if (args.per_group > tile_channels(op))
        return lk_fail(LK_E_INTERNAL, "group_norm: channels of a group: expected at most %d, got %d", tile_channels(op),
                       args.per_group);
    unsigned char *place = scratch;
    args.partial = (double *)scratch;
    args.mean = (float *)(void *)(place += partial_bytes(&args));
    args.a = (float *)(void *)(place += coefficients);
    args.add = (float *)(void *)(place + coefficients);
    struct lk_cuda_grid sums = {
        .grid = {(unsigned)args.n_blocks, (unsigned)lk_cuda_div_up(args.n_groups, args.tile_groups)},
        .block = {THREADS},
        .shared = 2 * (size_t)LK_CUDA_WIDTH(dtype) * (THREADS + 2) * sizeof(double)};
    struct lk_cuda_grid groups = {.grid = {(unsigned)lk_cuda_div_up(args.n_groups, 32)}, .block = {32}};
    struct lk_cuda_grid all = lk_cuda_elementwise_grid(args.n_pixels, args.channels, dtype);
    const unsigned most = NORM_BLOCKS * (unsigned)lk_cuda_device_of(dev)->n_multiprocessors / all.grid[0];
    if (all.grid[1] > most) all.grid[1] = most ? most : 1; /* so that coefficients serve many pixels */
    LK_TRY(lk_cuda_launch(dev, "group_norm", LK_CUDA_VARIANT("group_norm_sums", dtype), &sums, &args));
    LK_TRY(lk_cuda_launch(dev, "group_norm", LK_CUDA_VARIANT("group_norm_coefficients", dtype), &groups, &args));
    return lk_cuda_launch(dev, "group_norm", LK_CUDA_VARIANT("group_norm", dtype), &all, &args);
}
