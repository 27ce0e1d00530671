/* out = softmax(scale * q kT) v in f32, on the CUDA cores: for checking, and for stages that run in f32.
 *
 * Layout: a block takes 16 rows (arguments.h) of one key/value head, a warp 4 of them. K and V take turns in one slot
 * of 32 keys. For scores a lane is a key, for outputs a lane is every 32nd column.
 * Shared memory: (16 + 32) * (head_dim + 1) floats: 98,496 bytes for head_dim 512.
 * sm_80 or newer.
 * Deterministic: a row's keys go by in ascending blocks of 32 from key 0 on; a score is one chain over head_dim, a
 * block's sum a fixed tree over lanes, an output one chain over keys. No atomics, no split over keys. */
#include <math.h>

#include "kernels/cuda/attention/attention_rows.cuh"

constexpr int KEYS = LK_ATTENTION_F32_KEYS, ROWS = LK_ATTENTION_F32_ROWS, WARPS = LK_ATTENTION_WARPS;
constexpr int THREADS = WARPS * 32, WARP_ROWS = ROWS / WARPS;
constexpr unsigned ALL_LANES = 0xffffffffu;

__device__ __forceinline__ float most_of_lanes(float x) {
#pragma unroll
    for (int i = 16; i; i /= 2) x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, i));
    return x;
}
__device__ __forceinline__ float sum_of_lanes(float x) {
#pragma unroll
    for (int i = 16; i; i /= 2) x += __shfl_xor_sync(ALL_LANES, x, i);
    return x;
}

/* 32 rows of K or V, 0 beyond the tensor. */
__device__ __forceinline__ void load_keys(float *slot, const lk_cuda_attention &a, const void *data, int64_t ld,
                                          int first_key) {
    for (int i = threadIdx.x; i < KEYS * a.head_dim; i += THREADS) {
        const int r = i / a.head_dim, d = i % a.head_dim, key = first_key + r;
        const float *row = (const float *)data + (int64_t)key * ld + (int64_t)blockIdx.y * a.head_dim;
        slot[r * (a.head_dim + 1) + d] = key < a.n_keys ? row[d] : 0.0f;
    }
}

__device__ __forceinline__ void load_queries(float *tile, const lk_cuda_attention &a, int first_row) {
    for (int i = threadIdx.x; i < ROWS * a.head_dim; i += THREADS) {
        const int r = i / a.head_dim, d = i % a.head_dim;
        const bool inside = first_row + r < a.n_rows;
        tile[r * (a.head_dim + 1) + d] =
            inside ? ((const float *)a.q)[place_of_row(a, a.ld_q, blockIdx.y, first_row + r) + d] : 0.0f;
    }
}

/* Outputs of a lane: columns lane + 32 i. */
template <int COLUMNS> __device__ __forceinline__ void attention(const lk_cuda_attention &a) {
    extern __shared__ float tile[]; /* Q, then K or V */
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, pitch = a.head_dim + 1;
    const int first_row = (gridDim.x - 1 - blockIdx.x) * ROWS, warp_row = first_row + warp * WARP_ROWS;
    const int n_seen = keys_of_row(a, min(first_row + ROWS, a.n_rows) - 1);
    const float *q = tile + warp * WARP_ROWS * pitch;
    float *slot = tile + ROWS * pitch;
    float o[WARP_ROWS][COLUMNS] = {}, most[WARP_ROWS], sum[WARP_ROWS] = {};
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++) most[r] = -INFINITY;
    load_queries(tile, a, first_row);
    for (int first_key = 0; first_key < n_seen; first_key += KEYS) {
        float p[WARP_ROWS] = {};
        __syncthreads();
        load_keys(slot, a, a.k, a.ld_k, first_key);
        __syncthreads();
        for (int d = 0; d < a.head_dim; d++) {
            const float key = slot[lane * pitch + d];
#pragma unroll
            for (int r = 0; r < WARP_ROWS; r++) p[r] = fmaf(q[r * pitch + d], key, p[r]);
        }
#pragma unroll
        for (int r = 0; r < WARP_ROWS; r++) {
            const bool seen = first_key + lane < keys_of_row(a, warp_row + r);
            const float score = seen ? p[r] * a.scale : -INFINITY;
            const float now = fmaxf(most[r], most_of_lanes(score)), factor = expf(most[r] - now);
            p[r] = expf(score - now);
            sum[r] = fmaf(sum[r], factor, sum_of_lanes(p[r]));
            most[r] = now;
#pragma unroll
            for (int i = 0; i < COLUMNS; i++) o[r][i] *= factor;
        }
        __syncthreads();
        load_keys(slot, a, a.v, a.ld_v, first_key);
        __syncthreads();
        for (int key = 0; key < KEYS; key++) {
            float weight[WARP_ROWS];
#pragma unroll
            for (int r = 0; r < WARP_ROWS; r++) weight[r] = __shfl_sync(ALL_LANES, p[r], key);
#pragma unroll
            for (int i = 0; i < COLUMNS; i++) {
                const float value = lane + 32 * i < a.head_dim ? slot[key * pitch + lane + 32 * i] : 0.0f;
#pragma unroll
                for (int r = 0; r < WARP_ROWS; r++) o[r][i] = fmaf(weight[r], value, o[r][i]);
            }
        }
    }
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++) {
        if (warp_row + r >= a.n_rows) break;
        float *row = (float *)a.out + place_of_row(a, a.ld_out, blockIdx.y, warp_row + r);
#pragma unroll
        for (int i = 0; i < COLUMNS; i++)
            if (lane + 32 * i < a.head_dim) row[lane + 32 * i] = o[r][i] / sum[r];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) attention_128_f32(const lk_cuda_attention a) { attention<4>(a); }
extern "C" __global__ void __launch_bounds__(THREADS) attention_512_f32(const lk_cuda_attention a) { attention<16>(a); }
