/* Cases of the ops that compute each element alone: no bit may differ from the cpu device. */
#include <math.h>

#include "kernels/selftest/case.h"

static enum lk_act any_act(struct selftest_case *c) {
    return (enum lk_act)lk_selftest_int(c, LK_ACT_NONE, LK_ACT_QUICK_GELU);
}

void lk_selftest_add(struct selftest_case *c, struct lk_add *op) {
    int64_t m = lk_selftest_int(c, 1, selftest_most(c, 7, 900)), n = lk_selftest_int(c, 1, selftest_most(c, 300, 5000));
    c->exact = true;
    op->a = TENSOR(c, c->dtype, true, FILL_WIDE, m, n);
    op->b = TENSOR(c, c->dtype, true, FILL_NORMAL, m, n);
    op->y = selftest_maybe(c) ? op->a : TENSOR(c, c->dtype, true, FILL_NONE, m, n);
    lk_selftest_output(c, op->y);
}

void lk_selftest_activation(struct selftest_case *c, struct lk_activation *op) {
    int64_t m = lk_selftest_int(c, 1, selftest_most(c, 7, 900)), n = lk_selftest_int(c, 1, selftest_most(c, 300, 5000));
    c->exact = true;
    op->act = any_act(c);
    op->x = TENSOR(c, c->dtype, true, FILL_WIDE, m, n);
    op->y = selftest_maybe(c) ? op->x : TENSOR(c, c->dtype, true, FILL_NONE, m, n);
    lk_selftest_output(c, op->y);
}

void lk_selftest_gated_act(struct selftest_case *c, struct lk_gated_act *op) {
    int64_t m = lk_selftest_int(c, 1, selftest_most(c, 7, 900)), n = lk_selftest_int(c, 1, selftest_most(c, 300, 5000));
    c->exact = true;
    op->act = any_act(c);
    op->gate_last = selftest_maybe(c);
    op->x = lk_selftest_rows(c, TENSOR(c, c->dtype, true, FILL_NORMAL, m, 2 * n));
    op->y = lk_selftest_rows(c, lk_selftest_output(c, TENSOR(c, c->dtype, true, FILL_NONE, m, n)));
}

void lk_selftest_copy(struct selftest_case *c, struct lk_copy *op) {
    int64_t m = lk_selftest_int(c, 1, selftest_most(c, 7, 900)), n = lk_selftest_int(c, 1, selftest_most(c, 300, 5000));
    c->exact = true;
    op->x = TENSOR(c, selftest_maybe(c) ? LK_F32 : LK_BF16, true, FILL_NORMAL, m, n);
    op->y = lk_selftest_output(c, TENSOR(c, c->dtype, true, FILL_NONE, m, n));
}

void lk_selftest_pixels(struct selftest_case *c, struct lk_pixels *op) {
    int64_t h = lk_selftest_int(c, 1, selftest_most(c, 9, 700)), w = lk_selftest_int(c, 1, selftest_most(c, 30, 900));
    bool from_bytes = selftest_maybe(c);
    c->exact = true;
    op->x = TENSOR(c, from_bytes ? LK_U8 : c->dtype, false, FILL_NORMAL, h, w, 3);
    op->y = lk_selftest_output(c, TENSOR(c, from_bytes ? c->dtype : LK_U8, false, FILL_NONE, h, w, 3));
}

void lk_selftest_euler_step(struct selftest_case *c, struct lk_euler_step *op) {
    int64_t n = lk_selftest_int(c, 1, selftest_most(c, 20, 9000)), channels = lk_selftest_int(c, 1, 128);
    c->exact = true;
    op->x = lk_selftest_output(c, TENSOR(c, c->dtype, false, FILL_NORMAL, n, channels));
    op->v = TENSOR(c, c->dtype, false, FILL_NORMAL, n, channels);
    op->dt = (float)(-0.1 + 0.05 * lk_selftest_normal(c));
}

void lk_selftest_blend(struct selftest_case *c, struct lk_blend *op) {
    int64_t n = lk_selftest_int(c, 1, selftest_most(c, 20, 9000)), channels = lk_selftest_int(c, 1, 128);
    c->exact = true;
    op->x = lk_selftest_output(c, TENSOR(c, c->dtype, false, FILL_NORMAL, n, channels));
    op->source = TENSOR(c, c->dtype, false, FILL_NORMAL, n, channels);
    op->noise = TENSOR(c, c->dtype, false, FILL_NORMAL, n, channels);
    op->keep = TENSOR(c, c->dtype, false, FILL_NORMAL, n, channels); /* kept in part */
    op->sigma = (float)lk_selftest_int(c, 0, 1000) / 1000;
}

void lk_selftest_weighted_sum(struct selftest_case *c, struct lk_weighted_sum *op) {
    int64_t n = lk_selftest_int(c, 1, selftest_most(c, 20, 9000)), channels = lk_selftest_int(c, 1, 128);
    const int64_t n_terms = lk_selftest_int(c, 1, LK_SUM_TERMS);
    c->exact = true;
    for (int i = 0; i < n_terms; i++) {
        op->x[i] = TENSOR(c, c->dtype, false, FILL_NORMAL, n, channels);
        op->scale[i] = (float)lk_selftest_normal(c);
    }
    op->y = selftest_maybe(c) ? op->x[lk_selftest_int(c, 0, n_terms - 1)]
                              : TENSOR(c, c->dtype, false, FILL_NONE, n, channels);
    lk_selftest_output(c, op->y);
}

void lk_selftest_posterior_sample(struct selftest_case *c, struct lk_posterior_sample *op) {
    int64_t h = lk_selftest_int(c, 1, selftest_most(c, 6, 128)), w = lk_selftest_int(c, 1, selftest_most(c, 6, 128));
    int64_t channels = selftest_maybe(c) ? 16 : lk_selftest_int(c, 1, 40);
    c->exact = true;
    op->z = lk_selftest_output(c, TENSOR(c, c->dtype, false, FILL_NONE, h, w, channels));
    op->moments = TENSOR(c, c->dtype, false, FILL_WIDE, h, w, 2 * channels);
    op->noise = TENSOR(c, c->dtype, false, FILL_NORMAL, h, w, channels);
}

void lk_selftest_channel_affine(struct selftest_case *c, struct lk_channel_affine *op) {
    int64_t m = lk_selftest_int(c, 1, selftest_most(c, 20, 9000)),
            n = selftest_maybe(c) ? 16 : lk_selftest_int(c, 1, 140);
    enum lk_dtype statistics = selftest_maybe(c) ? LK_F32 : c->dtype;
    c->exact = true;
    op->x = TENSOR(c, c->dtype, true, FILL_NORMAL, m, n);
    op->mean = TENSOR(c, statistics, false, FILL_NORMAL, n);
    op->std = TENSOR(c, statistics, false, FILL_NORMAL, n);
    op->y = selftest_maybe(c) ? op->x : TENSOR(c, c->dtype, true, FILL_NONE, m, n);
    op->normalize = selftest_maybe(c);
    op->inverse_std = selftest_maybe(c);
    lk_selftest_output(c, op->y);
}

void lk_selftest_pack_latents(struct selftest_case *c, struct lk_pack_latents *op) {
    int64_t h = lk_selftest_int(c, 1, selftest_most(c, 5, 64)), w = lk_selftest_int(c, 1, selftest_most(c, 5, 64));
    int64_t channels = lk_selftest_int(c, 1, 36);
    c->exact = true;
    op->inverse = selftest_maybe(c);
    op->tokens = TENSOR(c, c->dtype, false, op->inverse ? FILL_NORMAL : FILL_NONE, h * w, 4 * channels);
    op->latents = TENSOR(c, c->dtype, false, op->inverse ? FILL_NONE : FILL_NORMAL, 2 * h, 2 * w, channels);
    lk_selftest_output(c, op->inverse ? op->latents : op->tokens);
}

void lk_selftest_nonfinite(struct selftest_case *c, struct lk_nonfinite *op) {
    int64_t m = lk_selftest_int(c, 1, selftest_most(c, 9, 900)), n = lk_selftest_int(c, 1, selftest_most(c, 300, 5000));
    op->x = TENSOR(c, c->dtype, true, FILL_NORMAL, m, n);
    for (int64_t i = lk_selftest_int(c, 0, 20); i > 0; i--)
        lk_selftest_set(c, op->x, lk_selftest_int(c, 0, m * n - 1), selftest_maybe(c) ? (double)INFINITY : (double)NAN);
}
