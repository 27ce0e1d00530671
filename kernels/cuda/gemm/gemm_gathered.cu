/* y = epilogue(A wT), bf16, for any x and w: linear layers whose rows are not 16-byte aligned, convolutions of
 * few channels (conv2d_rgb.cu has the most frequent). The same products in the same order as linear.cu and conv2d.cu
 * (gemm.cuh), so the same bits; only the copies into shared memory go element by element, and wait. Tile 128 x 64 with
 * 72 KiB of shared memory, or 128 x 128, by 256 threads with 80 KiB, so that patches are gathered once for twice the
 * columns. sm_80 or newer. */
#include "kernels/cuda/gemm/gemm.cuh"
#include "kernels/cuda/gemm/gemm_gather.cuh"

__device__ __forceinline__ void put_chunk(unsigned shared, const bf16 (&e)[8]) {
    store_shared(shared, make_uint4(e[0] | (unsigned)e[1] << 16, e[2] | (unsigned)e[3] << 16,
                                    e[4] | (unsigned)e[5] << 16, e[6] | (unsigned)e[7] << 16));
}

template <class Tile> struct gathered_patches {
    const lk_cuda_gemm &args;
    int first, k;
    bool more; /* of low */

    __device__ __forceinline__ void copy(int i, unsigned shared, int) const {
        bf16 e[8];
        if (more)
            gather_row(args.low, args.ld_low, args.m, args.rank, first + i * Tile::ROWS_AT_ONCE, k, e);
        else
            gather_patch(args, first + i * Tile::ROWS_AT_ONCE, k, e);
        put_chunk(shared + i * Tile::ROWS_AT_ONCE * Tile::ROW_BYTES, e);
    }
    __device__ __forceinline__ void advance() { k += Tile::DEPTH; }
    __device__ __forceinline__ void go_on(const void *, int64_t, int chunk) {
        more = true;
        k = chunk * 8;
    }
};

template <class Tile> struct gathered_weights {
    const lk_cuda_gemm &args;
    int first, k;
    bool more; /* of up */

    __device__ __forceinline__ void copy(int i, unsigned shared, int) const {
        bf16 e[8];
        if (more)
            gather_row(args.up, args.ld_up, args.n, args.rank, first + i * Tile::ROWS_AT_ONCE, k, e);
        else
            gather_row(args.w, args.ld_w, args.n, args.k, first + i * Tile::ROWS_AT_ONCE, k, e);
        put_chunk(shared + i * Tile::ROWS_AT_ONCE * Tile::ROW_BYTES, e);
    }
    __device__ __forceinline__ void advance() { k += Tile::DEPTH; }
    __device__ __forceinline__ void go_on(const void *, int64_t, int chunk) {
        more = true;
        k = chunk * 8;
    }
};

template <class Tile> __device__ __forceinline__ void gathered(const lk_cuda_gemm &args) {
    int row_tile, column_tile;
    place(args, row_tile, column_tile);
    const int row = threadIdx.x / Tile::CHUNKS, k = threadIdx.x % Tile::CHUNKS * 8;
    gathered_patches<Tile> x{args, row_tile * Tile::BM + row, k, false};
    gathered_weights<Tile> w{args, column_tile * Tile::BN + row, k, false};
    gemm<Tile, true, true>(args, x, w, row_tile, column_tile);
}

using tile_wide = gemm_tile<LK_TILE_WIDE>;

/* Weights in rows of whole 16 bytes, which packed filters always are. */
template <class Tile> __device__ __forceinline__ void gathered_patches_only(const lk_cuda_gemm &args) {
    int row_tile, column_tile;
    place(args, row_tile, column_tile);
    const int row = threadIdx.x / Tile::CHUNKS, chunk = threadIdx.x % Tile::CHUNKS;
    gathered_patches<Tile> x{args, row_tile * Tile::BM + row, chunk * 8, false};
    dense_rows<Tile> w(args.w, args.ld_w, column_tile * Tile::BN + row, args.n, chunk);
    gemm<Tile, true, true>(args, x, w, row_tile, column_tile);
}

LK_GEMM_KERNEL(gemm_gathered_bf16, tile_64, gathered)
LK_GEMM_KERNEL(gemm_gathered_128_bf16, tile_wide, gathered_patches_only)
