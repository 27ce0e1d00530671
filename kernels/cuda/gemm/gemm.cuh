/* y = epilogue(A wT) for bf16 A [M, K] and w [N, K] with f32 accumulation: linear layers and convolutions.
 *
 * Layout: rows of K in global memory. In shared memory a stage is DEPTH of K: rows of 64 or 128 bytes, whose 16-byte
 * chunks are permuted so that neither the copies nor ldmatrix meet a bank twice. A warp computes WM x WN in registers,
 * by mma m16n8k16.
 * Pipeline: cp.async fills STAGES - 1 stages ahead, between the products; fragments are read 16 of K ahead; one barrier
 * per stage.
 * Epilogue: a warp puts its accumulators into shared memory, and takes them out as eight neighbours of a row per lane,
 * which are loaded and stored 16 bytes at a time. A convolution keeps there what it has stored, for the statistics of
 * its slabs (group_slab.cuh).
 * Tiles (warps; stages; threads, shared memory, blocks per SM of an A100):
 *   128 x 256 (64 x 64; 3 of 64): 256 threads, 144 KiB, 1
 *   128 x 128 (64 x 64; 5 of 32): 128 threads,  80 KiB, 2: one stores its tile while the other multiplies
 *   128 x 64  (64 x 32; 3 of 64): 128 threads,  72 KiB, 2
 *   16 x 64   (16 x 16; 4 of 64): 128 threads,  40 KiB, 4
 *   48 x 128  (48 x 32; 4 of 64): 128 threads,  88 KiB, 1: three times the tiles where one column of them is all
 *   48 x 64   (48 x 16; 4 of 64): 128 threads,  56 KiB, 2
 *   128 x 16  (32 x 16; 4 of 64): 128 threads,  72 KiB, 2: convolutions to few channels
 * GPUs of 8.6, 8.9 and 12.0 have 99 KiB for all blocks of an SM: one block of most tiles, and none of the first.
 * sm_80 or newer.
 * A low-rank adapter (low, up) is more of K: its columns come in stages of their own, after the last of w.
 * Deterministic: an output is one chain of m16n8k16 in ascending order of K, from 0; beyond K it meets zeros. So its
 * bits depend neither on M nor on the tile, and there is no sum across warps or blocks. An A100 cuts the sums of a
 * chain off: at K 15360 they shrink by 3e-5, which puts 0.02 % on the error of rounding to bf16 (0.002 % at K 6144):
 * more accumulators could gain no more. */
#pragma once

#include "kernels/cuda/gemm/gemm_epilogue.cuh"
#include "kernels/cuda/group_slab.cuh"
#include "kernels/cuda/mma.cuh"

template <int BM_, int BN_, int DEPTH_, int WM_, int WN_, int STAGES_, int BLOCKS_> struct gemm_tile {
    static constexpr int BM = BM_, BN = BN_, DEPTH = DEPTH_, WM = WM_, WN = WN_, STAGES = STAGES_, BLOCKS = BLOCKS_;
    static constexpr int WARPS_N = BN / WN, THREADS = BM / WM * WARPS_N * 32;
    static constexpr int ROW_BYTES = 2 * DEPTH, CHUNKS = DEPTH / 8, STEPS = DEPTH / 16; /* of a stage */
    static constexpr int ROWS_AT_ONCE = THREADS / CHUNKS; /* of a stage, that the threads copy with one chunk each */
    static constexpr int A_COPIES = BM / ROWS_AT_ONCE, B_COPIES = BN / ROWS_AT_ONCE;
    static constexpr int A_BYTES = BM * ROW_BYTES, STAGE_BYTES = (BM + BN) * ROW_BYTES;
    static constexpr int MT = WM / 16, NT = WN / 8;
    static constexpr int PITCH = WN + 8; /* floats of an accumulator row in shared memory */
    static constexpr int SHARED = STAGES * STAGE_BYTES;
    static_assert(DEPTH == 32 || DEPTH == 64, "swizzle");
    static_assert(BM % ROWS_AT_ONCE == 0 && BN % ROWS_AT_ONCE == 0 && ROWS_AT_ONCE % 8 == 0, "copies");
    static_assert(WM % 16 == 0 && WN % 16 == 0 && BM % WM == 0 && BN % WN == 0, "warps");
    static_assert(THREADS / 32 * WM * PITCH * 4 <= SHARED, "accumulators fit where the stages were");

    /* Where a chunk of a row lies: eight rows of one chunk cover all banks, and so do the chunks of 128 bytes of rows.
     */
    static __device__ __forceinline__ unsigned offset(int row, int chunk) {
        return row * ROW_BYTES + (chunk ^ (DEPTH == 64 ? row : row / 2) % CHUNKS) * 16;
    }
};

/* Rows of a matrix in memory, 16-byte aligned: this thread's chunk of rows first, first + ROWS_AT_ONCE, ... Rows beyond
 * the last repeat it: their products are not stored. */
template <class Tile> struct dense_rows {
    const char *base;
    unsigned row_bytes;
    int first, last;

    __device__ __forceinline__ dense_rows(const void *data, int64_t ld, int first_row, int n_rows, int chunk)
        : base((const char *)data + chunk * 16), row_bytes((unsigned)ld * 2), first(first_row), last(n_rows - 1) {}
    /* bytes: how many of the chunk lie inside K. */
    __device__ __forceinline__ void copy(int i, unsigned shared, int bytes) const {
        const unsigned row = (unsigned)min(first + i * Tile::ROWS_AT_ONCE, last);
        copy_async(shared + i * Tile::ROWS_AT_ONCE * Tile::ROW_BYTES, base + (uint64_t)row * row_bytes, bytes);
    }
    __device__ __forceinline__ void advance() { base += Tile::ROW_BYTES; }
    /* The same rows of another matrix, from its first column on. */
    __device__ __forceinline__ void go_on(const void *data, int64_t ld, int chunk) {
        base = (const char *)data + chunk * 16;
        row_bytes = (unsigned)ld * 2;
    }
};

/* What a warp multiplies in one step: 16 of K. */
template <class Tile> struct fragments {
    unsigned a[Tile::MT][4], b[Tile::NT / 2][4];

    __device__ __forceinline__ void load(unsigned a_address, unsigned b_address) {
#pragma unroll
        for (int i = 0; i < Tile::MT; i++) load_matrices(a[i], a_address + i * 16 * Tile::ROW_BYTES);
#pragma unroll
        for (int i = 0; i < Tile::NT / 2; i++) load_matrices(b[i], b_address + i * 16 * Tile::ROW_BYTES);
    }
    __device__ __forceinline__ void multiply(float (&c)[Tile::MT][Tile::NT][4]) const {
#pragma unroll
        for (int i = 0; i < Tile::MT; i++)
#pragma unroll
            for (int j = 0; j < Tile::NT; j++) {
                const int n = i % 2 ? Tile::NT - 1 - j : j; /* back and forth: b stays in the operand cache */
                mma_bf16(c[i][n], a[i], b[n / 2][2 * (n % 2)], b[n / 2][2 * (n % 2) + 1]);
            }
    }
};

/* Which tile a block computes: columns pass while a group of row tiles stays. */
__device__ __forceinline__ void place(const lk_cuda_gemm &args, int &row_tile, int &column_tile) {
    const int per_group = args.group * args.column_tiles, block = (int)blockIdx.x;
    const int first = block / per_group * args.group, within = block % per_group;
    const int height = min(args.group, args.row_tiles - first);
    row_tile = first + within % height;
    column_tile = within / height;
}

/* SLABS: whether args.slabs may ask for statistics. */
template <class Tile, bool SLABS>
__device__ __forceinline__ void put_out(const lk_cuda_gemm &args, const float (&c)[Tile::MT][Tile::NT][4], float *stage,
                                        int first_row, int first_column) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < Tile::MT; i++)
#pragma unroll
        for (int j = 0; j < Tile::NT; j++) {
            float *to = stage + (i * 16 + lane / 4) * Tile::PITCH + j * 8 + lane % 4 * 2;
            *(float2 *)to = make_float2(c[i][j][0], c[i][j][1]);
            *(float2 *)(to + 8 * Tile::PITCH) = make_float2(c[i][j][2], c[i][j][3]);
        }
    __syncwarp();
    const bool second_first = lane & 4; /* eight lanes read 8 distinct groups of 4 banks */
    const bool slabs = SLABS && args.slabs.to;
    slab_sums<SLABS ? Tile::WN : 32> sums;
#pragma unroll 1
    for (int i = lane; i < Tile::WM * Tile::WN / 8; i += 32) {
        const int row = i / (Tile::WN / 8), column = i % (Tile::WN / 8) * 8;
        if (first_row + row >= args.m || first_column + column >= args.n) continue;
        float4 *at = (float4 *)(stage + row * Tile::PITCH + column);
        const float4 p = at[second_first], q = at[!second_first];
        const float4 a = second_first ? q : p, b = second_first ? p : q;
        const vector8 y = finish<bf16>(args.out, first_row + row, first_column + column, args.n - first_column - column,
                                       {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}});
        if (!slabs) continue;
        sums.add(y);
        at[second_first] = make_float4(y.v[0], y.v[1], y.v[2], y.v[3]); /* this lane reads them again */
        at[!second_first] = make_float4(y.v[4], y.v[5], y.v[6], y.v[7]);
    }
    if constexpr (SLABS) {
        static_assert(Tile::WM == LK_GROUP_SLAB, "a warp has a slab");
        if (!slabs) return;
        const int column = lane % (Tile::WN / 8) * 8;
        put_slab(args.slabs, first_row / Tile::WM, args.m - first_row, first_column + column, args.n, sums,
                 [&](int row) {
                     const float4 *at = (const float4 *)(stage + row * Tile::PITCH + column);
                     const float4 a = at[second_first], b = at[!second_first];
                     return vector8{{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
                 });
    }
}

/* A and B say where rows come from: constructed with this thread's first row and chunk. MORE: whether K may go on over
 * args.low and args.up, from a stage of their own. */
template <class Tile, bool SLABS = false, bool MORE = false, class A, class B>
__device__ __forceinline__ void gemm(const lk_cuda_gemm &args, A &from_x, B &from_w, int row_tile, int column_tile) {
    extern __shared__ __align__(128) unsigned char memory[];
    constexpr int PARTS = Tile::STEPS - 1, COPIES = Tile::A_COPIES + Tile::B_COPIES;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int warp_row = warp / Tile::WARPS_N * Tile::WM, warp_column = warp % Tile::WARPS_N * Tile::WN;
    const unsigned shared = shared_address(memory);
    const unsigned copy_to = shared + Tile::offset(thread / Tile::CHUNKS, thread % Tile::CHUNKS);
    /* ldmatrix: of A, rows 0-15 of the first 8 of K, then of the next 8; of B, both halves of K of 8 columns, then of
     * the next 8. */
    const unsigned a_from = shared + Tile::offset(warp_row + lane % 16, lane / 16);
    const unsigned b_from = shared + Tile::A_BYTES + Tile::offset(warp_column + lane % 8 + lane / 16 * 8, lane / 8 % 2);
    const int n_first = (args.k + Tile::DEPTH - 1) / Tile::DEPTH; /* stages of x and w */
    const int n_stages = MORE ? n_first + (args.rank + Tile::DEPTH - 1) / Tile::DEPTH : n_first;
    int to_come = n_first;                                     /* of those */
    int bytes_left = (args.k - thread % Tile::CHUNKS * 8) * 2; /* of K from this thread's chunk on, to be copied */

    auto copy_part = [&](int part, unsigned to) {
        const int bytes = min(max(bytes_left, 0), 16);
#pragma unroll
        for (int i = 0; i < COPIES; i++) {
            if (i * PARTS / COPIES != part) continue;
            if (i < Tile::A_COPIES)
                from_x.copy(i, to, bytes);
            else
                from_w.copy(i - Tile::A_COPIES, to + Tile::A_BYTES, bytes);
        }
    };
    auto advance = [&] {
        from_x.advance();
        from_w.advance();
        bytes_left -= Tile::ROW_BYTES;
        if constexpr (MORE) {
            if (--to_come) return;
            const int chunk = thread % Tile::CHUNKS;
            from_x.go_on(args.low, args.ld_low, chunk);
            from_w.go_on(args.up, args.ld_up, chunk);
            bytes_left = (args.rank - chunk * 8) * 2;
        }
    };

#pragma unroll 1
    for (int s = 0; s < Tile::STAGES - 1; s++) {
        if (s < n_stages) {
#pragma unroll
            for (int part = 0; part < PARTS; part++) copy_part(part, copy_to + s * Tile::STAGE_BYTES);
            advance();
        }
        copy_commit();
    }
    copy_wait<Tile::STAGES - 2>();
    __syncthreads();

    float c[Tile::MT][Tile::NT][4] = {};
    fragments<Tile> f[2];
    unsigned read = 0, write = (Tile::STAGES - 1) * Tile::STAGE_BYTES; /* offsets of stages */
    f[0].load(a_from, b_from);
#pragma unroll 1
    for (int s = 0; s < n_stages; s++) {
        const bool more = s + Tile::STAGES - 1 < n_stages;
#pragma unroll
        for (int step = 0; step < PARTS; step++) {
            const unsigned k = (step + 1) * 32; /* bytes; the swizzle makes an addition of it an xor */
            f[(step + 1) % 2].load((a_from + read) ^ k, (b_from + read) ^ k);
            if (more) copy_part(step, copy_to + write);
            f[step % 2].multiply(c);
        }
        if (more) advance();
        write = read;
        read = read == (Tile::STAGES - 1) * Tile::STAGE_BYTES ? 0 : read + Tile::STAGE_BYTES;
        copy_commit();
        copy_wait<Tile::STAGES - 2>();
        __syncthreads();
        if (s + 1 < n_stages) f[0].load(a_from + read, b_from + read);
        f[PARTS % 2].multiply(c);
    }
    put_out<Tile, SLABS>(args, c, (float *)memory + warp * Tile::WM * Tile::PITCH, row_tile * Tile::BM + warp_row,
                         column_tile * Tile::BN + warp_column);
}

using tile_256 = gemm_tile<LK_TILE_256>;
using tile_128 = gemm_tile<LK_TILE_128>;
using tile_64 = gemm_tile<LK_TILE_64>;
using tile_flat_128 = gemm_tile<LK_TILE_FLAT_128>;
using tile_flat_64 = gemm_tile<LK_TILE_FLAT_64>;
using tile_16 = gemm_tile<LK_TILE_16>;
using tile_few = gemm_tile<LK_TILE_FEW>;

#define LK_GEMM_KERNEL(name, Tile, run)                                                                                \
    extern "C" __global__ void __launch_bounds__(Tile::THREADS, Tile::BLOCKS) name(const lk_cuda_gemm args) {          \
        run<Tile>(args);                                                                                               \
    }
