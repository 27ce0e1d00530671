/* Layer norm with optional modulation. Mean and variance are taken in double, in two passes, in a fixed order
 * (rows.h). */
#include <math.h>

#include "kernels/cpu/rows/rows.h"

struct moments {
    float mean, factor; /* factor = 1 / sqrt(var + eps) */
};

static struct moments moments_of(const struct lk_tensor *x, int64_t first, int64_t n, float eps) {
    const struct lk_rows *rows = lk_cpu_rows();
    double lanes[LK_LANES] = {0};
    float buffer[LK_CHUNK];
    for (int64_t i = 0; i < n; i += LK_CHUNK) {
        int64_t m = n - i < LK_CHUNK ? n - i : LK_CHUNK;
        rows->sum(m, lk_cpu_view(x, first + i, m, buffer), lanes);
    }
    double mean = lk_cpu_lanes_total(lanes) / (double)n;
    double variance = lk_cpu_sum_squares(x, first, n, mean) / (double)n;
    return (struct moments){(float)mean, (float)(1.0 / sqrt(variance + (double)eps))};
}

static void normalize(const struct lk_layer_norm *op, int64_t row) {
    const struct lk_rows *rows = lk_cpu_rows();
    int64_t n = op->x->shape[1], first_x = row * op->x->ld, first_y = row * op->y->ld;
    struct moments moments = moments_of(op->x, first_x, n, op->eps);
    float buffer[LK_CHUNK], a[LK_CHUNK], b[LK_CHUNK];
    for (int64_t i = 0; i < n; i += LK_CHUNK) {
        int64_t m = n - i < LK_CHUNK ? n - i : LK_CHUNK;
        float *y = lk_cpu_target(op->y, first_y + i, buffer);
        rows->center(m, lk_cpu_view(op->x, first_x + i, m, buffer), moments.mean, moments.factor, y);
        if (op->weight && op->bias)
            rows->affine(m, y, lk_cpu_view(op->weight, i, m, a), lk_cpu_view(op->bias, i, m, b), y);
        else if (op->weight)
            rows->mul(m, y, lk_cpu_view(op->weight, i, m, a), y);
        else if (op->bias)
            rows->add(m, y, lk_cpu_view(op->bias, i, m, b), y);
        if (op->shift)
            rows->modulate(m, y, lk_cpu_view(op->scale, i, m, a), lk_cpu_view(op->shift, i, m, b),
                           op->x->dtype == LK_BF16, y);
        lk_cpu_put(op->y, first_y + i, m, y);
    }
}

enum lk_code lk_cpu_layer_norm(struct lk_device *dev, const struct lk_layer_norm *op, void *scratch) {
    (void)scratch;
    int64_t n_rows = op->x->shape[0];
#pragma omp parallel for schedule(static) num_threads(dev->n_threads) if (n_rows > 1)
    for (int64_t row = 0; row < n_rows; row++) normalize(op, row);
    return LK_OK;
}
