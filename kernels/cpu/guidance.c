/* Lengths of rows are taken in double in a fixed order (rows.h). Rows longer than a chunk are walked twice, and what is
 * needed again is computed again. */
#include <math.h>

#include "kernels/cpu/rows/rows.h"

/* d = r(cond - uncond); RESCALE: c = r(uncond + r(scale d)). `uncond` receives the second prediction. */
static void combine(const struct lk_guidance *op, int64_t first, int64_t n, float *d, float *uncond) {
    const struct lk_rows *rows = lk_cpu_rows();
    const bool bf16 = op->y->dtype == LK_BF16;
    float buffer[LK_CHUNK];
    lk_cpu_load(op->uncond, first, n, uncond);
    rows->sub(n, lk_cpu_view(op->cond, first, n, buffer), uncond, d);
    if (bf16) rows->round(n, d);
    if (op->kind == LK_GUIDANCE_LIMIT) return;
    rows->scale(n, d, op->scale, d);
    if (bf16) rows->round(n, d);
    rows->add(n, uncond, d, d);
    if (bf16) rows->round(n, d);
}

static float length(const struct lk_guidance *op, const double lanes[LK_LANES]) {
    return lk_cpu_round(op->y->dtype, (float)sqrt(lk_cpu_lanes_total(lanes)));
}

/* What the combination of a row is multiplied by (RESCALE), or the scaled difference divided by (LIMIT). */
static float row_factor(const struct lk_guidance *op, const double of_cond[LK_LANES],
                        const double of_combined[LK_LANES]) {
    float norm = length(op, of_combined);
    if (op->kind == LK_GUIDANCE_RESCALE) return lk_cpu_round(op->y->dtype, length(op, of_cond) / norm);
    if (norm < 1.0f) return 1.0f;
    return lk_cpu_round(op->y->dtype, powf(norm, lk_cpu_round(op->y->dtype, op->power)));
}

static void guide_row(const struct lk_guidance *op, int64_t row) {
    const struct lk_rows *rows = lk_cpu_rows();
    const bool bf16 = op->y->dtype == LK_BF16;
    const int64_t width = op->y->shape[1];
    double of_cond[LK_LANES] = {0}, of_combined[LK_LANES] = {0};
    float d[LK_CHUNK], uncond[LK_CHUNK];
    for (int64_t i = 0; i < width; i += LK_CHUNK) {
        int64_t n = width - i < LK_CHUNK ? width - i : LK_CHUNK;
        combine(op, row * width + i, n, d, uncond);
        rows->sum_squares(n, d, 0.0, of_combined);
        if (op->kind == LK_GUIDANCE_RESCALE)
            rows->sum_squares(n, lk_cpu_view(op->cond, row * width + i, n, uncond), 0.0, of_cond);
    }
    const float factor = row_factor(op, of_cond, of_combined);
    for (int64_t i = 0; i < width; i += LK_CHUNK) {
        int64_t n = width - i < LK_CHUNK ? width - i : LK_CHUNK;
        combine(op, row * width + i, n, d, uncond);
        if (op->kind == LK_GUIDANCE_RESCALE) {
            rows->scale(n, d, factor, d);
        } else {
            rows->scale(n, d, op->scale, d);
            if (bf16) rows->round(n, d);
            rows->divide(n, d, factor, d);
            if (bf16) rows->round(n, d);
            rows->add(n, uncond, d, d);
        }
        lk_cpu_store(op->y, row * width + i, n, d);
    }
}

enum lk_code lk_cpu_guidance(struct lk_device *dev, const struct lk_guidance *op, void *scratch) {
    (void)scratch;
    int64_t n_rows = op->y->shape[0];
#pragma omp parallel for schedule(static) num_threads(dev->n_threads) if (n_rows > 16)
    for (int64_t row = 0; row < n_rows; row++) guide_row(op, row);
    return LK_OK;
}
