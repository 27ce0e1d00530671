#include "kernels/cuda/arguments.h"
#include "kernels/cuda/cuda.h"

#define THREADS 256

enum lk_code lk_cuda_pack_latents(struct lk_device *dev, const struct lk_pack_latents *op, void *scratch) {
    (void)scratch;
    const struct lk_tensor *latents = op->latents;
    struct lk_cuda_pack_latents args = {.tokens = op->tokens->data,
                                        .latents = latents->data,
                                        .tokens_high = latents->shape[0] / 2,
                                        .tokens_wide = latents->shape[1] / 2,
                                        .channels = latents->shape[2],
                                        .inverse = op->inverse};
    const int64_t n = args.tokens_high * args.tokens_wide * args.channels;
    struct lk_cuda_grid grid = {.grid = {(unsigned)lk_cuda_div_up(n, THREADS)}, .block = {THREADS}};
    return lk_cuda_launch(dev, "pack_latents", LK_CUDA_VARIANT("pack_latents", latents->dtype), &grid, &args);
}
