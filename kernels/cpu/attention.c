/* Attention without the score matrix: for each query row, keys in blocks of fixed size in ascending order, with a
 * running maximum and sum. */
#include <math.h>

#include "kernels/cpu/rows.h"
#include "kernels/cpu/vector_math.h"

#define BLOCK         64
#define MOST_HEAD_DIM 1024

size_t lk_cpu_attention_scratch(const struct lk_device *dev, const struct lk_attention *op) {
    (void)dev;
    (void)op;
    return 0;
}

static void attend(const struct lk_attention *op, int64_t row, int64_t head) {
    int64_t hd = op->q->shape[2], n_keys = op->k->shape[0];
    int64_t kv = head / (op->q->shape[1] / op->k->shape[1]) * hd;
    if (op->causal) n_keys += row + 1 - op->q->shape[0];
    float q[MOST_HEAD_DIM], o[MOST_HEAD_DIM] = {0}, buffer[MOST_HEAD_DIM], p[BLOCK];
    lk_cpu_load(op->q, row * op->q->ld + head * hd, hd, q);
    float m = -INFINITY, sum = 0.0f;
    for (int64_t first = 0; first < n_keys; first += BLOCK) {
        int64_t n = n_keys - first < BLOCK ? n_keys - first : BLOCK;
        float block_max = m;
        for (int64_t j = 0; j < n; j++) {
            const float *k = lk_cpu_view(op->k, (first + j) * op->k->ld + kv, hd, buffer);
            float s = 0.0f;
            for (int64_t d = 0; d < hd; d++) s += q[d] * k[d];
            p[j] = s * op->scale;
            block_max = p[j] > block_max ? p[j] : block_max;
        }
        float rescale = lk_exp(m - block_max);
        m = block_max;
        sum *= rescale;
        for (int64_t d = 0; d < hd; d++) o[d] *= rescale;
        for (int64_t j = 0; j < n; j++) {
            const float *v = lk_cpu_view(op->v, (first + j) * op->v->ld + kv, hd, buffer);
            float e = lk_exp(p[j] - m);
            sum += e;
            for (int64_t d = 0; d < hd; d++) o[d] += e * v[d];
        }
    }
    for (int64_t d = 0; d < hd; d++) o[d] /= sum;
    lk_cpu_store(op->out, row * op->out->ld + head * hd, hd, o);
}

enum lk_code lk_cpu_attention(struct lk_device *dev, const struct lk_attention *op, void *scratch) {
    (void)scratch;
    int64_t n_heads = op->q->shape[1], total = op->q->shape[0] * n_heads;
    if (op->q->shape[2] > MOST_HEAD_DIM)
        return lk_fail(LK_E_INTERNAL, "attention: head_dim: expected at most %d, got %lld", MOST_HEAD_DIM,
                       (long long)op->q->shape[2]);
#pragma omp parallel for schedule(static) num_threads(dev->n_threads)
    for (int64_t i = 0; i < total; i++) attend(op, i / n_heads, i % n_heads);
    return LK_OK;
}
