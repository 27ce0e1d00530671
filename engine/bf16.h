/* bfloat16: the upper half of a float. Conversion rounds to nearest, ties to even; NaN stays NaN. */
#pragma once

#include <stdint.h>
#include <string.h>

static inline float lk_bf16_to_f32(uint16_t h) {
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint16_t lk_f32_to_bf16(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 0x0040u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* The nearest bf16 value, as a float. */
static inline float lk_round_bf16(float f) { return lk_bf16_to_f32(lk_f32_to_bf16(f)); }
