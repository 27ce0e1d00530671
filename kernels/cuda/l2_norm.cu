/* n = r(x / max(||x||, 1e-12)); y = r(act(r(r(n sqrt(D)) w))) over the last dimension.
 * Layout: groups of rows with a distance each; a team of threads has a row (rows.h).
 * Tile: one row per team; up to 32 elements of a thread stay in registers. Shared memory: 256 bytes. sm_80 or newer.
 * Deterministic: the sum of squares is taken in double in an order that depends on the row's length only. */
#include "kernels/cuda/activate.cuh"
#include "kernels/cuda/rows.cuh"

/* x / norm for a norm whose rounded inverse is known, as the division rounds it. For x of bf16 one correction of the
 * product does for each of 2^7 significands of x and 2^23 of the norm; otherwise one brings it within one unit in the
 * last place, and a second to the nearest value (Markstein). */
template <class T> __device__ __forceinline__ float quotient(float x, float norm, float inverse) {
    float q = x * inverse;
    q = fmaf(fmaf(-q, norm, x), inverse, q);
    return sizeof(T) == sizeof(bf16) ? q : fmaf(fmaf(-q, norm, x), inverse, q);
}

/* Norms and elements for which no step of it leaves the normal numbers. A zero would lose its sign. */
constexpr float LEAST_NORM = 0x1p-20f, MOST_NORM = 0x1p20f, LEAST_ELEMENT = 0x1p-100f;

template <class T, int N>
__device__ __forceinline__ elements<N> divided(const elements<N> &x, float norm, float inverse) {
    elements<N> y;
    float least = fabsf(x.v[0]);
#pragma unroll
    for (int i = 1; i < N; i++) least = fminf(least, fabsf(x.v[i]));
    if (norm >= LEAST_NORM && norm <= MOST_NORM && least >= LEAST_ELEMENT) {
#pragma unroll
        for (int i = 0; i < N; i++) y.v[i] = quotient<T>(x.v[i], norm, inverse);
    } else {
#pragma unroll
        for (int i = 0; i < N; i++) y.v[i] = x.v[i] / norm;
    }
    return y;
}

template <bool WHOLE, class T> __device__ __forceinline__ void l2_norm(const lk_cuda_row_norm &args) {
    const team_row r = my_row(args.n_rows * args.per_row, args.n);
    const int64_t group = group_of(args, r.row), head = r.row - group * args.per_row;
    const T *from = (const T *)args.x + group * args.ld_x + head * args.n;
    T *to = (T *)args.y + group * args.ld_y + head * args.n;
    const kept_row<T> kept = keep<WHOLE>(r, from);
    float norm = (float)sqrt(team_sum_squares<WHOLE>(r, from, kept));
    norm = norm < 1e-12f ? 1e-12f : norm; /* NaN stays */
    const float inverse = 1.0f / norm;
    for_each_vector<WHOLE>(r, from, kept, [&](int first, int left, const elements<width<T>> &x) {
        const elements<width<T>> w = load_weight_vector<WHOLE, T>(args.w, first, left, args.w_bf16);
        elements<width<T>> y = divided<T>(x, norm, inverse);
#pragma unroll
        for (int i = 0; i < width<T>; i++) y.v[i] = rounded<T>(rounded<T>(y.v[i]) * args.gain) * w.v[i];
        if (args.act != LK_ACT_NONE) {
#pragma unroll
            for (int i = 0; i < width<T>; i++) y.v[i] = rounded<T>(y.v[i]);
            activate_rounded<T>(args.act, y);
        }
        store_vector<WHOLE>(to + first, left, y);
    });
}
LK_ROW_VARIANTS(l2_norm, lk_cuda_row_norm)
