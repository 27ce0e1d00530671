/* y = r(a + b), element by element.
 * Layout: rows with a distance each, or one dense row; a thread takes 8 neighbouring elements (elementwise.h).
 * Tile: up to 256 threads, 2048 elements. Shared memory: none. sm_80 or newer.
 * Deterministic: every element is computed alone. */
#include "kernels/cuda/common.cuh"

template <class T> __device__ __forceinline__ void add(const lk_cuda_elementwise &args) {
    for_each_run(args.rows, args.n, [&](int64_t row, int64_t column, int64_t n) {
        const vector8 a = load((const T *)args.a + row * args.ld_a + column, n, args.vector);
        const vector8 b = load((const T *)args.b + row * args.ld_b + column, n, args.vector);
        vector8 y;
#pragma unroll
        for (int i = 0; i < WIDTH; i++) y.v[i] = a.v[i] + b.v[i];
        store((T *)args.y + row * args.ld_y + column, n, args.vector, y);
    });
}
LK_VARIANTS(add, lk_cuda_elementwise)
