#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/gemm/gemm.h"

#define MOST_BLOCKS  432 /* of pixels: four for each multiprocessor of an A100 */
#define LEAST_PIXELS 64
#define NORM_BLOCKS  8   /* of group_norm for each multiprocessor */
#define SLAB_THREADS 128 /* of group_sums */
#define ALIGN        64  /* bytes, of each part of the scratch */

/* The widths of groups that group_slab.cuh can add up. */
bool lk_cuda_keeps_group_sums(const struct lk_tensor *y, const struct lk_tensor *sums) {
    if (!sums || y->dtype != LK_BF16) return false;
    const int64_t per_group = y->shape[2] / sums->shape[0];
    return per_group == 4 || per_group == 8 || per_group == 16 || per_group == 32;
}

struct lk_cuda_group_slabs lk_cuda_group_slabs_of(const struct lk_tensor *y, const struct lk_tensor *sums) {
    if (!lk_cuda_keeps_group_sums(y, sums)) return (struct lk_cuda_group_slabs){0};
    const int64_t per_group = y->shape[2] / sums->shape[0], n_slabs = sums->shape[1];
    const int64_t last = y->shape[0] * y->shape[1] - (n_slabs - 1) * LK_GROUP_SLAB;
    return (struct lk_cuda_group_slabs){.to = sums->data,
                                        .n_slabs = (int32_t)n_slabs,
                                        .per_group = (int32_t)per_group,
                                        .inverse = 1.0f / (float)(LK_GROUP_SLAB * per_group),
                                        .last_inverse = 1.0f / (float)(last * per_group)};
}

enum lk_code lk_cuda_group_sums(struct lk_device *dev, const struct lk_tensor *y, const struct lk_tensor *sums) {
    const struct lk_cuda_group_sums args = {.slabs = lk_cuda_group_slabs_of(y, sums),
                                            .y = y->data,
                                            .n_pixels = (int32_t)(y->shape[0] * y->shape[1]),
                                            .channels = (int32_t)y->shape[2],
                                            .vector = (uintptr_t)y->data % 16 == 0 && y->shape[2] % 8 == 0};
    const struct lk_cuda_grid grid = {.grid = {(unsigned)lk_cuda_div_up(args.slabs.n_slabs, SLAB_THREADS / 32),
                                               (unsigned)lk_cuda_div_up(args.channels, LK_CUDA_GROUP_SLAB_COLUMNS)},
                                      .block = {SLAB_THREADS}};
    return lk_cuda_launch(dev, "group_norm", "group_sums_bf16", &grid, &args);
}

/* Channels that a block of group_norm_sums takes at most. */
static int tile_channels(const struct lk_group_norm *op) { return LK_CUDA_GROUP_THREADS * LK_CUDA_WIDTH(op->x->dtype); }

static size_t padded(size_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

static struct lk_cuda_group_norm arguments(const struct lk_group_norm *op) {
    const struct lk_tensor *x = op->x;
    struct lk_cuda_group_norm args = {.y = op->y->data,
                                      .x = x->data,
                                      .w = op->w->data,
                                      .b = op->b->data,
                                      .slabs = lk_cuda_group_slabs_of(x, op->sums).to,
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
    if (args->slabs) return 0;
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
        .block = {LK_CUDA_GROUP_THREADS},
        .shared = 2 * (size_t)LK_CUDA_WIDTH(dtype) * LK_CUDA_GROUP_PITCH * sizeof(double)};
    struct lk_cuda_grid groups = {.grid = {(unsigned)lk_cuda_div_up(args.n_groups, 32)}, .block = {32}};
    struct lk_cuda_grid of_slabs = {.grid = {(unsigned)args.n_groups}, .block = {LK_CUDA_GROUP_OF_SLABS}};
    struct lk_cuda_grid all = lk_cuda_elementwise_grid(args.n_pixels, args.channels, dtype);
    const unsigned most = NORM_BLOCKS * (unsigned)lk_cuda_device_of(dev)->n_multiprocessors / all.grid[0];
    if (all.grid[1] > most) all.grid[1] = most ? most : 1; /* so that coefficients serve many pixels */
    if (args.slabs) {
        LK_TRY(lk_cuda_launch(dev, "group_norm", "group_norm_of_slabs_bf16", &of_slabs, &args));
    } else {
        LK_TRY(lk_cuda_launch(dev, "group_norm", LK_CUDA_VARIANT("group_norm_sums", dtype), &sums, &args));
        LK_TRY(lk_cuda_launch(dev, "group_norm", LK_CUDA_VARIANT("group_norm_coefficients", dtype), &groups, &args));
    }
    return lk_cuda_launch(dev, "group_norm", LK_CUDA_VARIANT("group_norm", dtype), &all, &args);
}
