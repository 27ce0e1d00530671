/* Global response norm: y = r(r(r(gamma r(x q)) + beta) + x), q = r(n / r(r(mean n) + eps)), n of a channel r(sqrt(sum
 * of squares over all rows)).
 * Layout: rows with a distance. Three kernels: norms (a thread has a column), factors (one thread adds the norms in
 * order, a block divides), and the norm itself (a thread has elements).
 * Tile: 128 columns, then 1 block, then 256 threads. Shared memory: one float. sm_80 or newer.
 * Deterministic: a column's squares, and the norms, are added in double in ascending order. */
#include "kernels/cuda/common.cuh"

template <class T> __device__ __forceinline__ void response_norms(const lk_cuda_response_norm &args) {
    const int64_t column = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= args.n) return;
    const T *x = (const T *)args.x + column;
    double sum = 0.0;
    for (int64_t row = 0; row < args.rows; row++) {
        const double v = (double)to_f32(x[row * args.ld_x]);
        sum += v * v;
    }
    args.factors[column] = rounded<T>(sqrtf((float)sum));
}
LK_VARIANTS(response_norms, lk_cuda_response_norm)

template <class T> __device__ __forceinline__ void response_factors(const lk_cuda_response_norm &args) {
    __shared__ float divisor;
    if (threadIdx.x == 0) {
        double sum = 0.0;
        for (int64_t c = 0; c < args.n; c++) sum += (double)args.factors[c];
        divisor = rounded<T>(rounded<T>((float)(sum / (double)args.n)) + args.eps);
    }
    __syncthreads();
    for (int64_t c = threadIdx.x; c < args.n; c += blockDim.x) args.factors[c] = rounded<T>(args.factors[c] / divisor);
}
LK_VARIANTS(response_factors, lk_cuda_response_norm)

template <class T> __device__ __forceinline__ void response_norm(const lk_cuda_response_norm &args) {
    const int64_t total = args.rows * args.n;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < total;
         at += (int64_t)gridDim.x * blockDim.x) {
        const int64_t row = at / args.n, c = at % args.n;
        const float x = to_f32(((const T *)args.x)[row * args.ld_x + c]);
        const float scaled = rounded<T>(rounded<T>(x * args.factors[c]) * element(args.gamma, c, args.w_bf16));
        const float moved = rounded<T>(scaled + element(args.beta, c, args.w_bf16));
        ((T *)args.y)[row * args.ld_y + c] = from_f32<T>(moved + x);
    }
}
LK_VARIANTS(response_norm, lk_cuda_response_norm)
