/* The device side of rows.h. */
#pragma once

#include "kernels/cuda/common.cuh"

/* Vectors of a thread that stay in registers between two passes over a row. */
template <class T> constexpr int kept_vectors = LK_CUDA_ROW_KEPT / width<T>;

/* A thread's share of one row. */
struct team_row {
    int64_t row; /* of all rows */
    int n; /* elements of the row; 0 for threads of a team without a row: they take part in its sums, with nothing */
    int lane, team;
};

__device__ __forceinline__ team_row my_row(int64_t n_rows, int64_t n) {
    team_row r;
    r.row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    r.n = r.row < n_rows ? (int)n : 0;
    r.lane = threadIdx.x;
    r.team = blockDim.x;
    return r;
}

/* Which group of args.per_row rows a row belongs to. */
__device__ __forceinline__ int64_t group_of(const lk_cuda_row_norm &args, int64_t row) {
    if (args.per_row == 1) return row;
    if ((row | args.per_row) >> 32) return row / args.per_row;
    return (unsigned)row / (unsigned)args.per_row;
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

/* Up to width<T> of a row's elements, of which `left` are there. WHOLE: all, and 16-byte aligned. */
template <bool WHOLE, class T> __device__ __forceinline__ elements<width<T>> load_vector(const T *p, int left) {
    if (WHOLE) return load_whole<width<T>>(p);
    return load<width<T>>(p, left, false);
}
template <bool WHOLE, class T>
__device__ __forceinline__ elements<width<T>> load_weight_vector(const void *data, int first, int left, bool is_bf16) {
    if (WHOLE)
        return is_bf16 ? load_whole<width<T>>((const bf16 *)data + first)
                       : load_whole<width<T>>((const float *)data + first);
    return load_weight<width<T>>(data, first, left, is_bf16, false);
}
template <bool WHOLE, class T>
__device__ __forceinline__ void store_vector(T *p, int left, const elements<width<T>> &x) {
    if (WHOLE)
        store_whole(p, x);
    else
        store(p, left, false, x);
}

/* The first vectors of a thread. */
template <class T> struct kept_row { elements<width<T>> of[kept_vectors<T>]; };

template <bool WHOLE, class T> __device__ __forceinline__ kept_row<T> keep(const team_row &r, const T *row) {
    kept_row<T> kept;
#pragma unroll
    for (int k = 0; k < kept_vectors<T>; k++) {
        const int first = (k * r.team + r.lane) * width<T>;
        kept.of[k] = {};
        if (first < r.n) kept.of[k] = load_vector<WHOLE>(row + first, r.n - first);
    }
    return kept;
}

/* body(first, left, x) for each of the thread's vectors in order: `left` elements from `first` on are the row's, x
 * holds as many as width<T> of them and zeros. Vectors that were not kept are read again. */
template <bool WHOLE, class T, class Body>
__device__ __forceinline__ void for_each_vector(const team_row &r, const T *row, const kept_row<T> &kept, Body body) {
#pragma unroll
    for (int k = 0; k < kept_vectors<T>; k++) {
        const int first = (k * r.team + r.lane) * width<T>;
        if (first < r.n) body(first, r.n - first, kept.of[k]);
    }
#pragma unroll 1
    for (int first = (kept_vectors<T> * r.team + r.lane) * width<T>; first < r.n; first += r.team * width<T>)
        body(first, r.n - first, load_vector<WHOLE>(row + first, r.n - first));
}

/* The sum of squares of the row: they are exact in double, so that fused or not is the same. */
template <bool WHOLE, class T>
__device__ __forceinline__ double team_sum_squares(const team_row &r, const T *row, const kept_row<T> &kept) {
    double sum = 0.0;
    for_each_vector<WHOLE>(r, row, kept, [&](int, int, const elements<width<T>> &x) {
#pragma unroll
        for (int i = 0; i < width<T>; i++) sum = fma((double)x.v[i], (double)x.v[i], sum);
    });
    return team_sum(sum);
}

/* Both variants of a kernel for rows of args.n elements, each in two forms. */
#define LK_ROW_VARIANTS(name, arguments)                                                                               \
    extern "C" __global__ void name##_bf16(const arguments a) {                                                        \
        if (a.vector)                                                                                                  \
            name<true, bf16>(a);                                                                                       \
        else                                                                                                           \
            name<false, bf16>(a);                                                                                      \
    }                                                                                                                  \
    extern "C" __global__ void name##_f32(const arguments a) {                                                         \
        if (a.vector)                                                                                                  \
            name<true, float>(a);                                                                                      \
        else                                                                                                           \
            name<false, float>(a);                                                                                     \
    }
