/* out = r(softmax(scale * q kT) v) in bf16 for head_dim 512, the single head of a VAE's attention; scale > 0, rows
 * aligned to 16 bytes. attention_any.cu does the rest with the same bits, attention.c chooses.
 *
 * Layout: a block takes 64 rows (arguments.h) of one key/value head and goes through all keys that any of them sees, 64
 * at a time. Outputs of 64 x 512 fill the registers of a multiprocessor: eight warps have 32 rows x 128 columns each.
 * Of the scores a warp computes 32 rows x 16 keys; the four warps of the same rows exchange them through shared memory
 * and all take the softmax of all 64 keys, so that a row's sums are those of one warp.
 * K and V pass through a ring of four slots: per block of keys four quarters of K's columns, then four quarters of V's
 * rows, each copied three steps ahead; one barrier per step.
 * Tiles: 8 warps, 64 rows x 64 keys. Shared memory: Q 66,560 bytes, the ring 69,632, scores 16,384: one block per SM.
 * sm_80 or newer.
 * Deterministic: attention.cuh says in which order; no atomics, no split over keys. */
#include "kernels/cuda/attention.cuh"

constexpr int HD = 512, ROWS = 64, ALL_THREADS = 256, PARTS = 4;
constexpr int K_COLUMNS = HD / PARTS, V_KEYS = KEYS / PARTS, OWN = HD / PARTS; /* OWN: a warp's columns of the output */
constexpr int PITCH = pitch_of(HD), K_PITCH = pitch_of(K_COLUMNS), SLOT = KEYS * K_PITCH;
static_assert(V_KEYS * PITCH <= SLOT && V_KEYS == 16, "a slot holds a quarter of K or of V");

/* A quarter of K: all KEYS keys, columns [part * K_COLUMNS, ...); 0 beyond the tensor. */
__device__ __forceinline__ void copy_k(unsigned slot, const lk_cuda_attention &a, int first_key, int part) {
    const int column = threadIdx.x % 16;
#pragma unroll
    for (int r = threadIdx.x / 16; r < KEYS; r += ALL_THREADS / 16) {
        const bool inside = first_key + r < a.n_keys;
        const unsigned short *row =
            (const unsigned short *)a.k + (inside ? first_key + r : 0) * a.ld_k + (int64_t)blockIdx.y * HD;
        copy_async(slot + r * K_PITCH + column * 16, row + part * K_COLUMNS + column * 8, inside ? 16 : 0);
    }
}
/* A quarter of V: keys [first_key, first_key + V_KEYS). */
__device__ __forceinline__ void copy_v(unsigned slot, const lk_cuda_attention &a, int first_key) {
    const int column = threadIdx.x % (HD / 8);
#pragma unroll
    for (int r = threadIdx.x / (HD / 8); r < V_KEYS; r += ALL_THREADS / (HD / 8)) {
        const bool inside = first_key + r < a.n_keys;
        const unsigned short *row =
            (const unsigned short *)a.v + (inside ? first_key + r : 0) * a.ld_v + (int64_t)blockIdx.y * HD;
        copy_async(slot + r * PITCH + column * 16, row + column * 8, inside ? 16 : 0);
    }
}
__device__ __forceinline__ void copy_q(unsigned q, const lk_cuda_attention &a, int first_row) {
    const int column = threadIdx.x % (HD / 8);
    for (int r = threadIdx.x / (HD / 8); r < ROWS; r += ALL_THREADS / (HD / 8)) {
        const bool inside = first_row + r < a.n_rows;
        const unsigned short *row =
            (const unsigned short *)a.q + place_of_row(a, a.ld_q, blockIdx.y, inside ? first_row + r : 0);
        copy_async(q + r * PITCH + column * 16, row + column * 8, inside ? 16 : 0);
    }
}

/* s += q kT over a quarter of head_dim, for 32 rows and the warp's 16 keys. */
__device__ __forceinline__ void multiply_part(float (&s)[2][2][4], unsigned q, unsigned k) {
#pragma unroll 4
    for (int step = 0; step < K_COLUMNS / 16; step++) {
        unsigned x[2][4], b[4];
        load_matrices(x[0], q + step * 32);
        load_matrices(x[1], q + 16 * PITCH + step * 32);
        load_matrices(b, k + step * 32);
#pragma unroll
        for (int mt = 0; mt < 2; mt++) {
            mma_bf16(s[mt][0], x[mt], b[0], b[1]);
            mma_bf16(s[mt][1], x[mt], b[2], b[3]);
        }
    }
}

/* o += p v over 16 keys, for 32 rows and the warp's columns. */
__device__ __forceinline__ void multiply_value_part(float (&o)[2][1][OWN / 8][4],
                                                    const unsigned (&p)[2][1][KEYS / 16][4], int part, unsigned v) {
#pragma unroll
    for (int nv = 0; nv < OWN / 8; nv += 2) {
        unsigned b[4];
        load_matrices_transposed(b, v + nv * 16);
#pragma unroll
        for (int mt = 0; mt < 2; mt++) {
            mma_bf16(o[mt][0][nv], p[mt][0][part], b[0], b[1]);
            mma_bf16(o[mt][0][nv + 1], p[mt][0][part], b[2], b[3]);
        }
    }
}

/* Where a lane's four scores of 16 rows x 8 keys lie: of the block's two groups of rows, two times 16 rows, eight tiles
 * of keys. */
__device__ __forceinline__ float4 *score_place(float4 *scores, int group, int mt, int tile, int lane) {
    return scores + ((group * 2 + mt) * KEY_TILES + tile) * 32 + lane;
}

extern "C" __global__ void __launch_bounds__(ALL_THREADS, 1) attention_512_bf16(const lk_cuda_attention a) {
    extern __shared__ __align__(16) unsigned char tile[]; /* Q, the ring, scores */
    const int warp = warp_index(), lane = threadIdx.x % 32, group = warp / PARTS, quarter = warp % PARTS;
    const int first_row = (gridDim.x - 1 - blockIdx.x) * ROWS, warp_row = first_row + group * 32;
    const int n_seen = keys_of_row(a, min(first_row + ROWS, a.n_rows) - 1);
    /* Keys that any of the warp's rows sees, and that all see. */
    const int warp_seen = warp_row < a.n_rows ? keys_of_row(a, min(warp_row + 32, a.n_rows) - 1) : 0;
    const int warp_all = keys_of_row(a, warp_row);
    const unsigned q = shared_address(tile), ring = q + ROWS * PITCH;
    float4 *scores = reinterpret_cast<float4 *>(tile + ROWS * PITCH + PARTS * SLOT);
    const unsigned q_rows = q + group * 32 * PITCH + rows_offset(lane, PITCH);
    const unsigned k_rows = ring + quarter * 16 * K_PITCH + keys_offset(lane, K_PITCH);
    const unsigned v_rows = ring + quarter * OWN * 2 + rows_offset(lane, PITCH);
    const float c = a.scale * LOG2_E;

    float o[2][1][OWN / 8][4];
    softmax_state<1> state[2];
    clear(o[0]);
    clear(o[1]);
    copy_q(q, a, first_row);
#pragma unroll
    for (int part = 0; part < PARTS - 1; part++) {
        copy_k(ring + part * SLOT, a, 0, part);
        copy_commit();
    }
#pragma unroll 1
    for (int first_key = 0; first_key < n_seen; first_key += KEYS) {
        const bool sees = __any_sync(0xffffffffu, first_key < warp_seen);
        float s[2][2][4] = {};
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            copy_wait<2>();
            __syncthreads(); /* this part is there, and nobody reads the last one any more */
            const int next = (part + PARTS - 1) % PARTS;
            if (part == 0)
                copy_k(ring + next * SLOT, a, first_key, next);
            else
                copy_v(ring + next * SLOT, a, first_key + next * V_KEYS);
            copy_commit();
            if (sees) multiply_part(s, q_rows + part * K_COLUMNS * 2, k_rows + part * SLOT);
        }
        if (sees) {
#pragma unroll
            for (int i = 0; i < 4; i++)
                *score_place(scores, group, i / 2, quarter * 2 + i % 2, lane) =
                    make_float4(s[i / 2][i % 2][0], s[i / 2][i % 2][1], s[i / 2][i % 2][2], s[i / 2][i % 2][3]);
        }
        unsigned p[2][1][KEYS / 16][4];
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            copy_wait<2>();
            __syncthreads(); /* at the first part also: the scores are there */
            const int next = (part + PARTS - 1) % PARTS;
            if (part == 0)
                copy_v(ring + next * SLOT, a, first_key + next * V_KEYS);
            else if (first_key + KEYS < n_seen)
                copy_k(ring + next * SLOT, a, first_key + KEYS, next);
            copy_commit();
            if (!sees) continue;
            if (part == 0) {
#pragma unroll
                for (int mt = 0; mt < 2; mt++) {
                    float all[1][KEY_TILES][4];
#pragma unroll
                    for (int nt = 0; nt < KEY_TILES; nt++) {
                        const float4 four = *score_place(scores, group, mt, nt, lane);
                        all[0][nt][0] = four.x, all[0][nt][1] = four.y, all[0][nt][2] = four.z, all[0][nt][3] = four.w;
                    }
                    if (first_key + KEYS > warp_all) hide_keys(all, a, warp_row + mt * 16, first_key, lane);
                    take_softmax(all, p[mt], state[mt], o[mt], c);
                    __syncwarp(); /* so that the next rows' scores are not read before: there is no room for them */
                }
            }
            multiply_value_part(o, p, part, v_rows + part * SLOT);
        }
    }
    copy_wait<0>();
    __syncthreads(); /* nobody reads Q any more: its place takes the outputs */
    if (!warp_seen) return;
#pragma unroll
    for (int mt = 0; mt < 2; mt++)
        finish(o[mt], state[mt], tile + (group * 32 + mt * 16) * PITCH + quarter * OWN * 2, PITCH, lane);
    __syncwarp();
    for (int i = lane; i < 32 * (OWN / 8); i += 32) {
        const int r = i / (OWN / 8), column = quarter * OWN + i % (OWN / 8) * 8;
        if (warp_row + r >= a.n_rows) break;
        unsigned short *to = (unsigned short *)a.out + place_of_row(a, a.ld_out, blockIdx.y, warp_row + r) + column;
        *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(tile + (group * 32 + r) * PITCH + column * 2);
    }
}
