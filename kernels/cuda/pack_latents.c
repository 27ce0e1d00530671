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
    if (n > INT32_MAX) return lk_fail(LK_E_INTERNAL, "pack_latents: %lld values are too many", (long long)n * 4);
    const int at_once = latents->dtype == LK_BF16 ? 2 : 1; /* channels of a thread: 16 bytes of a token */
    args.vector = args.channels % at_once == 0 && (uintptr_t)args.tokens % 16 == 0 && (uintptr_t)args.latents % 4 == 0;
    const int64_t threads = args.vector ? n / at_once : n;
    struct lk_cuda_grid grid = {.grid = {(unsigned)lk_cuda_div_up(threads, THREADS)}, .block = {THREADS}};
    return lk_cuda_launch(dev, "pack_latents", LK_CUDA_VARIANT("pack_latents", latents->dtype), &grid, &args);
}
