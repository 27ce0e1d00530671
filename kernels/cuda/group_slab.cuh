/* The statistics that a convolution leaves for group norm: mean and sum of squared deviations (M2) of each group in
 * each slab of 64 pixels, of the values as memory holds them.
 *
 * A warp takes a slab by a window of 32 or 64 columns, eight neighbours of a row per lane, in two passes. Groups are of
 * 4, 8, 16 or 32 channels, so none crosses a window.
 * Deterministic, and the same bits from every window: rows 8 apart are one chain of sums, in ascending order; halves
 * of eight columns, chains, then eights are added by a fixed tree. */
#pragma once

#include "kernels/cuda/common.cuh"

/* A lane's sums over its rows, of columns 0 to 3 of its eight (first) and of the others (second). */
template <int COLUMNS> struct slab_sums {
    static constexpr int LANES = COLUMNS / 8, HEIGHT = 32 / LANES, CHAINS = 8 / HEIGHT; /* HEIGHT: rows at once */
    static_assert(LANES == 4 || LANES == 8, "chains of rows that are 8 apart");
    float2 chains[CHAINS] = {};

    /* Rows come in ascending order. */
    __device__ __forceinline__ void add(float first, float second) {
        const float2 next = make_float2(chains[0].x + first, chains[0].y + second);
        if (CHAINS == 2) chains[0] = chains[1];
        chains[CHAINS - 1] = next;
    }
    __device__ __forceinline__ void add(const vector8 &v) {
        add((v.v[0] + v.v[1]) + (v.v[2] + v.v[3]), (v.v[4] + v.v[5]) + (v.v[6] + v.v[7]));
    }
    __device__ __forceinline__ void add_squares(const vector8 &v, float2 mean) {
        float2 sum = {};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float first = v.v[i] - mean.x, second = v.v[i + 4] - mean.y;
            sum.x = fmaf(first, first, sum.x);
            sum.y = fmaf(second, second, sum.y);
        }
        add(sum.x, sum.y);
    }
    /* Over a lane's groups, two of 4 columns or twice the same. */
    __device__ __forceinline__ float2 total(int per_group) const {
        constexpr unsigned ALL = 0xffffffffu;
        float2 sum = chains[0], other = chains[CHAINS - 1];
        if (per_group > 4) {
            sum.x += sum.y;
            other.x += other.y;
        }
        if (CHAINS == 2) sum = make_float2(sum.x + other.x, sum.y + other.y);
#pragma unroll
        for (int apart = 16; apart >= LANES; apart /= 2) sum.x += __shfl_xor_sync(ALL, sum.x, apart);
        if (per_group == 4) {
#pragma unroll
            for (int apart = 16; apart >= LANES; apart /= 2) sum.y += __shfl_xor_sync(ALL, sum.y, apart);
            return sum;
        }
        for (int apart = 1; apart < per_group / 8; apart *= 2) sum.x += __shfl_xor_sync(ALL, sum.x, apart);
        return make_float2(sum.x, sum.x);
    }
};

/* The statistics of a warp's slab. `rows` are left of the picture from its first on; column: this lane's first. sums:
 * over the lane's rows q, q + HEIGHT, ... below min(rows, 64), where q = lane / LANES, and read(row) gives them again.
 * A lane whose columns lie outside the picture has none. */
template <int COLUMNS, class Read>
__device__ __forceinline__ void put_slab(const lk_cuda_group_slabs &slabs, int slab, int rows, int column, int channels,
                                         const slab_sums<COLUMNS> &sums, Read read) {
    using window = slab_sums<COLUMNS>;
    const int lane = threadIdx.x % 32;
    const bool whole = rows >= LK_GROUP_SLAB;
    const float inverse = whole ? slabs.inverse : slabs.last_inverse;
    float2 mean = sums.total(slabs.per_group);
    mean = make_float2(mean.x * inverse, mean.y * inverse);
    window deviations;
    if (column < channels) {
        if (whole) {
#pragma unroll 4
            for (int row = lane / window::LANES; row < LK_GROUP_SLAB; row += window::HEIGHT)
                deviations.add_squares(read(row), mean);
        } else {
#pragma unroll 1
            for (int row = lane / window::LANES; row < rows; row += window::HEIGHT)
                deviations.add_squares(read(row), mean);
        }
    }
    const float2 m2 = deviations.total(slabs.per_group);
    if (lane >= window::LANES || column >= channels || rows <= 0 || column % slabs.per_group) return;
    float *to = slabs.to + ((int64_t)(column / slabs.per_group) * slabs.n_slabs + slab) * 2;
    *(float2 *)to = make_float2(mean.x, m2.x);
    if (slabs.per_group == 4 && column + 4 < channels)
        *(float2 *)(to + (int64_t)slabs.n_slabs * 2) = make_float2(mean.y, m2.y);
}
