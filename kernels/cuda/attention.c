#include "kernels/cuda/arguments.h"
#include "kernels/cuda/cuda.h"

#define THREADS 128

size_t lk_cuda_attention_scratch(const struct lk_device *dev, const struct lk_attention *op) {
    (void)dev, (void)op;
    return 0;
}

enum lk_code lk_cuda_attention(struct lk_device *dev, const struct lk_attention *op, void *scratch) {
    (void)scratch;
    const struct lk_tensor *q = op->q, *k = op->k;
    struct lk_cuda_attention args = {.out = op->out->data,
                                     .q = q->data,
                                     .k = k->data,
                                     .v = op->v->data,
                                     .n_q = q->shape[0],
                                     .n_k = k->shape[0],
                                     .ld_out = op->out->ld,
                                     .ld_q = q->ld,
                                     .ld_k = k->ld,
                                     .ld_v = op->v->ld,
                                     .n_heads = (int32_t)q->shape[1],
                                     .group = (int32_t)(q->shape[1] / k->shape[1]),
                                     .head_dim = (int32_t)q->shape[2],
                                     .causal = op->causal,
                                     .scale = op->scale};
    struct lk_cuda_grid grid = {.grid = {(unsigned)args.n_q, (unsigned)args.n_heads}, .block = {THREADS}};
    return lk_cuda_launch(dev, "attention", LK_CUDA_VARIANT("attention", q->dtype), &grid, &args);
}
