/* out = r(softmax(scale q kT) v) on the CUDA cores: any head_dim up to 512, any window.
 * Layout: q, out [S_q, n_heads, head_dim], k, v [S_k, n_kv_heads, head_dim], positions a distance apart.
 * Tile: a block of 128 threads has one query of one head, and walks the keys in ascending chunks of 512 as ops.h says.
 * Shared memory: 4624 bytes: the query, a chunk's scores, sums of warps. sm_80 or newer.
 * Deterministic: a score is one chain of fma; maxima and sums are taken in a tree that depends on the chunk's length
 * only; an output element is one chain of fma in the order of the keys. */
#include "kernels/cuda/common.cuh"

constexpr int THREADS = 128, CHUNK = 512, MOST_HEAD_DIM = 512;
constexpr int DIMS = MOST_HEAD_DIM / THREADS; /* of the output, per thread */

template <bool MAXIMUM> __device__ __forceinline__ float reduce(float value) {
    __shared__ float of_warps[THREADS / 32];
    for (int distance = 16; distance; distance /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, value, distance);
        value = MAXIMUM ? fmaxf(value, other) : value + other;
    }
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = of_warps[0];
    for (int warp = 1; warp < THREADS / 32; warp++)
        value = MAXIMUM ? fmaxf(value, of_warps[warp]) : value + of_warps[warp];
    __syncthreads();
    return value;
}

template <class T> __device__ __forceinline__ void attention(const lk_cuda_attention &args) {
    __shared__ float query[MOST_HEAD_DIM], p[CHUNK];
    const int head_dim = args.head_dim, head = blockIdx.y, kv_head = head / args.group;
    const int64_t i = blockIdx.x;
    const int64_t n_k = args.causal ? args.n_k - args.n_q + i + 1 : args.n_k;
    const T *k = (const T *)args.k + (int64_t)kv_head * head_dim, *v = (const T *)args.v + (int64_t)kv_head * head_dim;
    for (int d = threadIdx.x; d < head_dim; d += THREADS)
        query[d] = to_f32(((const T *)args.q)[i * args.ld_q + (int64_t)head * head_dim + d]);
    __syncthreads();
    float out[DIMS] = {}, most = -INFINITY, total = 0.0f;
    for (int64_t first = 0; first < n_k; first += CHUNK) {
        const int n = (int)min((int64_t)CHUNK, n_k - first);
        float chunk_most = most;
        for (int j = threadIdx.x; j < n; j += THREADS) {
            const T *key = k + (first + j) * args.ld_k;
            float score = 0.0f;
            for (int d = 0; d < head_dim; d++) score = fmaf(query[d], to_f32(key[d]), score);
            p[j] = score * args.scale;
            chunk_most = fmaxf(chunk_most, p[j]);
        }
        chunk_most = reduce<true>(chunk_most);
        const float shrink = lk_exp(most - chunk_most);
        most = chunk_most;
        float sum = 0.0f;
        for (int j = threadIdx.x; j < n; j += THREADS) {
            const float e = lk_exp(p[j] - most);
            sum += e;
            p[j] = rounded<T>(e);
        }
        total = fmaf(total, shrink, reduce<false>(sum)); /* and a barrier before p is read */
#pragma unroll
        for (int t = 0; t < DIMS; t++) {
            const int d = t * THREADS + threadIdx.x;
            if (d >= head_dim) continue;
            out[t] *= shrink;
            for (int j = 0; j < n; j++) out[t] = fmaf(p[j], to_f32(v[(first + j) * args.ld_v + d]), out[t]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int t = 0; t < DIMS; t++) {
        const int d = t * THREADS + threadIdx.x;
        if (d < head_dim) ((T *)args.out)[i * args.ld_out + (int64_t)head * head_dim + d] = from_f32<T>(out[t] / total);
    }
}
LK_VARIANTS(attention, lk_cuda_attention)
