#include "kernels/cpu/rows/rows.h"

/* 255 clamp(r(x / 2 + 1/2)) to the nearest integer, ties to even; NaN gives 0. */
static uint8_t to_byte(enum lk_dtype dtype, float x) {
    float v = lk_cpu_round(dtype, 0.5f * x + 0.5f);
    v = v > 0.0f ? v : 0.0f;
    v = v < 1.0f ? v : 1.0f;
    const float round_to_int = 12582912.0f; /* 1.5 * 2^23 */
    return (uint8_t)((255.0f * v + round_to_int) - round_to_int);
}

static void to_bytes(const struct lk_pixels *op, int64_t first_y, int64_t first_x, int64_t n) {
    float buffer[LK_CHUNK];
    uint8_t *y = (uint8_t *)op->y->data + first_y;
    for (int64_t i = 0; i < n; i += LK_CHUNK) {
        int64_t m = n - i < LK_CHUNK ? n - i : LK_CHUNK;
        const float *x = lk_cpu_view(op->x, first_x + i, m, buffer);
        for (int64_t k = 0; k < m; k++) y[i + k] = to_byte(op->x->dtype, x[k]);
    }
}

static void from_bytes(const struct lk_pixels *op, const float value[256], int64_t first_y, int64_t first_x,
                       int64_t n) {
    float buffer[LK_CHUNK];
    const uint8_t *x = (const uint8_t *)op->x->data + first_x;
    for (int64_t i = 0; i < n; i += LK_CHUNK) {
        int64_t m = n - i < LK_CHUNK ? n - i : LK_CHUNK;
        for (int64_t k = 0; k < m; k++) buffer[k] = value[x[i + k]];
        lk_cpu_store(op->y, first_y + i, m, buffer);
    }
}

enum lk_code lk_cpu_pixels(struct lk_device *dev, const struct lk_pixels *op, void *scratch) {
    (void)scratch;
    float value[256];
    for (int i = 0; i < 256; i++) value[i] = 2.0f * ((float)i / 255.0f) - 1.0f;
    int64_t height = op->x->shape[0], n = lk_tensor_row_numel(op->x);
#pragma omp parallel for schedule(static) num_threads(dev->n_threads)
    for (int64_t row = 0; row < height; row++)
        if (op->x->dtype == LK_U8)
            from_bytes(op, value, row * op->y->ld, row * op->x->ld, n);
        else
            to_bytes(op, row * op->y->ld, row * op->x->ld, n);
    return LK_OK;
}
