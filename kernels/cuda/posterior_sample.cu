/* std = r(exp(r(clamp(logvar, -30, 20) / 2))); z = r(mean + r(std noise)).
 * Layout: a row per pixel: z and noise [C], moments [mean C, logvar C]; a thread takes 16 bytes of neighbouring
 * channels (elementwise.h). Tile: up to 256 threads. Shared memory: none. sm_80 or newer. Deterministic: every element
 * is computed alone. */
#include "kernels/cuda/common.cuh"

__device__ __forceinline__ float clamp_logvar(float x) { /* NaN stays */
    const float y = x < -30.0f ? -30.0f : x;
    return y > 20.0f ? 20.0f : y;
}

template <class T> __device__ __forceinline__ void posterior_sample(const lk_cuda_elementwise &args) {
    for_each_run<width<T>>(args.rows, args.n, [&](int64_t row, int64_t column, int n) {
        const T *moments = (const T *)args.a + row * args.ld_a + column;
        const elements<width<T>> mean = load<width<T>>(moments, n, args.vector),
                                 logvar = load<width<T>>(moments + args.n, n, args.vector);
        const elements<width<T>> noise = load<width<T>>((const T *)args.b + row * args.ld_b + column, n, args.vector);
        elements<width<T>> z;
#pragma unroll
        for (int i = 0; i < width<T>; i++) {
            const float std = rounded<T>(lk_exp(rounded<T>(0.5f * clamp_logvar(logvar.v[i]))));
            z.v[i] = mean.v[i] + rounded<T>(std * noise.v[i]);
        }
        store((T *)args.y + row * args.ld_y + column, n, args.vector, z);
    });
}
LK_VARIANTS(posterior_sample, lk_cuda_elementwise)
