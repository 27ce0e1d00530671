/* n = r((x - mean) / sqrt(var + eps) [weight] [+ bias]); y = r(r(r(1 + scale) n) + shift), the modulated layer norm of
 * a transformer block in one pass over memory. Layout: rows with a distance each; a team of threads has a row (rows.h).
 * Tile: one row per team; up to 32 elements of a thread stay in registers, so that rows up to 16384 are read once.
 * Shared memory: 256 bytes, sums of warps. sm_80 or newer.
 * Deterministic: mean and variance are taken in double, one after the other, in an order that depends on the row's
 * length only. */
#include "kernels/cuda/rows.cuh"

template <bool WHOLE, class T> __device__ __forceinline__ void layer_norm(const lk_cuda_row_norm &args) {
    constexpr int N = width<T>;
    const team_row r = my_row(args.n_rows, args.n);
    const T *from = (const T *)args.x + r.row * args.ld_x;
    T *to = (T *)args.y + r.row * args.ld_y;
    const kept_row<T> kept = keep<WHOLE>(r, from);
    double sum = 0.0, squares = 0.0;
    for_each_vector<WHOLE>(r, from, kept, [&](int, int, const elements<N> &x) {
#pragma unroll
        for (int i = 0; i < N; i++) sum += (double)x.v[i];
    });
    const double mean = team_sum(sum) / (double)args.n;
    for_each_vector<WHOLE>(r, from, kept, [&](int, int left, const elements<N> &x) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            const double d = WHOLE || i < left ? (double)x.v[i] - mean : 0.0;
            squares = fma(d, d, squares);
        }
    });
    const double variance = team_sum(squares) / (double)args.n;
    const float center = (float)mean, factor = (float)(1.0 / sqrt(variance + (double)args.eps));
    for_each_vector<WHOLE>(r, from, kept, [&](int first, int left, const elements<N> &x) {
        elements<N> y, operand;
#pragma unroll
        for (int i = 0; i < N; i++) y.v[i] = (x.v[i] - center) * factor;
        if (args.w) {
            operand = load_weight_vector<WHOLE, T>(args.w, first, left, args.w_bf16);
#pragma unroll
            for (int i = 0; i < N; i++) y.v[i] = y.v[i] * operand.v[i];
        }
        if (args.bias) {
            operand = load_weight_vector<WHOLE, T>(args.bias, first, left, args.bias_bf16);
#pragma unroll
            for (int i = 0; i < N; i++) y.v[i] = y.v[i] + operand.v[i];
        }
        if (args.shift) {
            operand = load_vector<WHOLE>((const T *)args.scale + first, left);
#pragma unroll
            for (int i = 0; i < N; i++) y.v[i] = rounded<T>(rounded<T>(1.0f + operand.v[i]) * rounded<T>(y.v[i]));
            operand = load_vector<WHOLE>((const T *)args.shift + first, left);
#pragma unroll
            for (int i = 0; i < N; i++) y.v[i] = y.v[i] + operand.v[i];
        }
        store_vector<WHOLE>(to + first, left, y);
    });
}
LK_ROW_VARIANTS(layer_norm, lk_cuda_row_norm)
