#include "kernels/cuda/gemm/gemm.h"

#define GROUP_ROWS 2048 /* of x that stay in L2 while columns of w pass: 108 tiles then read about as many of w */
#define LARGE      4096 /* N and K above which a layer takes the largest tile */
#define LEAST_GAIN ((int64_t)1 << 23) /* multiply-adds of an SM, 7 us of an A100: a launch more takes 2 to 3 */
#define FEW_WASTE  8                  /* a tile may be wider than needed by an eighth of N */

#define TILE(...)  TILE_OF(__VA_ARGS__)
#define TILE_OF(n_rows, n_columns, depth, warp_rows, warp_columns, stages, blocks_, name)                              \
    {                                                                                                                  \
        .rows = n_rows, .columns = n_columns, .threads = (n_rows) / (warp_rows) * ((n_columns) / (warp_columns)) * 32, \
        .blocks = blocks_, .shared = 2 * (size_t)(stages) * (depth) * (n_rows + n_columns), .kernel = name             \
    }
static const struct lk_cuda_gemm_tile linear_256 = TILE(LK_TILE_256, "linear_256_bf16");
static const struct lk_cuda_gemm_tile linear_128 = TILE(LK_TILE_128, "linear_128_bf16");
static const struct lk_cuda_gemm_tile linear_64 = TILE(LK_TILE_64, "linear_64_bf16");
static const struct lk_cuda_gemm_tile linear_flat_128 = TILE(LK_TILE_FLAT_128, "linear_flat_128_bf16");
static const struct lk_cuda_gemm_tile linear_flat_64 = TILE(LK_TILE_FLAT_64, "linear_flat_64_bf16");
static const struct lk_cuda_gemm_tile linear_few = TILE(LK_TILE_FEW, "linear_few_bf16");
static const struct lk_cuda_gemm_tile conv2d_128 = TILE(LK_TILE_128, "conv2d_128_bf16");
static const struct lk_cuda_gemm_tile conv2d_64 = TILE(LK_TILE_64, "conv2d_64_bf16");
static const struct lk_cuda_gemm_tile conv2d_16 = TILE(LK_TILE_16, "conv2d_16_bf16");
static const struct lk_cuda_gemm_tile conv2d_flat_64 = TILE(LK_TILE_FLAT_64, "conv2d_flat_64_bf16");
static const struct lk_cuda_gemm_tile conv2d_few = TILE(LK_TILE_FEW, "conv2d_few_bf16");
static const struct lk_cuda_gemm_tile gathered = TILE(LK_TILE_64, "gemm_gathered_bf16");
static const struct lk_cuda_gemm_tile gathered_128 = TILE(LK_TILE_WIDE, "gemm_gathered_128_bf16");
static const struct lk_cuda_gemm_tile f32 = {
    .rows = LK_TILE_F32_SIDE, .columns = LK_TILE_F32_SIDE, .threads = LK_TILE_F32_THREADS, .kernel = "gemm_f32"};

static bool fits(int64_t n, int columns) { return n + n / FEW_WASTE >= lk_cuda_div_up(n, columns) * columns; }

/* The largest tile asks least of caches and shared memory, but an SM holds one: nothing hides its epilogue, which
 * counts where K is small, and its last wave wastes more where N is. Layers of one column of tiles have too few of them
 * for all SMs unless they are flat. Cards with less shared memory go without the largest. */
const struct lk_cuda_gemm_tile *lk_cuda_linear_tile(int64_t n, int64_t k, size_t most_shared) {
    if (n > LARGE && k > LARGE && fits(n, 256) && linear_256.shared <= most_shared) return &linear_256;
    if (n <= 128) return n <= 64 ? &linear_flat_64 : &linear_flat_128;
    return fits(n, 128) ? &linear_128 : &linear_64;
}
const struct lk_cuda_gemm_tile *lk_cuda_linear_tile_few(void) { return &linear_few; }
const struct lk_cuda_gemm_tile *lk_cuda_conv2d_tile(int64_t n, bool slabs) {
    if (n <= 16 && !slabs) return &conv2d_16;
    return fits(n, 128) ? &conv2d_128 : &conv2d_64;
}

static int64_t n_tiles(const struct lk_cuda_gemm_tile *tile, int64_t m, int64_t n) {
    return lk_cuda_div_up(m, tile->rows) * lk_cuda_div_up(n, tile->columns);
}

/* The largest of three that gives most multiprocessors a tile. */
static const struct lk_cuda_gemm_tile *smaller(const struct lk_cuda_gemm_tile *usual,
                                               const struct lk_cuda_gemm_tile *const tiles[3], int64_t m, int64_t n,
                                               int n_multiprocessors) {
    if (2 * n_tiles(usual, m, n) >= n_multiprocessors) return NULL;
    for (int i = 0; i < 2; i++)
        if (3 * n_tiles(tiles[i], m, n) >= 2 * n_multiprocessors) return tiles[i];
    return tiles[2];
}

/* Blocks that an SM has at a time. */
static int64_t blocks_at_once(const struct lk_cuda_gemm_tile *tile, const struct lk_cuda_device *cuda) {
    const size_t own = 1024; /* bytes of shared memory that the driver takes of each */
    const int64_t fit = (int64_t)((cuda->most_shared + own) / (tile->shared + own));
    return fit < tile->blocks ? fit : tile->blocks;
}

/* Tiles that the busiest SM computes, those at a time counted one by one. */
static int64_t rounds(const struct lk_cuda_gemm_tile *tile, int64_t n, const struct lk_cuda_device *cuda) {
    const int64_t blocks = blocks_at_once(tile, cuda), wave = blocks * cuda->n_multiprocessors;
    return n / wave * blocks + lk_cuda_div_up(n % wave, cuda->n_multiprocessors);
}

static int64_t area(const struct lk_cuda_gemm_tile *tile) { return (int64_t)tile->rows * tile->columns; }

const struct lk_cuda_gemm_tile *lk_cuda_linear_tile_rest(void) { return &linear_64; }

int64_t lk_cuda_linear_whole_waves(const struct lk_cuda_gemm_tile *tile, int64_t m, int64_t n, int64_t k,
                                   const struct lk_cuda_device *cuda) {
    const int64_t all = n_tiles(tile, m, n), wave = blocks_at_once(tile, cuda) * cuda->n_multiprocessors;
    if (wave <= 0) return m; /* a device that says nothing of itself */
    const int64_t rows = all / wave * wave / lk_cuda_div_up(n, tile->columns) * tile->rows;
    if (rows <= 0 || rows >= m) return m;
    const int64_t before = area(tile) * (rounds(tile, all, cuda) - rounds(tile, n_tiles(tile, rows, n), cuda));
    const int64_t after = area(&linear_64) * rounds(&linear_64, n_tiles(&linear_64, m - rows, n), cuda);
    return (before - after * 3 / 2) * k >= LEAST_GAIN ? rows : m; /* shared memory may bind the small tile */
}

const struct lk_cuda_gemm_tile *lk_cuda_conv2d_tile_few(int64_t m, int64_t n, int n_multiprocessors) {
    static const struct lk_cuda_gemm_tile *const tiles[] = {&conv2d_64, &conv2d_flat_64, &conv2d_few};
    return smaller(lk_cuda_conv2d_tile(n, true), tiles, m, n, n_multiprocessors);
}
const struct lk_cuda_gemm_tile *lk_cuda_linear_tile_small(int64_t m, int64_t n, int64_t k, size_t most_shared,
                                                          int n_multiprocessors) {
    static const struct lk_cuda_gemm_tile *const tiles[] = {&linear_64, &linear_flat_64, &linear_few};
    return smaller(lk_cuda_linear_tile(n, k, most_shared), tiles, m, n, n_multiprocessors);
}

static bool aligned_vector(const struct lk_tensor *t) { return !t || (uintptr_t)t->data % 16 == 0; }

enum lk_code lk_cuda_gemm_arguments(struct lk_cuda_gemm *args, const struct lk_linear *op, int64_t k) {
    const struct lk_tensor *y = op->y;
    const int64_t most = INT32_MAX - 4096;
    if (y->shape[0] > most || y->shape[1] > most || k + (op->low ? op->low->shape[1] : 0) > most)
        return lk_fail(LK_E_INTERNAL, "cuda: a product of %lld x %lld x %lld is too large", (long long)y->shape[0],
                       (long long)y->shape[1], (long long)k);
    *args = (struct lk_cuda_gemm){
        .out = {.y = y->data,
                .bias = op->bias ? op->bias->data : NULL,
                .gate = op->gate ? op->gate->data : NULL,
                .residual = op->residual ? op->residual->data : NULL,
                .ld_y = y->ld,
                .ld_residual = op->residual ? op->residual->ld : 0,
                .act = op->act,
                .round_before_bias = op->round_before_bias,
                .bias_bf16 = op->bias && op->bias->dtype == LK_BF16,
                .vector_columns = aligned_vector(op->bias) && aligned_vector(op->gate),
                .vector_rows = lk_cuda_aligned(y) && (!op->residual || lk_cuda_aligned(op->residual))},
        .m = (int32_t)y->shape[0],
        .n = (int32_t)y->shape[1],
        .k = (int32_t)k};
    return LK_OK;
}

enum lk_code lk_cuda_gemm_launch(struct lk_device *dev, const char *module, const struct lk_cuda_gemm_tile *tile,
                                 struct lk_cuda_gemm *args) {
    args->row_tiles = (int32_t)lk_cuda_div_up(args->m, tile->rows);
    args->column_tiles = (int32_t)lk_cuda_div_up(args->n, tile->columns);
    const int64_t groups = lk_cuda_div_up((int64_t)args->row_tiles * tile->rows, GROUP_ROWS);
    args->group = (int32_t)lk_cuda_div_up(args->row_tiles, groups);
    const int64_t blocks = (int64_t)args->row_tiles * args->column_tiles;
    if (blocks > INT32_MAX / 2) return lk_fail(LK_E_INTERNAL, "cuda: a product of %lld tiles", (long long)blocks);
    const struct lk_cuda_grid grid = {
        .grid = {(unsigned)blocks}, .block = {(unsigned)tile->threads}, .shared = tile->shared};
    return lk_cuda_launch(dev, module, tile->kernel, &grid, args);
}

enum lk_code lk_cuda_gemm_launch_gathered(struct lk_device *dev, enum lk_dtype dtype, struct lk_cuda_gemm *args) {
    const bool w_aligned = (uintptr_t)args->w % 16 == 0 && args->ld_w % 8 == 0 && args->ld_w <= INT32_MAX &&
                           (uintptr_t)args->up % 16 == 0 && args->ld_up % 8 == 0 && args->ld_up <= INT32_MAX;
    if (dtype == LK_BF16)
        return lk_cuda_gemm_launch(dev, "gemm_gathered", w_aligned && fits(args->n, 128) ? &gathered_128 : &gathered,
                                   args);
    return lk_cuda_gemm_launch(dev, "gemm_f32", &f32, args);
}
