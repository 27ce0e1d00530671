/* The end of linear and conv2d on a product that a library has stored (rivals.h): y = residual + r(gate * r(act(r(x +
 * bias)))). Layout: rows, possibly windows of wider ones; a thread takes 8 neighbouring elements (elementwise.h).
 * Tile: up to 256 threads, 2048 elements. Shared memory: none. sm_80 or newer.
 * Deterministic: every element is computed alone. */
#include "kernels/cuda/gemm/gemm_epilogue.cuh"

template <class T> __device__ __forceinline__ void epilogue(const lk_cuda_after &args) {
    for_each_run<WIDTH>(args.rows, args.n, [&](int64_t row, int64_t column, int n) {
        const vector8 product = load((const T *)args.product + row * args.ld + column, n, args.vector);
        finish<T>(args.out, row, (int)column, n, product);
    });
}
LK_VARIANTS(epilogue, lk_cuda_after)
