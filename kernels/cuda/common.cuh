/* What kernels share: elements as f32, eight at a time; the rounding point r(.) of ops.h; walks over rows. */
#pragma once

#include "kernels/cpu/vector_math.h"
#include "kernels/cuda/arguments.h"
#include "kernels/cuda/mma.cuh"

using bf16 = unsigned short; /* the upper half of a float */

__device__ __forceinline__ float to_f32(bf16 h) { return __uint_as_float((unsigned)h << 16); }
__device__ __forceinline__ float to_f32(float x) { return x; }

/* r(.): to the nearest value of the storage type, as f32. One instruction, as lk_round_bf16_simd but for the payload of
 * a NaN. */
template <class T> __device__ __forceinline__ float rounded(float x);
template <> __device__ __forceinline__ float rounded<bf16>(float x) { return __uint_as_float(pack_bf16(0.0f, x)); }
template <> __device__ __forceinline__ float rounded<float>(float x) { return x; }

template <class T> __device__ __forceinline__ T from_f32(float x);
template <> __device__ __forceinline__ bf16 from_f32<bf16>(float x) { return (bf16)pack_bf16(x, 0.0f); }
template <> __device__ __forceinline__ float from_f32<float>(float x) { return x; }

/* Element i of a tensor whose dtype only the arguments know. */
__device__ __forceinline__ float element(const void *data, int64_t i, bool is_bf16) {
    return is_bf16 ? to_f32(((const bf16 *)data)[i]) : ((const float *)data)[i];
}

constexpr int WIDTH = 8; /* elements of an output tile that a thread handles together */

/* Elements that a thread of a streaming kernel handles together: 16 bytes, so that a warp's request covers whole
 * sectors. LK_CUDA_WIDTH of elementwise.h is the same. */
template <class T> constexpr int width = 16 / (int)sizeof(T);

/* N neighbouring elements. */
template <int N> struct elements { float v[N]; };
using vector8 = elements<WIDTH>;

/* The types of as many bytes that are loaded and stored at once. */
template <int WORDS> struct words_of;
template <> struct words_of<1> { using type = unsigned; };
template <> struct words_of<2> { using type = uint2; };
template <> struct words_of<4> { using type = uint4; };

template <int N> __device__ __forceinline__ elements<N> load_whole(const bf16 *p) {
    union {
        typename words_of<N / 2>::type all;
        unsigned words[N / 2];
    } raw;
    raw.all = *reinterpret_cast<const typename words_of<N / 2>::type *>(p);
    elements<N> out;
#pragma unroll
    for (int i = 0; i < N / 2; i++) {
        out.v[2 * i] = __uint_as_float(raw.words[i] << 16);
        out.v[2 * i + 1] = __uint_as_float(raw.words[i] & 0xffff0000u);
    }
    return out;
}
template <int N> __device__ __forceinline__ elements<N> load_whole(const float *p) {
    constexpr int AT_ONCE = N < 4 ? N : 4;
    union {
        typename words_of<AT_ONCE>::type all[N / AT_ONCE];
        float values[N];
    } raw;
    elements<N> out;
#pragma unroll
    for (int i = 0; i < N / AT_ONCE; i++) raw.all[i] = reinterpret_cast<const typename words_of<AT_ONCE>::type *>(p)[i];
#pragma unroll
    for (int i = 0; i < N; i++) out.v[i] = raw.values[i];
    return out;
}

/* n elements from p on, as many as N; the others are 0. vector: p is a multiple of 16 bytes, or of N elements. */
template <int N = WIDTH, class T> __device__ __forceinline__ elements<N> load(const T *p, int n, bool vector) {
    if (vector && n >= N) return load_whole<N>(p);
    elements<N> out;
#pragma unroll
    for (int i = 0; i < N; i++) out.v[i] = i < n ? to_f32(p[i]) : 0.0f;
    return out;
}
/* The same from a weight. */
template <int N = WIDTH>
__device__ __forceinline__ elements<N> load_weight(const void *data, int64_t first, int n, bool is_bf16, bool vector) {
    return is_bf16 ? load<N>((const bf16 *)data + first, n, vector) : load<N>((const float *)data + first, n, vector);
}

/* By name: the compiler takes assignments of whole vectors apart. */
__device__ __forceinline__ void store_words(void *p, const unsigned (&w)[1]) {
    asm volatile("st.global.b32 [%0], %1;" ::"l"(p), "r"(w[0]) : "memory");
}
__device__ __forceinline__ void store_words(void *p, const unsigned (&w)[2]) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(p), "r"(w[0]), "r"(w[1]) : "memory");
}
__device__ __forceinline__ void store_words(void *p, const unsigned (&w)[4]) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
                 : "memory");
}

template <int N> __device__ __forceinline__ void store_whole(bf16 *p, const elements<N> &x) {
    unsigned words[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; i++) words[i] = pack_bf16(x.v[2 * i], x.v[2 * i + 1]);
    store_words(p, words);
}
template <int N> __device__ __forceinline__ void store_whole(float *p, const elements<N> &x) {
    constexpr int AT_ONCE = N < 4 ? N : 4;
#pragma unroll
    for (int k = 0; k < N; k += AT_ONCE) {
        unsigned words[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) words[i] = __float_as_uint(x.v[k + i]);
        store_words(p + k, words);
    }
}

template <class T, int N> __device__ __forceinline__ void store(T *p, int n, bool vector, const elements<N> &x) {
    if (vector && n >= N) {
        store_whole(p, x);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        if (i < n) p[i] = from_f32<T>(x.v[i]);
}

/* Calls body(row, column, n) for every run of up to N columns of this thread (elementwise.h has the grid). */
template <int N, class Body> __device__ __forceinline__ void for_each_run(int64_t rows, int64_t n, Body body) {
    const int64_t column = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    if (column >= n) return;
    const int left = n - column < N ? (int)(n - column) : N;
    for (int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; row < rows;
         row += (int64_t)gridDim.y * blockDim.y)
        body(row, column, left);
}

/* Both variants of a kernel template: NAME_bf16 and NAME_f32. */
#define LK_VARIANTS(name, arguments)                                                                                   \
    extern "C" __global__ void name##_bf16(const arguments a) { name<bf16>(a); }                                       \
    extern "C" __global__ void name##_f32(const arguments a) { name<float>(a); }
