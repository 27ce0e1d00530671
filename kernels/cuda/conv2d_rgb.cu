/* 3x3 convolution of a picture of three channels, bf16: the first layer of a VAE on pixels. y = epilogue(A wT) as in
 * gemm.cuh with K = 27 of 32: the same products in the same order as gemm_gathered.cu, so the same bits.
 *
 * Layout: pixels of 6 bytes have no whole sectors, their rows have: the sectors of a tile's rows come to shared memory
 * as they are, and with them filters of 32 values, by cp.async. A row of a patch is nine neighbours there, so that
 * lanes read their fragments of A pair by pair. Filters are permuted so that a lane's accumulators of four mma are
 * eight neighbouring channels: they go to memory from registers, and four lanes store two sectors. conv2d_rgb_slabs
 * leaves sums for group norm (group_slab.cuh), where rows are whole slabs. Tile: 4 warps, 4
 * rows of 128 pixels x 128 channels; a warp has a row, 16 pixels (64 with sums) and 32 channels at a time. Shared
 * memory: pixels 4,992 bytes, filters 8,192, with sums 16,384 more. sm_80 or newer. Deterministic: an output is one
 * chain of two mma m16n8k16. */
#include "kernels/cuda/gemm/gemm_epilogue.cuh"
#include "kernels/cuda/group_slab.cuh"
#include "kernels/cuda/mma.cuh"

constexpr int ROWS = LK_CUDA_RGB_ROWS, COLUMNS = LK_CUDA_RGB_COLUMNS, CHANNELS = LK_CUDA_RGB_CHANNELS;
constexpr int ALL_THREADS = 32 * ROWS, PIXEL = 6;                                /* bytes */
constexpr int TAPS = 3, PATCH_ROW = 3 * TAPS, K = TAPS * PATCH_ROW, FILTER = 64; /* bytes of 32 values */
constexpr int SECTOR = 32, WINDOW = COLUMNS + TAPS - 1;                          /* pixels */
/* Bytes from row to row: room for a window that begins anywhere in a sector; two rows differ by half of the banks. */
constexpr int PITCH = 832, CHUNKS = PITCH / 16;
static_assert((WINDOW * PIXEL + 2 * SECTOR - 2) / SECTOR * SECTOR <= PITCH && PITCH % 128 == 64, "rows");

/* A row of the picture under the tile: pixels [left, left + WINDOW), of which those in [from, end) exist. */
struct window {
    int64_t row; /* of the picture; its first pixel */
    int left, from, end;
    unsigned shift; /* bytes of the first sector before pixel `left` */

    __device__ __forceinline__ window(const lk_cuda_gemm &args, int y, int first) {
        const bool inside = (unsigned)y < (unsigned)args.height;
        row = (int64_t)(inside ? y : 0) * args.width;
        left = first;
        from = min(max(left, 0), args.width);
        end = inside ? min(left + WINDOW, args.width) : from;
        shift = ((unsigned)(uintptr_t)args.x + (unsigned)(row + left) * PIXEL) % SECTOR;
    }
};

/* Whole sectors around the pixels that exist; what is behind the picture is not read. */
__device__ __forceinline__ void copy_pixels(const lk_cuda_gemm &args, unsigned pixels, int first_row, int left) {
    const char *picture = (const char *)args.x, *last = picture + (int64_t)args.height * args.width * PIXEL;
    const int chunk = threadIdx.x % 64;
    if (chunk >= CHUNKS) return;
#pragma unroll
    for (int r = threadIdx.x / 64; r < ROWS + TAPS - 1; r += ALL_THREADS / 64) {
        const window w(args, first_row + r, left);
        const char *chunk_at = picture + (w.row + left) * PIXEL - w.shift + chunk * 16;
        const char *from = picture + (w.row + w.from) * PIXEL, *end = picture + (w.row + w.end) * PIXEL;
        from -= (uintptr_t)from % SECTOR;
        end += -(uintptr_t)end % SECTOR;
        const int64_t there = last - chunk_at;
        const bool wanted = w.from < w.end && chunk_at >= picture && chunk_at >= from && chunk_at < end && there > 0;
        copy_async(pixels + r * PITCH + chunk * 16, wanted ? chunk_at : picture,
                   wanted ? (int)min(there, (int64_t)16) : 0);
    }
}

/* Filter 32 g + 8 t + 2 j + e of the tile becomes row 8 j + 2 t + e of group g: column 2 t + e of its j-th mma. */
__device__ __forceinline__ int place_of_filter(int filter) {
    return filter / 32 * 32 + filter % 8 / 2 * 8 + filter % 32 / 8 * 2 + filter % 2;
}
__device__ __forceinline__ unsigned chunk_of_filter(int row, int chunk) {
    return row * FILTER + (chunk ^ row / 2 % 4) * 16;
}
__device__ __forceinline__ void copy_filters(const lk_cuda_gemm &args, unsigned filters, int first) {
    const int chunk = threadIdx.x % 4;
#pragma unroll
    for (int i = threadIdx.x / 4; i < CHANNELS; i += ALL_THREADS / 4)
        copy_async(filters + chunk_of_filter(place_of_filter(i), chunk),
                   (const bf16 *)args.w + (int64_t)min(first + i, args.n - 1) * args.ld_w + chunk * 8, 16);
}

/* Pixels beside the picture, where its neighbouring rows were copied. */
__device__ __forceinline__ void clear_outside(const lk_cuda_gemm &args, unsigned char *pixels, int first_row,
                                              int left) {
    const int before = min(max(-left, 0), WINDOW), behind = max(min(args.width - left, WINDOW), 0);
    const int n = before + WINDOW - behind;
    for (int r = 0; r < ROWS + TAPS - 1; r++) {
        bf16 *row = (bf16 *)(pixels + r * PITCH + window(args, first_row + r, left).shift);
        for (int i = threadIdx.x; i < n * 3; i += ALL_THREADS) row[i < before * 3 ? i : i + (behind - before) * 3] = 0;
    }
}

/* Where a lane's pairs of K begin in the patch of the warp's first pixel: elements 8 p + 2 (lane % 4) + e. */
struct patch {
    const unsigned char *at[4][2];
    unsigned last; /* bits of the fourth pair that lie inside K */

    __device__ __forceinline__ patch(const lk_cuda_gemm &args, const unsigned char *pixels, int y, int left) {
        const int lane = threadIdx.x % 32;
        unsigned shift[TAPS];
#pragma unroll
        for (int ky = 0; ky < TAPS; ky++) shift[ky] = window(args, y + ky, left).shift + ky * PITCH;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int k = i / 2 * 8 + lane % 4 * 2 + i % 2, within = min(k, K - 1), ky = within / PATCH_ROW;
            at[i / 2][i % 2] = pixels +
                               (ky == 0   ? shift[0]
                                : ky == 1 ? shift[1]
                                          : shift[2]) +
                               (within - ky * PATCH_ROW) * 2 + lane / 4 * PIXEL;
        }
        const int left_of_k = K - 24 - lane % 4 * 2;
        last = left_of_k >= 2 ? 0xffffffffu : left_of_k == 1 ? 0xffffu : 0;
    }
    __device__ __forceinline__ unsigned pair(int p, int pixel) const {
        const unsigned low = *(const bf16 *)(at[p][0] + pixel * PIXEL),
                       high = *(const bf16 *)(at[p][1] + pixel * PIXEL);
        return (low | high << 16) & (p == 3 ? last : 0xffffffffu);
    }
};

/* The eight outputs of this lane at pixel lane / 4 + 8 half of 16, by its accumulators. */
__device__ __forceinline__ vector8 outputs(const float (&c)[4][4], int half) {
    vector8 out;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) out.v[i] = c[i / 2][half * 2 + i % 2];
    return out;
}

__device__ __forceinline__ void multiply(float (&c)[4][4], const unsigned (&a)[2][4], unsigned b_from, int group) {
#pragma unroll
    for (int step = 0; step < 2; step++)
#pragma unroll
        for (int j = 0; j < 4; j += 2) {
            unsigned b[4];
            load_matrices(b, (b_from + (group + j * 8) * FILTER) ^ step * 32);
            mma_bf16(c[j], a[step], b[0], b[1]);
            mma_bf16(c[j + 1], a[step], b[2], b[3]);
        }
}

__device__ __forceinline__ void load_patches(unsigned (&a)[2][4], const patch &from, int pixel) {
#pragma unroll
    for (int i = 0; i < 8; i++) a[i / 4][i % 4] = from.pair(i / 4 * 2 + i % 4 / 2, pixel + i % 2 * 8);
}

/* A warp's row of the tile. */
__device__ __forceinline__ void row_of_tile(const lk_cuda_gemm &args, const patch &a_from, unsigned b_from, int y,
                                            int x0, int first) {
    const int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int pixel = 0; pixel < COLUMNS && x0 + pixel < args.width_out; pixel += 16) {
        unsigned a[2][4];
        load_patches(a, a_from, pixel);
#pragma unroll 1
        for (int group = 0; group < CHANNELS && first + group < args.n; group += 32) {
            float c[4][4] = {};
            multiply(c, a, b_from, group);
            const int column = first + group + lane % 4 * 8;
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int x = x0 + pixel + half * 8 + lane / 4;
                if (x < args.width_out && column < args.n)
                    finish<bf16>(args.out, (int64_t)y * args.width_out + x, column, args.n - column, outputs(c, half));
            }
        }
    }
}

/* The same where slabs lie in rows: 64 pixels by 32 channels at a time, whose outputs `kept` [8][threads] has for the
 * second pass of their statistics. */
__device__ __forceinline__ void row_of_slabs(const lk_cuda_gemm &args, const patch &a_from, unsigned b_from, int y,
                                             int x0, int first, uint4 (*kept)[ALL_THREADS]) {
    const int lane = threadIdx.x % 32;
    lk_cuda_epilogue out = args.out;
    out.act = LK_ACT_NONE; /* as of every convolution: no copies of them in the unrolled loops */
    out.gate = nullptr;
#pragma unroll 1
    for (int pixel = 0; pixel < COLUMNS && x0 + pixel < args.width_out; pixel += LK_GROUP_SLAB) {
        const int64_t row = (int64_t)y * args.width_out + x0 + pixel;
        unsigned a[4][2][4];
#pragma unroll
        for (int i = 0; i < 4; i++) load_patches(a[i], a_from, pixel + i * 16);
#pragma unroll 1
        for (int group = 0; group < CHANNELS && first + group < args.n; group += 32) {
            const int column = first + group + lane % 4 * 8;
            slab_sums<32> sums;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float c[4][4] = {};
                multiply(c, a[i], b_from, group);
                if (column >= args.n) continue;
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const vector8 v = finish<bf16>(out, row + i * 16 + half * 8 + lane / 4, column, args.n - column,
                                                   outputs(c, half));
                    sums.add(v);
                    kept[i * 2 + half][threadIdx.x] = make_uint4(pack_bf16(v.v[0], v.v[1]), pack_bf16(v.v[2], v.v[3]),
                                                                 pack_bf16(v.v[4], v.v[5]), pack_bf16(v.v[6], v.v[7]));
                }
            }
            put_slab(args.slabs, (int)(row / LK_GROUP_SLAB), LK_GROUP_SLAB, column, args.n, sums,
                     [&](int of_slab) { return load_whole<WIDTH>((const bf16 *)&kept[of_slab / 8][threadIdx.x]); });
        }
    }
}

template <bool SLABS> __device__ __forceinline__ void conv2d_rgb(const lk_cuda_gemm &args) {
    __shared__ __align__(128) unsigned char pixels[(ROWS + TAPS - 1) * PITCH], filters[CHANNELS * FILTER];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int x0 = blockIdx.x * COLUMNS, y0 = blockIdx.y * ROWS, first = blockIdx.z * CHANNELS;
    const int top = y0 - args.pad_top, left = x0 - args.pad_left;
    copy_pixels(args, shared_address(pixels), top, left);
    copy_filters(args, shared_address(filters), first);
    copy_commit();
    copy_wait<0>();
    __syncthreads();
    if (left < 0 || left + WINDOW > args.width) {
        clear_outside(args, pixels, top, left);
        __syncthreads();
    }
    const int y = y0 + warp;
    if ((int64_t)y * args.width_out >= args.m) return;
    const patch a_from(args, pixels + warp * PITCH, top + warp, left);
    const unsigned b_from = shared_address(filters) + chunk_of_filter(lane % 8 + lane / 16 * 8, lane / 8 % 2);
    if constexpr (SLABS) {
        __shared__ uint4 kept[LK_GROUP_SLAB / 8][ALL_THREADS];
        row_of_slabs(args, a_from, b_from, y, x0, first, kept);
    } else {
        row_of_tile(args, a_from, b_from, y, x0, first);
    }
}

extern "C" __global__ void __launch_bounds__(ALL_THREADS, 6) conv2d_rgb_bf16(const lk_cuda_gemm args) {
    conv2d_rgb<false>(args);
}
extern "C" __global__ void __launch_bounds__(ALL_THREADS, 5) conv2d_rgb_slabs_bf16(const lk_cuda_gemm args) {
    conv2d_rgb<true>(args);
}
