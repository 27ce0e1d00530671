/* n = r((x - mean) / sqrt(var + eps) [weight] [+ bias]); y = r(r(r(1 + scale) n) + shift), the modulated layer norm of
 * a transformer block in one pass over memory. Layout: rows with a distance each; a team of threads has a row (rows.h).
 * Tile: one row per team; up to 32 elements of a thread stay in registers, so that rows up to 32768 are read once.
 * Shared memory: 256 bytes, sums of warps. sm_80 or newer.
 * Deterministic: mean and variance are taken in double, one after the other, in an order that depends on the row's
 * length only. */
#include "kernels/cuda/rows.cuh"

template <class T> __device__ __forceinline__ void layer_norm(const lk_cuda_row_norm &args) {
    const team_row r = my_row(args.n_rows);
    const T *from = (const T *)args.x + r.row * args.ld_x;
    T *to = (T *)args.y + r.row * args.ld_y;
    const bool vector = args.vector;
    const int64_t n = args.n;
    const kept_row kept = keep(r, from, n, vector);
    double sum = 0.0;
    for_each_vector(r, from, kept, n, vector, [&](int64_t, int64_t, const vector8 &x) {
#pragma unroll
        for (int i = 0; i < WIDTH; i++) sum += (double)x.v[i];
    });
    const double mean = team_sum(sum) / (double)n;
    const double variance = team_sum_squares(r, from, kept, n, vector, mean) / (double)n;
    const float center = (float)mean, factor = (float)(1.0 / sqrt(variance + (double)args.eps));
    for_each_vector(r, from, kept, n, vector, [&](int64_t first, int64_t left, const vector8 &x) {
        vector8 y, operand;
#pragma unroll
        for (int i = 0; i < WIDTH; i++) y.v[i] = (x.v[i] - center) * factor;
        if (args.w) {
            operand = load_weight(args.w, first, left, args.w_bf16, vector);
#pragma unroll
            for (int i = 0; i < WIDTH; i++) y.v[i] = y.v[i] * operand.v[i];
        }
        if (args.bias) {
            operand = load_weight(args.bias, first, left, args.bias_bf16, vector);
#pragma unroll
            for (int i = 0; i < WIDTH; i++) y.v[i] = y.v[i] + operand.v[i];
        }
        if (args.shift) {
            operand = load((const T *)args.scale + first, left, vector);
#pragma unroll
            for (int i = 0; i < WIDTH; i++) y.v[i] = rounded<T>(rounded<T>(1.0f + operand.v[i]) * rounded<T>(y.v[i]));
            operand = load((const T *)args.shift + first, left, vector);
#pragma unroll
            for (int i = 0; i < WIDTH; i++) y.v[i] = y.v[i] + operand.v[i];
        }
        store(to + first, left, vector, y);
    });
}
LK_VARIANTS(layer_norm, lk_cuda_row_norm)
