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

/* One value of the exponential distribution with mean 1: what each element of torch.Tensor.exponential_() (2.15, CPU)
 * is for f32. torch.multinomial with one sample is the first maximum of p / such values. */
float lk_rng_exponential_f32(struct lk_rng *rng);
/* Passes over n of these values. */
void lk_rng_skip_exponential(struct lk_rng *rng, size_t n);

/* The stream of torch.Generator("cuda"), computed on the host. It depends on the GPU: a draw of more elements than the
 * GPU runs threads gives other numbers on a GPU with more threads. */
struct lk_philox_device {
    int n_multiprocessors;              /* A100: 108, H100 SXM: 132, RTX 4090: 128 */
    int max_threads_per_multiprocessor; /* A100 and H100: 2,048, RTX 4090: 1,536 */
};

/* Philox4x32-10 (Salmon et al. 2011) as Random123 and cuRAND have it. */
void lk_philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* torch.randn(n, device="cuda"): seed and offset of the generator before the draw (0 after manual_seed; always a
 * multiple of 4); returns its offset after the draw. The integers are bit-equal; the GPU's sine and cosine are
 * approximate (absolute error up to about 5e-7), here they are exact to rounding, so that values are equal to torch's
 * within about 3e-6. n < 2^31. */
uint64_t lk_philox_normal_f32(uint64_t seed, uint64_t offset, const struct lk_philox_device *device, float *out,
                              size_t n);
uint64_t lk_philox_normal_bf16(uint64_t seed, uint64_t offset, const struct lk_philox_device *device, uint16_t *out,
                               size_t n);
