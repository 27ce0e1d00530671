/* out = softmax(scale * q kT) v in f32, on the CUDA cores: for checking, and for stages that run in f32.
 *
 * Layout: a block takes 16 rows (arguments.h) of one key/value head, a warp 4 of them. K and V take turns in one slot
 * of 32 keys. For scores a lane is a key, for outputs a lane is every 32nd column.
 * Shared memory: (16 + 32) * (head_dim + 1) floats: 98,496 bytes for head_dim 512.
 * sm_80 or newer.
 * Deterministic: a row's keys go by in ascending blocks of 32 from key 0 on; a score is one chain over head_dim, a
 * block's sum a fixed tree over lanes, an output a chain over each block's keys, over the blocks of a stretch of 1024
 * keys and over stretches, whose total lies in `out` meanwhile: one chain over 16,384 equal keys (a picture of one
 * colour in a VAE) would err by 4e-4. No atomics, no split over keys. */
#include <math.h>

#include "kernels/cuda/attention/attention_rows.cuh"

constexpr int KEYS = LK_ATTENTION_F32_KEYS, ROWS = LK_ATTENTION_F32_ROWS, WARPS = LK_ATTENTION_WARPS;
constexpr int THREADS = WARPS * 32, WARP_ROWS = ROWS / WARPS, STRETCH = 1024;
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

/* A warp's rows. Outputs of a lane: columns lane + 32 i. */
template <int COLUMNS> struct rows {
    float o[WARP_ROWS][COLUMNS] = {}, sum[WARP_ROWS] = {};      /* of this stretch of keys */
    float total[WARP_ROWS] = {};                                /* sum of the stretches before */
    float most[WARP_ROWS], factor[WARP_ROWS], moved[WARP_ROWS]; /* factors of this block and of the stretch so far */
};

/* Scores of the 32 keys in the slot to probabilities relative to the maximum so far. */
template <int COLUMNS>
__device__ __forceinline__ void add_scores(rows<COLUMNS> &w, const lk_cuda_attention &a, int warp_row, int first_key,
                                           float (&p)[WARP_ROWS]) {
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++) {
        const bool seen = first_key + (int)threadIdx.x % 32 < keys_of_row(a, warp_row + r);
        const float score = seen ? p[r] * a.scale : -INFINITY;
        const float now = fmaxf(w.most[r], most_of_lanes(score));
        w.factor[r] = expf(w.most[r] - now);
        p[r] = expf(score - now);
        w.sum[r] = fmaf(w.sum[r], w.factor[r], sum_of_lanes(p[r]));
        w.moved[r] *= w.factor[r];
        w.most[r] = now;
    }
}

/* Probabilities times the 32 values in the slot. */
template <int COLUMNS>
__device__ __forceinline__ void add_values(rows<COLUMNS> &w, const lk_cuda_attention &a, const float (&p)[WARP_ROWS],
                                           const float *slot) {
    const int lane = threadIdx.x % 32, pitch = a.head_dim + 1;
    float block[WARP_ROWS][COLUMNS] = {};
    for (int key = 0; key < KEYS; key++) {
        float weight[WARP_ROWS];
#pragma unroll
        for (int r = 0; r < WARP_ROWS; r++) weight[r] = __shfl_sync(ALL_LANES, p[r], key);
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) {
            const float value = lane + 32 * i < a.head_dim ? slot[key * pitch + lane + 32 * i] : 0.0f;
#pragma unroll
            for (int r = 0; r < WARP_ROWS; r++) block[r][i] = fmaf(weight[r], value, block[r][i]);
        }
    }
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++)
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) w.o[r][i] = fmaf(w.o[r][i], w.factor[r], block[r][i]);
}

/* A stretch is added to out: `end` is its last key's successor, 0 after the last stretch of all. Rows without keys from
 * `end` on are finished in that last call. */
template <int COLUMNS>
__device__ __forceinline__ void add_stretch(rows<COLUMNS> &w, const lk_cuda_attention &a, int warp_row, int end) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++) {
        if (warp_row + r >= a.n_rows) break;
        const int n_seen = keys_of_row(a, warp_row + r);
        if (n_seen <= end) continue;
        const bool first = end == STRETCH || n_seen <= STRETCH;
        float *row = (float *)a.out + place_of_row(a, a.ld_out, blockIdx.y, warp_row + r);
        w.total[r] = fmaf(w.total[r], w.moved[r], w.sum[r]);
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) {
            if (lane + 32 * i < a.head_dim) {
                const float o = first ? w.o[r][i] : fmaf(row[lane + 32 * i], w.moved[r], w.o[r][i]);
                row[lane + 32 * i] = end ? o : o / w.total[r];
            }
            w.o[r][i] = 0.0f;
        }
        w.sum[r] = 0.0f;
        w.moved[r] = 1.0f;
    }
}

template <int COLUMNS> __device__ __forceinline__ void attention(const lk_cuda_attention &a) {
    extern __shared__ float tile[]; /* Q, then K or V */
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, pitch = a.head_dim + 1;
    const int first_row = (gridDim.x - 1 - blockIdx.x) * ROWS, warp_row = first_row + warp * WARP_ROWS;
    const int n_seen = keys_of_row(a, min(first_row + ROWS, a.n_rows) - 1);
    const float *q = tile + warp * WARP_ROWS * pitch;
    float *slot = tile + ROWS * pitch;
    rows<COLUMNS> w;
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++) w.most[r] = -INFINITY, w.moved[r] = 1.0f;
    load_queries(tile, a, first_row);
    for (int first_key = 0; first_key < n_seen; first_key += KEYS) {
        if (first_key && first_key % STRETCH == 0) add_stretch(w, a, warp_row, first_key);
        float p[WARP_ROWS] = {};
        __syncthreads();
        load_keys(slot, a, a.k, a.ld_k, first_key);
        __syncthreads();
        for (int d = 0; d < a.head_dim; d++) {
            const float key = slot[lane * pitch + d];
#pragma unroll
            for (int r = 0; r < WARP_ROWS; r++) p[r] = fmaf(q[r * pitch + d], key, p[r]);
        }
        add_scores(w, a, warp_row, first_key, p);
        __syncthreads();
        load_keys(slot, a, a.v, a.ld_v, first_key);
        __syncthreads();
        add_values(w, a, p, slot);
    }
    add_stretch(w, a, warp_row, 0);
}

extern "C" __global__ void __launch_bounds__(THREADS) attention_128_f32(const lk_cuda_attention a) { attention<4>(a); }
extern "C" __global__ void __launch_bounds__(THREADS) attention_512_f32(const lk_cuda_attention a) { attention<16>(a); }
