/* 2-D convolution, channels last, on the CUDA cores: any kernel size, stride, padding and enlargement.
 * Layout: dense; w [C_out, C_in, kt, kh, kw] as in checkpoints, of which the last temporal tap is used.
 * Tile: a thread has one output channel of one pixel, a block 32 channels of 8 pixels. Shared memory: none. sm_80 or
 * newer.
 * Deterministic: an output is one chain of fma over (ky, kx, c_in). */
#include "kernels/cuda/common.cuh"

template <class T> __device__ __forceinline__ void conv2d(const lk_cuda_conv2d &args) {
    const int64_t pixel = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    const int c_out = blockIdx.y * blockDim.x + threadIdx.x;
    if (pixel >= (int64_t)args.h_out * args.w_out || c_out >= args.c_out) return;
    const int row = (int)(pixel / args.w_out), column = (int)(pixel % args.w_out), taps = args.kh * args.kw;
    const int top = row * args.stride - args.pad_top, left = column * args.stride - args.pad_left;
    const int shift = args.upsample == 2; /* upsample is 1 or 2 */
    float sum = 0.0f;
    for (int tap = 0; tap < taps; tap++) {
        const int y = top + tap / args.kw, x = left + tap % args.kw;
        if (y < 0 || x < 0 || y >= args.h_in << shift || x >= args.w_in << shift) continue;
        const T *from = (const T *)args.x + ((int64_t)(y >> shift) * args.w_in + (x >> shift)) * args.c_in;
        for (int c = 0; c < args.c_in; c++) {
            const int64_t at = (((int64_t)c_out * args.c_in + c + 1) * args.kt - 1) * taps + tap;
            sum = fmaf(to_f32(from[c]), element(args.w, at, args.w_bf16), sum);
        }
    }
    if (args.bias) sum = sum + element(args.bias, c_out, args.bias_bf16);
    sum = rounded<T>(sum);
    const int64_t at = pixel * args.c_out + c_out;
    if (args.residual) sum = to_f32(((const T *)args.residual)[at]) + sum;
    ((T *)args.y)[at] = from_f32<T>(sum);
}
LK_VARIANTS(conv2d, lk_cuda_conv2d)
