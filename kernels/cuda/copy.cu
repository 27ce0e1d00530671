/* y = x, with conversion between f32 and bf16 (nearest even); bits pass unchanged where the dtypes agree.
 * Layout: rows with a distance each, or one dense row; a thread takes 8 neighbouring elements (elementwise.h).
 * Tile: up to 256 threads, 2048 elements. Shared memory: none. sm_80 or newer.
 * Deterministic: every element is computed alone. */
#include "kernels/cuda/common.cuh"

template <class To, class From> __device__ __forceinline__ void convert(const lk_cuda_elementwise &args) {
    for_each_run(args.rows, args.n, [&](int64_t row, int64_t column, int64_t n) {
        const vector8 x = load((const From *)args.a + row * args.ld_a + column, n, args.vector);
        store((To *)args.y + row * args.ld_y + column, n, args.vector, x);
    });
}

/* 8 elements as 16-byte words. */
template <class T> __device__ __forceinline__ void copy(const lk_cuda_elementwise &args) {
    for_each_run(args.rows, args.n, [&](int64_t row, int64_t column, int64_t n) {
        const T *x = (const T *)args.a + row * args.ld_a + column;
        T *y = (T *)args.y + row * args.ld_y + column;
        if (args.vector && n >= WIDTH) {
#pragma unroll
            for (int i = 0; i < (int)(WIDTH * sizeof(T) / sizeof(uint4)); i++)
                reinterpret_cast<uint4 *>(y)[i] = reinterpret_cast<const uint4 *>(x)[i];
            return;
        }
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            if (i < n) y[i] = x[i];
    });
}
LK_VARIANTS(copy, lk_cuda_elementwise)

extern "C" __global__ void copy_bf16_to_f32(const lk_cuda_elementwise args) { convert<float, bf16>(args); }
extern "C" __global__ void copy_f32_to_bf16(const lk_cuda_elementwise args) { convert<bf16, float>(args); }
