#include "engine/rng.h"

#include <math.h>

#include "engine/bf16.h"
#include "engine/rng_normal.h"

enum { N = 624, M = 397 };

void lk_rng_seed(struct lk_rng *rng, uint64_t seed) {
    rng->state[0] = (uint32_t)seed; /* torch uses the low half only */
    for (uint32_t i = 1; i < N; i++) {
        uint32_t previous = rng->state[i - 1];
        rng->state[i] = 1812433253u * (previous ^ (previous >> 30)) + i;
    }
    rng->next = N;
    rng->has_cached_normal = 0;
    rng->cached_normal = 0;
}

static void next_state(struct lk_rng *rng) {
    uint32_t *s = rng->state;
    for (int i = 0; i < N; i++) {
        uint32_t next = s[(i + 1) % N];
        uint32_t mixed = (s[i] & 0x80000000u) | (next & 0x7fffffffu);
        s[i] = s[(i + M) % N] ^ (mixed >> 1) ^ (next & 1 ? 0x9908b0dfu : 0);
    }
    rng->next = 0;
}

uint32_t lk_rng_u32(struct lk_rng *rng) {
    if (rng->next >= N) next_state(rng);
    uint32_t y = rng->state[rng->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

static float uniform_f32(struct lk_rng *rng) { return (float)(lk_rng_u32(rng) & 0xffffffu) * 0x1p-24f; }

static double uniform_f64(struct lk_rng *rng) {
    uint64_t high = lk_rng_u32(rng), low = lk_rng_u32(rng);
    return (double)((high << 32 | low) & 0x1fffffffffffffu) * 0x1p-53;
}

/* One at a time, in double; every second call returns what the one before left over. */
static double normal_f64(struct lk_rng *rng) {
    if (rng->has_cached_normal) {
        rng->has_cached_normal = 0;
        return rng->cached_normal + 0.0; /* -0 becomes 0 */
    }
    double angle = uniform_f64(rng), radius = uniform_f64(rng);
    rng->has_cached_normal = 1;
    return lk_rng_box_muller(angle, radius, &rng->cached_normal) + 0.0;
}

float lk_rng_exponential_f32(struct lk_rng *rng) { return (float)-log1p(-uniform_f64(rng)); }

void lk_rng_skip_exponential(struct lk_rng *rng, size_t n) {
    for (size_t i = 2 * n; i;) { /* two words make a uniform */
        if (rng->next >= N) next_state(rng);
        size_t step = (size_t)(N - rng->next) < i ? (size_t)(N - rng->next) : i;
        rng->next += (int)step;
        i -= step;
    }
}

static void normal16(struct lk_rng *rng, float values[16]) {
    for (int i = 0; i < 16; i++) values[i] = uniform_f32(rng);
    lk_rng_box_muller16(values);
}

/* All uniforms come first; if the last block is not whole, the last 16 elements are drawn again. */
void lk_rng_normal_f32(struct lk_rng *rng, float *out, size_t n) {
    if (n < 16) {
        for (size_t i = 0; i < n; i++) out[i] = (float)normal_f64(rng);
        return;
    }
    for (size_t i = 0; i < n; i++) out[i] = uniform_f32(rng);
    for (size_t i = 0; i + 16 <= n; i += 16) lk_rng_box_muller16(out + i);
    if (n % 16) normal16(rng, out + n - 16);
}

static void round16(uint16_t *out, const float values[16]) {
    for (int i = 0; i < 16; i++) out[i] = lk_f32_to_bf16(values[i]);
}

/* As f32, except that no uniforms are spent on an unfinished last block. */
void lk_rng_normal_bf16(struct lk_rng *rng, uint16_t *out, size_t n) {
    if (n < 16) {
        for (size_t i = 0; i < n; i++) out[i] = lk_f32_to_bf16((float)normal_f64(rng));
        return;
    }
    float values[16];
    for (size_t i = 0; i + 16 <= n; i += 16) {
        normal16(rng, values);
        round16(out + i, values);
    }
    if (n % 16) {
        normal16(rng, values);
        round16(out + n - 16, values);
    }
}
