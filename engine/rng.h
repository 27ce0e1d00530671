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

/* n normals with mean 0, sd 1; equal to torch.randn (2.15) for every n, including n < 16 and n not a multiple of 16.
 * bf16 draws are the f32 draws rounded when n is a multiple of 16 or below 16; otherwise an f32 draw spends n % 16 more
 * uniforms, and the two differ in the last 16 elements and in all that follows. (Old releases, 1.13 for one, drew bf16
 * from 8-bit uniforms: other numbers.)
 *
 * The f32 bits for n >= 16 are those of torch on x86 with AVX2 (AVX-512 servers run the same kernel); torch on other
 * processors differs by about 1e-6. Here they are the same on every machine. */
void lk_rng_normal_f32(struct lk_rng *rng, float *out, size_t n);
void lk_rng_normal_bf16(struct lk_rng *rng, uint16_t *out, size_t n);
