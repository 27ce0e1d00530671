/* Group norm over all pixels, channels last: n = r((x - mean) / sqrt(var + eps) w + b); y = r(act(n)).
 * Layout: dense pixels of channels. With the statistics of slabs that the convolution before has left (group_slab.cuh,
 * and group_sums for a picture in memory) two kernels: coefficients (a block has a group), and the norm itself, which
 * alone reads x. Without them three: sums of tiles (a block has up to 2048 channels, whole groups, of a
 * block of pixels; a thread 16 bytes of neighbouring channels of every so many pixels), coefficients (a thread has a
 * group), and the norm itself (a thread has 16 bytes of neighbouring channels, whose coefficients it keeps, of as many
 * pixels).
 * Shared memory: 33 KiB in the first, per thread and channel the sum and the sum of squares. Threads put equal
 * channels beside each other, so that no bank is met twice. sm_80 or newer.
 * Deterministic: sums are taken in double and shifted by the group's first value: down a thread's pixels, then over
 * thread rows, then over a group's channels, then over the blocks in order; the cut depends on the size of x only.
 * Slabs are combined in double in two passes, the mean first, by a fixed tree. */
#include "kernels/cuda/activate.cuh"
#include "kernels/cuda/group_slab.cuh"

constexpr int THREADS = LK_CUDA_GROUP_THREADS, PITCH = LK_CUDA_GROUP_PITCH, OF_SLABS = LK_CUDA_GROUP_OF_SLABS;
constexpr int SLAB_COLUMNS = LK_CUDA_GROUP_SLAB_COLUMNS;

/* Where channel c of a pixel of whole vectors has its coefficient: first the first fours of all vectors, so that a warp
 * reads whole sectors. */
template <int N> __device__ __forceinline__ int place_of(const lk_cuda_group_norm &args, int c) {
    return args.vector ? c % N / 4 * (args.channels / N * 4) + c / N * 4 + c % 4 : c;
}
template <int N>
__device__ __forceinline__ elements<N> load_coefficients(const lk_cuda_group_norm &args, const float *from, int c,
                                                         int n) {
    if (!args.vector) return load<N>(from + c, n, false);
    elements<N> out;
#pragma unroll
    for (int k = 0; k < N; k += 4) {
        const elements<4> part = load_whole<4>(from + place_of<N>(args, c + k));
#pragma unroll
        for (int i = 0; i < 4; i++) out.v[k + i] = part.v[i];
    }
    return out;
}

/* One group's sums are those of its channels, which lie `pitch` apart. */
__device__ __forceinline__ double sum_of(const double *first, int n, int pitch) {
    double total = 0.0;
    for (int i = 0; i < n; i++) total += first[i * pitch];
    return total;
}

template <class T> __device__ __forceinline__ void group_norm_sums(const lk_cuda_group_norm &args) {
    constexpr int N = width<T>;
    extern __shared__ double shared[]; /* [N][PITCH] sums, the same of squares */
    const int first_group = blockIdx.y * args.tile_groups;
    const int n_groups = min(args.tile_groups, args.n_groups - first_group);
    const int first_channel = first_group * args.per_group, n_channels = n_groups * args.per_group;
    const int vectors = (n_channels + N - 1) / N, height = THREADS / vectors;
    const int lane = threadIdx.x / vectors, column = threadIdx.x % vectors, channel = column * N;
    const T *x = (const T *)args.x + first_channel + channel;
    const int64_t begin = (int64_t)blockIdx.x * args.block_pixels;
    const int64_t end = min(begin + args.block_pixels, args.n_pixels);
    double *sums = shared, *squares = shared + N * PITCH;
    double sum[N] = {}, square[N] = {}, shift[N];
    if (lane == 0) {
        const elements<N> v = load<N>(x, n_channels - channel, args.vector);
#pragma unroll
        for (int i = 0; i < N; i++) sums[i * PITCH + column] = (double)v.v[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int c = min(channel + i, n_channels - 1), of_group = c - c % args.per_group;
        shift[i] = sums[of_group % N * PITCH + of_group / N];
    }
    for (int64_t pixel = begin + lane; pixel < end && lane < height; pixel += height) {
        const elements<N> v = load<N>(x + pixel * args.channels, n_channels - channel, args.vector);
#pragma unroll
        for (int i = 0; i < N; i++) {
            const double d = (double)v.v[i] - shift[i];
            sum[i] += d;
            square[i] = fma(d, d, square[i]);
        }
    }
    __syncthreads(); /* all have their shifts */
#pragma unroll
    for (int i = 0; i < N; i++) {
        sums[i * PITCH + threadIdx.x] = sum[i];
        squares[i * PITCH + threadIdx.x] = square[i];
    }
    __syncthreads();
    /* Thread rows, into the first. */
    for (int c = threadIdx.x; c < n_channels; c += THREADS) {
        const int place = c % N * PITCH + c / N;
        sums[place] = sum_of(sums + place, height, vectors);
        squares[place] = sum_of(squares + place, height, vectors);
    }
    __syncthreads();
    for (int group = threadIdx.x; group < n_groups; group += THREADS) {
        double total = 0.0, total_squares = 0.0;
        /* From another vector on where groups' vectors would meet in a bank. */
        int i = group * args.per_group / (16 * N) * N % args.per_group;
        for (int k = 0; k < args.per_group; k++, i = i + 1 < args.per_group ? i + 1 : 0) {
            const int c = group * args.per_group + i, place = c % N * PITCH + c / N;
            total += sums[place];
            total_squares += squares[place];
        }
        double *to = args.partial + ((int64_t)blockIdx.x * args.n_groups + first_group + group) * 2;
        *(double2 *)to = make_double2(total, total_squares);
    }
}
LK_VARIANTS(group_norm_sums, lk_cuda_group_norm)

/* Of one channel. */
template <class T>
__device__ __forceinline__ void put_coefficients(const lk_cuda_group_norm &args, int c, double mean, double variance) {
    const double factor = 1.0 / sqrt(variance + (double)args.eps);
    const int place = place_of<width<T>>(args, c);
    args.mean[place] = (float)mean;
    args.a[place] = (float)(factor * (double)element(args.w, c, args.w_bf16));
    args.add[place] = element(args.b, c, args.b_bf16);
}

template <class T> __device__ __forceinline__ void group_norm_coefficients(const lk_cuda_group_norm &args) {
    const int group = blockIdx.x * blockDim.x + threadIdx.x;
    if (group >= args.n_groups) return;
    double sum = 0.0, squares = 0.0;
#pragma unroll 8
    for (int block = 0; block < args.n_blocks; block++) {
        const double2 of = *(const double2 *)(args.partial + ((int64_t)block * args.n_groups + group) * 2);
        sum += of.x;
        squares += of.y;
    }
    const double n = (double)(args.n_pixels * args.per_group), mean = sum / n;
    const double variance = squares / n - mean * mean;
    const int first = group * args.per_group;
    const double shift = (double)to_f32(((const T *)args.x)[first]);
    for (int c = first; c < first + args.per_group; c++)
        put_coefficients<T>(args, c, shift + mean, variance < 0.0 ? 0.0 : variance);
}
LK_VARIANTS(group_norm_coefficients, lk_cuda_group_norm)

/* The block's sum, in every thread. */
__device__ __forceinline__ double sum_of_block(double x, double *shared) {
#pragma unroll
    for (int apart = 16; apart; apart /= 2) x += __shfl_xor_sync(0xffffffffu, x, apart);
    __syncthreads(); /* all have read the last sum */
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    return sum_of(shared, OF_SLABS / 32, 1);
}

extern "C" __global__ void __launch_bounds__(OF_SLABS) group_norm_of_slabs_bf16(const lk_cuda_group_norm args) {
    __shared__ double shared[OF_SLABS / 32];
    const int n_slabs = (int)((args.n_pixels + LK_GROUP_SLAB - 1) / LK_GROUP_SLAB), thread = threadIdx.x;
    const float2 *slabs = (const float2 *)args.slabs + (int64_t)blockIdx.x * n_slabs;
    const double n = (double)(args.n_pixels * args.per_group);
    auto values = [&](int slab) {
        return (double)(min((int64_t)LK_GROUP_SLAB, args.n_pixels - (int64_t)slab * LK_GROUP_SLAB) * args.per_group);
    };
    double sum = 0.0, m2 = 0.0;
#pragma unroll 4
    for (int slab = thread; slab < n_slabs; slab += OF_SLABS) sum = fma(values(slab), (double)slabs[slab].x, sum);
    const double mean = sum_of_block(sum, shared) / n;
#pragma unroll 4
    for (int slab = thread; slab < n_slabs; slab += OF_SLABS) {
        const float2 of = slabs[slab];
        const double d = (double)of.x - mean;
        m2 += fma(values(slab) * d, d, (double)of.y);
    }
    const double variance = sum_of_block(m2, shared) / n;
    if (thread < args.per_group) put_coefficients<bf16>(args, blockIdx.x * args.per_group + thread, mean, variance);
}

extern "C" __global__ void group_sums_bf16(const lk_cuda_group_sums args) {
    using window = slab_sums<SLAB_COLUMNS>;
    const int slab = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_row = slab * LK_GROUP_SLAB, rows = args.n_pixels - first_row;
    const int column = blockIdx.y * SLAB_COLUMNS + lane % window::LANES * 8;
    if (rows <= 0) return;
    auto read = [&](int row) {
        return load((const bf16 *)args.y + (int64_t)(first_row + row) * args.channels + column, args.channels - column,
                    args.vector);
    };
    window sums;
    for (int row = lane / window::LANES; column < args.channels && row < min(rows, LK_GROUP_SLAB);
         row += window::HEIGHT)
        sums.add(read(row));
    put_slab(args.slabs, slab, rows, column, args.channels, sums, read);
}

template <class T> __device__ __forceinline__ void group_norm(const lk_cuda_group_norm &args) {
    constexpr int N = width<T>;
    const int c = (blockIdx.x * blockDim.x + threadIdx.x) * N, n = args.channels - c;
    if (n <= 0) return;
    const elements<N> mean = load_coefficients<N>(args, args.mean, c, n), a = load_coefficients<N>(args, args.a, c, n);
    const elements<N> add = load_coefficients<N>(args, args.add, c, n);
    const int64_t step = (int64_t)gridDim.y * blockDim.y;
    for (int64_t pixel = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; pixel < args.n_pixels; pixel += step) {
        const int64_t place = pixel * args.channels + c;
        elements<N> x = load<N>((const T *)args.x + place, n, args.vector);
#pragma unroll
        for (int i = 0; i < N; i++) x.v[i] = (x.v[i] - mean.v[i]) * a.v[i] + add.v[i];
        if (args.act != LK_ACT_NONE) {
#pragma unroll
            for (int i = 0; i < N; i++) x.v[i] = rounded<T>(x.v[i]);
            activate_rounded<T>(args.act, x);
        }
        store((T *)args.y + place, n, args.vector, x);
    }
}
LK_VARIANTS(group_norm, lk_cuda_group_norm)
