/* What kernels share: elements as f32, eight at a time; the rounding point r(.) of ops.h; walks over rows. */
#pragma once

#include "kernels/cpu/vector_math.h"
#include "kernels/cuda/arguments.h"

using bf16 = unsigned short; /* the upper half of a float */

__device__ __forceinline__ float to_f32(bf16 h) { return __uint_as_float((unsigned)h << 16); }
__device__ __forceinline__ float to_f32(float x) { return x; }

/* r(.): to the nearest value of the storage type, as f32. */
template <class T> __device__ __forceinline__ float rounded(float x);
template <> __device__ __forceinline__ float rounded<bf16>(float x) { return lk_round_bf16_simd(x); }
template <> __device__ __forceinline__ float rounded<float>(float x) { return x; }

template <class T> __device__ __forceinline__ T from_f32(float x);
template <> __device__ __forceinline__ bf16 from_f32<bf16>(float x) {
    return (bf16)(__float_as_uint(lk_round_bf16_simd(x)) >> 16);
}
template <> __device__ __forceinline__ float from_f32<float>(float x) { return x; }

/* Element i of a tensor whose dtype only the arguments know. */
__device__ __forceinline__ float element(const void *data, int64_t i, bool is_bf16) {
    return is_bf16 ? to_f32(((const bf16 *)data)[i]) : ((const float *)data)[i];
}

constexpr int WIDTH = 8; /* elements that a thread handles together: 16 bytes of bf16 */

struct vector8 {
    float v[WIDTH];
};

__device__ __forceinline__ vector8 load_whole(const bf16 *p) {
    const uint4 raw = *reinterpret_cast<const uint4 *>(p);
    const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
    vector8 out;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        out.v[2 * i] = __uint_as_float(words[i] << 16);
        out.v[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
    return out;
}
__device__ __forceinline__ vector8 load_whole(const float *p) {
    const float4 a = reinterpret_cast<const float4 *>(p)[0], b = reinterpret_cast<const float4 *>(p)[1];
    return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}

/* n elements from p on, as many as WIDTH; the others are 0. vector: p is a multiple of 16 bytes. */
template <class T> __device__ __forceinline__ vector8 load(const T *p, int64_t n, bool vector) {
    if (vector && n >= WIDTH) return load_whole(p);
    vector8 out;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) out.v[i] = i < n ? to_f32(p[i]) : 0.0f;
    return out;
}
/* The same from a weight. */
__device__ __forceinline__ vector8 load_weight(const void *data, int64_t first, int64_t n, bool is_bf16, bool vector) {
    return is_bf16 ? load((const bf16 *)data + first, n, vector) : load((const float *)data + first, n, vector);
}

__device__ __forceinline__ void store_whole(bf16 *p, const vector8 &x) {
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        words[i] = (unsigned)from_f32<bf16>(x.v[2 * i]) | (unsigned)from_f32<bf16>(x.v[2 * i + 1]) << 16;
    *reinterpret_cast<uint4 *>(p) = make_uint4(words[0], words[1], words[2], words[3]);
}
__device__ __forceinline__ void store_whole(float *p, const vector8 &x) {
    reinterpret_cast<float4 *>(p)[0] = make_float4(x.v[0], x.v[1], x.v[2], x.v[3]);
    reinterpret_cast<float4 *>(p)[1] = make_float4(x.v[4], x.v[5], x.v[6], x.v[7]);
}

template <class T> __device__ __forceinline__ void store(T *p, int64_t n, bool vector, const vector8 &x) {
    if (vector && n >= WIDTH) {
        store_whole(p, x);
        return;
    }
#pragma unroll
    for (int i = 0; i < WIDTH; i++)
        if (i < n) p[i] = from_f32<T>(x.v[i]);
}

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

/* Calls body(row, column, n) for every run of up to WIDTH columns of this thread (elementwise.h has the grid). */
template <class Body> __device__ __forceinline__ void for_each_run(int64_t rows, int64_t n, Body body) {
    const int64_t column = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * WIDTH;
    if (column >= n) return;
    const int64_t left = n - column < WIDTH ? n - column : WIDTH;
    for (int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; row < rows;
         row += (int64_t)gridDim.y * blockDim.y)
        body(row, column, left);
}

/* Both variants of a kernel template: NAME_bf16 and NAME_f32. */
#define LK_VARIANTS(name, arguments)                                                                                   \
    extern "C" __global__ void name##_bf16(const arguments a) { name<bf16>(a); }                                       \
    extern "C" __global__ void name##_f32(const arguments a) { name<float>(a); }
