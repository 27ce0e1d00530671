/* u8 RGB <-> [-1, 1]: y = r(2 (x / 255) - 1), and u8(round_half_even(255 clamp(r(x / 2 + 1/2), 0, 1))).
 * Layout: one dense row; a thread takes 16 bytes of neighbouring values (elementwise.h) and their 8 or 4 bytes.
 * Tile: 256 threads. Shared memory: none. sm_80 or newer.
 * Deterministic: every element is computed alone. */
#include "kernels/cuda/common.cuh"

/* n bytes from p on, as many as N; the others are 0. */
template <int N> struct some_bytes { unsigned words[N / 4]; };
template <int N> __device__ __forceinline__ some_bytes<N> load_bytes(const unsigned char *p, int n, bool vector) {
    some_bytes<N> out = {};
    if (vector && n >= N) {
        const auto all = *reinterpret_cast<const typename words_of<N / 4>::type *>(p);
        memcpy(out.words, &all, N);
        return out;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        if (i < n) out.words[i / 4] |= (unsigned)p[i] << i % 4 * 8;
    return out;
}
template <int N>
__device__ __forceinline__ void store_bytes(unsigned char *p, int n, bool vector, const some_bytes<N> &x) {
    if (vector && n >= N) {
        store_words(p, x.words);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        if (i < n) p[i] = (unsigned char)(x.words[i / 4] >> i % 4 * 8);
}

template <class T> __device__ __forceinline__ void pixels_from_bytes(const lk_cuda_elementwise &args) {
    constexpr int N = width<T>;
    for_each_run<N>(args.rows, args.n, [&](int64_t row, int64_t column, int n) {
        const some_bytes<N> x = load_bytes<N>((const unsigned char *)args.a + row * args.ld_a + column, n, args.vector);
        elements<N> y;
#pragma unroll
        for (int i = 0; i < N; i++) y.v[i] = 2.0f * ((float)(x.words[i / 4] >> i % 4 * 8 & 255u) / 255.0f) - 1.0f;
        store((T *)args.y + row * args.ld_y + column, n, args.vector, y);
    });
}
LK_VARIANTS(pixels_from_bytes, lk_cuda_elementwise)

/* NaN gives 0. */
template <class T> __device__ __forceinline__ unsigned to_byte(float x) {
    const float v = fminf(fmaxf(rounded<T>(0.5f * x + 0.5f), 0.0f), 1.0f);
    const float round_to_int = 12582912.0f; /* 1.5 * 2^23: the integer is left in the low bits */
    return __float_as_uint(255.0f * v + round_to_int) & 255u;
}

template <class T> __device__ __forceinline__ void pixels_to_bytes(const lk_cuda_elementwise &args) {
    constexpr int N = width<T>;
    for_each_run<N>(args.rows, args.n, [&](int64_t row, int64_t column, int n) {
        const elements<N> x = load<N>((const T *)args.a + row * args.ld_a + column, n, args.vector);
        some_bytes<N> y = {};
#pragma unroll
        for (int i = 0; i < N; i++) y.words[i / 4] |= to_byte<T>(x.v[i]) << i % 4 * 8;
        store_bytes<N>((unsigned char *)args.y + row * args.ld_y + column, n, args.vector, y);
    });
}
LK_VARIANTS(pixels_to_bytes, lk_cuda_elementwise)
