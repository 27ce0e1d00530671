/* Which kernel takes an attention, and its grid. All bf16 kernels have the same order of arithmetic (attention.cuh), so
 * that the choice may depend on the number of rows and on alignment. */
#include "kernels/cuda/arguments.h"
#include "kernels/cuda/cuda.h"

#define THREADS (32 * LK_ATTENTION_WARPS)
#define MOST_LD (1 << 25) /* elements from row to row, so that a tile's places fit 32 bits in attention.cu */

struct choice {
    const char *module, *kernel;
    int rows;         /* of a tile */
    unsigned threads; /* 0: THREADS */
    unsigned slices;
    size_t shared;
};

static bool is_vector(const struct lk_attention *op) {
    return op->q->shape[2] % 8 == 0 && lk_cuda_aligned(op->q) && lk_cuda_aligned(op->k) && lk_cuda_aligned(op->v) &&
           lk_cuda_aligned(op->out);
}

/* The kernels of attention.cu and attention_512.cu; kernel is NULL if there is none. */
static struct choice choose_fast(const struct lk_cuda_device *cuda, const struct lk_attention *op, int64_t n_rows) {
    static const struct {
        int head_dim;
        const char *kernel, *few;
    } kernels[] = {{40, "attention_40_bf16", "attention_40_few_bf16"},
                   {64, "attention_64_bf16", "attention_64_few_bf16"},
                   {80, "attention_80_bf16", "attention_80_few_bf16"},
                   {128, "attention_128_bf16", "attention_128_few_bf16"},
                   {160, NULL, "attention_160_few_bf16"}};
    struct choice c = {.module = "attention", .slices = 1};
    if (!is_vector(op) || op->scale <= 0.0f || op->k->ld > MOST_LD || op->v->ld > MOST_LD) return c;
    if (op->q->shape[2] == 512) {
        c.module = "attention_512";
        const bool few = LK_ATTENTION_512_SHARED(LK_ATTENTION_512_ROWS) > cuda->most_shared;
        c.kernel = few ? "attention_512_few_bf16" : "attention_512_bf16";
        c.rows = few ? LK_ATTENTION_512_FEW_ROWS : LK_ATTENTION_512_ROWS;
        c.threads = LK_ATTENTION_512_THREADS;
        c.shared = (size_t)LK_ATTENTION_512_SHARED(c.rows);
        return c;
    }
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (kernels[i].head_dim != op->q->shape[2]) continue;
        bool few =
            !kernels[i].kernel || n_rows <= LK_ATTENTION_ROWS(LK_ATTENTION_FEW_TILES) ||
            lk_cuda_div_up(n_rows, LK_ATTENTION_ROWS(LK_ATTENTION_TILES)) * op->k->shape[1] < cuda->n_multiprocessors;
        c.kernel = few ? kernels[i].few : kernels[i].kernel;
        c.rows = LK_ATTENTION_ROWS(few ? LK_ATTENTION_FEW_TILES : LK_ATTENTION_TILES);
        c.shared =
            (size_t)(c.rows + 2 * LK_ATTENTION_KEYS) * (size_t)LK_ATTENTION_PITCH(LK_ATTENTION_WIDTH(op->q->shape[2]));
    }
    return c;
}

static struct choice choose(const struct lk_cuda_device *cuda, const struct lk_attention *op, int64_t n_rows) {
    int64_t head_dim = op->q->shape[2];
    if (op->q->dtype == LK_F32)
        return (struct choice){.module = "attention_f32",
                               .kernel = head_dim <= 128 ? "attention_128_f32" : "attention_512_f32",
                               .rows = LK_ATTENTION_F32_ROWS,
                               .slices = 1,
                               .shared = (size_t)(LK_ATTENTION_F32_ROWS + LK_ATTENTION_F32_KEYS) *
                                         (size_t)(head_dim + 1) * sizeof(float)};
    struct choice c = choose_fast(cuda, op, n_rows);
    if (c.kernel) return c;
    const bool few = head_dim <= LK_ATTENTION_FEW_COLUMNS;
    const int64_t columns = few ? LK_ATTENTION_FEW_COLUMNS : LK_ATTENTION_COLUMNS, rows = LK_ATTENTION_ROWS(1);
    const int64_t width = LK_ATTENTION_WIDTH(head_dim);
    const int64_t k_columns = width < LK_ATTENTION_COLUMNS ? width : LK_ATTENTION_COLUMNS;
    return (struct choice){
        .module = "attention_any",
        .kernel = few ? "attention_any_32_bf16" : "attention_any_128_bf16",
        .rows = (int)rows,
        .slices = (unsigned)lk_cuda_div_up(head_dim, columns),
        .shared = (size_t)(rows * LK_ATTENTION_PITCH(width) +
                           LK_ATTENTION_KEYS * (LK_ATTENTION_PITCH(k_columns) + LK_ATTENTION_PITCH(columns)))};
}

enum lk_code lk_cuda_attention(struct lk_device *dev, const struct lk_attention *op, void *scratch) {
    int64_t n_q = op->q->shape[0], n_keys = op->k->shape[0], n_kv_heads = op->k->shape[1];
    int64_t group = op->q->shape[1] / n_kv_heads, n_rows = n_q * group;
    (void)scratch;
    if (n_rows > INT32_MAX / 2 || n_keys > INT32_MAX / 2 || n_kv_heads > UINT16_MAX)
        return lk_fail(LK_E_INTERNAL, "cuda: attention of %lld rows, %lld keys, %lld heads is too large",
                       (long long)n_rows, (long long)n_keys, (long long)n_kv_heads);
    struct choice c = choose(lk_cuda_device_of(dev), op, n_rows);
    struct lk_cuda_attention args = {.out = op->out->data,
                                     .q = op->q->data,
                                     .k = op->k->data,
                                     .v = op->v->data,
                                     .ld_out = op->out->ld,
                                     .ld_q = op->q->ld,
                                     .ld_k = op->k->ld,
                                     .ld_v = op->v->ld,
                                     .n_rows = (int32_t)n_rows,
                                     .n_keys = (int32_t)n_keys,
                                     .group = (int32_t)group,
                                     .head_dim = (int32_t)op->q->shape[2],
                                     .past = (int32_t)(op->causal ? n_keys - n_q : n_keys),
                                     .vector = is_vector(op),
                                     .scale = op->scale};
    struct lk_cuda_grid grid = {.grid = {(unsigned)lk_cuda_div_up(n_rows, c.rows), (unsigned)n_kv_heads, c.slices},
                                .block = {c.threads ? c.threads : THREADS},
                                .shared = c.shared};
    return lk_cuda_launch(dev, c.module, c.kernel, &grid, &args);
}
