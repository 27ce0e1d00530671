#include "kernels/cpu/rows/rows.h"

/* What is kept in part. */
static float mixed(enum lk_dtype dtype, float keep, float p, float x) {
    const float kept = lk_cpu_round(dtype, keep * lk_cpu_round(dtype, p)), rest = lk_cpu_round(dtype, 1.0f - keep);
    return kept + lk_cpu_round(dtype, rest * x);
}

static void blend_chunk(const void *arguments, const int64_t *first, int64_t n) {
    const struct lk_blend *op = arguments;
    const struct lk_rows *rows = lk_cpu_rows();
    const bool bf16 = op->x->dtype == LK_BF16;
    float x[LK_CHUNK], source[LK_CHUNK], noise[LK_CHUNK], keep[LK_CHUNK];
    const float sigma = lk_cpu_round(op->x->dtype, op->sigma), rest = lk_cpu_round(op->x->dtype, 1.0f - sigma);
    rows->scale(n, lk_cpu_view(op->noise, first[2], n, noise), sigma, noise);
    rows->scale(n, lk_cpu_view(op->source, first[1], n, source), rest, source);
    if (bf16) rows->round(n, noise);
    if (bf16) rows->round(n, source);
    rows->add(n, noise, source, source);
    const float *kept = lk_cpu_view(op->keep, first[3], n, keep), *before = lk_cpu_view(op->x, first[0], n, x);
    float *y = lk_cpu_target(op->x, first[0], x);
    for (int64_t i = 0; i < n; i++)
        y[i] = kept[i] == 1 ? source[i] : kept[i] == 0 ? before[i] : mixed(op->x->dtype, kept[i], source[i], before[i]);
    lk_cpu_put(op->x, first[0], n, y);
}

enum lk_code lk_cpu_blend(struct lk_device *dev, const struct lk_blend *op, void *scratch) {
    (void)scratch;
    lk_cpu_chunks(dev, (const struct lk_tensor *[]){op->x, op->source, op->noise, op->keep}, 4, op, blend_chunk);
    return LK_OK;
}
