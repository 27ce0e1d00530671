/* A quantised matrix (engine/quantized.h) to bf16: out[i] = r(value of element i), for linear layers to read.
 * Layout: elements one after the other; a thread takes 8 neighbours, which lie in one block of scales or of GGUF, so
 * that a warp reads 128 bytes of nibbles and writes 512 bytes without a gap. NF4's levels lie one to a lane and are
 * fetched by shuffles: a table in memory would be read at 32 different places. Tile: 256 threads, 8 elements each.
 * Shared memory: none. sm_80 or newer. Deterministic: every element is computed alone. */
#include "kernels/cuda/common.cuh"

#define RUN LK_CUDA_DEQUANTIZE_RUN

/* Bytes from any address; what the caller knows of alignment lies in T. */
template <class T> __device__ __forceinline__ T at(const unsigned char *p) { return *reinterpret_cast<const T *>(p); }

__device__ __forceinline__ float half_at(const unsigned char *p) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(at<unsigned short>(p)));
    return value;
}

__device__ __forceinline__ float scale_of(const lk_cuda_dequantize &args, int64_t first) {
    if (!args.scales) return 1.0f;
    return element(args.scales, args.block ? first / args.block : 0, args.scales_bf16);
}

/* n bytes at p, at most RUN, as one word whose lowest byte is the first; word: p is a multiple of 8. */
__device__ __forceinline__ unsigned long long bytes_at(const unsigned char *p, int n, bool word) {
    if (word && n == RUN) return at<unsigned long long>(p);
    unsigned long long all = 0;
    for (int i = 0; i < n; i++) all |= (unsigned long long)p[i] << 8 * i;
    return all;
}

/* Level threadIdx.x % 16 by selection: an argument indexed by a lane would be copied to local memory by every thread.
 */
__device__ __forceinline__ float level_of_lane(const lk_cuda_dequantize &args) {
    float level[16];
#pragma unroll
    for (int i = 0; i < 16; i++) level[i] = args.levels[i];
#pragma unroll
    for (int bit = 1; bit < 16; bit *= 2)
#pragma unroll
        for (int i = 0; i < 16; i += 2 * bit)
            if (threadIdx.x & bit) level[i] = level[i + bit];
    return level[0];
}

struct nf4 {
    /* All lanes of a warp come here, those beyond the end too. */
    static __device__ __forceinline__ void decode(const lk_cuda_dequantize &args, int64_t first, int n,
                                                  float (&v)[RUN]) {
        const unsigned char *p = (const unsigned char *)args.data + first / 2;
        const unsigned codes = n == RUN && args.vector ? at<unsigned>(p) : (unsigned)bytes_at(p, (n + 1) / 2, false);
        const float level = level_of_lane(args), scale = n > 0 ? scale_of(args, first) : 0.0f;
#pragma unroll
        for (int i = 0; i < RUN; i++) {
            const int code = codes >> (8 * (i / 2) + (i % 2 ? 0 : 4)) & 15;
            v[i] = __shfl_sync(0xffffffffu, level, code) * scale;
        }
    }
};

struct q8 {
    static __device__ __forceinline__ void decode(const lk_cuda_dequantize &args, int64_t first, int n,
                                                  float (&v)[RUN]) {
        const unsigned long long codes = bytes_at((const unsigned char *)args.data + first, n, args.vector);
        const float scale = n > 0 ? scale_of(args, first) : 0.0f;
#pragma unroll
        for (int i = 0; i < RUN; i++) v[i] = (float)(signed char)(codes >> 8 * i) * scale;
    }
};

__device__ __forceinline__ float e5m2(unsigned code) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((unsigned short)(code << 8)));
    return value;
}

__device__ __forceinline__ float e4m3(unsigned code) {
    const unsigned sign = (code & 0x80u) << 24, rest = code & 0x7fu;
    /* the bits of a float whose exponent is 120 too small: subnormal codes are subnormal floats */
    const float value = __uint_as_float(rest << 20) * 0x1p120f;
    return __uint_as_float(__float_as_uint(rest == 0x7fu ? __uint_as_float(0x7fc00000u) : value) | sign);
}

template <float (*VALUE)(unsigned)> struct f8 {
    static __device__ __forceinline__ void decode(const lk_cuda_dequantize &args, int64_t first, int n,
                                                  float (&v)[RUN]) {
        const unsigned long long codes = bytes_at((const unsigned char *)args.data + first, n, args.vector);
        const float scale = n > 0 ? scale_of(args, first) : 0.0f;
#pragma unroll
        for (int i = 0; i < RUN; i++) v[i] = VALUE((unsigned)(codes >> 8 * i) & 255u) * scale;
    }
};

/* Blocks of GGUF: RUN elements never cross a block or a sub-block, and n is RUN or nothing. */
struct q8_0 {
    static __device__ __forceinline__ void decode(const lk_cuda_dequantize &args, int64_t first, int n,
                                                  float (&v)[RUN]) {
        const unsigned char *block = (const unsigned char *)args.data + first / 32 * 34;
        if (n <= 0) return;
        const float d = half_at(block);
#pragma unroll
        for (int i = 0; i < RUN; i++) v[i] = d * (float)(signed char)block[2 + first % 32 + i];
    }
};

struct q4_0 {
    static __device__ __forceinline__ void decode(const lk_cuda_dequantize &args, int64_t first, int n,
                                                  float (&v)[RUN]) {
        const unsigned char *block = (const unsigned char *)args.data + first / 32 * 18;
        if (n <= 0) return;
        const float d = half_at(block);
        const int shift = first % 32 < 16 ? 0 : 4;
#pragma unroll
        for (int i = 0; i < RUN; i++) v[i] = d * (float)((block[2 + first % 16 + i] >> shift & 15) - 8);
    }
};

template <bool FIFTH_BITS> struct q45_k {
    static __device__ __forceinline__ void decode(const lk_cuda_dequantize &args, int64_t first, int n,
                                                  float (&v)[RUN]) {
        const int size = FIFTH_BITS ? 176 : 144, j = (int)(first % 256 / 32), l = (int)(first % 32);
        const unsigned char *block = (const unsigned char *)args.data + first / 256 * size, *s = block + 4;
        if (n <= 0) return;
        const int sc = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
        const int m = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
        const float scale = half_at(block) * (float)sc, minimum = half_at(block + 2) * (float)m;
        const unsigned char *nibbles = block + (FIFTH_BITS ? 48 : 16) + j / 2 * 32 + l;
#pragma unroll
        for (int i = 0; i < RUN; i++) {
            int q = nibbles[i] >> (j % 2 ? 4 : 0) & 15;
            if (FIFTH_BITS) q += (block[16 + l + i] >> j & 1) << 4;
            v[i] = scale * (float)q - minimum;
        }
    }
};

struct q6_k {
    static __device__ __forceinline__ void decode(const lk_cuda_dequantize &args, int64_t first, int n,
                                                  float (&v)[RUN]) {
        const unsigned char *block = (const unsigned char *)args.data + first / 256 * 210;
        const int half = (int)(first % 256 / 128), j = (int)(first % 128 / 32), l = (int)(first % 32);
        if (n <= 0) return;
        const float scale = half_at(block + 208) * (float)(signed char)block[192 + first % 256 / 16];
        const unsigned char *low = block + 64 * half + 32 * (j % 2) + l, *high = block + 128 + 32 * half + l;
#pragma unroll
        for (int i = 0; i < RUN; i++) {
            const int q = (low[i] >> (j < 2 ? 0 : 4) & 15) | (high[i] >> 2 * j & 3) << 4;
            v[i] = scale * (float)(q - 32);
        }
    }
};

template <class Format> __device__ __forceinline__ void dequantize(const lk_cuda_dequantize &args) {
    const int64_t first = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * RUN, left = args.n - first;
    const int n = left < RUN ? left < 0 ? 0 : (int)left : RUN;
    elements<RUN> out;
    Format::decode(args, first, n, out.v);
    if (n > 0) store((bf16 *)args.out + first, n, true, out);
}

#define DEQUANTIZE(name, format)                                                                                       \
    extern "C" __global__ void __launch_bounds__(LK_CUDA_DEQUANTIZE_THREADS)                                           \
        dequantize_##name(const lk_cuda_dequantize args) {                                                             \
        dequantize<format>(args);                                                                                      \
    }
DEQUANTIZE(f8_e4m3, f8<e4m3>)
DEQUANTIZE(f8_e5m2, f8<e5m2>)
DEQUANTIZE(nf4, nf4)
DEQUANTIZE(q8, q8)
DEQUANTIZE(q8_0, q8_0)
DEQUANTIZE(q4_0, q4_0)
DEQUANTIZE(q4_k, q45_k<false>)
DEQUANTIZE(q5_k, q45_k<true>)
DEQUANTIZE(q6_k, q6_k)
