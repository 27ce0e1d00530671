/* y[i] = f32 of the sums of |r(a - b)| and of |b| over row i.
 * Layout: rows with a distance each; a team of threads has a row (rows.h). Tile: one row per team. Shared memory: 256
 * bytes, sums of warps. sm_80 or newer.
 * Deterministic: both sums are taken in double in an order that depends on the row's length only. */
#include "kernels/cuda/rows.cuh"

template <bool WHOLE, class T> __device__ __forceinline__ void distance(const lk_cuda_distance &args) {
    constexpr int N = width<T>;
    const team_row r = my_row(args.n_rows, args.n);
    const T *a = (const T *)args.a + r.row * args.ld_a, *b = (const T *)args.b + r.row * args.ld_b;
    double apart = 0.0, size = 0.0;
#pragma unroll 1
    for (int first = r.lane * N; first < r.n; first += r.team * N) {
        const elements<N> of_a = load_vector<WHOLE>(a + first, r.n - first),
                          of_b = load_vector<WHOLE>(b + first, r.n - first);
#pragma unroll
        for (int i = 0; i < N; i++) {
            apart += (double)fabsf(rounded<T>(of_a.v[i] - of_b.v[i]));
            size += (double)fabsf(of_b.v[i]);
        }
    }
    apart = team_sum(apart);
    size = team_sum(size);
    if (!r.n || r.lane) return;
    args.y[r.row * args.ld_y] = (float)apart;
    args.y[r.row * args.ld_y + 1] = (float)size;
}
LK_ROW_VARIANTS(distance, lk_cuda_distance)
