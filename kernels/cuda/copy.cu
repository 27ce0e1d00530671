/* y = x, with conversion between f32 and bf16 (nearest even); bits pass unchanged where the dtypes agree.
 * Layout: rows with a distance each, or one dense row; a thread takes 16 bytes of neighbouring elements, of the wider
 * side where the dtypes differ (elementwise.h).
 * Tile: up to 256 threads. Shared memory: none. sm_80 or newer.
 * Deterministic: every element is computed alone. */
#include "kernels/cuda/common.cuh"

template <class To, class From> __device__ __forceinline__ void convert(const lk_cuda_elementwise &args) {
    for_each_run<width<float>>(args.rows, args.n, [&](int64_t row, int64_t column, int n) {
        store((To *)args.y + row * args.ld_y + column, n, args.vector,
              load<width<float>>((const From *)args.a + row * args.ld_a + column, n, args.vector));
    });
}

template <class T> __device__ __forceinline__ void copy(const lk_cuda_elementwise &args) {
    for_each_run<width<T>>(args.rows, args.n, [&](int64_t row, int64_t column, int n) {
        const T *x = (const T *)args.a + row * args.ld_a + column;
        T *y = (T *)args.y + row * args.ld_y + column;
        if (args.vector && n >= width<T>) {
            *reinterpret_cast<uint4 *>(y) = *reinterpret_cast<const uint4 *>(x);
            return;
        }
#pragma unroll
        for (int i = 0; i < width<T>; i++)
            if (i < n) y[i] = x[i];
    });
}
LK_VARIANTS(copy, lk_cuda_elementwise)

extern "C" __global__ void copy_bf16_to_f32(const lk_cuda_elementwise args) { convert<float, bf16>(args); }
extern "C" __global__ void copy_f32_to_bf16(const lk_cuda_elementwise args) { convert<bf16, float>(args); }
