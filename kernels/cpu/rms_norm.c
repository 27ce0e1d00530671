/* RMS norm over the last dimension. The sum of squares is taken in double in a fixed order (rows.h), so that the only
 * f32 roundings are the factor's and the product's. */
#include <math.h>

#include "kernels/cpu/rows/rows.h"

static float inverse_rms(const struct lk_tensor *x, int64_t first, int64_t n, float eps) {
    return (float)(1.0 / sqrt(lk_cpu_sum_squares(x, first, n, 0.0) / (double)n + (double)eps));
}

static void normalize(const struct lk_rms_norm *op, int64_t first_y, int64_t first_x, int64_t n) {
    const struct lk_rows *rows = lk_cpu_rows();
    float factor = inverse_rms(op->x, first_x, n, op->eps);
    float buffer[LK_CHUNK], w[LK_CHUNK];
    for (int64_t i = 0; i < n; i += LK_CHUNK) {
        int64_t m = n - i < LK_CHUNK ? n - i : LK_CHUNK;
        float *y = lk_cpu_target(op->y, first_y + i, buffer);
        rows->scale(m, lk_cpu_view(op->x, first_x + i, m, buffer), factor, y);
        if (op->w) {
            if (op->round_before_weight && op->x->dtype == LK_BF16) rows->round(m, y);
            rows->mul(m, y, lk_cpu_view(op->w, i, m, w), y);
        }
        lk_cpu_put(op->y, first_y + i, m, y);
    }
}

enum lk_code lk_cpu_rms_norm(struct lk_device *dev, const struct lk_rms_norm *op, void *scratch) {
    (void)scratch;
    const struct lk_tensor *x = op->x, *y = op->y;
    int64_t n = x->shape[x->n_dims - 1], per_row = x->n_dims > 1 ? lk_tensor_row_numel(x) / n : 1;
    int64_t total = x->n_dims > 1 ? x->shape[0] * per_row : 1;
#pragma omp parallel for schedule(static) num_threads(dev->n_threads) if (total > 1)
    for (int64_t i = 0; i < total; i++)
        normalize(op, i / per_row * y->ld + i % per_row * n, i / per_row * x->ld + i % per_row * n, n);
    return LK_OK;
}
