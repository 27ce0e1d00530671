/* x = r(x + r(dt v)), in place; dt comes rounded.
 * Layout: one dense row; a thread takes 16 bytes of neighbouring elements (elementwise.h).
 * Tile: 256 threads, 2048 elements. Shared memory: none. sm_80 or newer.
 * Deterministic: every element is computed alone. */
#include "kernels/cuda/common.cuh"

template <class T> __device__ __forceinline__ void euler_step(const lk_cuda_elementwise &args) {
    for_each_run<width<T>>(args.rows, args.n, [&](int64_t row, int64_t column, int n) {
        T *x = (T *)args.y + row * args.ld_y + column;
        const elements<width<T>> v = load<width<T>>((const T *)args.a + row * args.ld_a + column, n, args.vector);
        elements<width<T>> y = load<width<T>>(x, n, args.vector);
#pragma unroll
        for (int i = 0; i < width<T>; i++) y.v[i] = y.v[i] + rounded<T>(v.v[i] * args.factor);
        store(x, n, args.vector, y);
    });
}
LK_VARIANTS(euler_step, lk_cuda_elementwise)
