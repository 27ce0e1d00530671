/* Normal noise with the bits of PyTorch's CPU generator: torch.Generator("cpu").manual_seed(seed), torch.randn(n,
 * dtype).
 *
 *     struct lk_rng rng;
 *     lk_rng_seed(&rng, 42);
 *     lk_rng_normal_f32(&rng, noise, n);   // what torch.randn([...], generator=g) gives, in row-major order
 */
#pragma once

#include <stdint.h>
#include <stddef.h>

/* MT19937 as torch keeps it, with the cached second normal that draws of fewer than 16 elements leave behind. */
struct lk_rng {
    uint32_t state[624];
    int next;
    int has_cached_normal;
    double cached_normal;
};

void lk_rng_seed(struct lk_rng *rng, uint64_t seed);
uint32_t lk_rng_u32(struct lk_rng *rng);

/* n normals with mean 0, sd 1; equal to torch.randn for every n, including n < 16 and n not a multiple of 16. bf16
 * draws are not rounded f32 draws: torch computes them in bf16. */
void lk_rng_normal_f32(struct lk_rng *rng, float *out, size_t n);
void lk_rng_normal_bf16(struct lk_rng *rng, uint16_t *out, size_t n);
