/* y = r(a + b), element by element.
 * Layout: rows with a distance each, or one dense row; a thread takes 16 bytes of neighbouring elements
 * (elementwise.h). Tile: up to 256 threads, 2048 elements. Shared memory: none. sm_80 or newer. Deterministic: every
 * element is computed alone. */
#include "kernels/cuda/common.cuh"

template <class T> __device__ __forceinline__ void add(const lk_cuda_elementwise &args) {
    for_each_run<width<T>>(args.rows, args.n, [&](int64_t row, int64_t column, int n) {
        const elements<width<T>> a = load<width<T>>((const T *)args.a + row * args.ld_a + column, n, args.vector);
        const elements<width<T>> b = load<width<T>>((const T *)args.b + row * args.ld_b + column, n, args.vector);
        elements<width<T>> y;
#pragma unroll
        for (int i = 0; i < width<T>; i++) y.v[i] = a.v[i] + b.v[i];
        store((T *)args.y + row * args.ld_y + column, n, args.vector, y);
    });
}
LK_VARIANTS(add, lk_cuda_elementwise)
