/* The end of a linear layer or convolution on eight neighbouring outputs of a row: bias, activation, gate, residual and
 * the rounding points of ops.h. */
#pragma once

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/mma.cuh"

/* x * sigmoid(u), relative error 2e-6 for |u| <= 40, by fused multiply-adds only: no division, and no approximate
 * instruction, whose bits only the hardware knows. Below -87 the sigmoid stays at 1e-38. */
__device__ __forceinline__ float swish(float x, float u) {
    const float shifter = 12582912.0f;                         /* 1.5 * 2^23 */
    float t = fminf(fmaxf(u * -1.44269504f, -126.0f), 126.0f); /* e^-u = 2^t */
    float shifted = t + shifter, f = t - (shifted - shifter);
    float p = fmaf(1.54035304e-4f, f, 1.33335581e-3f); /* 2^f, |f| <= 1/2 */
    p = fmaf(p, f, 9.61812911e-3f);
    p = fmaf(p, f, 5.55041087e-2f);
    p = fmaf(p, f, 2.40226507e-1f);
    p = fmaf(p, f, 6.93147181e-1f);
    p = fmaf(p, f, 1.0f);
    const float d = 1.0f + __uint_as_float(__float_as_uint(p) + (__float_as_uint(shifted) << 23));
    float inverse = __uint_as_float(0x7ef311c7u - __float_as_uint(d)); /* within 13 %; each step squares the error */
    inverse = inverse * fmaf(-d, inverse, 2.0f);
    inverse = inverse * fmaf(-d, inverse, 2.0f);
    inverse = inverse * fmaf(-d, inverse, 2.0f);
    return x * inverse;
}

/* r(.) on eight values. */
template <class T> __device__ __forceinline__ void round_all(vector8 &x);
template <> __device__ __forceinline__ void round_all<float>(vector8 &) {}
template <> __device__ __forceinline__ void round_all<bf16>(vector8 &x) {
#pragma unroll
    for (int i = 0; i < WIDTH; i += 2) {
        const unsigned pair = pack_bf16(x.v[i], x.v[i + 1]);
        x.v[i] = __uint_as_float(pair << 16);
        x.v[i + 1] = __uint_as_float(pair & 0xffff0000u);
    }
}

/* Stores what round_all has rounded. */
__device__ __forceinline__ void store_rounded(float *p, int n, bool vector, const vector8 &x) {
    store(p, n, vector, x);
}
__device__ __forceinline__ void store_rounded(bf16 *p, int n, bool vector, const vector8 &x) {
    unsigned pairs[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        pairs[i] = __byte_perm(__float_as_uint(x.v[2 * i]), __float_as_uint(x.v[2 * i + 1]), 0x7632);
    if (vector && n >= WIDTH) {
        store_words(p, pairs);
        return;
    }
#pragma unroll
    for (int i = 0; i < WIDTH; i++)
        if (i < n) p[i] = (bf16)(pairs[i / 2] >> i % 2 * 16);
}

__device__ __forceinline__ void activate(int kind, vector8 &x) {
#define LK_ACTIVATE(expression)                                                                                        \
    _Pragma("unroll") for (int i = 0; i < WIDTH; i++) {                                                                \
        const float v = x.v[i];                                                                                        \
        x.v[i] = expression;                                                                                           \
    }                                                                                                                  \
    break
    switch (kind) {
    case LK_ACT_SILU:
        LK_ACTIVATE(swish(v, v));
    case LK_ACT_GELU_TANH:
        LK_ACTIVATE(swish(v, v * fmaf(0.0713548163f, v * v, 1.59576912f)));
    case LK_ACT_GELU_ERF:
        LK_ACTIVATE(lk_gelu_erf(v));
    case LK_ACT_QUICK_GELU:
        LK_ACTIVATE(swish(v, 1.702f * v));
    }
#undef LK_ACTIVATE
}

/* n outputs from (row, column) on, at most 8; column is a multiple of 8. Gives back what it stores. */
template <class T>
__device__ __forceinline__ vector8 finish(const lk_cuda_epilogue &out, int64_t row, int column, int n, vector8 v) {
    if (out.round_before_bias) round_all<T>(v);
    if (out.bias) {
        const vector8 bias = load_weight(out.bias, column, n, out.bias_bf16, out.vector_columns);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) v.v[i] = v.v[i] + bias.v[i];
    }
    round_all<T>(v);
    if (out.act != LK_ACT_NONE) {
        activate(out.act, v);
        round_all<T>(v);
    }
    if (out.gate) {
        const vector8 gate = load((const T *)out.gate + column, n, out.vector_columns);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) v.v[i] = gate.v[i] * v.v[i];
        round_all<T>(v);
    }
    if (out.residual) {
        const vector8 residual = load((const T *)out.residual + row * out.ld_residual + column, n, out.vector_rows);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) v.v[i] = residual.v[i] + v.v[i];
        round_all<T>(v);
    }
    store_rounded((T *)out.y + row * out.ld_y + column, n, out.vector_rows, v);
    return v;
}
