#include <math.h>

#include "kernels/cpu/rows/rows.h"

static void add_magnitudes(const float *x, int64_t n, double lanes[LK_LANES], float *buffer) {
    for (int64_t i = 0; i < n; i++) buffer[i] = fabsf(x[i]);
    lk_cpu_rows()->sum(n, buffer, lanes);
}

static void measure_row(const struct lk_distance *op, int64_t row) {
    const struct lk_rows *rows = lk_cpu_rows();
    const int64_t n = op->a->shape[1];
    double apart[LK_LANES] = {0}, size[LK_LANES] = {0};
    float a[LK_CHUNK], b[LK_CHUNK], buffer[LK_CHUNK];
    for (int64_t first = 0; first < n; first += LK_CHUNK) {
        const int64_t m = n - first < LK_CHUNK ? n - first : LK_CHUNK;
        const float *of_a = lk_cpu_view(op->a, row * op->a->ld + first, m, a);
        const float *of_b = lk_cpu_view(op->b, row * op->b->ld + first, m, b);
        add_magnitudes(of_b, m, size, buffer);
        rows->sub(m, of_a, of_b, a);
        if (op->a->dtype == LK_BF16) rows->round(m, a);
        add_magnitudes(a, m, apart, buffer);
    }
    float *y = (float *)op->y->data + row * op->y->ld;
    y[0] = (float)lk_cpu_lanes_total(apart);
    y[1] = (float)lk_cpu_lanes_total(size);
}

enum lk_code lk_cpu_distance(struct lk_device *dev, const struct lk_distance *op, void *scratch) {
    (void)scratch;
#pragma omp parallel for schedule(static) num_threads(dev->n_threads) if (op->a->shape[0] > 8)
    for (int64_t row = 0; row < op->a->shape[0]; row++) measure_row(op, row);
    return LK_OK;
}
