#include "kernels/cpu/rows/rows.h"

/* Columns [first, first + n): rows are added in double in ascending order. */
static void mean_columns(const struct lk_mean_rows *op, int64_t first, int64_t n) {
    const struct lk_tensor *x = op->x;
    const float count = (float)x->shape[0];
    double sums[LK_CHUNK] = {0};
    float buffer[LK_CHUNK];
    for (int64_t row = 0; row < x->shape[0]; row++)
        lk_cpu_rows()->accumulate(n, lk_cpu_view(x, row * x->ld + first, n, buffer), sums);
    float *y = lk_cpu_target(op->y, first, buffer);
    for (int64_t i = 0; i < n; i++) y[i] = lk_cpu_round(x->dtype, (float)sums[i]) / count;
    lk_cpu_put(op->y, first, n, y);
}

enum lk_code lk_cpu_mean_rows(struct lk_device *dev, const struct lk_mean_rows *op, void *scratch) {
    (void)scratch;
    int64_t n = op->x->shape[1];
    const int64_t share = 256; /* columns: enough of a row at a time to stream it, few enough to feed the threads */
#pragma omp parallel for schedule(static) num_threads(dev->n_threads) if (op->x->shape[0] * n > 16 * LK_CHUNK)
    for (int64_t first = 0; first < n; first += share) mean_columns(op, first, n - first < share ? n - first : share);
    return LK_OK;
}
