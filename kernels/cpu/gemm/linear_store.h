/* The end of a linear layer: bias, activation, gate, residual and the rounding points of ops.h, on one block of the
 * product. The body is compiled once per instruction level; all levels give the same bits. */
#pragma once

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/vector_math.h"

/* lk_gemm_store_fn with a struct lk_linear as context. */
lk_gemm_store_fn lk_linear_store_portable, lk_linear_store_avx2, lk_linear_store_avx512;
lk_gemm_store_fn *lk_linear_store(void); /* of the level in force */

static inline void load_run(const struct lk_tensor *t, int64_t first, int64_t n, float *out) {
    if (t->dtype == LK_BF16) {
        const uint16_t *from = (const uint16_t *)t->data + first;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) out[i] = lk_f32_from_bits((uint32_t)from[i] << 16);
    } else {
        memcpy(out, (const float *)t->data + first, (size_t)n * sizeof *out);
    }
}

/* in holds values that are bf16 already when t is. */
static inline void store_run(const struct lk_tensor *t, int64_t first, int64_t n, const float *in) {
    if (t->dtype == LK_BF16) {
        uint16_t *to = (uint16_t *)t->data + first;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) to[i] = (uint16_t)(lk_f32_bits(in[i]) >> 16);
    } else {
        memcpy((float *)t->data + first, in, (size_t)n * sizeof *in);
    }
}

static inline void round_run(bool bf16, float *v, int64_t n) {
    if (!bf16) return;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) v[i] = lk_round_bf16_simd(v[i]);
}

#define ACT_RUN(f)                                                                                                     \
    do {                                                                                                               \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) v[i] = f(v[i]);                                            \
    } while (0)

static inline void act_run(enum lk_act act, float *v, int64_t n) {
    switch (act) {
    case LK_ACT_NONE:
        break;
    case LK_ACT_SILU:
        ACT_RUN(lk_silu);
        break;
    case LK_ACT_GELU_TANH:
        ACT_RUN(lk_gelu_tanh);
        break;
    case LK_ACT_GELU_ERF:
        ACT_RUN(lk_gelu_erf);
        break;
    case LK_ACT_QUICK_GELU:
        ACT_RUN(lk_quick_gelu);
        break;
    }
}

static inline void store_linear(const struct lk_linear *op, int64_t m, int64_t n_m, int64_t n, int64_t n_n,
                                const float *c, int64_t ldc) {
    float bias[LK_GEMM_BLOCK_MAX], gate[LK_GEMM_BLOCK_MAX], residual[LK_GEMM_BLOCK_MAX], v[LK_GEMM_BLOCK_MAX];
    const bool bf16 = op->y->dtype == LK_BF16;
    if (op->bias) load_run(op->bias, n, n_n, bias);
    if (op->gate) load_run(op->gate, n, n_n, gate);
    for (int64_t r = 0; r < n_m; r++, c += ldc) {
        memcpy(v, c, (size_t)n_n * sizeof *v);
        if (op->round_before_bias) round_run(bf16, v, n_n);
        if (op->bias) {
#pragma omp simd
            for (int64_t i = 0; i < n_n; i++) v[i] = v[i] + bias[i];
        }
        round_run(bf16, v, n_n);
        if (op->act != LK_ACT_NONE) {
            act_run(op->act, v, n_n);
            round_run(bf16, v, n_n);
        }
        if (op->gate) {
#pragma omp simd
            for (int64_t i = 0; i < n_n; i++) v[i] = gate[i] * v[i];
            round_run(bf16, v, n_n);
        }
        if (op->residual) {
            load_run(op->residual, (m + r) * op->residual->ld + n, n_n, residual);
#pragma omp simd
            for (int64_t i = 0; i < n_n; i++) v[i] = residual[i] + v[i];
            round_run(bf16, v, n_n);
        }
        store_run(op->y, (m + r) * op->y->ld + n, n_n, v);
    }
}
