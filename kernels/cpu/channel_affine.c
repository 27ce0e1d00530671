#include "kernels/cpu/rows/rows.h"

static void affine_row(const struct lk_channel_affine *op, int64_t row) {
    const struct lk_rows *rows = lk_cpu_rows();
    bool bf16 = op->x->dtype == LK_BF16;
    int64_t n = lk_tensor_row_numel(op->x);
    float buffer[LK_CHUNK], mean[LK_CHUNK], std[LK_CHUNK];
    for (int64_t c = 0; c < n; c += LK_CHUNK) {
        int64_t m = n - c < LK_CHUNK ? n - c : LK_CHUNK;
        const float *x = lk_cpu_view(op->x, row * op->x->ld + c, m, buffer);
        const float *mu = lk_cpu_view(op->mean, c, m, mean), *sigma = lk_cpu_view(op->std, c, m, std);
        if (bf16 && op->mean->dtype == LK_F32) {
            memcpy(mean, mu, (size_t)m * sizeof *mean);
            rows->round(m, mean);
            mu = mean;
        }
        float *y = lk_cpu_target(op->y, row * op->y->ld + c, buffer);
        if (op->normalize && !op->inverse_std) {
            rows->standardize(m, x, mu, sigma, bf16, y);
        } else if (op->normalize) {
            rows->sub(m, x, mu, y);
            if (bf16) rows->round(m, y);
            rows->mul(m, y, sigma, y);
        } else {
            (op->inverse_std ? rows->div : rows->mul)(m, x, sigma, y);
            if (bf16) rows->round(m, y);
            rows->add(m, y, mu, y);
        }
        lk_cpu_put(op->y, row * op->y->ld + c, m, y);
    }
}

enum lk_code lk_cpu_channel_affine(struct lk_device *dev, const struct lk_channel_affine *op, void *scratch) {
    (void)scratch;
    int64_t n_rows = op->x->shape[0];
#pragma omp parallel for schedule(static) num_threads(dev->n_threads) if (n_rows > 16)
    for (int64_t row = 0; row < n_rows; row++) affine_row(op, row);
    return LK_OK;
}
