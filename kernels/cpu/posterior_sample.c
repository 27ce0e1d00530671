#include "kernels/cpu/rows/rows.h"

static void sample_pixel(const struct lk_posterior_sample *op, int64_t pixel, int64_t n_channels) {
    const struct lk_rows *rows = lk_cpu_rows();
    const bool bf16 = op->z->dtype == LK_BF16;
    float std[LK_CHUNK], noise[LK_CHUNK];
    for (int64_t c = 0; c < n_channels; c += LK_CHUNK) {
        int64_t m = n_channels - c < LK_CHUNK ? n_channels - c : LK_CHUNK;
        int64_t mean = pixel * 2 * n_channels + c, at = pixel * n_channels + c;
        rows->deviation(m, lk_cpu_view(op->moments, mean + n_channels, m, std), bf16, std);
        rows->mul(m, std, lk_cpu_view(op->noise, at, m, noise), std);
        if (bf16) rows->round(m, std);
        float *z = lk_cpu_target(op->z, at, noise);
        rows->add(m, lk_cpu_view(op->moments, mean, m, noise), std, z);
        lk_cpu_put(op->z, at, m, z);
    }
}

enum lk_code lk_cpu_posterior_sample(struct lk_device *dev, const struct lk_posterior_sample *op, void *scratch) {
    (void)scratch;
    int64_t n_pixels = op->z->shape[0] * op->z->shape[1];
#pragma omp parallel for schedule(static) num_threads(dev->n_threads) if (n_pixels > 64)
    for (int64_t pixel = 0; pixel < n_pixels; pixel++) sample_pixel(op, pixel, op->z->shape[2]);
    return LK_OK;
}
