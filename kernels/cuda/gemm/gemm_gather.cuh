/* Elements of A and w of any width, distance and number of channels, for the kernels that cannot copy 16 bytes at a
 * time. */
#pragma once

#include "kernels/cuda/common.cuh"

/* Elements k .. k + 7 of row `row` of A; 0 outside the picture, beyond M and beyond K. */
template <class T> __device__ __forceinline__ void gather_patch(const lk_cuda_gemm &args, int row, int k, T (&e)[8]) {
    const int tap = k / args.channels, py = row / args.width_out;
    int channel = k - tap * args.channels, ky = tap / args.kernel_width, kx = tap - ky * args.kernel_width;
    const int top = py * args.stride - args.pad_top, left = (row - py * args.width_out) * args.stride - args.pad_left;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int y = top + ky, x = left + kx;
        const bool inside =
            row < args.m && k + i < args.k && (unsigned)y < (unsigned)args.height && (unsigned)x < (unsigned)args.width;
        const int64_t pixel = (int64_t)(y >> args.shift) * args.width_in + (x >> args.shift);
        e[i] = inside ? ((const T *)args.x)[pixel * args.ld_x + channel] : 0;
        if (++channel < args.channels) continue;
        channel = 0;
        if (++kx < args.kernel_width) continue;
        kx = 0;
        ky++;
    }
}

/* Elements k .. k + 7 of row `row` of a matrix [rows, columns]; 0 beyond. */
template <class T>
__device__ __forceinline__ void gather_row(const void *matrix, int64_t ld, int rows, int columns, int row, int k,
                                           T (&e)[8]) {
    const T *from = (const T *)matrix + row * ld + k;
#pragma unroll
    for (int i = 0; i < 8; i++) e[i] = row < rows && k + i < columns ? from[i] : 0;
}
