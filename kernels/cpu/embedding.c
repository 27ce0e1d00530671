#include "kernels/cpu/rows/rows.h"

enum lk_code lk_cpu_embedding(struct lk_device *dev, const struct lk_embedding *op, void *scratch) {
    (void)scratch;
    const int32_t *ids = op->ids->data;
    int64_t n = op->y->shape[0], width = lk_tensor_row_numel(op->y), vocabulary = op->table->shape[0];
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= vocabulary)
            return lk_fail(LK_E_INTERNAL, "embedding: ids[%lld]: expected 0 to %lld, got %d", (long long)i,
                           (long long)vocabulary - 1, (int)ids[i]);
#pragma omp parallel for schedule(static) num_threads(dev->n_threads) if (n > 1)
    for (int64_t i = 0; i < n; i++) {
        float buffer[LK_CHUNK];
        for (int64_t c = 0; c < width; c += LK_CHUNK) {
            int64_t m = width - c < LK_CHUNK ? width - c : LK_CHUNK;
            const float *row = lk_cpu_view(op->table, ids[i] * op->table->ld + c, m, buffer);
            lk_cpu_store(op->y, i * op->y->ld + c, m, row);
        }
    }
    return LK_OK;
}
