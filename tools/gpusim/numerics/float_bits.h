/* The numbers' bits: casts, classes, and rounding from a wider format. All of it is without branches, so that loops
 * over lanes become vector code. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "tools/gpusim/numerics/numerics.h"

#define NAN_F16  0x7fffu
#define NAN_BF16 0x7fffu
#define NAN_F32  0x7fffffffu
#define NAN_F64  0xfff8000000000000ull

#define INLINE   static inline __attribute__((always_inline))

INLINE float f32_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
INLINE uint32_t bits_f32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}
INLINE double f64_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, 8);
    return x;
}
INLINE uint64_t bits_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return bits;
}

INLINE int is_nan_f16(uint32_t x) { return (x & 0x7fff) > 0x7c00; }
INLINE int is_nan_bf16(uint32_t x) { return (x & 0x7fff) > 0x7f80; }
INLINE int is_nan_f32(uint32_t x) { return (x & 0x7fffffff) > 0x7f800000; }
INLINE int is_nan_f64(uint64_t x) { return (x & ~(1ull << 63)) > 0x7ffull << 52; }

INLINE uint32_t flush_f32(uint32_t x) { return x & 0x7f800000 ? x : x & 0x80000000; }
INLINE uint32_t flush_f16(uint32_t x) { return x & 0x7c00 ? x : x & 0x8000; }

/* p + c rounded to odd: the last bit of the result is set when the sum is not exact, so that rounding it once more, to
 * a format at least two bits narrower, gives what rounding the exact sum gives. */
INLINE double odd_sum_f64(double p, double c) {
    double s = p + c, t = s - p;
    double error = (p - (s - t)) + (c - t);
    uint64_t bits = bits_f64(s);
    uint64_t away = (error > 0) == (s > 0) ? 1 : -(uint64_t)1;
    uint64_t inexact = (error > 0) | (error < 0);
    return f64_of(inexact & ~bits ? bits + away : bits);
}
INLINE float odd_sum_f32(float p, float c) {
    float s = p + c, t = s - p;
    float error = (p - (s - t)) + (c - t);
    uint32_t bits = bits_f32(s);
    uint32_t away = (error > 0) == (s > 0) ? 1 : -(uint32_t)1;
    uint32_t inexact = (error > 0) | (error < 0);
    return f32_of(inexact & ~bits ? bits + away : bits);
}

/* x rounded to f32. NaN stays some NaN. */
INLINE uint32_t round_f32(double x, enum gpusim_num_rounding rounding) {
    float nearest = (float)x;
    double back = nearest;
    uint32_t bits = bits_f32(nearest), negative = bits >> 31;
    uint32_t above = back > x, below = back < x;
    switch (rounding) {
    case GPUSIM_NUM_RZ:
        return bits - (negative ? below : above);
    case GPUSIM_NUM_RM:
        return above ? (negative ? bits + 1 : bits - 1) : bits;
    case GPUSIM_NUM_RP:
        return below ? (negative ? bits - 1 : bits + 1) : bits;
    default:
        return bits;
    }
}
/* x as f32, rounded to odd. */
INLINE uint32_t odd_f32(double x) {
    float nearest = (float)x;
    double back = nearest;
    uint32_t bits = bits_f32(nearest), negative = bits >> 31;
    uint32_t above = back > x, below = back < x;
    return (bits - (negative ? below : above)) | above | below;
}

INLINE uint32_t round_up(uint32_t odd, uint32_t rest, uint32_t half, uint32_t negative,
                         enum gpusim_num_rounding rounding) {
    switch (rounding) {
    case GPUSIM_NUM_RZ:
        return 0;
    case GPUSIM_NUM_RM:
        return negative & (rest != 0);
    case GPUSIM_NUM_RP:
        return (negative ^ 1) & (rest != 0);
    case GPUSIM_NUM_RNA:
        return rest >= half;
    default:
        return (rest > half) | ((rest == half) & odd);
    }
}

/* f32 to f16. NaN gives the canonical one. */
INLINE uint32_t f16_from_f32(uint32_t x, enum gpusim_num_rounding rounding) {
    uint32_t negative = x >> 31, magnitude = x & 0x7fffffff, exponent = magnitude >> 23;
    uint32_t mantissa = (magnitude & 0x7fffff) | (exponent ? 0x800000 : 0);
    uint32_t shift = exponent >= 113 ? 13 : 126 - exponent;
    shift = shift > 31 ? 31 : shift;
    uint32_t kept = (mantissa >> shift) + (exponent > 113 ? (exponent - 113) << 10 : 0);
    uint32_t rest = mantissa & ((1u << shift) - 1);
    kept += round_up(kept & 1, rest, 1u << (shift - 1), negative, rounding);
    uint32_t overflow = 0x7c00;
    if (rounding == GPUSIM_NUM_RZ) overflow = 0x7bff;
    if (rounding == GPUSIM_NUM_RM) overflow = negative ? 0x7c00 : 0x7bff;
    if (rounding == GPUSIM_NUM_RP) overflow = negative ? 0x7bff : 0x7c00;
    kept = kept >= 0x7c00 ? overflow : kept;
    kept = magnitude == 0x7f800000 ? 0x7c00 : kept;
    return magnitude > 0x7f800000 ? NAN_F16 : kept | negative << 15;
}
INLINE uint32_t f32_from_f16(uint32_t x) {
    uint32_t magnitude = x & 0x7fff, sign = (x & 0x8000) << 16;
    uint32_t finite = bits_f32(f32_of(magnitude << 13) * 0x1p112f);
    uint32_t other = magnitude > 0x7c00 ? NAN_F32 : 0x7f800000 | sign;
    return magnitude >= 0x7c00 ? other : finite | sign;
}
INLINE uint32_t bf16_from_f32(uint32_t x, enum gpusim_num_rounding rounding) {
    uint32_t kept = x >> 16;
    kept += round_up(kept & 1, x & 0xffff, 0x8000, x >> 31, rounding);
    return is_nan_f32(x) ? NAN_BF16 : kept;
}
INLINE uint32_t f32_from_bf16(uint32_t x) { return is_nan_bf16(x) ? NAN_F32 : x << 16; }

/* What comes after rounding. A result counts as subnormal as it is after rounding. */
INLINE uint32_t finish_f32(uint32_t r, unsigned flags) {
    if (flags & GPUSIM_NUM_FTZ) r = flush_f32(r);
    if (flags & GPUSIM_NUM_SAT) {
        r = (int32_t)r > 0x3f800000 && !is_nan_f32(r) ? 0x3f800000 : r;
        return (int32_t)r < 0 || is_nan_f32(r) ? 0 : r;
    }
    return is_nan_f32(r) ? NAN_F32 : r;
}
INLINE uint32_t finish_f16(uint32_t r, unsigned flags) {
    if (flags & GPUSIM_NUM_FTZ) r = flush_f16(r);
    if (flags & GPUSIM_NUM_SAT) {
        r = r > 0x3c00 && r <= 0x7c00 ? 0x3c00 : r;
        return r >> 15 || is_nan_f16(r) ? 0 : r;
    }
    if (flags & GPUSIM_NUM_RELU) r = r >> 15 && !is_nan_f16(r) ? 0 : r;
    return is_nan_f16(r) ? NAN_F16 : r;
}
INLINE uint32_t finish_bf16(uint32_t r, unsigned flags) {
    if (flags & GPUSIM_NUM_RELU) r = r >> 15 && !is_nan_bf16(r) ? 0 : r;
    return is_nan_bf16(r) ? NAN_BF16 : r;
}
