/* Where keep is 1: x = p = r(r(sigma noise) + r(rest source)), in place; where it is between 0 and 1,
 * r(r(keep p) + r(r(1 - keep) x)); sigma and rest come rounded.
 * Layout: one dense row; a thread takes 16 bytes of neighbouring elements (elementwise.h).
 * Tile: 256 threads, 2048 elements. Shared memory: none. sm_80 or newer.
 * Deterministic: every element is computed alone. */
#include "kernels/cuda/common.cuh"

template <class T> __device__ __forceinline__ void blend(const lk_cuda_blend &args) {
    for_each_run<width<T>>(1, args.n, [&](int64_t row, int64_t column, int n) {
        T *x = (T *)args.y + column;
        const elements<width<T>> source = load<width<T>>((const T *)args.source + column, n, args.vector),
                                 noise = load<width<T>>((const T *)args.noise + column, n, args.vector),
                                 keep = load<width<T>>((const T *)args.keep + column, n, args.vector);
        elements<width<T>> y = load<width<T>>(x, n, args.vector);
#pragma unroll
        for (int i = 0; i < width<T>; i++) {
            if (keep.v[i] == 0.0f) continue;
            const float p = rounded<T>(args.sigma * noise.v[i]) + rounded<T>(args.rest * source.v[i]);
            y.v[i] = keep.v[i] == 1.0f
                         ? p
                         : rounded<T>(keep.v[i] * rounded<T>(p)) + rounded<T>(rounded<T>(1.0f - keep.v[i]) * y.v[i]);
        }
        store(x, n, args.vector, y);
    });
}
LK_VARIANTS(blend, lk_cuda_blend)
