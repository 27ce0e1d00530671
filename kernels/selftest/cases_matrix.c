/* Cases of linear layers, attention and convolution. */
#include <math.h>

#include "kernels/selftest/case.h"

/* A width: any, or one that the fast kernels were made for. */
static int64_t width(struct selftest_case *c, int64_t most) {
    int64_t n = lk_selftest_int(c, 1, most);
    return selftest_maybe(c) ? (n + 63) / 64 * 64 : n;
}

void lk_selftest_linear(struct selftest_case *c, struct lk_linear *op) {
    int64_t m = lk_selftest_int(c, 1, selftest_most(c, 40, 900)), n = width(c, selftest_most(c, 150, 3000));
    int64_t k = width(c, selftest_most(c, 150, 3000));
    op->x = lk_selftest_rows(c, TENSOR(c, c->dtype, true, FILL_NORMAL, m, k));
    op->w = TENSOR(c, lk_selftest_weight_dtype(c), true, FILL_SMALL, n, k);
    op->bias = selftest_maybe(c) ? TENSOR(c, lk_selftest_weight_dtype(c), false, FILL_NORMAL, n) : NULL;
    op->gate = selftest_maybe(c) ? TENSOR(c, c->dtype, false, FILL_NORMAL, n) : NULL;
    op->residual = selftest_maybe(c) ? lk_selftest_rows(c, TENSOR(c, c->dtype, true, FILL_NORMAL, m, n)) : NULL;
    op->y = op->residual && selftest_maybe(c) ? op->residual
                                              : lk_selftest_rows(c, TENSOR(c, c->dtype, true, FILL_NONE, m, n));
    if (selftest_maybe(c)) {
        const int64_t rank = width(c, selftest_most(c, 70, 300));
        op->low = lk_selftest_rows(c, TENSOR(c, c->dtype, true, FILL_NORMAL, m, rank));
        op->up = TENSOR(c, c->dtype, true, FILL_SMALL, n, rank);
    }
    op->act = (enum lk_act)lk_selftest_int(c, LK_ACT_NONE, LK_ACT_QUICK_GELU);
    op->round_before_bias = lk_selftest_int(c, 0, 3) == 0;
    lk_selftest_output(c, op->y);
}

void lk_selftest_attention(struct selftest_case *c, struct lk_attention *op) {
    static const int64_t common[] = {64, 80, 128, 40, 160};
    int64_t d = selftest_maybe(c) ? common[lk_selftest_int(c, 0, 4)] : lk_selftest_int(c, 1, selftest_most(c, 40, 512));
    int64_t n_kv_heads = lk_selftest_int(c, 1, selftest_most(c, 2, 6)),
            group = lk_selftest_int(c, 1, selftest_most(c, 2, 4));
    int64_t n_q = lk_selftest_int(c, 1, selftest_most(c, 20, 500)),
            n_k = lk_selftest_int(c, 1, selftest_most(c, 40, 1500));
    if (!lk_selftest_int(c, 0, 5)) n_k += 512; /* several chunks of keys */
    op->causal = selftest_maybe(c);
    if (op->causal) n_k += n_q;
    op->q = TENSOR(c, c->dtype, true, FILL_NORMAL, n_q, n_kv_heads * group, d);
    op->k = TENSOR(c, c->dtype, true, FILL_NORMAL, n_k, n_kv_heads, d);
    op->v = TENSOR(c, c->dtype, true, FILL_NORMAL, n_k, n_kv_heads, d);
    op->out = lk_selftest_output(c, TENSOR(c, c->dtype, true, FILL_NONE, n_q, n_kv_heads * group, d));
    op->scale = (float)(1.0 / sqrt((double)d));
    if (!op->causal) { /* otherwise a query's place decides what it sees */
        lk_selftest_rows(c, op->q);
        lk_selftest_rows(c, op->out);
    }
}

/* Output size of a convolution along one side. */
static int64_t side(const struct lk_conv2d *op, int64_t in, int64_t kernel, int pad) {
    return (op->upsample * in + pad - kernel) / op->stride + 1;
}

/* Channels for a group norm to come: in groups whose sums a device may keep, or in others. */
static int64_t grouped(struct selftest_case *c, int64_t *n_groups) {
    static const int64_t common[] = {4, 8, 16, 32};
    const int64_t per_group = lk_selftest_int(c, 0, 4) ? common[lk_selftest_int(c, 0, 3)] : lk_selftest_int(c, 1, 12);
    *n_groups = lk_selftest_int(c, 1, 160 / (4 + per_group));
    return *n_groups * per_group;
}

void lk_selftest_conv2d(struct selftest_case *c, struct lk_conv2d *op) {
    int64_t h = lk_selftest_int(c, 1, selftest_most(c, 9, 60)), w = lk_selftest_int(c, 1, selftest_most(c, 9, 60));
    int64_t c_in = width(c, selftest_most(c, 20, 200)), c_out = width(c, selftest_most(c, 20, 200));
    int64_t kernel = selftest_maybe(c) ? 3 : lk_selftest_int(c, 1, 3), kt = lk_selftest_int(c, 1, 3), n_groups = 0;
    if (selftest_maybe(c)) c_out = grouped(c, &n_groups);
    op->upsample = (int)lk_selftest_int(c, 1, 2);
    op->stride = (int)lk_selftest_int(c, 1, 2);
    if (!lk_selftest_int(c, 0, 3)) kernel = 3, c_in = 3, op->upsample = op->stride = 1; /* the first layer of a VAE */
    op->pad_top = (int)lk_selftest_int(c, 0, 1);
    op->pad_left = (int)lk_selftest_int(c, 0, 1);
    op->pad_bottom = (int)lk_selftest_int(c, 1, 2); /* at least as large as the kernel with it */
    op->pad_right = (int)lk_selftest_int(c, 1, 2);
    if (op->upsample * h + op->pad_top + op->pad_bottom < kernel) h = kernel;
    if (op->upsample * w + op->pad_left + op->pad_right < kernel) w = kernel;
    int64_t h_out = side(op, h, kernel, op->pad_top + op->pad_bottom);
    int64_t w_out = side(op, w, kernel, op->pad_left + op->pad_right);
    op->x = TENSOR(c, c->dtype, false, FILL_NORMAL, h, w, c_in);
    op->taps_first = c_in % 8 == 0 && selftest_maybe(c);
    if (op->taps_first)
        op->w = TENSOR(c, lk_selftest_weight_dtype(c), false, FILL_SMALL, c_out, kernel, kernel, c_in);
    else
        op->w = selftest_maybe(c)
                    ? TENSOR(c, lk_selftest_weight_dtype(c), false, FILL_SMALL, c_out, c_in, kernel, kernel)
                    : TENSOR(c, lk_selftest_weight_dtype(c), false, FILL_SMALL, c_out, c_in, kt, kernel, kernel);
    op->bias = n_groups || selftest_maybe(c) ? TENSOR(c, lk_selftest_weight_dtype(c), false, FILL_NORMAL, c_out) : NULL;
    op->residual = selftest_maybe(c) ? TENSOR(c, c->dtype, false, FILL_NORMAL, h_out, w_out, c_out) : NULL;
    if (op->residual && selftest_maybe(c)) op->residual = TENSOR(c, c->dtype, false, FILL_NORMAL, c_out);
    op->y = op->residual && op->residual->n_dims == 3 && selftest_maybe(c)
                ? op->residual
                : TENSOR(c, c->dtype, false, FILL_NONE, h_out, w_out, c_out);
    lk_selftest_output(c, op->y);
    if (!n_groups) return;
    const struct lk_tensor sums = lk_group_sums(NULL, n_groups, h_out * w_out);
    op->group_sums = lk_selftest_own(c, lk_selftest_tensor(c, sums.dtype, false, FILL_NONE, sums.n_dims, sums.shape));
}
