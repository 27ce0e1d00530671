/* The op interface's device-independent half: what a call must look like, what it costs, and the way to the device.
 * FLOPs are those of matrix products (linear, attention, conv2d), as the literature counts; the other ops count bytes
 * only. */
#include "engine/ops.h"

static bool is_activation(const struct lk_tensor *t) { return t->dtype == LK_F32 || t->dtype == LK_BF16; }

/* A weight for activations of this dtype: bf16 always, f32 for f32 activations. */
static bool is_weight_for(const struct lk_tensor *w, enum lk_dtype activations) {
    return w->dtype == LK_BF16 || (w->dtype == LK_F32 && activations == LK_F32);
}

/* A linear layer's may be quantised as well: then it has no gaps between its rows. */
static bool is_matrix_for(const struct lk_tensor *w, enum lk_dtype activations) {
    return lk_tensor_is_quantized(w) ? lk_tensor_is_dense(w) : is_weight_for(w, activations);
}

static bool is_vector(const struct lk_tensor *t, int64_t n) {
    return t->n_dims == 1 && t->shape[0] == n && lk_tensor_is_dense(t);
}

static bool absent_or_vector_weight(const struct lk_tensor *t, int64_t n, enum lk_dtype activations) {
    return !t || (is_vector(t, n) && is_weight_for(t, activations));
}

static bool alike(const struct lk_tensor *a, const struct lk_tensor *b) {
    return a->dtype == b->dtype && lk_tensor_same_shape(a, b);
}

static bool has_dims(const struct lk_tensor *t, int n_dims) {
    if (t->n_dims != n_dims) return false;
    for (int i = 0; i < n_dims; i++)
        if (t->shape[i] < 1) return false;
    return t->shape[0] <= 1 || t->ld >= lk_tensor_row_numel(t);
}

static int64_t last_dim(const struct lk_tensor *t) { return t->n_dims ? t->shape[t->n_dims - 1] : 0; }

static uint64_t bytes_of(const struct lk_tensor *t) { return t ? lk_tensor_bytes(t) : 0; }

/* The first violated condition is the message: these are bugs of a model's code, not of its input. */
#define NEED(op_name, condition)                                                                                       \
    do {                                                                                                               \
        if (!(condition)) return lk_fail(LK_E_INTERNAL, "op %s: violated: %s", op_name, #condition);                   \
    } while (0)

enum lk_code lk_check_linear(const struct lk_linear *op, struct lk_cost *cost) {
    const struct lk_tensor *y = op->y, *x = op->x, *w = op->w;
    NEED("linear", has_dims(y, 2) && has_dims(x, 2) && has_dims(w, 2));
    NEED("linear", is_activation(x) && y->dtype == x->dtype && is_matrix_for(w, x->dtype));
    NEED("linear", y->shape[0] == x->shape[0] && y->shape[1] == w->shape[0] && x->shape[1] == w->shape[1]);
    NEED("linear", absent_or_vector_weight(op->bias, y->shape[1], x->dtype));
    NEED("linear", !op->gate || (is_vector(op->gate, y->shape[1]) && op->gate->dtype == x->dtype));
    NEED("linear", !op->residual || alike(op->residual, y));
    NEED("linear", !op->low == !op->up && (!op->low || (has_dims(op->low, 2) && has_dims(op->up, 2))));
    NEED("linear", !op->low || (op->low->shape[0] == y->shape[0] && op->up->shape[0] == y->shape[1]));
    NEED("linear", !op->low || op->low->shape[1] == op->up->shape[1]);
    NEED("linear", !op->low || (op->low->dtype == x->dtype && op->up->dtype == x->dtype));
    const int64_t k = x->shape[1] + (op->low ? op->low->shape[1] : 0);
    cost->flops = 2 * (uint64_t)y->shape[0] * (uint64_t)y->shape[1] * (uint64_t)k;
    cost->bytes = bytes_of(y) + bytes_of(x) + bytes_of(w) + bytes_of(op->bias) + bytes_of(op->gate) +
                  bytes_of(op->residual) + bytes_of(op->low) + bytes_of(op->up);
    return LK_OK;
}

enum lk_code lk_check_attention(const struct lk_attention *op, struct lk_cost *cost) {
    const struct lk_tensor *q = op->q, *k = op->k;
    NEED("attention", has_dims(op->out, 3) && has_dims(q, 3) && has_dims(k, 3) && has_dims(op->v, 3));
    NEED("attention", is_activation(q) && alike(op->out, q) && alike(k, op->v) && k->dtype == q->dtype);
    NEED("attention", q->shape[2] == k->shape[2] && q->shape[2] <= 512 && q->shape[1] % k->shape[1] == 0);
    NEED("attention", !op->causal || k->shape[0] >= q->shape[0]);
    uint64_t s_q = (uint64_t)q->shape[0], s_k = (uint64_t)k->shape[0];
    uint64_t pairs = op->causal ? s_q * (s_k - s_q) + s_q * (s_q + 1) / 2 : s_q * s_k;
    cost->flops = 4 * pairs * (uint64_t)(q->shape[1] * q->shape[2]);
    cost->bytes = bytes_of(op->out) + bytes_of(q) + bytes_of(k) + bytes_of(op->v);
    return LK_OK;
}

enum lk_code lk_check_rms_norm(const struct lk_rms_norm *op, struct lk_cost *cost) {
    NEED("rms_norm", op->x->n_dims >= 1 && has_dims(op->x, op->x->n_dims) && alike(op->y, op->x));
    NEED("rms_norm", is_activation(op->x));
    NEED("rms_norm", absent_or_vector_weight(op->w, last_dim(op->x), op->x->dtype));
    cost->bytes = 2 * bytes_of(op->x) + bytes_of(op->w);
    return LK_OK;
}

enum lk_code lk_check_layer_norm(const struct lk_layer_norm *op, struct lk_cost *cost) {
    NEED("layer_norm", has_dims(op->x, 2) && alike(op->y, op->x) && is_activation(op->x));
    int64_t d = op->x->shape[1];
    NEED("layer_norm", absent_or_vector_weight(op->weight, d, op->x->dtype));
    NEED("layer_norm", absent_or_vector_weight(op->bias, d, op->x->dtype));
    NEED("layer_norm", !op->shift == !op->scale);
    NEED("layer_norm", !op->shift || (is_vector(op->shift, d) && op->shift->dtype == op->x->dtype));
    NEED("layer_norm", !op->scale || (is_vector(op->scale, d) && op->scale->dtype == op->x->dtype));
    cost->bytes =
        2 * bytes_of(op->x) + bytes_of(op->weight) + bytes_of(op->bias) + bytes_of(op->shift) + bytes_of(op->scale);
    return LK_OK;
}

enum lk_code lk_check_norm_rope(const struct lk_norm_rope *op, struct lk_cost *cost) {
    NEED("norm_rope", has_dims(op->x, 3) && is_activation(op->x) && op->x->shape[2] % 2 == 0);
    NEED("norm_rope", absent_or_vector_weight(op->norm_w, op->x->shape[2], op->x->dtype));
    NEED("norm_rope", !op->cos == !op->sin && (op->cos || op->norm_w));
    NEED("norm_rope", !op->cos || (has_dims(op->cos, 2) && op->cos->dtype == LK_F32 && alike(op->cos, op->sin)));
    NEED("norm_rope", !op->cos || (op->cos->shape[0] == op->x->shape[0] && 2 * op->cos->shape[1] == op->x->shape[2]));
    cost->bytes = 2 * bytes_of(op->x) + bytes_of(op->cos) + bytes_of(op->sin);
    return LK_OK;
}

enum lk_code lk_check_gated_act(const struct lk_gated_act *op, struct lk_cost *cost) {
    NEED("gated_act", has_dims(op->x, 2) && has_dims(op->y, 2) && is_activation(op->x) && op->y->dtype == op->x->dtype);
    NEED("gated_act", op->x->shape[0] == op->y->shape[0] && op->x->shape[1] == 2 * op->y->shape[1]);
    cost->bytes = bytes_of(op->x) + bytes_of(op->y);
    return LK_OK;
}

enum lk_code lk_check_activation(const struct lk_activation *op, struct lk_cost *cost) {
    NEED("activation",
         op->x->n_dims >= 1 && has_dims(op->x, op->x->n_dims) && alike(op->y, op->x) && is_activation(op->x));
    cost->bytes = 2 * bytes_of(op->x);
    return LK_OK;
}

struct lk_tensor lk_group_sums(void *data, int64_t n_groups, int64_t n_pixels) {
    return LK_TENSOR(data, LK_F64, n_groups, (n_pixels + LK_GROUP_SLAB - 1) / LK_GROUP_SLAB);
}

/* Of a picture [H, W, C]. Their bytes are no part of an op's cost: a device need not touch them. */
static bool absent_or_group_sums(const struct lk_tensor *sums, const struct lk_tensor *picture) {
    if (!sums) return true;
    const struct lk_tensor wanted = lk_group_sums(NULL, sums->shape[0], picture->shape[0] * picture->shape[1]);
    return sums->shape[0] >= 1 && picture->shape[2] % sums->shape[0] == 0 && alike(sums, &wanted) &&
           lk_tensor_is_dense(sums);
}

struct lk_filters lk_filters_of(const struct lk_conv2d *op) {
    const struct lk_tensor *w = op->w;
    if (op->taps_first) return (struct lk_filters){w->shape[0], w->shape[3], 1, w->shape[1], w->shape[2]};
    const int last = w->n_dims - 1;
    return (struct lk_filters){w->shape[0], w->shape[1], last == 4 ? w->shape[2] : 1, w->shape[last - 1],
                               w->shape[last]};
}

enum lk_code lk_check_conv2d(const struct lk_conv2d *op, struct lk_cost *cost) {
    const struct lk_tensor *y = op->y, *x = op->x, *w = op->w;
    NEED("conv2d", has_dims(y, 3) && has_dims(x, 3) && (has_dims(w, 4) || (has_dims(w, 5) && !op->taps_first)));
    const struct lk_filters f = lk_filters_of(op);
    NEED("conv2d", !op->taps_first || f.channels % 8 == 0);
    NEED("conv2d", lk_tensor_is_dense(y) && lk_tensor_is_dense(x) && lk_tensor_is_dense(w));
    NEED("conv2d", is_activation(x) && y->dtype == x->dtype && is_weight_for(w, x->dtype));
    NEED("conv2d", y->shape[2] == f.n && x->shape[2] == f.channels);
    NEED("conv2d", op->stride >= 1 && (op->upsample == 1 || op->upsample == 2));
    NEED("conv2d", y->shape[0] == (op->upsample * x->shape[0] + op->pad_top + op->pad_bottom - f.kh) / op->stride + 1);
    NEED("conv2d", y->shape[1] == (op->upsample * x->shape[1] + op->pad_left + op->pad_right - f.kw) / op->stride + 1);
    NEED("conv2d", absent_or_vector_weight(op->bias, y->shape[2], x->dtype));
    NEED("conv2d", !op->residual || (op->residual->dtype == y->dtype && lk_tensor_is_dense(op->residual)));
    NEED("conv2d", !op->residual || is_vector(op->residual, y->shape[2]) || lk_tensor_same_shape(op->residual, y));
    NEED("conv2d", absent_or_group_sums(op->group_sums, y));
    cost->flops = 2 * (uint64_t)lk_tensor_numel(y) * (uint64_t)(f.channels * f.kh * f.kw);
    cost->bytes =
        bytes_of(y) + bytes_of(x) + bytes_of(w) / (uint64_t)f.kt + bytes_of(op->bias) + bytes_of(op->residual);
    return LK_OK;
}

enum lk_code lk_check_group_norm(const struct lk_group_norm *op, struct lk_cost *cost) {
    NEED("group_norm", has_dims(op->x, 3) && alike(op->y, op->x) && is_activation(op->x));
    NEED("group_norm", lk_tensor_is_dense(op->x) && lk_tensor_is_dense(op->y));
    int64_t c = op->x->shape[2];
    NEED("group_norm", op->n_groups >= 1 && c % op->n_groups == 0);
    NEED("group_norm", op->w && op->b);
    NEED("group_norm",
         absent_or_vector_weight(op->w, c, op->x->dtype) && absent_or_vector_weight(op->b, c, op->x->dtype));
    NEED("group_norm", absent_or_group_sums(op->sums, op->x) && (!op->sums || op->sums->shape[0] == op->n_groups));
    cost->bytes = 2 * bytes_of(op->x) + bytes_of(op->w) + bytes_of(op->b);
    return LK_OK;
}

enum lk_code lk_check_add(const struct lk_add *op, struct lk_cost *cost) {
    NEED("add", op->y->n_dims >= 1 && has_dims(op->y, op->y->n_dims) && is_activation(op->y));
    NEED("add", alike(op->y, op->a) && alike(op->y, op->b));
    cost->bytes = 3 * bytes_of(op->y);
    return LK_OK;
}

enum lk_code lk_check_channel_affine(const struct lk_channel_affine *op, struct lk_cost *cost) {
    NEED("channel_affine", has_dims(op->x, 2) && alike(op->y, op->x) && is_activation(op->x));
    NEED("channel_affine", is_vector(op->mean, op->x->shape[1]) && is_activation(op->mean));
    NEED("channel_affine", op->mean->dtype == op->x->dtype || op->mean->dtype == LK_F32);
    NEED("channel_affine", is_vector(op->std, op->x->shape[1]) && op->std->dtype == op->mean->dtype);
    cost->bytes = 2 * bytes_of(op->x);
    return LK_OK;
}

enum lk_code lk_check_l2_norm(const struct lk_l2_norm *op, struct lk_cost *cost) {
    NEED("l2_norm", op->x->n_dims >= 1 && has_dims(op->x, op->x->n_dims) && alike(op->y, op->x));
    NEED("l2_norm", is_activation(op->x));
    NEED("l2_norm", op->w && lk_tensor_is_dense(op->w) && lk_tensor_numel(op->w) == last_dim(op->x));
    NEED("l2_norm", is_weight_for(op->w, op->x->dtype));
    cost->bytes = 2 * bytes_of(op->x) + bytes_of(op->w);
    return LK_OK;
}

enum lk_code lk_check_depthwise(const struct lk_depthwise *op, struct lk_cost *cost) {
    const struct lk_tensor *x = op->x, *w = op->w;
    NEED("depthwise", has_dims(x, 3) && alike(op->y, x) && is_activation(x) && op->y->data != x->data);
    NEED("depthwise", lk_tensor_is_dense(x) && lk_tensor_is_dense(op->y) && lk_tensor_is_dense(w));
    NEED("depthwise", has_dims(w, 4) && w->shape[0] == x->shape[2] && w->shape[1] == 1);
    NEED("depthwise", w->shape[2] == 3 && w->shape[3] == 3 && is_weight_for(w, x->dtype));
    NEED("depthwise", op->bias && is_vector(op->bias, x->shape[2]) && op->bias->dtype == w->dtype);
    cost->bytes = 2 * bytes_of(x) + bytes_of(w) + bytes_of(op->bias);
    return LK_OK;
}

enum lk_code lk_check_response_norm(const struct lk_response_norm *op, struct lk_cost *cost) {
    const struct lk_tensor *x = op->x;
    NEED("response_norm", has_dims(x, 2) && alike(op->y, x) && is_activation(x) && op->gamma && op->beta);
    NEED("response_norm", lk_tensor_is_dense(op->gamma) && lk_tensor_numel(op->gamma) == x->shape[1]);
    NEED("response_norm", lk_tensor_is_dense(op->beta) && lk_tensor_numel(op->beta) == x->shape[1]);
    NEED("response_norm", is_weight_for(op->gamma, x->dtype) && op->beta->dtype == op->gamma->dtype);
    cost->bytes = 3 * bytes_of(x) + bytes_of(op->gamma) + bytes_of(op->beta);
    return LK_OK;
}

enum lk_code lk_check_mean_rows(const struct lk_mean_rows *op, struct lk_cost *cost) {
    NEED("mean_rows", has_dims(op->x, 2) && has_dims(op->y, 2) && is_activation(op->x));
    NEED("mean_rows", op->y->dtype == op->x->dtype && op->y->shape[0] == 1 && op->y->shape[1] == op->x->shape[1]);
    cost->bytes = bytes_of(op->x) + bytes_of(op->y);
    return LK_OK;
}

enum lk_code lk_check_posterior_sample(const struct lk_posterior_sample *op, struct lk_cost *cost) {
    const struct lk_tensor *z = op->z, *moments = op->moments;
    NEED("posterior_sample", has_dims(z, 3) && has_dims(moments, 3) && is_activation(z) && alike(op->noise, z));
    NEED("posterior_sample", lk_tensor_is_dense(z) && lk_tensor_is_dense(moments) && lk_tensor_is_dense(op->noise));
    NEED("posterior_sample", moments->dtype == z->dtype && moments->shape[2] == 2 * z->shape[2]);
    NEED("posterior_sample", moments->shape[0] == z->shape[0] && moments->shape[1] == z->shape[1]);
    cost->bytes = 2 * bytes_of(z) + bytes_of(moments);
    return LK_OK;
}

enum lk_code lk_check_guidance(const struct lk_guidance *op, struct lk_cost *cost) {
    NEED("guidance", has_dims(op->y, 2) && is_activation(op->y) && alike(op->cond, op->y) && alike(op->uncond, op->y));
    NEED("guidance", lk_tensor_is_dense(op->y) && lk_tensor_is_dense(op->cond) && lk_tensor_is_dense(op->uncond));
    NEED("guidance", op->kind == LK_GUIDANCE_RESCALE || op->kind == LK_GUIDANCE_LIMIT);
    cost->bytes = 3 * bytes_of(op->y);
    return LK_OK;
}

enum lk_code lk_check_pack_latents(const struct lk_pack_latents *op, struct lk_cost *cost) {
    const struct lk_tensor *t = op->tokens, *l = op->latents;
    NEED("pack_latents", has_dims(t, 2) && has_dims(l, 3) && is_activation(t) && t->dtype == l->dtype);
    NEED("pack_latents", lk_tensor_is_dense(t) && lk_tensor_is_dense(l));
    NEED("pack_latents", l->shape[0] % 2 == 0 && l->shape[1] % 2 == 0);
    NEED("pack_latents", t->shape[0] == l->shape[0] / 2 * (l->shape[1] / 2) && t->shape[1] == 4 * l->shape[2]);
    cost->bytes = 2 * bytes_of(t);
    return LK_OK;
}

enum lk_code lk_check_euler_step(const struct lk_euler_step *op, struct lk_cost *cost) {
    NEED("euler_step", has_dims(op->x, 2) && alike(op->x, op->v) && is_activation(op->x));
    NEED("euler_step", lk_tensor_is_dense(op->x) && lk_tensor_is_dense(op->v));
    cost->bytes = 3 * bytes_of(op->x);
    return LK_OK;
}

enum lk_code lk_check_distance(const struct lk_distance *op, struct lk_cost *cost) {
    const struct lk_tensor *y = op->y, *a = op->a;
    NEED("distance", has_dims(a, 2) && is_activation(a) && alike(op->b, a));
    NEED("distance", has_dims(y, 2) && y->dtype == LK_F32 && y->shape[0] == a->shape[0] && y->shape[1] == 2);
    cost->bytes = 2 * bytes_of(a) + bytes_of(y);
    return LK_OK;
}

enum lk_code lk_check_blend(const struct lk_blend *op, struct lk_cost *cost) {
    const struct lk_tensor *x = op->x;
    NEED("blend", has_dims(x, 2) && is_activation(x) && lk_tensor_is_dense(x) && op->sigma >= 0 && op->sigma <= 1);
    NEED("blend", alike(op->source, x) && alike(op->noise, x) && alike(op->keep, x));
    NEED("blend", lk_tensor_is_dense(op->source) && lk_tensor_is_dense(op->noise) && lk_tensor_is_dense(op->keep));
    cost->bytes = 5 * bytes_of(x);
    return LK_OK;
}

enum lk_code lk_check_weighted_sum(const struct lk_weighted_sum *op, struct lk_cost *cost) {
    NEED("weighted_sum", has_dims(op->y, 2) && is_activation(op->y) && lk_tensor_is_dense(op->y) && op->x[0]);
    cost->bytes = bytes_of(op->y);
    for (int i = 0; i < LK_SUM_TERMS && op->x[i]; i++) {
        NEED("weighted_sum", alike(op->x[i], op->y) && lk_tensor_is_dense(op->x[i]));
        cost->bytes += bytes_of(op->x[i]);
    }
    return LK_OK;
}

enum lk_code lk_check_copy(const struct lk_copy *op, struct lk_cost *cost) {
    NEED("copy", op->y->n_dims >= 1 && has_dims(op->y, op->y->n_dims) && has_dims(op->x, op->x->n_dims));
    NEED("copy", lk_tensor_same_shape(op->y, op->x) && is_activation(op->y) && is_activation(op->x));
    cost->bytes = bytes_of(op->x) + bytes_of(op->y);
    return LK_OK;
}

enum lk_code lk_check_pixels(const struct lk_pixels *op, struct lk_cost *cost) {
    NEED("pixels", has_dims(op->y, 3) && lk_tensor_same_shape(op->y, op->x));
    NEED("pixels", lk_tensor_is_dense(op->y) && lk_tensor_is_dense(op->x));
    NEED("pixels", (op->x->dtype == LK_U8 && is_activation(op->y)) || (op->y->dtype == LK_U8 && is_activation(op->x)));
    cost->bytes = bytes_of(op->x) + bytes_of(op->y);
    return LK_OK;
}

enum lk_code lk_check_nonfinite(const struct lk_nonfinite *op, struct lk_cost *cost) {
    NEED("nonfinite", op->x->n_dims >= 1 && has_dims(op->x, op->x->n_dims) && is_activation(op->x) && op->count);
    cost->bytes = bytes_of(op->x);
    return LK_OK;
}

#define DEFINE_OP(name, last)                                                                                          \
    enum lk_code lk_##name(struct lk_device *dev, const struct lk_##name *op) {                                        \
        struct lk_cost cost = {0};                                                                                     \
        enum lk_code rc = lk_check_##name(op, &cost);                                                                  \
        if (rc) return rc;                                                                                             \
        dev->cost.flops += cost.flops;                                                                                 \
        dev->cost.bytes += cost.bytes;                                                                                 \
        dev->cost.calls++;                                                                                             \
        size_t mark = lk_arena_mark(&dev->arena);                                                                      \
        size_t bytes = dev->table->name.scratch ? dev->table->name.scratch(dev, op) : 0;                               \
        void *scratch = NULL;                                                                                          \
        if (bytes && (rc = lk_arena_alloc(&dev->arena, bytes, &scratch))) return rc;                                   \
        rc = dev->table->name.run(dev, op, scratch);                                                                   \
        lk_arena_release(&dev->arena, mark);                                                                           \
        return rc;                                                                                                     \
    }
LK_OPS(DEFINE_OP)
