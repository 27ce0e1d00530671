/* 2x2 patches to channels and back: pixel (2i + dy, 2j + dx), channel c <-> token i W/2 + j, channel 4 c + 2 dy + dx.
 * Layout: dense; a thread has 16 bytes of a token: two channels of a patch in bf16, one in f32, one where channels are
 * odd or rows not aligned; and as many values of each of its four pixels.
 * Tile: 256 threads. Shared memory: none. sm_80 or newer.
 * Deterministic: values are moved. */
#include "kernels/cuda/common.cuh"

/* The four pixels of a patch, from channel c on. */
template <class T> struct patch {
    T *of[4];
    __device__ __forceinline__ patch(const lk_cuda_pack_latents &args, unsigned token, unsigned c) {
        const unsigned wide = (unsigned)args.tokens_wide, high = token / wide, column = token - high * wide;
#pragma unroll
        for (int k = 0; k < 4; k++)
            of[k] =
                (T *)args.latents + ((int64_t)(2 * high + k / 2) * 2 * wide + 2 * column + k % 2) * args.channels + c;
    }
};

__device__ __forceinline__ void pack_four(const lk_cuda_pack_latents &args, const patch<float> &pixels, int64_t first) {
    float4 *tokens = (float4 *)((float *)args.tokens + first * 4);
    if (args.inverse) {
        const float4 all = *tokens;
        *pixels.of[0] = all.x, *pixels.of[1] = all.y, *pixels.of[2] = all.z, *pixels.of[3] = all.w;
    } else {
        *tokens = make_float4(*pixels.of[0], *pixels.of[1], *pixels.of[2], *pixels.of[3]);
    }
}
/* Two channels: the lower halves of a pixel's word are the first's. */
__device__ __forceinline__ void pack_four(const lk_cuda_pack_latents &args, const patch<bf16> &pixels, int64_t first) {
    uint4 *tokens = (uint4 *)((bf16 *)args.tokens + first * 4);
    unsigned *pixel[4];
#pragma unroll
    for (int k = 0; k < 4; k++) pixel[k] = reinterpret_cast<unsigned *>(pixels.of[k]);
    const unsigned low = 0x5410, high = 0x7632; /* halves of two words */
    if (args.inverse) {
        const uint4 all = *tokens;
        *pixel[0] = __byte_perm(all.x, all.z, low), *pixel[1] = __byte_perm(all.x, all.z, high);
        *pixel[2] = __byte_perm(all.y, all.w, low), *pixel[3] = __byte_perm(all.y, all.w, high);
    } else {
        const unsigned a = *pixel[0], b = *pixel[1], c = *pixel[2], d = *pixel[3];
        *tokens = make_uint4(__byte_perm(a, b, low), __byte_perm(c, d, low), __byte_perm(a, b, high),
                             __byte_perm(c, d, high));
    }
}

template <class T> __device__ __forceinline__ void pack_latents(const lk_cuda_pack_latents &args) {
    const int at_once = args.vector ? (int)(sizeof(float) / sizeof(T)) : 1;
    const unsigned channels = (unsigned)args.channels, n = (unsigned)(args.tokens_high * args.tokens_wide) * channels;
    const unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) * at_once;
    if (i >= n) return;
    const unsigned token = i / channels;
    const patch<T> pixels(args, token, i - token * channels);
    if (args.vector) {
        pack_four(args, pixels, i);
        return;
    }
    T *tokens = (T *)args.tokens + (int64_t)i * 4;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        if (args.inverse)
            *pixels.of[k] = tokens[k];
        else
            tokens[k] = *pixels.of[k];
    }
}
LK_VARIANTS(pack_latents, lk_cuda_pack_latents)
