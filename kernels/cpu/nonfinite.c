#include "kernels/cpu/rows/rows.h"

static int64_t count_in(const struct lk_tensor *x, int64_t first, int64_t n) {
    const struct lk_rows *rows = lk_cpu_rows();
    if (x->dtype == LK_BF16) return rows->nonfinite_bf16(n, (const uint16_t *)x->data + first);
    return rows->nonfinite(n, (const float *)x->data + first);
}

enum lk_code lk_cpu_nonfinite(struct lk_device *dev, const struct lk_nonfinite *op, void *scratch) {
    (void)scratch;
    const struct lk_tensor *x = op->x;
    int64_t n_rows = x->shape[0], n = lk_tensor_row_numel(x), ld = x->ld, last = n, count = 0;
    if (lk_tensor_is_dense(x)) { /* pieces of one long row */
        int64_t total = n * n_rows;
        ld = n = 64 * LK_CHUNK;
        n_rows = (total + n - 1) / n;
        last = total - (n_rows - 1) * n;
    }
#pragma omp parallel for schedule(static) num_threads(dev->n_threads) reduction(+ : count)
    for (int64_t i = 0; i < n_rows; i++) count += count_in(x, i * ld, i < n_rows - 1 ? n : last);
    *op->count += count;
    return LK_OK;
}
