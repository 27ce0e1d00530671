/* y = r(act(x)), element by element.
 * Layout: rows with a distance each, or one dense row; a thread takes 16 bytes of neighbouring elements
 * (elementwise.h). Tile: up to 256 threads, 2048 elements. Shared memory: none. sm_80 or newer. Deterministic: every
 * element is computed alone. */
#include "kernels/cuda/activate.cuh"

template <class T> __device__ __forceinline__ void activation(const lk_cuda_elementwise &args) {
    for_each_run<width<T>>(args.rows, args.n, [&](int64_t row, int64_t column, int n) {
        elements<width<T>> y = load<width<T>>((const T *)args.a + row * args.ld_a + column, n, args.vector);
        activate_rounded<T>(args.act, y);
        store((T *)args.y + row * args.ld_y + column, n, args.vector, y);
    });
}
LK_VARIANTS(activation, lk_cuda_elementwise)
