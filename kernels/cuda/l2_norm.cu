/* n = r(x / max(||x||, 1e-12)); y = r(act(r(r(n sqrt(D)) w))) over the last dimension.
 * Layout: groups of rows with a distance each; a team of threads has a row (rows.h).
 * Tile: one row per team; up to 32 elements of a thread stay in registers. Shared memory: 256 bytes. sm_80 or newer.
 * Deterministic: the sum of squares is taken in double in an order that depends on the row's length only. */
#include "kernels/cuda/rows.cuh"

template <class T> __device__ __forceinline__ void l2_norm(const lk_cuda_row_norm &args) {
    const team_row r = my_row(args.n_rows * args.per_row);
    const int64_t group = r.row / args.per_row, head = r.row - group * args.per_row;
    const T *from = (const T *)args.x + group * args.ld_x + head * args.n;
    T *to = (T *)args.y + group * args.ld_y + head * args.n;
    const kept_row kept = keep(r, from, args.n, args.vector);
    float norm = (float)sqrt(team_sum_squares(r, from, kept, args.n, args.vector, 0.0));
    norm = norm < 1e-12f ? 1e-12f : norm; /* NaN stays */
    for_each_vector(r, from, kept, args.n, args.vector, [&](int64_t first, int64_t left, const vector8 &x) {
        const vector8 w = load_weight(args.w, first, left, args.w_bf16, args.vector);
        vector8 y;
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            y.v[i] = rounded<T>(rounded<T>(x.v[i] / norm) * args.gain) * w.v[i];
            if (args.act != LK_ACT_NONE) y.v[i] = act(args.act, rounded<T>(y.v[i]));
        }
        store(to + first, left, args.vector, y);
    });
}
LK_VARIANTS(l2_norm, lk_cuda_row_norm)
