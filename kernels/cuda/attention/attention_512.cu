/* out = r(softmax(scale * q kT) v) in bf16 for head_dim 512, the single head of a VAE's attention; scale > 0, rows
 * aligned to 16 bytes. attention_any.cu does the rest with the same bits, attention.c chooses.
 *
 * Layout: a block takes 80 rows (tiles.h) of one key/value head and goes through all keys that any of them sees, 64
 * at a time. Outputs of 80 x 512 fill the registers of a multiprocessor: eight warps have 80 rows x 64 columns each, so
 * that every value is read once. Of the scores a warp computes 48 or 32 rows x 16 keys; five warps then take the
 * softmax of 16 rows each, and all read the probabilities, as they lie in the lanes that multiply them, and the rows'
 * factors. K and V pass through a ring of three slots: per block of keys four quarters of K's columns, then four
 * quarters of V's rows, each copied two steps ahead; one barrier per step. Tiles: 8 warps, 80 rows x 64 keys: 205 tiles
 * of 128 x 128 latents, of 216 in two waves over an A100. Shared memory: Q 83,200 bytes, the ring 52,224, scores
 * 20,480, probabilities 10,240, factors 320: one block per SM. The same with 32 rows is for GPUs with less of it:
 * 97,920 bytes. sm_80 or newer. Deterministic: attention.cuh says in which order; no atomics, no split over keys. */
#include "kernels/cuda/attention/attention.cuh"

constexpr int HD = 512, PARTS = 4, SLOTS = 3;
constexpr int ALL_THREADS = LK_ATTENTION_512_THREADS, ALL_WARPS = ALL_THREADS / 32;
constexpr int K_COLUMNS = HD / PARTS, V_KEYS = KEYS / PARTS;
constexpr int OWN = HD / ALL_WARPS; /* a warp's columns of the output */
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
template <int ROWS> __device__ __forceinline__ void copy_q(unsigned q, const lk_cuda_attention &a, int first_row) {
    const int column = threadIdx.x % (HD / 8);
    for (int r = threadIdx.x / (HD / 8); r < ROWS; r += ALL_THREADS / (HD / 8)) {
        const bool inside = first_row + r < a.n_rows;
        const unsigned short *row =
            (const unsigned short *)a.q + place_of_row(a, a.ld_q, blockIdx.y, inside ? first_row + r : 0);
        copy_async(q + r * PITCH + column * 16, row + column * 8, inside ? 16 : 0);
    }
}

/* s += q kT over a quarter of head_dim, for N times 16 rows and the warp's 16 keys. */
template <int N, int MOST>
__device__ __forceinline__ void multiply_part(float (&s)[MOST][2][4], unsigned q, unsigned k) {
#pragma unroll 4
    for (int step = 0; step < K_COLUMNS / 16; step++) {
        unsigned x[N][4], b[4];
        load_matrices(b, k + step * 32);
#pragma unroll
        for (int mt = 0; mt < N; mt++) load_matrices(x[mt], q + mt * 16 * PITCH + step * 32);
#pragma unroll
        for (int mt = 0; mt < N; mt++) {
            mma_bf16(s[mt][0], x[mt], b[0], b[1]);
            mma_bf16(s[mt][1], x[mt], b[2], b[3]);
        }
    }
}

/* What the warps exchange of a block of keys: scores of 16 rows x 8 keys, probabilities of 16 rows x 16 keys, both as
 * the lanes hold them; per row the factor of what was summed before, at the end of its output. */
template <int MT> struct exchange {
    float4 scores[MT][KEY_TILES][32];
    uint4 p[MT][KEYS / 16][32];
    float factors[MT * 16];
};

/* The softmax of 16 rows, by one warp. */
template <int MT>
__device__ __forceinline__ void share_softmax(exchange<MT> &x, const lk_cuda_attention &a, softmax_state<1> &state,
                                              int mt, int first_row, int first_key, int lane, float c) {
    float s[1][KEY_TILES][4];
    unsigned p[KEYS / 16][4];
#pragma unroll
    for (int nt = 0; nt < KEY_TILES; nt++) {
        const float4 four = x.scores[mt][nt][lane];
        s[0][nt][0] = four.x, s[0][nt][1] = four.y, s[0][nt][2] = four.z, s[0][nt][3] = four.w;
    }
    if (first_key + KEYS > keys_of_row(a, first_row + mt * 16)) hide_keys(s, a, first_row + mt * 16, first_key, lane);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float factor = probabilities(s[0], p, half, state.most[0][half], state.sum[0][half], c);
        if (lane % 4 == 0) x.factors[mt * 16 + half * 8 + lane / 4] = factor;
    }
#pragma unroll
    for (int i = 0; i < KEYS / 16; i++) x.p[mt][i][lane] = make_uint4(p[i][0], p[i][1], p[i][2], p[i][3]);
}

/* o *= the rows' factors. */
template <int MT>
__device__ __forceinline__ void scale_outputs(float (&o)[MT][OWN / 8][4], const exchange<MT> &x, int lane) {
#pragma unroll
    for (int i = 0; i < 2 * MT; i++) {
        const float factor = x.factors[i * 8 + lane / 4];
#pragma unroll
        for (int nv = 0; nv < OWN / 8; nv++)
#pragma unroll
            for (int e = 0; e < 2; e++) o[i / 2][nv][i % 2 * 2 + e] *= factor;
    }
}

/* o += p v over 16 keys, for all rows and the warp's columns. */
template <int MT>
__device__ __forceinline__ void multiply_value_part(float (&o)[MT][OWN / 8][4], const exchange<MT> &x, int part,
                                                    unsigned v, int lane) {
    unsigned p[MT][4];
#pragma unroll
    for (int mt = 0; mt < MT; mt++) {
        const uint4 four = x.p[mt][part][lane];
        p[mt][0] = four.x, p[mt][1] = four.y, p[mt][2] = four.z, p[mt][3] = four.w;
    }
#pragma unroll
    for (int nv = 0; nv < OWN / 8; nv += 2) {
        unsigned b[4];
        load_matrices_transposed(b, v + nv * 16);
#pragma unroll
        for (int mt = 0; mt < MT; mt++) {
            mma_bf16(o[mt][nv], p[mt], b[0], b[1]);
            mma_bf16(o[mt][nv + 1], p[mt], b[2], b[3]);
        }
    }
}

/* r(o / sum) to memory, through the place of Q. */
template <int MT>
__device__ __forceinline__ void put_outputs(const lk_cuda_attention &a, const float (&o)[MT][OWN / 8][4],
                                            unsigned char *tile, int first_row, int warp, int lane) {
#pragma unroll
    for (int i = 0; i < 2 * MT; i++) {
        unsigned char *row = tile + (i * 8 + lane / 4) * PITCH + warp * OWN * 2 + lane % 4 * 4;
#pragma unroll
        for (int nv = 0; nv < OWN / 8; nv++)
            *reinterpret_cast<unsigned *>(row + nv * 16) =
                pack_bf16(o[i / 2][nv][i % 2 * 2], o[i / 2][nv][i % 2 * 2 + 1]);
    }
    __syncwarp();
    for (int i = lane; i < MT * 16 * (OWN / 8); i += 32) {
        const int r = i / (OWN / 8), column = warp * OWN + i % (OWN / 8) * 8;
        if (first_row + r >= a.n_rows) break;
        unsigned short *to = (unsigned short *)a.out + place_of_row(a, a.ld_out, blockIdx.y, first_row + r) + column;
        *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(tile + r * PITCH + column * 2);
    }
}

template <int ROWS> __device__ __forceinline__ void attention_512(const lk_cuda_attention &a) {
    constexpr int MT = ROWS / 16;
    /* Of 16 rows, whose scores the first and the last warps compute. */
    constexpr int MORE_TILES = (MT + 1) / 2, TILES = MT - MORE_TILES;
    constexpr int SHARED_BEFORE = ROWS * PITCH + SLOTS * SLOT;
    static_assert(SHARED_BEFORE + sizeof(exchange<MT>) == LK_ATTENTION_512_SHARED(ROWS), "attention.c asks for it");
    extern __shared__ __align__(16) unsigned char tile[]; /* Q, the ring, what is exchanged */
    exchange<MT> &shared = *reinterpret_cast<exchange<MT> *>(tile + SHARED_BEFORE);
    const int warp = warp_index(), lane = threadIdx.x % 32, group = warp / PARTS, quarter = warp % PARTS;
    const int first_row = (gridDim.x - 1 - blockIdx.x) * ROWS;
    const int n_seen = keys_of_row(a, min(first_row + ROWS, a.n_rows) - 1);
    const unsigned q = shared_address(tile), ring = q + ROWS * PITCH;
    const unsigned q_rows = q + group * MORE_TILES * 16 * PITCH + rows_offset(lane, PITCH);
    const unsigned k_rows = quarter * 16 * K_PITCH + keys_offset(lane, K_PITCH);
    const unsigned v_rows = warp * OWN * 2 + rows_offset(lane, PITCH);
    const float c = a.scale * LOG2_E;

    float o[MT][OWN / 8][4];
    softmax_state<1> state; /* of 16 rows, in the warps that take their softmax */
    clear(o);
    copy_q<ROWS>(q, a, first_row);
    copy_k(ring, a, 0, 0);
    copy_commit();
    copy_k(ring + SLOT, a, 0, 1);
    copy_commit();
    unsigned slot = ring, free_slot = ring + (SLOTS - 1) * SLOT;
    const auto next_slot = [&] {
        free_slot = slot;
        slot = slot == ring + (SLOTS - 1) * SLOT ? ring : slot + SLOT;
        copy_commit();
    };
#pragma unroll 1
    for (int first_key = 0; first_key < n_seen; first_key += KEYS) {
        float s[MORE_TILES][2][4] = {};
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            copy_wait<SLOTS - 2>();
            __syncthreads(); /* this part is there, and nobody reads the last one any more */
            if (part < 2)
                copy_k(free_slot, a, first_key, part + 2);
            else
                copy_v(free_slot, a, first_key + (part - 2) * V_KEYS);
            if (group == 0)
                multiply_part<MORE_TILES>(s, q_rows + part * K_COLUMNS * 2, k_rows + slot);
            else
                multiply_part<TILES>(s, q_rows + part * K_COLUMNS * 2, k_rows + slot);
            next_slot();
        }
#pragma unroll
        for (int mt = 0; mt < MORE_TILES; mt++)
            if (mt < TILES || group == 0)
#pragma unroll
                for (int i = 0; i < 2; i++)
                    shared.scores[group * MORE_TILES + mt][quarter * 2 + i][lane] =
                        make_float4(s[mt][i][0], s[mt][i][1], s[mt][i][2], s[mt][i][3]);
        __syncthreads();
        if (warp < MT) share_softmax(shared, a, state, warp, first_row, first_key, lane, c);
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            copy_wait<SLOTS - 2>();
            __syncthreads(); /* at the first part also: the probabilities are there */
            if (part < 2)
                copy_v(free_slot, a, first_key + (part + 2) * V_KEYS);
            else if (first_key + KEYS < n_seen)
                copy_k(free_slot, a, first_key + KEYS, part - 2);
            if (part == 0) scale_outputs(o, shared, lane);
            multiply_value_part(o, shared, part, v_rows + slot, lane);
            next_slot();
        }
    }
    copy_wait<0>();
    if (warp < MT) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float inverse = inverse_of_sum(state.sum[0][half]);
            if (lane % 4 == 0) shared.factors[warp * 16 + half * 8 + lane / 4] = inverse;
        }
    }
    __syncthreads(); /* also: nobody reads Q any more, its place takes the outputs */
    scale_outputs(o, shared, lane);
    put_outputs(a, o, tile, first_row, warp, lane);
}

extern "C" __global__ void __launch_bounds__(ALL_THREADS, 1) attention_512_bf16(const lk_cuda_attention a) {
    attention_512<LK_ATTENTION_512_ROWS>(a);
}
extern "C" __global__ void __launch_bounds__(ALL_THREADS, 1) attention_512_few_bf16(const lk_cuda_attention a) {
    attention_512<LK_ATTENTION_512_FEW_ROWS>(a);
}
