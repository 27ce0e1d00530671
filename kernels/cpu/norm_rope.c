/* RMS norm of each head, then rotary position embedding, in place. */
#include <math.h>

#include "kernels/cpu/rows/rows.h"

static void normalize(const struct lk_norm_rope *op, int64_t n, float *x) {
    const struct lk_rows *rows = lk_cpu_rows();
    double lanes[LK_LANES] = {0};
    float w[LK_CHUNK];
    rows->sum_squares(n, x, 0.0, lanes);
    float factor = (float)(1.0 / sqrt(lk_cpu_lanes_total(lanes) / (double)n + (double)op->eps));
    rows->scale(n, x, factor, x);
    if (op->round_before_weight && op->x->dtype == LK_BF16) rows->round(n, x);
    rows->mul(n, x, lk_cpu_view(op->norm_w, 0, n, w), x);
    if (op->cos && op->x->dtype == LK_BF16) rows->round(n, x);
}

static void norm_rope_row(const struct lk_norm_rope *op, int64_t row) {
    const struct lk_rows *rows = lk_cpu_rows();
    int64_t n_heads = op->x->shape[1], n = op->x->shape[2], half = n / 2;
    const float *cos = op->cos ? (const float *)op->cos->data + row * op->cos->ld : NULL;
    const float *sin = op->cos ? (const float *)op->sin->data + row * op->sin->ld : NULL;
    bool round_products = op->round_products && op->x->dtype == LK_BF16;
    float buffer[LK_CHUNK];
    for (int64_t head = 0; head < n_heads; head++) {
        int64_t first = row * op->x->ld + head * n;
        float *x = lk_cpu_target(op->x, first, buffer);
        lk_cpu_view(op->x, first, n, x);
        if (op->norm_w) normalize(op, n, x);
        if (cos && op->pairing == LK_ROPE_INTERLEAVED) rows->rotate(half, x, x + 1, 2, cos, sin, round_products);
        if (cos && op->pairing == LK_ROPE_HALF) rows->rotate(half, x, x + half, 1, cos, sin, round_products);
        lk_cpu_put(op->x, first, n, x);
    }
}

enum lk_code lk_cpu_norm_rope(struct lk_device *dev, const struct lk_norm_rope *op, void *scratch) {
    (void)scratch;
    int64_t n_rows = op->x->shape[0];
    if (op->x->shape[2] > LK_CHUNK)
        return lk_fail(LK_E_INTERNAL, "norm_rope: head_dim: expected at most %d, got %lld", LK_CHUNK,
                       (long long)op->x->shape[2]);
#pragma omp parallel for schedule(static) num_threads(dev->n_threads) if (n_rows > 1)
    for (int64_t row = 0; row < n_rows; row++) norm_rope_row(op, row);
    return LK_OK;
}
