/* Attention without the score matrix: this file cuts the work into tiles of rows of one key/value head; attention_*.c
 * compute a tile. */
#include <omp.h>

#include "kernels/cpu/attention/attention.h"
#include "engine/base/isa.h"

#define TILES_PER_THREAD 4 /* at least, so that static schedules balance ... */
#define TILE_GRANULES    4 /* ... where tiles are this large: below, preparing the keys costs more than balance gains */

struct cut {
    const struct lk_attention_kernel *kernel;
    int64_t n_rows, tile_rows, n_tiles; /* of one key/value head */
    size_t scratch;                     /* bytes for one thread */
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
    case LK_ISA_AVX512_BF16:
        return &lk_attention_avx512;
    }
#endif
    return &lk_attention_portable;
}

static struct cut cut_of(const struct lk_device *dev, const struct lk_attention *op) {
    struct cut cut = {.kernel = kernel_for(op)};
    int64_t n_rows = op->q->shape[0] * lk_attention_group(op), n_heads = op->k->shape[1];
    int64_t granule = cut.kernel->granule;
    int64_t most = cut.kernel->most_rows * 128 / (op->q->shape[2] > 64 ? op->q->shape[2] : 64);
    int64_t n_tiles = (n_rows + most - 1) / most;
    int64_t wanted = (dev->n_threads * TILES_PER_THREAD + n_heads - 1) / n_heads;
    if (n_rows < wanted * TILE_GRANULES * granule) wanted = (dev->n_threads + n_heads - 1) / n_heads;
    if (n_tiles < wanted) n_tiles = wanted;
    int64_t rows = (n_rows + n_tiles - 1) / n_tiles;
    cut.n_rows = n_rows;
    cut.tile_rows = (rows + granule - 1) / granule * granule;
    cut.n_tiles = (n_rows + cut.tile_rows - 1) / cut.tile_rows;
    int64_t bound = n_rows < most ? n_rows : most; /* not tile_rows: fewer rows must not need more (ops.h) */
    cut.scratch = cut.kernel->scratch(op, (bound + granule - 1) / granule * granule);
    return cut;
}

size_t lk_cpu_attention_scratch(const struct lk_device *dev, const struct lk_attention *op) {
    return cut_of(dev, op).scratch * (size_t)dev->n_threads;
}

enum lk_code lk_cpu_attention(struct lk_device *dev, const struct lk_attention *op, void *scratch) {
    struct cut cut = cut_of(dev, op);
    int64_t n_heads = op->k->shape[1], n_items = n_heads * cut.n_tiles;
#pragma omp parallel for schedule(static, 1) num_threads(dev->n_threads)
    for (int64_t i = 0; i < n_items; i++) {
        /* Threads take turns over tiles of one head, whose keys they then share; causal tiles are unequal, and turns
         * are over the heads. */
        int64_t kv_head = op->causal ? i % n_heads : i / cut.n_tiles;
        int64_t first = (op->causal ? i / n_heads : i % cut.n_tiles) * cut.tile_rows;
        int64_t n = cut.n_rows - first < cut.tile_rows ? cut.n_rows - first : cut.tile_rows;
        cut.kernel->run(op, kv_head, first, n, cut.tile_rows,
                        (char *)scratch + (size_t)omp_get_thread_num() * cut.scratch);
    }
    return LK_OK;
}
