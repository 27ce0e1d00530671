/* f16 and bf16 as bits: conversions with round-to-nearest-even, and what arithmetic on them needs. NaN results are
 * canonical (0x7fff), as the hardware's are. */
#pragma once

#include <stdint.h>
#include <string.h>

static inline uint32_t num_f32_bits(float v) {
    uint32_t b;
    memcpy(&b, &v, 4);
    return b;
}
static inline float num_f32(uint32_t b) {
    float v;
    memcpy(&v, &b, 4);
    return v;
}

static inline float num_from_bf16(uint32_t h) { return num_f32(h << 16); }

static inline uint32_t num_to_bf16(float v) {
    uint32_t b = num_f32_bits(v);
    uint32_t rounded = (b + 0x7fff + (b >> 16 & 1)) >> 16;
    return (b & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded;
}

/* Exact. A subnormal half is its mantissa times 2^-24. */
static inline float num_from_f16(uint32_t h) {
    uint32_t sign = (h & 0x8000) << 16, magnitude = h & 0x7fff;
    uint32_t normal = (magnitude << 13) + 0x38000000;
    uint32_t special = 0x7f800000 | magnitude << 13;
    uint32_t small = num_f32_bits((float)(int32_t)magnitude * 0x1p-24f);
    uint32_t bits = magnitude >= 0x7c00 ? special : magnitude >= 0x0400 ? normal : small;
    return num_f32(sign | bits);
}

static inline uint32_t num_to_f16(float v) {
    uint32_t b = num_f32_bits(v), sign = b >> 16 & 0x8000, a = b & 0x7fffffff;
    uint32_t normal = (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13;
    /* Adding 0.5 puts a multiple of 2^-24 into the low mantissa bits, rounded to nearest even. */
    uint32_t small = num_f32_bits(num_f32(a) + 0.5f) - 0x3f000000;
    uint32_t h = a > 0x7f800000 ? 0x7fff : a >= 0x477ff000 ? 0x7c00 : a >= 0x38800000 ? normal : small;
    return a > 0x7f800000 ? 0x7fff : sign | h;
}

/* The double nearest to a*b + c in the sense that matters for rounding it once more: exact, or rounded to odd. a, b, c
 * are f16 or bf16 values, so that a*b is exact in double. */
static inline double num_fma_odd(double a, double b, double c) {
    double p = a * b, s = p + c;
    double t = s - p, error = (p - (s - t)) + (c - t);
    uint64_t bits;
    memcpy(&bits, &s, 8);
    if (error != 0 && !(bits & 1) && s - s == 0) {
        /* s is even and inexact: the odd neighbour on the side of the error. */
        bits += ((error > 0) == (s > 0)) ? 1 : (uint64_t)-1;
        memcpy(&s, &bits, 8);
    }
    return s;
}

/* Double to float, rounded to odd: a later rounding to 22 bits or fewer is then correct. */
static inline float num_f32_odd(double v) {
    float f = (float)v;
    uint32_t b = num_f32_bits(f);
    if ((double)f != v && !(b & 1) && v == v) {
        if ((b & 0x7f800000) == 0x7f800000) return f; /* beyond float: infinite in any narrower format */
        if ((f < 0 ? -f : f) < (v < 0 ? -v : v))
            b++;
        else
            b--;
    }
    if (f == 0 && v != 0) b = (v < 0 ? 0x80000000u : 0) | 1;
    return num_f32(b);
}
