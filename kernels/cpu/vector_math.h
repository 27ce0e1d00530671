/* Elementary functions in f32 that a compiler can vectorise: no branches, no tables, no calls, and no fused
 * multiply-add, so that every instruction level gives the same bits. CUDA kernels include this file too. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "engine/ops.h"

#ifdef __CUDACC__
#define LK_MATH static __device__ __forceinline__
#else
#define LK_MATH static inline
#endif

LK_MATH float lk_f32_from_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}
LK_MATH uint32_t lk_f32_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* e^x within 2 ulp, denormal results included; 0 below -104, infinity above 88.73; NaN stays NaN. */
LK_MATH float lk_exp(float x) {
    const float round_to_int = 12582912.0f; /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */
    float c = x < -105.0f ? -105.0f : x;    /* keeps n inside the two exponent steps below; NaN passes */
    c = c > 90.0f ? 90.0f : c;
    float shifted = c * 1.44269504f + round_to_int;
    float n = shifted - round_to_int;
    float r = (c - n * 0.693359375f) - n * -2.12194440e-4f; /* ln 2 in two parts; the first product is exact */
    float p = 1.98756914e-4f;
    p = p * r + 1.39819994e-3f;
    p = p * r + 8.33345205e-3f;
    p = p * r + 4.16657962e-2f;
    p = p * r + 1.66666657e-1f;
    p = p * r + 5.00000000e-1f;
    p = p * (r * r) + r + 1.0f;
    int32_t i = (int32_t)(lk_f32_bits(shifted) - 0x4b400000u);
    int32_t half = i >> 1;
    float y = p * lk_f32_from_bits((uint32_t)(half + 127) << 23);
    y = y * lk_f32_from_bits((uint32_t)(i - half + 127) << 23);
    return x != x ? x : y;
}

/* x * sigmoid(u). SiLU, the tanh form of GELU and quick GELU are this with different u:
 * 0.5 x (1 + tanh z) = x sigmoid(2 z). For u -> -infinity the quotient x / infinity is the right 0. */
LK_MATH float lk_swish(float x, float u) { return x / (1.0f + lk_exp(-u)); }
LK_MATH float lk_silu(float x) { return lk_swish(x, x); }
LK_MATH float lk_quick_gelu(float x) { return lk_swish(x, 1.702f * x); }
LK_MATH float lk_gelu_tanh(float x) {
    const float two_sqrt_2_over_pi = 1.5957691216f;
    return lk_swish(x, two_sqrt_2_over_pi * (x + 0.044715f * (x * x * x)));
}

/* erf(x) within 2 ulp of 1. */
LK_MATH float lk_erf(float x) {
    float t = lk_f32_from_bits(lk_f32_bits(x) & 0x7fffffffu);
    float s = x * x;
    float near = 8.26745526e-5f;
    near = near * s + -8.11807364e-4f;
    near = near * s + 5.19882966e-3f;
    near = near * s + -2.68584970e-2f;
    near = near * s + 1.12836790e-1f;
    near = near * s + -3.76126326e-1f;
    near = near * s + 1.28379167e-1f;
    near = x + x * near;
    float u = 4.1f < t ? 4.1f : t;
    float far = -4.63921297e-6f; /* log(erfc(u)) / u */
    far = far * u + 4.19460307e-5f;
    far = far * u + 6.80685177e-5f;
    far = far * u + -2.98110609e-3f;
    far = far * u + 2.27564127e-2f;
    far = far * u + -1.05340568e-1f;
    far = far * u + -6.35585253e-1f;
    far = far * u + -1.12856037e+0f;
    far = 1.0f - lk_exp(far * u);
    far = lk_f32_from_bits(lk_f32_bits(far) | (lk_f32_bits(x) & 0x80000000u));
    return t > 0.9375f ? far : near;
}

LK_MATH float lk_gelu_erf(float x) { return 0.5f * x * (1.0f + lk_erf(x * 0.707106781f)); }

/* The nearest bf16 value as a float, as lk_round_bf16, without a branch. */
LK_MATH float lk_round_bf16_simd(float x) {
    uint32_t bits = lk_f32_bits(x);
    uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    uint32_t quiet = bits | 0x00400000u;
    return lk_f32_from_bits(((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded) & 0xffff0000u);
}
