/* out = r(softmax(scale * q kT) v) in bf16 for the head_dims of the large models (40, 64, 80, 128, 160), scale > 0,
 * rows of every head aligned to 16 bytes. attention_any.cu does the rest, attention.c chooses.
 *
 * Layout: a block takes a tile of rows (arguments.h) of one key/value head and goes through all keys that any of them
 * sees, 64 at a time. Q stays in shared memory and is read again for every block of keys: in registers there is no room
 * beside 32 rows of outputs and scores. K and V have one slot each. While scores are computed from K, V arrives by
 * cp.async; while outputs are computed from V, the next K arrives. Two thread blocks fit a multiprocessor, so that
 * one's softmax runs beside the other's products. Causal tiles go out longest first.
 * Tiles: 4 warps of 32 rows (16 for few rows: the same bits, less waste) x 64 keys.
 * Shared memory: (rows + 128) * (2 * width_of(head_dim) + 16) bytes: 69,632 for head_dim 128. Registers: 255 at most.
 * sm_80 or newer.
 * Deterministic: attention.cuh says in which order; no atomics, no split over keys. */
#include "kernels/cuda/attention/attention.cuh"

/* Columns in shared memory: whole matrix operands, zeros behind the head's. */
__host__ __device__ constexpr int width_of(int head_dim) { return LK_ATTENTION_WIDTH(head_dim); }

/* How the threads of a block copy rows of HD elements, 16 bytes each: lanes go along a row where it is a multiple of
 * 128 bytes, otherwise over 8 rows of two neighbouring columns, a sector of global memory. No bank meets twice. */
template <int HD> struct copy_map {
    static constexpr int CHUNKS = width_of(HD) / 8;
    /* Covered by one instruction of all threads: 16-byte columns and rows. */
    static constexpr int COLUMNS = CHUNKS % 16 == 0 ? 16 : CHUNKS % 8 == 0 ? 8 : 2;
    static constexpr int ROWS = THREADS / COLUMNS;
    int row, column;
    __device__ __forceinline__ copy_map() {
        const int t = threadIdx.x;
        row = COLUMNS == 2 ? t / 16 * 8 + t % 8 : t / COLUMNS;
        column = COLUMNS == 2 ? t / 8 % 2 : t % COLUMNS;
    }
    /* Of this thread's column + c: its place, that of the head's first where it lies behind the head; bytes of it. */
    __device__ __forceinline__ bool is_head(int c) const { return width_of(HD) == HD || column + c < HD / 8; }
    __device__ __forceinline__ unsigned within(unsigned place, int c) const {
        return is_head(c) ? place + c * 8 : place;
    }
    __device__ __forceinline__ int bytes(int c) const { return is_head(c) ? 16 : 0; }
};

/* KEYS rows of K or V from first_key on into a slot; rows beyond the tensor are 0. keys: where row 0 of this thread's
 * head starts; place: this thread's place in a tile of rows ld apart, which fits 32 bits (attention.c). */
template <int HD>
__device__ __forceinline__ void copy_keys(unsigned slot, const unsigned short *keys, int64_t ld, unsigned place,
                                          const copy_map<HD> &at, int first_key, int n_keys) {
    using map = copy_map<HD>;
    constexpr int PITCH = pitch_of(width_of(HD));
    const unsigned short *from = keys + first_key * ld;
    if (first_key + KEYS <= n_keys) {
#pragma unroll
        for (int r = 0; r < KEYS; r += map::ROWS)
#pragma unroll
            for (int c = 0; c < map::CHUNKS; c += map::COLUMNS)
                copy_async(slot + r * PITCH + c * 16, from + r * ld + at.within(place, c), at.bytes(c));
        return;
    }
#pragma unroll 1
    for (int r = 0; r < KEYS; r += map::ROWS) {
        const bool inside = first_key + at.row + r < n_keys;
        const unsigned short *p = inside ? from + r * ld : keys;
#pragma unroll
        for (int c = 0; c < map::CHUNKS; c += map::COLUMNS)
            copy_async(slot + r * PITCH + c * 16, p + (inside ? at.within(place, c) : 0), inside ? at.bytes(c) : 0);
    }
}

template <int HD>
__device__ __forceinline__ void copy_queries(unsigned to, const lk_cuda_attention &a, int first_row, int n,
                                             const copy_map<HD> &map) {
    for (int r = map.row; r < n; r += map.ROWS) {
        const bool inside = first_row + r < a.n_rows;
        const unsigned short *p = (const unsigned short *)a.q +
                                  place_of_row(a, a.ld_q, blockIdx.y, inside ? first_row + r : 0) + map.column * 8;
#pragma unroll
        for (int c = 0; c < map.CHUNKS; c += map.COLUMNS)
            copy_async(to + r * pitch_of(width_of(HD)) + (map.column + c) * 16, p + map.within(0, c),
                       inside ? map.bytes(c) : 0);
    }
}

/* The warp's rows from shared memory to out. */
template <int HD>
__device__ __forceinline__ void store_rows(const lk_cuda_attention &a, const unsigned char *tile, int first_row, int n,
                                           int lane) {
    for (int i = lane; i < n * (HD / 8); i += 32) {
        const int r = i / (HD / 8), c = i % (HD / 8);
        if (first_row + r >= a.n_rows) break;
        unsigned short *p = (unsigned short *)a.out + place_of_row(a, a.ld_out, blockIdx.y, first_row + r) + c * 8;
        *reinterpret_cast<uint4 *>(p) = *reinterpret_cast<const uint4 *>(tile + r * pitch_of(width_of(HD)) + c * 16);
    }
}

template <int HD, int MT> __device__ __forceinline__ void attention(const lk_cuda_attention &a) {
    constexpr int W = width_of(HD), PITCH = pitch_of(W), WARP_ROWS = MT * 16, ROWS = WARPS * WARP_ROWS;
    extern __shared__ __align__(16) unsigned char tile[]; /* Q, K, V */
    const int warp = warp_index(), lane = threadIdx.x % 32;
    const int first_row = (gridDim.x - 1 - blockIdx.x) * ROWS, warp_row = first_row + warp * WARP_ROWS;
    const int n_seen = keys_of_row(a, min(first_row + ROWS, a.n_rows) - 1);
    /* Keys that any of the warp's rows sees, and that all see. */
    const int warp_seen = warp_row < a.n_rows ? keys_of_row(a, min(warp_row + WARP_ROWS, a.n_rows) - 1) : 0;
    const int warp_all = keys_of_row(a, warp_row);

    const copy_map<HD> map;
    const unsigned q = shared_address(tile), k = q + ROWS * PITCH, v = k + KEYS * PITCH;
    const unsigned slot = map.row * PITCH + map.column * 16;
    const unsigned short *k_head = (const unsigned short *)a.k + blockIdx.y * HD,
                         *v_head = (const unsigned short *)a.v + blockIdx.y * HD;
    const unsigned k_place = map.row * (unsigned)a.ld_k + map.column * 8,
                   v_place = map.row * (unsigned)a.ld_v + map.column * 8;
    const unsigned q_rows = q + warp * WARP_ROWS * PITCH + rows_offset(lane, PITCH);
    const unsigned k_rows = k + keys_offset(lane, PITCH), v_rows = v + rows_offset(lane, PITCH);
    const float c = a.scale * LOG2_E;

    float o[MT][W / 8][4];
    softmax_state<MT> state;
    clear(o);
    copy_queries(q, a, first_row, ROWS, map);
    copy_keys<HD>(k + slot, k_head, a.ld_k, k_place, map, 0, a.n_keys);
    copy_commit();
    for (int first_key = 0; first_key < n_seen; first_key += KEYS) {
        const bool sees = __any_sync(0xffffffffu, first_key < warp_seen); /* a vote, so that it is known not to diverge
                                                                           */
        float s[MT][KEY_TILES][4];
        copy_wait<0>();
        __syncthreads(); /* K is there, and nobody reads V any more */
        copy_keys<HD>(v + slot, v_head, a.ld_v, v_place, map, first_key, a.n_keys);
        copy_commit();
        if (sees) {
            clear(s);
#pragma unroll
            for (int step = 0; step < W / 16; step++)
                multiply_keys(s, q_rows + step * 32, PITCH, k_rows + step * 32, PITCH);
        }
        copy_wait<0>();
        __syncthreads(); /* V is there, and nobody reads K any more */
        if (first_key + KEYS < n_seen)
            copy_keys<HD>(k + slot, k_head, a.ld_k, k_place, map, first_key + KEYS, a.n_keys);
        copy_commit();
        if (sees) {
            if (first_key + KEYS > warp_all) hide_keys(s, a, warp_row, first_key, lane);
            unsigned p[MT][KEYS / 16][4];
            take_softmax(s, p, state, o, c);
            multiply_values(o, p, v_rows, PITCH);
        }
    }
    if (!warp_seen) return;
    unsigned char *rows = tile + warp * WARP_ROWS * PITCH; /* of Q, which only this warp has read */
    __syncwarp();
    finish(o, state, rows, PITCH, lane);
    __syncwarp();
    store_rows<HD>(a, rows, warp_row, WARP_ROWS, lane);
}

#define KERNEL(name, HD, MT, BLOCKS)                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) name(const lk_cuda_attention a) {                    \
        attention<HD, MT>(a);                                                                                          \
    }
KERNEL(attention_40_bf16, 40, LK_ATTENTION_TILES, 2)
KERNEL(attention_64_bf16, 64, LK_ATTENTION_TILES, 2)
KERNEL(attention_80_bf16, 80, LK_ATTENTION_TILES, 2)
KERNEL(attention_128_bf16, 128, LK_ATTENTION_TILES, 2)
KERNEL(attention_40_few_bf16, 40, LK_ATTENTION_FEW_TILES, 3)
KERNEL(attention_64_few_bf16, 64, LK_ATTENTION_FEW_TILES, 3)
KERNEL(attention_80_few_bf16, 80, LK_ATTENTION_FEW_TILES, 3)
KERNEL(attention_128_few_bf16, 128, LK_ATTENTION_FEW_TILES, 2)
KERNEL(attention_160_few_bf16, 160, LK_ATTENTION_FEW_TILES, 2) /* no registers for more rows */
