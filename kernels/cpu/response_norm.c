/* Global response norm. A channel's squares are added in double in ascending order of rows. */
#include <math.h>

#include "kernels/cpu/rows/rows.h"

#define COLUMNS 256 /* of a share: enough of a row at a time to stream it, few enough to feed the threads */

size_t lk_cpu_response_norm_scratch(const struct lk_device *dev, const struct lk_response_norm *op) {
    (void)dev;
    return (size_t)op->x->shape[1] * 3 * sizeof(float);
}

static void column_norms(const struct lk_tensor *x, int64_t first, int64_t n, float *norms) {
    float buffer[COLUMNS];
    double sums[COLUMNS] = {0};
    for (int64_t row = 0; row < x->shape[0]; row++) {
        const float *v = lk_cpu_view(x, row * x->ld + first, n, buffer);
        for (int64_t i = 0; i < n; i++) sums[i] += (double)v[i] * (double)v[i];
    }
    for (int64_t i = 0; i < n; i++) norms[i] = lk_cpu_round(x->dtype, sqrtf((float)sums[i]));
}

static void normalize_row(const struct lk_response_norm *op, const float *factors, int64_t row) {
    const struct lk_rows *rows = lk_cpu_rows();
    const int64_t channels = op->x->shape[1];
    const float *gamma = factors + channels, *beta = gamma + channels;
    const bool bf16 = op->x->dtype == LK_BF16;
    float x_buffer[LK_CHUNK], y_buffer[LK_CHUNK];
    for (int64_t c = 0; c < channels; c += LK_CHUNK) {
        const int64_t n = channels - c < LK_CHUNK ? channels - c : LK_CHUNK;
        const float *x = lk_cpu_view(op->x, row * op->x->ld + c, n, x_buffer);
        float *y = y_buffer;
        rows->mul(n, x, factors + c, y);
        if (bf16) rows->round(n, y);
        rows->mul(n, y, gamma + c, y);
        if (bf16) rows->round(n, y);
        rows->add(n, y, beta + c, y);
        if (bf16) rows->round(n, y);
        float *out = lk_cpu_target(op->y, row * op->y->ld + c, y_buffer);
        rows->add(n, y, x, out);
        lk_cpu_put(op->y, row * op->y->ld + c, n, out);
    }
}

enum lk_code lk_cpu_response_norm(struct lk_device *dev, const struct lk_response_norm *op, void *scratch) {
    const struct lk_tensor *x = op->x;
    const int64_t channels = x->shape[1];
    float *factors = scratch;
#pragma omp parallel for schedule(static) num_threads(dev->n_threads)
    for (int64_t c = 0; c < channels; c += COLUMNS)
        column_norms(x, c, channels - c < COLUMNS ? channels - c : COLUMNS, factors + c);
    double sum = 0;
    for (int64_t c = 0; c < channels; c++) sum += (double)factors[c];
    const float mean = lk_cpu_round(x->dtype, (float)(sum / (double)channels));
    const float divisor = lk_cpu_round(x->dtype, mean + op->eps);
    for (int64_t c = 0; c < channels; c++) {
        factors[c] = lk_cpu_round(x->dtype, factors[c] / divisor);
        factors[channels + c] = lk_cpu_get(op->gamma, c);
        factors[2 * channels + c] = lk_cpu_get(op->beta, c);
    }
#pragma omp parallel for schedule(static) num_threads(dev->n_threads)
    for (int64_t row = 0; row < x->shape[0]; row++) normalize_row(op, factors, row);
    return LK_OK;
}
