/* Attention without the score matrix: this file cuts the work into tiles of query rows of one head; attention_*.c
 * compute a tile. */
#include <omp.h>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/isa.h"

#define TILES_PER_THREAD 4 /* at least, so that static schedules balance */

struct cut {
    const struct lk_attention_kernel *kernel;
    int64_t tile_rows, n_tiles; /* tiles of one head */
    size_t scratch;             /* bytes for one thread */
};

static const struct lk_attention_kernel *kernel_for(const struct lk_attention *op) {
    (void)op;
#if defined(__x86_64__)
    switch (lk_cpu_isa()) {
    case LK_ISA_PORTABLE:
        break;
    case LK_ISA_AVX2:
        return &lk_attention_avx2;
    case LK_ISA_AMX:
        if (op->q->dtype == LK_BF16 && op->scale > 0.0f) return &lk_attention_amx;
        return &lk_attention_avx512;
    case LK_ISA_AVX512:
        return &lk_attention_avx512;
    }
#endif
    return &lk_attention_portable;
}

static struct cut cut_of(const struct lk_device *dev, const struct lk_attention *op) {
    struct cut cut = {.kernel = kernel_for(op)};
    int64_t n_rows = op->q->shape[0], n_heads = op->q->shape[1], granule = cut.kernel->granule;
    int64_t most = cut.kernel->most_rows * 128 / (op->q->shape[2] > 64 ? op->q->shape[2] : 64);
    int64_t n_tiles = (n_rows + most - 1) / most;
    int64_t wanted = (dev->n_threads * TILES_PER_THREAD + n_heads - 1) / n_heads;
    if (n_tiles < wanted) n_tiles = wanted;
    int64_t rows = (n_rows + n_tiles - 1) / n_tiles;
    cut.tile_rows = (rows + granule - 1) / granule * granule;
    cut.n_tiles = (n_rows + cut.tile_rows - 1) / cut.tile_rows;
    cut.scratch = cut.kernel->scratch(op, cut.tile_rows);
    return cut;
}

size_t lk_cpu_attention_scratch(const struct lk_device *dev, const struct lk_attention *op) {
    return cut_of(dev, op).scratch * (size_t)dev->n_threads;
}

enum lk_code lk_cpu_attention(struct lk_device *dev, const struct lk_attention *op, void *scratch) {
    struct cut cut = cut_of(dev, op);
    int64_t n_rows = op->q->shape[0], n_items = op->q->shape[1] * cut.n_tiles;
#pragma omp parallel for schedule(static, 1) num_threads(dev->n_threads)
    for (int64_t i = 0; i < n_items; i++) {
        int64_t first = i % cut.n_tiles * cut.tile_rows;
        int64_t n = n_rows - first < cut.tile_rows ? n_rows - first : cut.tile_rows;
        cut.kernel->run(op, i / cut.n_tiles, first, n, cut.tile_rows,
                        (char *)scratch + (size_t)omp_get_thread_num() * cut.scratch);
    }
    return LK_OK;
}
