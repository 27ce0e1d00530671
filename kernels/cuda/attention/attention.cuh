/* What the bf16 attention kernels do with a block of KEYS keys, once it lies in shared memory. A warp owns MT times 16
 * rows: their scores, probabilities and outputs stay in its registers (fragments as in mma.cuh), so that nothing but K
 * and V is shared between warps.
 *
 * The order of a row's arithmetic is fixed here and nowhere else: keys in ascending blocks of 64 from key 0 on; within
 * a block a product over head_dim in steps of 16, the maximum, then sums over the keys that a lane holds, then products
 * over keys in steps of 16. Lanes' sums are added once, at the end. Rows do not meet, and blocks that a row does not
 * see leave it as it is (its factor is 2^0, its probabilities are 0). */
#pragma once

#include "kernels/cuda/attention/attention_rows.cuh"
#include "kernels/cuda/mma.cuh"

constexpr int KEYS = LK_ATTENTION_KEYS, KEY_TILES = KEYS / 8;
constexpr int WARPS = LK_ATTENTION_WARPS, THREADS = WARPS * 32;
constexpr float LOG2_E = 1.44269504088896341f;

__host__ __device__ constexpr int pitch_of(int columns) { return LK_ATTENTION_PITCH(columns); }

/* The same in all lanes, as the compiler then knows: branches on it do not diverge. */
__device__ __forceinline__ int warp_index() { return __shfl_sync(0xffffffffu, threadIdx.x / 32, 0); }

template <int MT> struct softmax_state {
    float most[MT][2]; /* greatest score so far, of rows g and g + 8 */
    float sum[MT][2];  /* of the keys that this lane holds */
    __device__ __forceinline__ softmax_state() {
#pragma unroll
        for (int i = 0; i < 2 * MT; i++) most[i / 2][i % 2] = -INFINITY, sum[i / 2][i % 2] = 0.0f;
    }
};

/* This lane's row of a matrix operand that ldmatrix reads: of rows (queries, or keys of V) ... */
__device__ __forceinline__ unsigned rows_offset(int lane, int pitch) { return lane % 16 * pitch + lane / 16 * 16; }
/* ... and of 16 keys of K, which are the columns of their operand. */
__device__ __forceinline__ unsigned keys_offset(int lane, int pitch) {
    return (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 16;
}

template <int MT, int N> __device__ __forceinline__ void clear(float (&c)[MT][N][4]) {
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) c[mt][n][i] = 0.0f;
}

/* s += q kT over 16 of head_dim; q and k: addresses of this lane's rows. */
template <int MT>
__device__ __forceinline__ void multiply_keys(float (&s)[MT][KEY_TILES][4], unsigned q, int q_pitch, unsigned k,
                                              int k_pitch) {
    unsigned a[MT][4];
#pragma unroll
    for (int mt = 0; mt < MT; mt++) load_matrices(a[mt], q + mt * 16 * q_pitch);
#pragma unroll
    for (int nt = 0; nt < KEY_TILES; nt += 2) {
        unsigned b[4];
        load_matrices(b, k + nt * 8 * k_pitch);
#pragma unroll
        for (int mt = 0; mt < MT; mt++) {
            mma_bf16(s[mt][nt], a[mt], b[0], b[1]);
            mma_bf16(s[mt][nt + 1], a[mt], b[2], b[3]);
        }
    }
}

/* Keys that a row does not see get -infinity. warp_row: the warp's first row. */
template <int MT>
__device__ __forceinline__ void hide_keys(float (&s)[MT][KEY_TILES][4], const lk_cuda_attention &args, int warp_row,
                                          int first_key, int lane) {
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int seen = keys_of_row(args, warp_row + mt * 16 + half * 8 + lane / 4) - first_key - lane % 4 * 2;
#pragma unroll
            for (int nt = 0; nt < KEY_TILES; nt++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (nt * 8 + e >= seen) s[mt][nt][half * 2 + e] = -INFINITY;
        }
}

/* Scores of 16 rows to probabilities relative to the new maximum, rounded to bf16 as the operands of multiply_values:
 * p[i] is of 16 keys. half: rows lane / 4, or those + 8. Returns what brings to that maximum what was summed so far.
 * c = scale * log2 e. */
__device__ __forceinline__ float probabilities(const float (&s)[KEY_TILES][4], unsigned (&p)[KEYS / 16][4], int half,
                                               float &state_most, float &state_sum, float c) {
    float most = state_most;
#pragma unroll
    for (int nt = 0; nt < KEY_TILES; nt++) most = fmaxf(most, fmaxf(s[nt][half * 2], s[nt][half * 2 + 1]));
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
    const float factor = exp2_fast((state_most - most) * c), shift = -(most * c);
    float sum = state_sum * factor;
#pragma unroll
    for (int nt = 0; nt < KEY_TILES; nt++) {
        const float left = exp2_fast(fmaf(s[nt][half * 2], c, shift));
        const float right = exp2_fast(fmaf(s[nt][half * 2 + 1], c, shift));
        sum = sum + left + right;
        p[nt / 2][nt % 2 * 2 + half] = pack_bf16(left, right);
    }
    state_most = most;
    state_sum = sum;
    return factor;
}

/* The same of all rows of a warp, and its outputs brought to the new maximum. */
template <int MT, int NV>
__device__ __forceinline__ void take_softmax(const float (&s)[MT][KEY_TILES][4], unsigned (&p)[MT][KEYS / 16][4],
                                             softmax_state<MT> &state, float (&o)[MT][NV][4], float c) {
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float factor = probabilities(s[mt], p[mt], half, state.most[mt][half], state.sum[mt][half], c);
#pragma unroll
            for (int nv = 0; nv < NV; nv++)
#pragma unroll
                for (int e = 0; e < 2; e++) o[mt][nv][half * 2 + e] *= factor;
        }
}

/* 1 / sum, of the sums of the four lanes that share a row. */
__device__ __forceinline__ float inverse_of_sum(float sum) {
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    return __fdividef(1.0f, sum);
}

/* o += p v; v: address of this lane's row. */
template <int MT, int NV>
__device__ __forceinline__ void multiply_values(float (&o)[MT][NV][4], const unsigned (&p)[MT][KEYS / 16][4],
                                                unsigned v, int v_pitch) {
#pragma unroll
    for (int step = 0; step < KEYS / 16; step++)
#pragma unroll
        for (int nv = 0; nv < NV; nv += 2) {
            unsigned b[4];
            load_matrices_transposed(b, v + step * 16 * v_pitch + nv * 16);
#pragma unroll
            for (int mt = 0; mt < MT; mt++) {
                mma_bf16(o[mt][nv], p[mt][step], b[0], b[1]);
                mma_bf16(o[mt][nv + 1], p[mt][step], b[2], b[3]);
            }
        }
}

/* r(o / sum) to the warp's rows of a tile in shared memory, whose first is at `tile`. */
template <int MT, int NV>
__device__ __forceinline__ void finish(const float (&o)[MT][NV][4], const softmax_state<MT> &state, unsigned char *tile,
                                       int pitch, int lane) {
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float inverse = inverse_of_sum(state.sum[mt][half]);
            unsigned char *row = tile + (mt * 16 + half * 8 + lane / 4) * pitch + lane % 4 * 4;
#pragma unroll
            for (int nv = 0; nv < NV; nv++)
                *reinterpret_cast<unsigned *>(row + nv * 16) =
                    pack_bf16(o[mt][nv][half * 2] * inverse, o[mt][nv][half * 2 + 1] * inverse);
        }
}
