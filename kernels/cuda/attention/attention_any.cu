/* out = r(softmax(scale * q kT) v) in bf16 where attention.cu and attention_512.cu do not go: any head_dim up to 512,
 * any scale, any alignment. The same order of arithmetic, hence the same bits where both apply.
 *
 * Layout: a block takes 64 rows (arguments.h) of one key/value head and one slice of the columns of V; with more
 * columns than a slice holds, each slice's block computes the scores anew. That costs up to 2.5 times the products and
 * keeps a warp's outputs in registers. head_dim is filled up with zeros to a multiple of 16. K comes in parts of 128
 * columns, one after the other.
 * Tiles: 4 warps of 16 rows x 64 keys x 128 columns (32 for head_dim up to 32).
 * Shared memory: 64 rows each of Q, of a part of K and of a slice of V: 101,376 bytes for head_dim 512, all that GPUs
 * of 8.6, 8.9 and 12.0 give a block.
 * sm_80 or newer.
 * Deterministic: attention.cuh says in which order; no atomics, no split over keys. */
#include "kernels/cuda/attention/attention.cuh"

/* Eight elements into shared memory: columns column .. column + 7 of a row, of which those from `end` on are 0. */
__device__ __forceinline__ void copy_eight(unsigned to, const unsigned short *row, int column, int end, bool vector) {
    const int n = max(0, min(8, end - column));
    if (vector) {
        copy_async(to, n ? row + column : row, 2 * n);
        return;
    }
    unsigned words[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < n) words[i / 2] |= (unsigned)row[column + i] << i % 2 * 16;
    store_shared(to, make_uint4(words[0], words[1], words[2], words[3]));
}

/* KEYS rows of K or V from first_key on: columns [first_column, first_column + width), 0 beyond the tensor; width: a
 * multiple of 16. */
__device__ __forceinline__ void copy_keys(unsigned slot, int pitch, const lk_cuda_attention &a, const void *data,
                                          int64_t ld, int first_key, int first_column, int width) {
    const int chunks = width / 8;
    for (int i = threadIdx.x; i < KEYS * chunks; i += THREADS) {
        const int r = i / chunks, c = i % chunks, key = first_key + r;
        const unsigned short *row =
            (const unsigned short *)data + (key < a.n_keys ? key : 0) * ld + (int64_t)blockIdx.y * a.head_dim;
        copy_eight(slot + r * pitch + c * 16, row, first_column + c * 8, key < a.n_keys ? a.head_dim : 0, a.vector);
    }
}

__device__ __forceinline__ void copy_queries(unsigned slot, int pitch, const lk_cuda_attention &a, int first_row, int n,
                                             int width) {
    const int chunks = width / 8;
    for (int i = threadIdx.x; i < n * chunks; i += THREADS) {
        const int r = i / chunks, c = i % chunks;
        const bool inside = first_row + r < a.n_rows;
        const unsigned short *row =
            (const unsigned short *)a.q + place_of_row(a, a.ld_q, blockIdx.y, inside ? first_row + r : 0);
        copy_eight(slot + r * pitch + c * 16, row, c * 8, inside ? a.head_dim : 0, a.vector);
    }
}

/* The warp's 16 rows, `width` columns of which are this slice's. */
__device__ __forceinline__ void store_rows(const lk_cuda_attention &a, const unsigned char *tile, int pitch,
                                           int first_row, int first_column, int width, int lane) {
    const int n = min(width, a.head_dim - first_column);
    for (int i = lane; i < 16 * n; i += 32) {
        const int r = i / n, c = i % n;
        if (first_row + r >= a.n_rows) break;
        unsigned short *row = (unsigned short *)a.out + place_of_row(a, a.ld_out, blockIdx.y, first_row + r);
        row[first_column + c] = *reinterpret_cast<const unsigned short *>(tile + r * pitch + c * 2);
    }
}

/* Scores times the sign of the scale: exact. */
__device__ __forceinline__ void apply_sign(float (&s)[1][KEY_TILES][4], float sign) {
#pragma unroll
    for (int nt = 0; nt < KEY_TILES; nt++)
#pragma unroll
        for (int i = 0; i < 4; i++) s[0][nt][i] *= sign;
}

template <int WIDTH> __device__ __forceinline__ void attention_any(const lk_cuda_attention &a) {
    constexpr int ROWS = LK_ATTENTION_ROWS(1), V_PITCH = pitch_of(WIDTH);
    extern __shared__ __align__(16) unsigned char tile[]; /* Q, K, V */
    const int warp = warp_index(), lane = threadIdx.x % 32;
    const int columns = (a.head_dim + 15) / 16 * 16, k_columns = min(columns, LK_ATTENTION_COLUMNS);
    const int pitch = pitch_of(columns), k_pitch = pitch_of(k_columns), first_column = blockIdx.z * WIDTH;
    const int first_row = (gridDim.x - 1 - blockIdx.x) * ROWS, warp_row = first_row + warp * 16;
    const int n_seen = keys_of_row(a, min(first_row + ROWS, a.n_rows) - 1);
    /* Keys that any of the warp's rows sees, and that all see. */
    const int warp_seen = warp_row < a.n_rows ? keys_of_row(a, min(warp_row + 16, a.n_rows) - 1) : 0;
    const int warp_all = keys_of_row(a, warp_row);

    const unsigned q = shared_address(tile), k = q + ROWS * pitch, v = k + KEYS * k_pitch;
    const unsigned q_rows = q + warp * 16 * pitch + rows_offset(lane, pitch);
    const unsigned k_rows = k + keys_offset(lane, k_pitch), v_rows = v + rows_offset(lane, V_PITCH);
    const float sign = a.scale > 0.0f ? 1.0f : a.scale < 0.0f ? -1.0f : 0.0f;
    const float c = sign == 0.0f ? LOG2_E : fabsf(a.scale) * LOG2_E;

    float o[1][WIDTH / 8][4];
    softmax_state<1> state;
    clear(o);
    const auto copy_part = [&](int first_key, int column) {
        copy_keys(k, k_pitch, a, a.k, a.ld_k, first_key, column, min(k_columns, columns - column));
        copy_commit();
    };
    copy_queries(q, pitch, a, first_row, ROWS, columns);
    copy_part(0, 0);
    for (int first_key = 0; first_key < n_seen; first_key += KEYS) {
        const bool sees = __any_sync(0xffffffffu, first_key < warp_seen);
        float s[1][KEY_TILES][4];
        clear(s);
        for (int column = 0; column < columns; column += k_columns) {
            if (column) {
                __syncthreads(); /* nobody reads the last part of K any more */
                copy_part(first_key, column);
            }
            copy_wait<0>();
            __syncthreads(); /* this part of K is there, and nobody reads V any more */
            if (!column) copy_keys(v, V_PITCH, a, a.v, a.ld_v, first_key, first_column, WIDTH);
            copy_commit();
            const int steps = sees ? min(k_columns, columns - column) / 16 : 0;
#pragma unroll 2
            for (int step = 0; step < steps; step++)
                multiply_keys(s, q_rows + column * 2 + step * 32, pitch, k_rows + step * 32, k_pitch);
        }
        copy_wait<0>();
        __syncthreads(); /* V is there, and nobody reads K any more */
        if (first_key + KEYS < n_seen) copy_part(first_key + KEYS, 0);
        if (sees) {
            unsigned p[1][KEYS / 16][4];
            apply_sign(s, sign);
            if (first_key + KEYS > warp_all) hide_keys(s, a, warp_row, first_key, lane);
            take_softmax(s, p, state, o, c);
            multiply_values(o, p, v_rows, V_PITCH);
        }
    }
    __syncthreads(); /* nobody reads V any more: it becomes the slice of the outputs */
    if (!warp_seen) return;
    unsigned char *rows = tile + (v - q) + warp * 16 * V_PITCH;
    finish(o, state, rows, V_PITCH, lane);
    __syncwarp();
    store_rows(a, rows, V_PITCH, warp_row, first_column, WIDTH, lane);
}

extern "C" __global__ void __launch_bounds__(THREADS) attention_any_32_bf16(const lk_cuda_attention a) {
    attention_any<LK_ATTENTION_FEW_COLUMNS>(a);
}
extern "C" __global__ void __launch_bounds__(THREADS) attention_any_128_bf16(const lk_cuda_attention a) {
    attention_any<LK_ATTENTION_COLUMNS>(a);
}
