/* 2x2 patches to channels and back: pixel (2i + dy, 2j + dx), channel c <-> token i W/2 + j, channel 4 c + 2 dy + dx.
 * Layout: dense; a thread has one channel of one patch: two neighbouring values of each of two pixel rows, four of the
 * token. Tile: 256 threads. Shared memory: none. sm_80 or newer.
 * Deterministic: values are moved. */
#include "kernels/cuda/common.cuh"

template <class T> __device__ __forceinline__ void pack_latents(const lk_cuda_pack_latents &args) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, channels = args.channels;
    const int64_t token = i / channels, c = i - token * channels;
    if (token >= args.tokens_high * args.tokens_wide) return;
    const int64_t high = token / args.tokens_wide, wide = token - high * args.tokens_wide;
    T *tokens = (T *)args.tokens + i * 4, *latents = (T *)args.latents + c;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        T *pixel = latents + ((2 * high + k / 2) * 2 * args.tokens_wide + 2 * wide + k % 2) * channels;
        if (args.inverse)
            *pixel = tokens[k];
        else
            tokens[k] = *pixel;
    }
}
LK_VARIANTS(pack_latents, lk_cuda_pack_latents)
