#include "kernels/cuda/elementwise.h"

enum lk_code lk_cuda_posterior_sample(struct lk_device *dev, const struct lk_posterior_sample *op, void *scratch) {
    (void)scratch;
    const int64_t n_pixels = op->z->shape[0] * op->z->shape[1], c = op->z->shape[2];
    struct lk_tensor z = LK_VIEW(op->z, n_pixels, c), noise = LK_VIEW(op->noise, n_pixels, c);
    struct lk_tensor moments = LK_VIEW(op->moments, n_pixels, 2 * c);
    struct lk_cuda_elementwise args = lk_cuda_elementwise_arguments(&z, &moments, &noise);
    args.vector = args.vector && c % LK_CUDA_WIDTH(z.dtype) == 0; /* logvar begins c elements after mean */
    struct lk_cuda_grid grid = lk_cuda_elementwise_grid(args.rows, args.n, z.dtype);
    return lk_cuda_launch(dev, "posterior_sample", LK_CUDA_VARIANT("posterior_sample", z.dtype), &grid, &args);
}
