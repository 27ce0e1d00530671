#include "kernels/cpu/cpu.h"

/* One token <-> four pixels. */
static void pack_token(const struct lk_pack_latents *op, int64_t i, int64_t j) {
    const struct lk_tensor *latents = op->latents, *tokens = op->tokens;
    int64_t width = latents->shape[1], channels = latents->shape[2];
    int64_t token = (i * (width / 2) + j) * tokens->ld;
    for (int64_t dy = 0; dy < 2; dy++)
        for (int64_t dx = 0; dx < 2; dx++) {
            int64_t pixel = (2 * i + dy) * latents->ld + (2 * j + dx) * channels, first = token + 2 * dy + dx;
            for (int64_t c = 0; c < channels; c++)
                if (op->inverse)
                    lk_cpu_set(latents, pixel + c, lk_cpu_get(tokens, first + 4 * c));
                else
                    lk_cpu_set(tokens, first + 4 * c, lk_cpu_get(latents, pixel + c));
        }
}

enum lk_code lk_cpu_pack_latents(struct lk_device *dev, const struct lk_pack_latents *op, void *scratch) {
    (void)scratch;
    int64_t n_i = op->latents->shape[0] / 2, n_j = op->latents->shape[1] / 2;
#pragma omp parallel for schedule(static) num_threads(dev->n_threads)
    for (int64_t i = 0; i < n_i; i++)
        for (int64_t j = 0; j < n_j; j++) pack_token(op, i, j);
    return LK_OK;
}
