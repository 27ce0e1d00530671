/* Depthwise 3 x 3 convolution, channels last: taps are added in their order, in f32. */
#include "kernels/cpu/rows/rows.h"

#define TAPS 9

size_t lk_cpu_depthwise_scratch(const struct lk_device *dev, const struct lk_depthwise *op) {
    (void)dev;
    return (size_t)(TAPS + 1) * (size_t)op->x->shape[2] * sizeof(float);
}

/* Where in x the tap reads that is (dy, dx) beside pixel (i, j); -1: beyond an edge of zeros. */
static int64_t pixel_at(const struct lk_depthwise *op, int64_t i, int64_t j, int tap) {
    const int64_t height = op->x->shape[0], width = op->x->shape[1];
    int64_t y = i + tap / 3 - 1, x = j + tap % 3 - 1;
    if (!op->replicate && (y < 0 || x < 0 || y >= height || x >= width)) return -1;
    y = y < 0 ? 0 : y >= height ? height - 1 : y;
    x = x < 0 ? 0 : x >= width ? width - 1 : x;
    return y * width + x;
}

static void convolve_row(const struct lk_depthwise *op, const float *taps, int64_t i) {
    const struct lk_rows *rows = lk_cpu_rows();
    const int64_t width = op->x->shape[1], channels = op->x->shape[2];
    float buffer[LK_CHUNK], sum[LK_CHUNK];
    for (int64_t j = 0; j < width; j++)
        for (int64_t c = 0; c < channels; c += LK_CHUNK) {
            const int64_t n = channels - c < LK_CHUNK ? channels - c : LK_CHUNK;
            memset(sum, 0, (size_t)n * sizeof *sum);
            for (int tap = 0; tap < TAPS; tap++) {
                const int64_t at = pixel_at(op, i, j, tap);
                if (at < 0) continue;
                rows->affine(n, lk_cpu_view(op->x, at * channels + c, n, buffer), taps + tap * channels + c, sum, sum);
            }
            const int64_t first = (i * width + j) * channels + c;
            float *y = lk_cpu_target(op->y, first, buffer);
            rows->add(n, sum, taps + TAPS * channels + c, y);
            lk_cpu_put(op->y, first, n, y);
        }
}

enum lk_code lk_cpu_depthwise(struct lk_device *dev, const struct lk_depthwise *op, void *scratch) {
    const int64_t height = op->x->shape[0], channels = op->x->shape[2];
    float *taps = scratch;
    for (int64_t c = 0; c < channels; c++) {
        for (int tap = 0; tap < TAPS; tap++) taps[tap * channels + c] = lk_cpu_get(op->w, c * TAPS + tap);
        taps[TAPS * channels + c] = lk_cpu_get(op->bias, c);
    }
#pragma omp parallel for schedule(static) num_threads(dev->n_threads)
    for (int64_t i = 0; i < height; i++) convolve_row(op, taps, i);
    return LK_OK;
}
