/* u8 RGB <-> [-1, 1]: y = r(2 (x / 255) - 1), and u8(round_half_even(255 clamp(r(x / 2 + 1/2), 0, 1))).
 * Layout: one dense row; a thread takes 8 neighbouring values (elementwise.h); bytes are accessed one by one.
 * Tile: 256 threads, 2048 values. Shared memory: none. sm_80 or newer.
 * Deterministic: every element is computed alone. */
#include "kernels/cuda/common.cuh"

template <class T> __device__ __forceinline__ void pixels_from_bytes(const lk_cuda_elementwise &args) {
    for_each_run(args.rows, args.n, [&](int64_t row, int64_t column, int64_t n) {
        const unsigned char *x = (const unsigned char *)args.a + row * args.ld_a + column;
        vector8 y;
#pragma unroll
        for (int i = 0; i < WIDTH; i++) y.v[i] = i < n ? 2.0f * ((float)x[i] / 255.0f) - 1.0f : 0.0f;
        store((T *)args.y + row * args.ld_y + column, n, args.vector, y);
    });
}
LK_VARIANTS(pixels_from_bytes, lk_cuda_elementwise)

/* NaN gives 0. */
template <class T> __device__ __forceinline__ unsigned char to_byte(float x) {
    float v = rounded<T>(0.5f * x + 0.5f);
    v = v > 0.0f ? v : 0.0f;
    v = v < 1.0f ? v : 1.0f;
    const float round_to_int = 12582912.0f; /* 1.5 * 2^23 */
    return (unsigned char)((255.0f * v + round_to_int) - round_to_int);
}

template <class T> __device__ __forceinline__ void pixels_to_bytes(const lk_cuda_elementwise &args) {
    for_each_run(args.rows, args.n, [&](int64_t row, int64_t column, int64_t n) {
        const vector8 x = load((const T *)args.a + row * args.ld_a + column, n, args.vector);
        unsigned char *y = (unsigned char *)args.y + row * args.ld_y + column;
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            if (i < n) y[i] = to_byte<T>(x.v[i]);
    });
}
LK_VARIANTS(pixels_to_bytes, lk_cuda_elementwise)
