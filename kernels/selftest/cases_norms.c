/* Cases of the norms and other ops that reduce a row or a group. */
#include "kernels/selftest/case.h"

/* A row's length: around what models have, and any other. */
static int64_t length(struct selftest_case *c) {
    static const int64_t common[] = {64, 96, 128, 256, 384, 1024, 1032, 3072, 3584, 5120, 6144, 8192, 8200};
    if (!lk_selftest_int(c, 0, 39)) return 8200; /* by the largest blocks */
    if (c->large && selftest_maybe(c)) return common[lk_selftest_int(c, 0, sizeof common / sizeof *common - 1)];
    return lk_selftest_int(c, 1, lk_selftest_int(c, 0, 3) ? 300 : selftest_most(c, 2500, 40000));
}

void lk_selftest_rms_norm(struct selftest_case *c, struct lk_rms_norm *op) {
    int64_t n = length(c), heads = n < 300 ? lk_selftest_int(c, 1, 4) : 1;
    int64_t m = lk_selftest_int(c, 1, selftest_most(c, 9, 700));
    op->x = lk_selftest_rows(c, TENSOR(c, c->dtype, true, FILL_WIDE, m, heads, n));
    op->y = selftest_maybe(c) ? op->x : lk_selftest_rows(c, TENSOR(c, c->dtype, true, FILL_NONE, m, heads, n));
    op->w = lk_selftest_int(c, 0, 3) ? TENSOR(c, lk_selftest_weight_dtype(c), false, FILL_NORMAL, n) : NULL;
    op->eps = 1e-6f;
    op->round_before_weight = selftest_maybe(c);
    lk_selftest_output(c, op->y);
    c->nearly = true;
}

void lk_selftest_l2_norm(struct selftest_case *c, struct lk_l2_norm *op) {
    int64_t n = length(c), m = lk_selftest_int(c, 1, selftest_most(c, 9, 700));
    if (!lk_selftest_int(c, 0, 3)) n = 96 << lk_selftest_int(c, 0, 2); /* channels of a VAE */
    op->x = lk_selftest_rows(c, TENSOR(c, c->dtype, true, FILL_WIDE, m, n));
    op->y = selftest_maybe(c) ? op->x : lk_selftest_rows(c, TENSOR(c, c->dtype, true, FILL_NONE, m, n));
    op->w = TENSOR(c, lk_selftest_weight_dtype(c), false, FILL_NORMAL, n);
    op->act = selftest_maybe(c) ? LK_ACT_SILU : LK_ACT_NONE;
    lk_selftest_output(c, op->y);
    c->nearly = true;
}

void lk_selftest_layer_norm(struct selftest_case *c, struct lk_layer_norm *op) {
    int64_t n = length(c), m = lk_selftest_int(c, 1, selftest_most(c, 9, 700));
    bool modulated = selftest_maybe(c);
    op->x = lk_selftest_rows(c, TENSOR(c, c->dtype, true, FILL_WIDE, m, n));
    op->y = selftest_maybe(c) ? op->x : lk_selftest_rows(c, TENSOR(c, c->dtype, true, FILL_NONE, m, n));
    op->weight = selftest_maybe(c) ? TENSOR(c, lk_selftest_weight_dtype(c), false, FILL_NORMAL, n) : NULL;
    op->bias = selftest_maybe(c) ? TENSOR(c, lk_selftest_weight_dtype(c), false, FILL_NORMAL, n) : NULL;
    op->shift = modulated ? TENSOR(c, c->dtype, false, FILL_NORMAL, n) : NULL;
    op->scale = modulated ? TENSOR(c, c->dtype, false, FILL_NORMAL, n) : NULL;
    op->eps = selftest_maybe(c) ? 1e-6f : 1e-5f;
    lk_selftest_output(c, op->y);
    c->nearly = true;
}

void lk_selftest_norm_rope(struct selftest_case *c, struct lk_norm_rope *op) {
    static const int64_t common[] = {64, 80, 128, 128};
    int64_t d =
        selftest_maybe(c) ? common[lk_selftest_int(c, 0, 3)] : 2 * lk_selftest_int(c, 1, selftest_most(c, 80, 512));
    int64_t m = lk_selftest_int(c, 1, selftest_most(c, 9, 700)), heads = lk_selftest_int(c, 1, selftest_most(c, 5, 48));
    bool norm = selftest_maybe(c);
    op->x = lk_selftest_rows(c, lk_selftest_output(c, TENSOR(c, c->dtype, true, FILL_WIDE, m, heads, d)));
    op->norm_w = norm ? TENSOR(c, lk_selftest_weight_dtype(c), false, FILL_NORMAL, d) : NULL;
    if (!norm || lk_selftest_int(c, 0, 3)) {
        op->cos = lk_selftest_rows(c, TENSOR(c, LK_F32, false, FILL_NORMAL, m, d / 2));
        op->sin = lk_selftest_rows(c, TENSOR(c, LK_F32, false, FILL_NORMAL, m, d / 2));
    }
    op->pairing = selftest_maybe(c) ? LK_ROPE_INTERLEAVED : LK_ROPE_HALF;
    op->eps = 1e-6f;
    op->round_before_weight = selftest_maybe(c);
    op->round_products = selftest_maybe(c);
    c->exact = !norm;
    c->nearly = true;
}

void lk_selftest_group_norm(struct selftest_case *c, struct lk_group_norm *op) {
    int64_t h = lk_selftest_int(c, 1, selftest_most(c, 12, 128)), w = lk_selftest_int(c, 1, selftest_most(c, 12, 128));
    int64_t groups = selftest_maybe(c) ? 32 : lk_selftest_int(c, 1, 9);
    int64_t channels = groups * lk_selftest_int(c, 1, selftest_most(c, 4, 16));
    op->x = TENSOR(c, c->dtype, false, FILL_WIDE, h, w, channels);
    op->y = selftest_maybe(c) ? op->x : TENSOR(c, c->dtype, false, FILL_NONE, h, w, channels);
    op->w = TENSOR(c, lk_selftest_weight_dtype(c), false, FILL_NORMAL, channels);
    op->b = TENSOR(c, lk_selftest_weight_dtype(c), false, FILL_NORMAL, channels);
    op->n_groups = (int)groups;
    op->eps = 1e-6f;
    op->act = selftest_maybe(c) ? LK_ACT_SILU : LK_ACT_NONE;
    lk_selftest_output(c, op->y);
    c->nearly = true;
}

void lk_selftest_depthwise(struct selftest_case *c, struct lk_depthwise *op) {
    int64_t h = lk_selftest_int(c, 1, selftest_most(c, 6, 64)), w = lk_selftest_int(c, 1, selftest_most(c, 6, 64));
    int64_t channels = lk_selftest_int(c, 1, selftest_most(c, 70, 1300));
    enum lk_dtype dtype = lk_selftest_weight_dtype(c);
    c->exact = true;
    op->x = TENSOR(c, c->dtype, false, FILL_NORMAL, h, w, channels);
    op->y = lk_selftest_output(c, TENSOR(c, c->dtype, false, FILL_NONE, h, w, channels));
    op->w = TENSOR(c, dtype, false, FILL_NORMAL, channels, 1, 3, 3);
    op->bias = TENSOR(c, dtype, false, FILL_NORMAL, channels);
    op->replicate = selftest_maybe(c);
}

void lk_selftest_response_norm(struct selftest_case *c, struct lk_response_norm *op) {
    int64_t m = lk_selftest_int(c, 1, selftest_most(c, 20, 900)),
            n = lk_selftest_int(c, 1, selftest_most(c, 300, 5000));
    enum lk_dtype dtype = lk_selftest_weight_dtype(c);
    c->exact = true; /* sums are taken in one order everywhere */
    op->x = TENSOR(c, c->dtype, true, FILL_NORMAL, m, n);
    op->y = selftest_maybe(c) ? op->x : TENSOR(c, c->dtype, true, FILL_NONE, m, n);
    op->gamma = TENSOR(c, dtype, false, FILL_NORMAL, n);
    op->beta = TENSOR(c, dtype, false, FILL_NORMAL, n);
    op->eps = 1e-6f;
    lk_selftest_output(c, op->y);
}

void lk_selftest_distance(struct selftest_case *c, struct lk_distance *op) {
    int64_t m = lk_selftest_int(c, 1, selftest_most(c, 20, 900)),
            n = lk_selftest_int(c, 1, selftest_most(c, 300, 5000));
    c->exact = c->dtype == LK_BF16; /* sums of bf16 values are exact in double */
    op->y = lk_selftest_output(c, TENSOR(c, LK_F32, false, FILL_NONE, m, 2));
    op->a = TENSOR(c, c->dtype, true, FILL_NORMAL, m, n);
    op->b = TENSOR(c, c->dtype, true, FILL_NORMAL, m, n);
}

void lk_selftest_mean_rows(struct selftest_case *c, struct lk_mean_rows *op) {
    int64_t m = lk_selftest_int(c, 1, selftest_most(c, 20, 900)),
            n = lk_selftest_int(c, 1, selftest_most(c, 300, 5000));
    c->exact = true; /* rows are added in one order everywhere */
    op->y = lk_selftest_output(c, TENSOR(c, c->dtype, false, FILL_NONE, 1, n));
    op->x = TENSOR(c, c->dtype, true, FILL_NORMAL, m, n);
}

void lk_selftest_guidance(struct selftest_case *c, struct lk_guidance *op) {
    int64_t m = lk_selftest_int(c, 1, selftest_most(c, 20, 4096)), n = selftest_maybe(c) ? 64 : length(c);
    op->kind = selftest_maybe(c) ? LK_GUIDANCE_RESCALE : LK_GUIDANCE_LIMIT;
    op->cond = lk_selftest_rows(c, TENSOR(c, c->dtype, false, FILL_NORMAL, m, n));
    op->uncond = lk_selftest_rows(c, TENSOR(c, c->dtype, false, selftest_maybe(c) ? FILL_NORMAL : FILL_SMALL, m, n));
    op->y = selftest_maybe(c) ? op->cond : lk_selftest_rows(c, TENSOR(c, c->dtype, false, FILL_NONE, m, n));
    op->scale = (float)lk_selftest_int(c, 1, 8);
    op->power = selftest_maybe(c) ? 0.0f : 0.4f;
    lk_selftest_output(c, op->y);
    c->nearly = true;
}
