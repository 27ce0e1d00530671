/* Depthwise 3 x 3 convolution, channels last: y = r(sum of taps + bias), taps in their order.
 * Layout: dense pixels of channels; a thread has a channel of a pixel, so that a warp reads 32 neighbouring ones.
 * Tile: 256 threads. Shared memory: none; taps and neighbours come from the caches. sm_80 or newer.
 * Deterministic: every element is computed alone. */
#include "kernels/cuda/common.cuh"

template <class T> __device__ __forceinline__ void depthwise(const lk_cuda_depthwise &args) {
    const int64_t total = args.height * args.width * args.channels;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < total;
         at += (int64_t)gridDim.x * blockDim.x) {
        const int64_t c = at % args.channels, pixel = at / args.channels;
        const int64_t i = pixel / args.width, j = pixel % args.width;
        float sum = 0.0f;
        for (int tap = 0; tap < 9; tap++) {
            int64_t y = i + tap / 3 - 1, x = j + tap % 3 - 1;
            if (!args.replicate && (y < 0 || x < 0 || y >= args.height || x >= args.width)) continue;
            y = y < 0 ? 0 : y >= args.height ? args.height - 1 : y;
            x = x < 0 ? 0 : x >= args.width ? args.width - 1 : x;
            sum += to_f32(((const T *)args.x)[(y * args.width + x) * args.channels + c]) *
                   element(args.w, c * 9 + tap, args.w_bf16);
        }
        ((T *)args.y)[at] = from_f32<T>(sum + element(args.bias, c, args.w_bf16));
    }
}
LK_VARIANTS(depthwise, lk_cuda_depthwise)
