/* Activations of N values, with the bits of kernels/cpu/vector_math.h. */
#pragma once

#include "kernels/cuda/common.cuh"

/* act(x) in f32, by the same code as on the CPU. */
__device__ __forceinline__ float act(int kind, float x) {
    switch (kind) {
    case LK_ACT_SILU:
        return lk_silu(x);
    case LK_ACT_GELU_TANH:
        return lk_gelu_tanh(x);
    case LK_ACT_GELU_ERF:
        return lk_gelu_erf(x);
    case LK_ACT_QUICK_GELU:
        return lk_quick_gelu(x);
    default:
        return x;
    }
}

/* What x's sigmoid is taken of, rounded as on the CPU. */
__device__ __forceinline__ float swish_argument(int kind, float x) {
    if (kind == LK_ACT_SILU) return x;
    if (kind == LK_ACT_QUICK_GELU) return 1.702f * x;
    return 1.5957691216f * (x + 0.044715f * (x * x * x));
}

/* x * sigmoid(u) within 3e-6 for u from LEAST_ARGUMENT on: a third of lk_swish's instructions, by fused multiply-adds.
 * The hardware's inverse is corrected once, after which three units in its last place make no difference. */
constexpr float LEAST_ARGUMENT = -80.0f, MOST_ARGUMENT = 80.0f;
template <int KIND> __device__ __forceinline__ float short_swish(float x, float u) {
    const float shifter = 12582912.0f;                    /* 1.5 * 2^23 */
    const float shifted = fmaf(u, -1.44269504f, shifter); /* e^-u = 2^(n + f), |f| <= 1/2 */
    float f = fmaf(u, -1.44269504f, shifter - shifted), inverse;
    if (KIND == LK_ACT_QUICK_GELU) f = fmaf(u, -1.92596299e-8f, f); /* the others' bits do not need it */
    float p = fmaf(1.33952900e-3f, f, 9.67086747e-3f);              /* 2^f */
    p = fmaf(p, f, 5.55033820e-2f);
    p = fmaf(p, f, 2.40222115e-1f);
    p = fmaf(p, f, 6.93147182e-1f);
    p = fmaf(p, f, 1.00000007f);
    const float d = 1.0f + __uint_as_float(__float_as_uint(p) + (__float_as_uint(shifted) << 23));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(d));
    return x * fmaf(inverse, fmaf(-d, inverse, 1.0f), inverse);
}

/* Comparisons are those of integers, which leave the units of f32 to the arithmetic: as unsigned ones negative numbers
 * are the greatest, as signed ones the positive. */
template <int KIND, int N> __device__ __forceinline__ bool try_short(elements<N> &x) {
    float u[N];
    unsigned most = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        u[i] = swish_argument(KIND, x.v[i]);
        most = max(most, __float_as_uint(u[i]));
    }
    if (most > __float_as_uint(LEAST_ARGUMENT)) return false;
#pragma unroll
    for (int i = 0; i < N; i++)
        x.v[i] = short_swish<KIND>(x.v[i], __int_as_float(min(__float_as_int(u[i]), __float_as_int(MOST_ARGUMENT))));
    return true;
}

/* x = act(x), to be rounded to T next; x has values of T. For bf16 the short form then gives the same bits as the CPU's
 * for each of the 65,536 values (tests/cuda/test_short_forms.c). */
template <class T, int N> __device__ __forceinline__ void activate_rounded(int kind, elements<N> &x) {
    if (sizeof(T) == sizeof(bf16)) {
        if (kind == LK_ACT_SILU && try_short<LK_ACT_SILU>(x)) return;
        if (kind == LK_ACT_GELU_TANH && try_short<LK_ACT_GELU_TANH>(x)) return;
        if (kind == LK_ACT_QUICK_GELU && try_short<LK_ACT_QUICK_GELU>(x)) return;
    }
#pragma unroll
    for (int i = 0; i < N; i++) x.v[i] = act(kind, x.v[i]);
}
