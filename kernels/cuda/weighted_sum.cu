/* y = r(sum of scale[k] x[k]), terms in order, products rounded.
 * Layout: one dense row; a thread takes 16 bytes of neighbouring elements (elementwise.h).
 * Tile: 256 threads, 2048 elements. Shared memory: none. sm_80 or newer.
 * Deterministic: every element is computed alone. */
#include "kernels/cuda/common.cuh"

template <class T> __device__ __forceinline__ void weighted_sum(const lk_cuda_weighted_sum &args) {
    for_each_run<width<T>>(1, args.n, [&](int64_t row, int64_t column, int n) {
        elements<width<T>> y;
#pragma unroll
        for (int k = 0; k < LK_SUM_TERMS; k++) { /* a number that changes would put the arguments into local memory */
            if (k >= args.n_terms) break;
            const elements<width<T>> x = load<width<T>>((const T *)args.x[k] + column, n, args.vector);
#pragma unroll
            for (int i = 0; i < width<T>; i++) {
                const float term = args.scale[k] * x.v[i];
                y.v[i] = k ? y.v[i] + term : term;
            }
        }
        store((T *)args.y + column, n, args.vector, y);
    });
}
LK_VARIANTS(weighted_sum, lk_cuda_weighted_sum)
