/* y = r(w r(x rsqrt(mean(x^2) + eps))) over the last dimension.
 * Layout: groups of rows with a distance each (windows of heads); a team of threads has a row (rows.h).
 * Tile: one row per team; up to 32 elements of a thread stay in registers, so that rows up to 16384 are read once.
 * Shared memory: 256 bytes, sums of warps. sm_80 or newer.
 * Deterministic: the sum of squares is taken in double in an order that depends on the row's length only. */
#include "kernels/cuda/rows.cuh"

template <bool WHOLE, class T> __device__ __forceinline__ void rms_norm(const lk_cuda_row_norm &args) {
    const team_row r = my_row(args.n_rows * args.per_row, args.n);
    const int64_t group = group_of(args, r.row), head = r.row - group * args.per_row;
    const T *from = (const T *)args.x + group * args.ld_x + head * args.n;
    T *to = (T *)args.y + group * args.ld_y + head * args.n;
    const kept_row<T> kept = keep<WHOLE>(r, from);
    const double sum = team_sum_squares<WHOLE>(r, from, kept);
    const float factor = (float)(1.0 / sqrt(sum / (double)args.n + (double)args.eps));
    for_each_vector<WHOLE>(r, from, kept, [&](int first, int left, const elements<width<T>> &x) {
        elements<width<T>> y;
#pragma unroll
        for (int i = 0; i < width<T>; i++) y.v[i] = x.v[i] * factor;
        if (args.w) {
            const elements<width<T>> w = load_weight_vector<WHOLE, T>(args.w, first, left, args.w_bf16);
            if (args.round_before_weight) {
#pragma unroll
                for (int i = 0; i < width<T>; i++) y.v[i] = rounded<T>(y.v[i]);
            }
#pragma unroll
            for (int i = 0; i < width<T>; i++) y.v[i] = y.v[i] * w.v[i];
        }
        store_vector<WHOLE>(to + first, left, y);
    });
}
LK_ROW_VARIANTS(rms_norm, lk_cuda_row_norm)
