/* Group norm over all pixels, channels last: n = r((x - mean) / sqrt(var + eps) w + b); y = r(act(n)).
 * Layout: dense pixels of channels. Three kernels: sums of tiles (a block has up to 2048 channels, whole groups, of a
 * block of pixels; a thread 8 neighbouring channels of every so many pixels), coefficients (a thread has a group), and
 * the norm itself (elementwise.h).
 * Shared memory: 32 KiB in the first, per channel and thread row the sum and the sum of squares. sm_80 or newer.
 * Deterministic: sums are taken in double and shifted by the group's first value: down a thread's pixels, then over a
 * group's channels and thread rows, then over the blocks in order; the cut depends on the size of x only. */
#include "kernels/cuda/common.cuh"

constexpr int THREADS = 256;

template <class T> __device__ __forceinline__ void group_norm_sums(const lk_cuda_group_norm &args) {
    __shared__ double sums[THREADS * WIDTH], squares[THREADS * WIDTH];
    const int first_group = blockIdx.y * args.tile_groups;
    const int n_groups = min(args.tile_groups, args.n_groups - first_group);
    const int first_channel = first_group * args.per_group, n_channels = n_groups * args.per_group;
    const int vectors = (n_channels + WIDTH - 1) / WIDTH, height = THREADS / vectors;
    const int lane = threadIdx.x / vectors, channel = (threadIdx.x % vectors) * WIDTH;
    const T *x = (const T *)args.x + first_channel;
    const int64_t begin = (int64_t)blockIdx.x * args.block_pixels;
    const int64_t end = min(begin + args.block_pixels, args.n_pixels);
    double sum[WIDTH] = {}, square[WIDTH] = {}, shift[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        const int c = channel + i < n_channels ? channel + i : 0;
        shift[i] = (double)to_f32(x[c - c % args.per_group]);
    }
    for (int64_t pixel = begin + lane; pixel < end && lane < height; pixel += height) {
        const vector8 v = load(x + pixel * args.channels + channel, n_channels - channel, args.vector);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            const double d = (double)v.v[i] - shift[i];
            sum[i] += d;
            square[i] += d * d;
        }
    }
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        sums[threadIdx.x * WIDTH + i] = sum[i];
        squares[threadIdx.x * WIDTH + i] = square[i];
    }
    __syncthreads();
    for (int group = threadIdx.x; group < n_groups; group += THREADS) {
        double total = 0.0, total_squares = 0.0;
        for (int c = group * args.per_group; c < (group + 1) * args.per_group; c++)
            for (int row = 0; row < height; row++) {
                total += sums[row * vectors * WIDTH + c];
                total_squares += squares[row * vectors * WIDTH + c];
            }
        double *to = args.partial + ((int64_t)blockIdx.x * args.n_groups + first_group + group) * 2;
        to[0] = total;
        to[1] = total_squares;
    }
}
LK_VARIANTS(group_norm_sums, lk_cuda_group_norm)

template <class T> __device__ __forceinline__ void group_norm_coefficients(const lk_cuda_group_norm &args) {
    const int group = blockIdx.x * blockDim.x + threadIdx.x;
    if (group >= args.n_groups) return;
    double sum = 0.0, squares = 0.0;
    for (int block = 0; block < args.n_blocks; block++) {
        const double *of = args.partial + ((int64_t)block * args.n_groups + group) * 2;
        sum += of[0];
        squares += of[1];
    }
    const double n = (double)(args.n_pixels * args.per_group), mean = sum / n;
    const double variance = squares / n - mean * mean;
    const double factor = 1.0 / sqrt((variance < 0.0 ? 0.0 : variance) + (double)args.eps);
    const int first = group * args.per_group;
    const double shift = (double)to_f32(((const T *)args.x)[first]);
    for (int c = first; c < first + args.per_group; c++) {
        args.mean[c] = (float)(shift + mean);
        args.a[c] = (float)(factor * (double)element(args.w, c, args.w_bf16));
        args.add[c] = element(args.b, c, args.b_bf16);
    }
}
LK_VARIANTS(group_norm_coefficients, lk_cuda_group_norm)

template <class T> __device__ __forceinline__ void group_norm(const lk_cuda_group_norm &args) {
    for_each_run(args.n_pixels, args.channels, [&](int64_t pixel, int64_t c, int64_t n) {
        const int64_t place = pixel * args.channels + c;
        const vector8 mean = load((const float *)args.mean + c, n, true), a = load((const float *)args.a + c, n, true);
        const vector8 add = load((const float *)args.add + c, n, true);
        vector8 x = load((const T *)args.x + place, n, args.vector);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) {
            x.v[i] = (x.v[i] - mean.v[i]) * a.v[i] + add.v[i];
            if (args.act != LK_ACT_NONE) x.v[i] = act(args.act, rounded<T>(x.v[i]));
        }
        store((T *)args.y + place, n, args.vector, x);
    });
}
LK_VARIANTS(group_norm, lk_cuda_group_norm)
