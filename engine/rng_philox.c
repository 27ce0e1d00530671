#include "engine/rng.h"

#include <math.h>

#include "engine/bf16.h"
#include "engine/rng_normal.h"

enum { BLOCK = 256, PER_THREAD = 4 }; /* torch's launch: threads per block, normals per thread and round */

void lk_philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]}, k[2] = {key[0], key[1]};
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = 0xd2511f53ull * c[0], p1 = 0xcd9e8d57ull * c[2];
        c[0] = (uint32_t)(p1 >> 32) ^ c[1] ^ k[0];
        c[2] = (uint32_t)(p0 >> 32) ^ c[3] ^ k[1];
        c[1] = (uint32_t)p1;
        c[3] = (uint32_t)p0;
        k[0] += 0x9e3779b9u;
        k[1] += 0xbb67ae85u;
    }
    for (int i = 0; i < 4; i++) out[i] = c[i];
}

/* cuRAND's pair: sine first. Uniforms are in (0, 1] and (0, 2 pi], in float. */
static void normal_pair(uint32_t x, uint32_t y, float out[2]) {
    float u = (float)x * 0x1p-32f + 0x1p-33f;
    float v = fmaf((float)y, 0x1.921fb6p-30f, 0x1.921fb6p-31f);
    float radius = sqrtf(-2.0f * (float)lk_rng_log(u));
    double sine, cosine;
    lk_rng_sincos(v, &sine, &cosine);
    out[0] = radius * (float)sine + 0.0f;
    out[1] = radius * (float)cosine + 0.0f;
}

/* One of the two outputs is NULL. Thread t of T draws four normals a round; the k-th goes to element t + k T. */
static uint64_t philox_normal(uint64_t seed, uint64_t offset, const struct lk_philox_device *device, float *out_f32,
                              uint16_t *out_bf16, size_t n) {
    if (n == 0) return offset;
    size_t n_blocks = (n + BLOCK - 1) / BLOCK;
    size_t most = (size_t)device->n_multiprocessors * (size_t)(device->max_threads_per_multiprocessor / BLOCK);
    size_t n_threads = BLOCK * (n_blocks < most ? n_blocks : most);
    size_t n_rounds = (n - 1) / (n_threads * PER_THREAD) + 1;
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (size_t round = 0; round < n_rounds; round++) {
        uint64_t draw = offset / 4 + round;
        for (size_t thread = 0; thread < n_threads; thread++) {
            size_t first = round * n_threads * PER_THREAD + thread;
            if (first >= n) break;
            uint32_t counter[4] = {(uint32_t)draw, (uint32_t)(draw >> 32), (uint32_t)thread, 0}, words[4];
            float values[PER_THREAD];
            lk_philox4x32_10(counter, key, words);
            normal_pair(words[0], words[1], values);
            normal_pair(words[2], words[3], values + 2);
            for (size_t k = 0; k < PER_THREAD && first + k * n_threads < n; k++) {
                if (out_f32)
                    out_f32[first + k * n_threads] = values[k];
                else
                    out_bf16[first + k * n_threads] = lk_f32_to_bf16(values[k]);
            }
        }
    }
    return offset + n_rounds * PER_THREAD;
}

uint64_t lk_philox_normal_f32(uint64_t seed, uint64_t offset, const struct lk_philox_device *device, float *out,
                              size_t n) {
    return philox_normal(seed, offset, device, out, NULL, n);
}

uint64_t lk_philox_normal_bf16(uint64_t seed, uint64_t offset, const struct lk_philox_device *device, uint16_t *out,
                               size_t n) {
    return philox_normal(seed, offset, device, NULL, out, n);
}
