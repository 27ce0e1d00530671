/* y = r(r(act(x[:, :N])) x[:, N:]).
 * Layout: rows with a distance each, gate and value side by side; a thread takes 16 bytes of neighbouring outputs
 * (elementwise.h). Tile: up to 256 threads, 2048 outputs. Shared memory: none. sm_80 or newer.
 * Deterministic: every element is computed alone. */
#include "kernels/cuda/activate.cuh"

template <class T> __device__ __forceinline__ void gated_act(const lk_cuda_elementwise &args) {
    for_each_run<width<T>>(args.rows, args.n, [&](int64_t row, int64_t column, int n) {
        elements<width<T>> gate = load<width<T>>((const T *)args.a + row * args.ld_a + column, n, args.vector);
        const elements<width<T>> value = load<width<T>>((const T *)args.b + row * args.ld_b + column, n, args.vector);
        activate_rounded<T>(args.act, gate);
        elements<width<T>> y;
#pragma unroll
        for (int i = 0; i < width<T>; i++) y.v[i] = rounded<T>(gate.v[i]) * value.v[i];
        store((T *)args.y + row * args.ld_y + column, n, args.vector, y);
    });
}
LK_VARIANTS(gated_act, lk_cuda_elementwise)
