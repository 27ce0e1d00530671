/* Convolution as a matrix product, bf16, channels a multiple of 8: A is gathered from the picture while it is copied to
 * shared memory (16 bytes of one tap at a time), there is no buffer of patches; the rest is gemm.cuh, whose opening
 * comment has layout, tiles, shared memory and why it is deterministic. Pictures of three channels:
 * conv2d_rgb.cu; others: gemm_gathered.cu; f32: gemm_f32.cu. conv2d_weights brings a checkpoint's filters into the
 * order of K, (ky, kx, channel). */
#include "kernels/cuda/gemm/gemm.cuh"

/* Patches under output pixels: this thread's chunk of rows first, first + ROWS_AT_ONCE, ...; it lies within one tap. */
template <class Tile> struct pixel_rows {
    const lk_cuda_gemm &args;
    int corner[Tile::A_COPIES]; /* top << 16 | left of the patch, each with BIAS added */
    int channel, ky, kx;

    static constexpr int BIAS = LK_CUDA_MOST_PAD;

    __device__ __forceinline__ pixel_rows(const lk_cuda_gemm &arguments, int first, int chunk)
        : args(arguments), channel(chunk * 8), ky(0), kx(0) {
#pragma unroll
        for (int i = 0; i < Tile::A_COPIES; i++) {
            const int pixel = min(first + i * Tile::ROWS_AT_ONCE, args.m - 1);
            const int row = pixel / args.width_out, column = pixel - row * args.width_out;
            corner[i] = (row * args.stride - args.pad_top + BIAS) << 16 | (column * args.stride - args.pad_left + BIAS);
        }
        carry();
    }
    __device__ __forceinline__ void carry() {
        while (channel >= args.channels) {
            channel -= args.channels;
            if (++kx < args.kernel_width) continue;
            kx = 0;
            ky++;
        }
    }
    __device__ __forceinline__ void copy(int i, unsigned shared, int bytes) const {
        const int y = (int)((unsigned)corner[i] >> 16) - BIAS + ky, x = (corner[i] & 0xffff) - BIAS + kx;
        const bool inside = (unsigned)y < (unsigned)args.height && (unsigned)x < (unsigned)args.width;
        const int pixel = (y >> args.shift) * args.width_in + (x >> args.shift);
        const bf16 *from = (const bf16 *)args.x + (inside ? pixel * args.ld_x + channel : 0);
        copy_async(shared + i * Tile::ROWS_AT_ONCE * Tile::ROW_BYTES, from, inside ? bytes : 0);
    }
    __device__ __forceinline__ void advance() {
        channel += Tile::DEPTH;
        carry();
    }
};

template <class Tile> __device__ __forceinline__ void conv2d(const lk_cuda_gemm &args) {
    int row_tile, column_tile;
    place(args, row_tile, column_tile);
    const int row = threadIdx.x / Tile::CHUNKS, chunk = threadIdx.x % Tile::CHUNKS;
    pixel_rows<Tile> x(args, row_tile * Tile::BM + row, chunk);
    dense_rows<Tile> w(args.w, args.ld_w, column_tile * Tile::BN + row, args.n, chunk);
    gemm<Tile, Tile::WM == LK_GROUP_SLAB>(args, x, w, row_tile, column_tile);
}

LK_GEMM_KERNEL(conv2d_128_bf16, tile_128, conv2d)
LK_GEMM_KERNEL(conv2d_64_bf16, tile_64, conv2d)
LK_GEMM_KERNEL(conv2d_16_bf16, tile_16, conv2d)
LK_GEMM_KERNEL(conv2d_flat_64_bf16, tile_flat_64, conv2d)
LK_GEMM_KERNEL(conv2d_few_bf16, tile_few, conv2d)

template <class T> __device__ __forceinline__ void conv2d_weights(const lk_cuda_conv2d_weights &args) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= args.n * args.ld) return;
    const int64_t filter = i / args.ld, k = i % args.ld, tap = k / args.channels, channel = k % args.channels;
    const T *from = (const T *)args.w + ((filter * args.channels + channel + 1) * args.kt - 1) * args.taps + tap;
    ((T *)args.packed)[i] = tap < args.taps ? *from : 0;
}
LK_VARIANTS(conv2d_weights, lk_cuda_conv2d_weights)
