/* n = r(x / max(||x||, 1e-12)); y = r(act(r(r(n sqrt(D)) w))) over the last dimension.
 * Layout: groups of rows with a distance each; a team of threads has a row (rows.h).
 * Tile: one row per team; up to 32 elements of a thread stay in registers. Shared memory: 256 bytes. sm_80 or newer.
 * Deterministic: the sum of squares is taken in double in an order that depends on the row's length only. */
#include "kernels/cuda/activate.cuh"
#include "kernels/cuda/rows.cuh"

/* x / norm for a norm whose rounded inverse is known, as the division rounds it. For x of bf16 one correction of the
 * product does for each of 2^7 significands of x and 2^23 of the norm; otherwise one brings it within one unit in the
 * last place, and a second to the nearest value (Markstein). */
template <class T> __device__ __forceinline__ float quotient(float x, float minus_norm, float inverse) {
    float q = x * inverse;
    q = fmaf(fmaf(q, minus_norm, x), inverse, q);
    return sizeof(T) == sizeof(bf16) ? q : fmaf(fmaf(q, minus_norm, x), inverse, q);
}

/* Norms and elements for which no step of it leaves the normal numbers. A zero would lose its sign. */
constexpr float LEAST_NORM = 0x1p-20f, MOST_NORM = 0x1p20f, LEAST_ELEMENT = 0x1p-100f;

template <int N> __device__ __forceinline__ bool divisible(const elements<N> &x) {
    float least = fabsf(x.v[0]);
#pragma unroll
    for (int i = 1; i < N; i++) least = fminf(least, fabsf(x.v[i]));
    return least >= LEAST_ELEMENT;
}

/* r(r(n sqrt(D)) w), rounded once more where an activation follows. */
template <class T, int N>
__device__ __forceinline__ void weigh(elements<N> &n, const lk_cuda_row_norm &args, const elements<N> &w) {
#pragma unroll
    for (int i = 0; i < N; i++) n.v[i] = rounded<T>(rounded<T>(rounded<T>(n.v[i]) * args.gain) * w.v[i]);
}

template <bool WHOLE, class T> __device__ __forceinline__ void l2_norm(const lk_cuda_row_norm &args) {
    constexpr int N = width<T>;
    const team_row r = my_row(args.n_rows * args.per_row, args.n);
    const int64_t group = group_of(args, r.row), head = r.row - group * args.per_row;
    const T *from = (const T *)args.x + group * args.ld_x + head * args.n;
    T *to = (T *)args.y + group * args.ld_y + head * args.n;
    const kept_row<T> kept = keep<WHOLE>(r, from);
    float norm = (float)sqrt(team_sum_squares<WHOLE>(r, from, kept));
    norm = norm < 1e-12f ? 1e-12f : norm; /* NaN stays */
    const float inverse = 1.0f / norm;
    const bool usual = norm >= LEAST_NORM && norm <= MOST_NORM && (args.act == LK_ACT_NONE || args.act == LK_ACT_SILU);
    unsigned left_over = 0; /* vectors that the usual way does not serve; of those the code is there once */
#pragma unroll
    for (int k = 0; k < kept_vectors<T>; k++) {
        const int first = (k * r.team + r.lane) * N, left = r.n - first;
        if (left <= 0) continue;
        left_over |= 1u << k;
        if (!usual || !divisible(kept.of[k])) continue;
        elements<N> y;
#pragma unroll
        for (int i = 0; i < N; i++) y.v[i] = quotient<T>(kept.of[k].v[i], -norm, inverse);
        weigh<T>(y, args, load_weight_vector<WHOLE, T>(args.w, first, left, args.w_bf16));
        if (args.act == LK_ACT_SILU && (sizeof(T) != sizeof(bf16) || !try_short<LK_ACT_SILU>(y))) continue;
        store_vector<WHOLE>(to + first, left, y);
        left_over &= ~(1u << k);
    }
    int k = 0;
#pragma unroll 1
    for (int first = r.lane * N; first < r.n; first += r.team * N, k++) {
        if (k < kept_vectors<T> && !(left_over >> k & 1)) continue;
        const int left = r.n - first;
        elements<N> y = load_vector<WHOLE>(from + first, left);
#pragma unroll
        for (int i = 0; i < N; i++) y.v[i] = y.v[i] / norm;
        weigh<T>(y, args, load_weight_vector<WHOLE, T>(args.w, first, left, args.w_bf16));
        if (args.act != LK_ACT_NONE) {
#pragma unroll
            for (int i = 0; i < N; i++) y.v[i] = act(args.act, y.v[i]);
        }
        store_vector<WHOLE>(to + first, left, y);
    }
}
LK_ROW_VARIANTS(l2_norm, lk_cuda_row_norm)
