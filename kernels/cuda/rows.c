/* Ops that reduce rows: their grids and launches. */
#include "kernels/cuda/rows.h"

#include <math.h>

#include "kernels/cuda/elementwise.h"

#define SMALL_BLOCK  256
#define LARGE_BLOCK  512                         /* of 128 registers a thread at most */
#define MOST_SMALL   1024                        /* elements of a row that a warp takes */
#define MOST_ROW     (1 << 30)                   /* elements, so that 32 bits count them */
#define MOST_PAIRS   (LK_CUDA_ROW_KEPT / 2 * 32) /* of norm_rope: of a warp */
#define MEAN_COLUMNS 128                         /* of a block of mean_rows */

/* Of one warp: the team with the fewest idle threads; a row's 128 bytes at a time where there is a choice. */
static unsigned small_team(int64_t vectors, int64_t most_kept) {
    static const unsigned teams[] = {8, 16, 32, 4, 2};
    unsigned best = 1;
    int64_t least_idle = INT64_MAX;
    if (vectors == 1) return 1;
    for (size_t i = 0; i < sizeof teams / sizeof *teams; i++) {
        const int64_t each = lk_cuda_div_up(vectors, teams[i]), idle = each * teams[i] - vectors;
        if (each > most_kept || idle >= least_idle) continue;
        least_idle = idle;
        best = teams[i];
    }
    return best;
}

struct lk_cuda_grid lk_cuda_row_grid(int64_t n_rows, int64_t n, enum lk_dtype dtype) {
    const int64_t width = LK_CUDA_WIDTH(dtype);
    unsigned team = n > 8192 ? LARGE_BLOCK : SMALL_BLOCK;
    if (n <= MOST_SMALL) team = small_team(lk_cuda_div_up(n, width), LK_CUDA_ROW_KEPT / width);
    const unsigned teams = team < SMALL_BLOCK ? SMALL_BLOCK / team : 1;
    return (struct lk_cuda_grid){.grid = {(unsigned)lk_cuda_div_up(n_rows, teams)}, .block = {team, teams}};
}

enum lk_code lk_cuda_row_norm_arguments(struct lk_cuda_row_norm *args, const struct lk_tensor *y,
                                        const struct lk_tensor *x, const struct lk_tensor *w) {
    const int64_t n = x->shape[x->n_dims - 1];
    if (n > MOST_ROW) return lk_fail(LK_E_INTERNAL, "cuda: a row of %lld elements is too long", (long long)n);
    *args = (struct lk_cuda_row_norm){.y = y->data,
                                      .x = x->data,
                                      .w = w ? w->data : NULL,
                                      .n_rows = x->n_dims > 1 ? x->shape[0] : 1,
                                      .per_row = x->n_dims > 1 ? lk_tensor_row_numel(x) / n : 1,
                                      .n = n,
                                      .ld_y = y->ld,
                                      .ld_x = x->ld,
                                      .w_bf16 = w && w->dtype == LK_BF16};
    args->vector =
        lk_cuda_aligned(y) && lk_cuda_aligned(x) && (uintptr_t)args->w % 16 == 0 && n % LK_CUDA_WIDTH(x->dtype) == 0;
    return LK_OK;
}

enum lk_code lk_cuda_rms_norm(struct lk_device *dev, const struct lk_rms_norm *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_row_norm args;
    LK_TRY(lk_cuda_row_norm_arguments(&args, op->y, op->x, op->w));
    args.eps = op->eps;
    args.round_before_weight = op->round_before_weight;
    struct lk_cuda_grid grid = lk_cuda_row_grid(args.n_rows * args.per_row, args.n, op->x->dtype);
    return lk_cuda_launch(dev, "rms_norm", LK_CUDA_VARIANT("rms_norm", op->x->dtype), &grid, &args);
}

static const void *data_of(const struct lk_tensor *t) { return t ? t->data : NULL; }

enum lk_code lk_cuda_layer_norm(struct lk_device *dev, const struct lk_layer_norm *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_row_norm args;
    LK_TRY(lk_cuda_row_norm_arguments(&args, op->y, op->x, op->weight));
    args.bias = data_of(op->bias);
    args.bias_bf16 = op->bias && op->bias->dtype == LK_BF16;
    args.shift = data_of(op->shift);
    args.scale = data_of(op->scale);
    args.eps = op->eps;
    args.vector = args.vector && ((uintptr_t)args.bias | (uintptr_t)args.shift | (uintptr_t)args.scale) % 16 == 0;
    struct lk_cuda_grid grid = lk_cuda_row_grid(args.n_rows, args.n, op->x->dtype);
    return lk_cuda_launch(dev, "layer_norm", LK_CUDA_VARIANT("layer_norm", op->x->dtype), &grid, &args);
}

enum lk_code lk_cuda_l2_norm(struct lk_device *dev, const struct lk_l2_norm *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_row_norm args;
    LK_TRY(lk_cuda_row_norm_arguments(&args, op->y, op->x, op->w));
    args.gain = (float)sqrt((double)args.n);
    args.act = op->act;
    struct lk_cuda_grid grid = lk_cuda_row_grid(args.n_rows * args.per_row, args.n, op->x->dtype);
    return lk_cuda_launch(dev, "l2_norm", LK_CUDA_VARIANT("l2_norm", op->x->dtype), &grid, &args);
}

enum lk_code lk_cuda_norm_rope(struct lk_device *dev, const struct lk_norm_rope *op, void *scratch) {
    (void)scratch;
    const struct lk_tensor *x = op->x, *w = op->norm_w;
    const bool bf16 = x->dtype == LK_BF16;
    struct lk_cuda_norm_rope args = {.x = x->data,
                                     .norm_w = w ? w->data : NULL,
                                     .n_rows = x->shape[0],
                                     .n_heads = x->shape[1],
                                     .ld_x = x->ld,
                                     .pairs = (int32_t)(x->shape[2] / 2),
                                     .w_bf16 = w && w->dtype == LK_BF16,
                                     .interleaved = op->pairing == LK_ROPE_INTERLEAVED,
                                     .round_before_weight = op->round_before_weight,
                                     .round_products = op->round_products && bf16,
                                     .eps = op->eps};
    if (args.pairs > MOST_PAIRS)
        return lk_fail(LK_E_INTERNAL, "norm_rope: head_dim: expected at most %d, got %d", 2 * MOST_PAIRS,
                       2 * args.pairs);
    if (args.n_rows * args.n_heads > INT32_MAX)
        return lk_fail(LK_E_INTERNAL, "norm_rope: %lld heads are too many", (long long)(args.n_rows * args.n_heads));
    const int vector = LK_CUDA_WIDTH(x->dtype) / 2; /* pairs */
    args.vector = lk_cuda_aligned(x) && args.pairs % vector == 0 && (uintptr_t)args.norm_w % 16 == 0;
    if (op->cos) {
        args.cos = op->cos->data;
        args.sin = op->sin->data;
        args.ld_table = op->cos->ld;
        args.vector = args.vector && lk_cuda_aligned(op->cos) && lk_cuda_aligned(op->sin);
        if (op->sin->ld != op->cos->ld && args.n_rows > 1)
            return lk_fail(LK_E_INTERNAL, "norm_rope: cos and sin with different distances of rows");
    }
    struct lk_cuda_grid grid = lk_cuda_row_grid(args.n_rows * args.n_heads, 2 * args.pairs, x->dtype);
    return lk_cuda_launch(dev, "norm_rope", LK_CUDA_VARIANT("norm_rope", x->dtype), &grid, &args);
}

enum lk_code lk_cuda_distance(struct lk_device *dev, const struct lk_distance *op, void *scratch) {
    (void)scratch;
    const struct lk_tensor *a = op->a, *b = op->b;
    if (a->shape[1] > MOST_ROW)
        return lk_fail(LK_E_INTERNAL, "cuda: a row of %lld elements is too long", (long long)a->shape[1]);
    const struct lk_cuda_distance args = {.y = op->y->data,
                                          .a = a->data,
                                          .b = b->data,
                                          .n_rows = a->shape[0],
                                          .n = a->shape[1],
                                          .ld_y = op->y->ld,
                                          .ld_a = a->ld,
                                          .ld_b = b->ld,
                                          .vector = lk_cuda_aligned(a) && lk_cuda_aligned(b) &&
                                                    a->shape[1] % LK_CUDA_WIDTH(a->dtype) == 0};
    struct lk_cuda_grid grid = lk_cuda_row_grid(args.n_rows, args.n, a->dtype);
    return lk_cuda_launch(dev, "distance", LK_CUDA_VARIANT("distance", a->dtype), &grid, &args);
}

enum lk_code lk_cuda_mean_rows(struct lk_device *dev, const struct lk_mean_rows *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_mean_rows args = {op->y->data, op->x->data, op->x->shape[0], op->x->shape[1], op->x->ld};
    struct lk_cuda_grid grid = {.grid = {(unsigned)lk_cuda_div_up(args.n, MEAN_COLUMNS)}, .block = {MEAN_COLUMNS}};
    return lk_cuda_launch(dev, "mean_rows", LK_CUDA_VARIANT("mean_rows", op->x->dtype), &grid, &args);
}

#define ELEMENT_THREADS 256   /* of kernels whose threads have one element at a time */
#define ELEMENT_BLOCKS  65536 /* at most: then threads take more */

static struct lk_cuda_grid element_grid(int64_t n) {
    const int64_t blocks = lk_cuda_div_up(n, ELEMENT_THREADS);
    return (struct lk_cuda_grid){.grid = {(unsigned)(blocks < ELEMENT_BLOCKS ? blocks : ELEMENT_BLOCKS)},
                                 .block = {ELEMENT_THREADS}};
}

enum lk_code lk_cuda_depthwise(struct lk_device *dev, const struct lk_depthwise *op, void *scratch) {
    (void)scratch;
    const struct lk_cuda_depthwise args = {.y = op->y->data,
                                           .x = op->x->data,
                                           .w = op->w->data,
                                           .bias = op->bias->data,
                                           .height = op->x->shape[0],
                                           .width = op->x->shape[1],
                                           .channels = op->x->shape[2],
                                           .w_bf16 = op->w->dtype == LK_BF16,
                                           .replicate = op->replicate};
    const struct lk_cuda_grid grid = element_grid(lk_tensor_numel(op->x));
    return lk_cuda_launch(dev, "depthwise", LK_CUDA_VARIANT("depthwise", op->x->dtype), &grid, &args);
}

size_t lk_cuda_response_norm_scratch(const struct lk_device *dev, const struct lk_response_norm *op) {
    (void)dev;
    return (size_t)op->x->shape[1] * sizeof(float);
}

enum lk_code lk_cuda_response_norm(struct lk_device *dev, const struct lk_response_norm *op, void *scratch) {
    const struct lk_cuda_response_norm args = {.y = op->y->data,
                                               .x = op->x->data,
                                               .gamma = op->gamma->data,
                                               .beta = op->beta->data,
                                               .factors = scratch,
                                               .rows = op->x->shape[0],
                                               .n = op->x->shape[1],
                                               .ld_y = op->y->ld,
                                               .ld_x = op->x->ld,
                                               .w_bf16 = op->gamma->dtype == LK_BF16,
                                               .eps = op->eps};
    const struct lk_cuda_grid columns = {.grid = {(unsigned)lk_cuda_div_up(args.n, MEAN_COLUMNS)},
                                         .block = {MEAN_COLUMNS}};
    const struct lk_cuda_grid one = {.grid = {1}, .block = {ELEMENT_THREADS}}, all = element_grid(args.rows * args.n);
    const enum lk_dtype dtype = op->x->dtype;
    LK_TRY(lk_cuda_launch(dev, "response_norm", LK_CUDA_VARIANT("response_norms", dtype), &columns, &args));
    LK_TRY(lk_cuda_launch(dev, "response_norm", LK_CUDA_VARIANT("response_factors", dtype), &one, &args));
    return lk_cuda_launch(dev, "response_norm", LK_CUDA_VARIANT("response_norm", dtype), &all, &args);
}

enum lk_code lk_cuda_guidance(struct lk_device *dev, const struct lk_guidance *op, void *scratch) {
    (void)scratch;
    struct lk_cuda_guidance args = {.y = op->y->data,
                                    .cond = op->cond->data,
                                    .uncond = op->uncond->data,
                                    .n_rows = op->y->shape[0],
                                    .n = op->y->shape[1],
                                    .rescale = op->kind == LK_GUIDANCE_RESCALE,
                                    .scale = op->scale,
                                    .power = op->power};
    if (args.n > INT32_MAX / 2) return lk_fail(LK_E_INTERNAL, "guidance: rows of %lld are too long", (long long)args.n);
    args.vector = args.n % LK_CUDA_WIDTH(op->y->dtype) == 0 && lk_cuda_aligned(op->y) && lk_cuda_aligned(op->cond) &&
                  lk_cuda_aligned(op->uncond);
    struct lk_cuda_grid grid = lk_cuda_row_grid(args.n_rows, args.n, op->y->dtype);
    return lk_cuda_launch(dev, "guidance", LK_CUDA_VARIANT("guidance", op->y->dtype), &grid, &args);
}
