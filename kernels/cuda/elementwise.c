/* Ops that compute each element alone, or move it: their grids and launches. */
#include "kernels/cuda/elementwise.h"

#include "engine/bf16.h"

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

enum lk_code lk_cuda_activation(struct lk_device *dev, const struct lk_activation *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_elementwise args = lk_cuda_elementwise_arguments(op->y, op->x, NULL);
    args.act = op->act;
    struct lk_cuda_grid grid = lk_cuda_elementwise_grid(args.rows, args.n, op->y->dtype);
    return lk_cuda_launch(dev, "activation", LK_CUDA_VARIANT("activation", op->y->dtype), &grid, &args);
}

enum lk_code lk_cuda_add(struct lk_device *dev, const struct lk_add *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_elementwise args = lk_cuda_elementwise_arguments(op->y, op->a, op->b);
    struct lk_cuda_grid grid = lk_cuda_elementwise_grid(args.rows, args.n, op->y->dtype);
    return lk_cuda_launch(dev, "add", LK_CUDA_VARIANT("add", op->y->dtype), &grid, &args);
}

enum lk_code lk_cuda_channel_affine(struct lk_device *dev, const struct lk_channel_affine *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_channel_affine args = {.y = op->y->data,
                                          .x = op->x->data,
                                          .mean = op->mean->data,
                                          .std = op->std->data,
                                          .rows = op->x->shape[0],
                                          .n = op->x->shape[1],
                                          .ld_y = op->y->ld,
                                          .ld_x = op->x->ld,
                                          .stat_bf16 = op->mean->dtype == LK_BF16,
                                          .normalize = op->normalize,
                                          .inverse_std = op->inverse_std};
    args.vector =
        lk_cuda_aligned(op->y) && lk_cuda_aligned(op->x) && lk_cuda_aligned(op->mean) && lk_cuda_aligned(op->std);
    struct lk_cuda_grid grid = lk_cuda_elementwise_grid(args.rows, args.n, op->x->dtype);
    return lk_cuda_launch(dev, "channel_affine", LK_CUDA_VARIANT("channel_affine", op->x->dtype), &grid, &args);
}

static const char *copy_kernel(enum lk_dtype to, enum lk_dtype from) {
    if (to == from) return LK_CUDA_VARIANT("copy", to);
    return to == LK_BF16 ? "copy_f32_to_bf16" : "copy_bf16_to_f32";
}

enum lk_code lk_cuda_copy(struct lk_device *dev, const struct lk_copy *op, void *scratch) {
    (void)scratch;
    const enum lk_dtype to = op->y->dtype, from = op->x->dtype;
    struct lk_cuda_elementwise args = lk_cuda_elementwise_arguments(op->y, op->x, NULL);
    struct lk_cuda_grid grid = lk_cuda_elementwise_grid(args.rows, args.n, to == from ? to : LK_F32);
    return lk_cuda_launch(dev, "copy", copy_kernel(to, from), &grid, &args);
}

enum lk_code lk_cuda_euler_step(struct lk_device *dev, const struct lk_euler_step *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_elementwise args = lk_cuda_elementwise_arguments(op->x, op->v, NULL);
    args.factor = op->x->dtype == LK_BF16 ? lk_round_bf16(op->dt) : op->dt;
    struct lk_cuda_grid grid = lk_cuda_elementwise_grid(args.rows, args.n, op->x->dtype);
    return lk_cuda_launch(dev, "euler_step", LK_CUDA_VARIANT("euler_step", op->x->dtype), &grid, &args);
}

enum lk_code lk_cuda_blend(struct lk_device *dev, const struct lk_blend *op, void *scratch) {
    (void)scratch;
    const bool bf16 = op->x->dtype == LK_BF16;
    struct lk_cuda_blend args = {.y = op->x->data,
                                 .source = op->source->data,
                                 .noise = op->noise->data,
                                 .keep = op->keep->data,
                                 .n = lk_tensor_numel(op->x),
                                 .sigma = bf16 ? lk_round_bf16(op->sigma) : op->sigma};
    args.rest = bf16 ? lk_round_bf16(1.0f - args.sigma) : 1.0f - args.sigma;
    args.vector = (uintptr_t)args.y % 16 == 0 && (uintptr_t)args.source % 16 == 0 && (uintptr_t)args.noise % 16 == 0 &&
                  (uintptr_t)args.keep % 16 == 0;
    struct lk_cuda_grid grid = lk_cuda_elementwise_grid(1, args.n, op->x->dtype);
    return lk_cuda_launch(dev, "blend", LK_CUDA_VARIANT("blend", op->x->dtype), &grid, &args);
}

enum lk_code lk_cuda_weighted_sum(struct lk_device *dev, const struct lk_weighted_sum *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_weighted_sum args = {.y = op->y->data, .n = lk_tensor_numel(op->y)};
    args.vector = (uintptr_t)args.y % 16 == 0;
    for (int i = 0; i < LK_SUM_TERMS && op->x[i]; i++) {
        args.x[args.n_terms] = op->x[i]->data;
        args.scale[args.n_terms++] = op->scale[i];
        args.vector = args.vector && (uintptr_t)op->x[i]->data % 16 == 0;
    }
    struct lk_cuda_grid grid = lk_cuda_elementwise_grid(1, args.n, op->y->dtype);
    return lk_cuda_launch(dev, "weighted_sum", LK_CUDA_VARIANT("weighted_sum", op->y->dtype), &grid, &args);
}

enum lk_code lk_cuda_gated_act(struct lk_device *dev, const struct lk_gated_act *op, void *scratch) {
    (void)scratch;
    const int64_t n = op->y->shape[1];
    struct lk_tensor gate = lk_tensor_cols(op->x, op->gate_last ? n : 0, n);
    struct lk_tensor value = lk_tensor_cols(op->x, op->gate_last ? 0 : n, n);
    struct lk_cuda_elementwise args = lk_cuda_elementwise_arguments(op->y, &gate, &value);
    args.act = op->act;
    struct lk_cuda_grid grid = lk_cuda_elementwise_grid(args.rows, args.n, op->y->dtype);
    return lk_cuda_launch(dev, "gated_act", LK_CUDA_VARIANT("gated_act", op->y->dtype), &grid, &args);
}

/* The one op that waits for the device: its result is the host's. */
enum lk_code lk_cuda_nonfinite(struct lk_device *dev, const struct lk_nonfinite *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    struct lk_cuda_report report;
    struct lk_cuda_elementwise args = lk_cuda_elementwise_arguments(op->x, op->x, NULL);
    args.y = (void *)(uintptr_t)cuda->report;
    struct lk_cuda_grid grid = lk_cuda_elementwise_grid(args.rows, args.n, op->x->dtype);
    LK_TRY(lk_cuda_launch(dev, "nonfinite", LK_CUDA_VARIANT("nonfinite", op->x->dtype), &grid, &args));
    LK_TRY(lk_cuda_wait(cuda, &report));
    *op->count += (int64_t)report.nonfinite;
    return LK_OK;
}

enum lk_code lk_cuda_pack_latents(struct lk_device *dev, const struct lk_pack_latents *op, void *scratch) {
    (void)scratch;
    const struct lk_tensor *latents = op->latents;
    struct lk_cuda_pack_latents args = {.tokens = op->tokens->data,
                                        .latents = latents->data,
                                        .tokens_high = latents->shape[0] / 2,
                                        .tokens_wide = latents->shape[1] / 2,
                                        .channels = latents->shape[2],
                                        .inverse = op->inverse};
    const int64_t n = args.tokens_high * args.tokens_wide * args.channels;
    if (n > INT32_MAX) return lk_fail(LK_E_INTERNAL, "pack_latents: %lld values are too many", (long long)n * 4);
    const int at_once = latents->dtype == LK_BF16 ? 2 : 1; /* channels of a thread: 16 bytes of a token */
    args.vector = args.channels % at_once == 0 && (uintptr_t)args.tokens % 16 == 0 && (uintptr_t)args.latents % 4 == 0;
    const int64_t threads = args.vector ? n / at_once : n;
    struct lk_cuda_grid grid = {.grid = {(unsigned)lk_cuda_div_up(threads, MOST_THREADS)}, .block = {MOST_THREADS}};
    return lk_cuda_launch(dev, "pack_latents", LK_CUDA_VARIANT("pack_latents", latents->dtype), &grid, &args);
}

enum lk_code lk_cuda_pixels(struct lk_device *dev, const struct lk_pixels *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_elementwise args = lk_cuda_elementwise_arguments(op->y, op->x, NULL);
    struct lk_cuda_grid grid =
        lk_cuda_elementwise_grid(args.rows, args.n, op->x->dtype == LK_U8 ? op->y->dtype : op->x->dtype);
    const char *kernel = op->x->dtype == LK_U8 ? LK_CUDA_VARIANT("pixels_from_bytes", op->y->dtype)
                                               : LK_CUDA_VARIANT("pixels_to_bytes", op->x->dtype);
    return lk_cuda_launch(dev, "pixels", kernel, &grid, &args);
}

enum lk_code lk_cuda_posterior_sample(struct lk_device *dev, const struct lk_posterior_sample *op, void *scratch) {
    (void)scratch;
    const int64_t n_pixels = op->z->shape[0] * op->z->shape[1], c = op->z->shape[2];
    struct lk_tensor z = LK_VIEW(op->z, n_pixels, c), noise = LK_VIEW(op->noise, n_pixels, c);
    struct lk_tensor moments = LK_VIEW(op->moments, n_pixels, 2 * c);
    struct lk_cuda_elementwise args = lk_cuda_elementwise_arguments(&z, &moments, &noise);
    args.vector = args.vector && c % LK_CUDA_WIDTH(z.dtype) == 0; /* logvar begins c elements after mean */
    struct lk_cuda_grid grid = lk_cuda_elementwise_grid(args.rows, args.n, z.dtype);
    return lk_cuda_launch(dev, "posterior_sample", LK_CUDA_VARIANT("posterior_sample", z.dtype), &grid, &args);
}
