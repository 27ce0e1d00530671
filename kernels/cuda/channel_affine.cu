/* Per channel: y = r(r(x - r(mean)) / std), or back: y = r(r(x std) + r(mean)); inverse_std turns division and
 * multiplication round.
 * Layout: rows of channels with a distance each; a thread takes 16 bytes of neighbouring channels (elementwise.h).
 * Tile: up to 256 threads. Shared memory: none. sm_80 or newer.
 * Deterministic: every element is computed alone. */
#include "kernels/cuda/common.cuh"

template <class T> __device__ __forceinline__ void channel_affine(const lk_cuda_channel_affine &args) {
    for_each_run<width<T>>(args.rows, args.n, [&](int64_t row, int64_t column, int n) {
        const elements<width<T>> mean = load_weight<width<T>>(args.mean, column, n, args.stat_bf16, args.vector);
        const elements<width<T>> std = load_weight<width<T>>(args.std, column, n, args.stat_bf16, args.vector);
        elements<width<T>> x = load<width<T>>((const T *)args.x + row * args.ld_x + column, n, args.vector);
        const bool divide = args.normalize != args.inverse_std;
#pragma unroll
        for (int i = 0; i < width<T>; i++) {
            float v = x.v[i];
            if (args.normalize) v = rounded<T>(v - rounded<T>(mean.v[i]));
            v = divide ? v / std.v[i] : v * std.v[i];
            if (!args.normalize) v = rounded<T>(v) + rounded<T>(mean.v[i]);
            x.v[i] = v;
        }
        store((T *)args.y + row * args.ld_y + column, n, args.vector, x);
    });
}
LK_VARIANTS(channel_affine, lk_cuda_channel_affine)
