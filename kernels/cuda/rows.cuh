/* The device side of rows.h. */
#pragma once

#include "kernels/cuda/common.cuh"

constexpr int KEPT = 4; /* vectors of a thread that stay in registers between two passes over a row */

/* A thread's share of one row. */
struct team_row {
    int64_t row;  /* of all rows */
    bool present; /* threads of a team without a row take part in its sums, with nothing */
    int lane, team;
};

__device__ __forceinline__ team_row my_row(int64_t n_rows) {
    team_row r;
    r.row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    r.present = r.row < n_rows;
    r.lane = threadIdx.x;
    r.team = blockDim.x;
    return r;
}

/* The sum over the team, the same in all of its threads. All threads of the block call it. */
__device__ __forceinline__ double team_sum(double value) {
    __shared__ double of_warps[32];
    const int team = blockDim.x;
    for (int distance = (team < 32 ? team : 32) / 2; distance; distance /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    if (team > 32) {
        if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
        __syncthreads();
        value = of_warps[0];
        for (int warp = 1; warp < team / 32; warp++) value += of_warps[warp];
        __syncthreads();
    }
    return value;
}

/* The first KEPT vectors of a thread. */
struct kept_row {
    vector8 of[KEPT];
};

template <class T> __device__ __forceinline__ kept_row keep(const team_row &r, const T *row, int64_t n, bool vector) {
    kept_row kept;
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        const int64_t first = ((int64_t)k * r.team + r.lane) * WIDTH;
        kept.of[k] = load(row + first, r.present ? n - first : 0, vector);
    }
    return kept;
}

/* body(first, left, x) for each of the thread's vectors in order: `left` elements from `first` on are the row's, x
 * holds as many as WIDTH of them and zeros. Vectors beyond KEPT are read again. */
template <class T, class Body>
__device__ __forceinline__ void for_each_vector(const team_row &r, const T *row, const kept_row &kept, int64_t n,
                                                bool vector, Body body) {
    if (!r.present) return;
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        const int64_t first = ((int64_t)k * r.team + r.lane) * WIDTH;
        if (first < n) body(first, n - first, kept.of[k]);
    }
    for (int64_t first = ((int64_t)KEPT * r.team + r.lane) * WIDTH; first < n; first += (int64_t)r.team * WIDTH)
        body(first, n - first, load(row + first, n - first, vector));
}

/* The sum of squares of (x - mean) over the row. */
template <class T>
__device__ __forceinline__ double team_sum_squares(const team_row &r, const T *row, const kept_row &kept, int64_t n,
                                                   bool vector, double mean) {
    double sum = 0.0;
    for_each_vector(r, row, kept, n, vector, [&](int64_t, int64_t left, const vector8 &x) {
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            const double d = i < left ? (double)x.v[i] - mean : 0.0;
            sum += d * d;
        }
    });
    return team_sum(sum);
}
