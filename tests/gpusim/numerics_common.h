/* What the tests of tools/gpusim/numerics share. */
#pragma once

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/gpusim/numerics/numerics.h"

static const char *const isas[] = {"portable", "avx2", "avx512"};
enum { N_ISAS = 3 };

static inline uint64_t random64(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* A float format by its numbers of bits. */
struct format {
    int exponent_bits, mantissa_bits;
};
static const struct format f16_format = {5, 10}, bf16_format = {8, 7}, tf32_format = {8, 10}, f32_format = {8, 23},
                           f64_format = {11, 52};

static inline int format_bias(struct format f) { return (1 << (f.exponent_bits - 1)) - 1; }
static inline uint64_t format_infinity(struct format f) { return ((1ull << f.exponent_bits) - 1) << f.mantissa_bits; }
static inline uint64_t format_sign(struct format f) { return 1ull << (f.exponent_bits + f.mantissa_bits); }
static inline int format_is_nan(uint64_t x, struct format f) { return (x & (format_sign(f) - 1)) > format_infinity(f); }
static inline int format_is_infinite(uint64_t x, struct format f) {
    return (x & (format_sign(f) - 1)) == format_infinity(f);
}

/* A finite number is mantissa * 2^exponent, not normalised. */
static inline uint64_t format_mantissa(uint64_t x, struct format f, int *exponent) {
    uint64_t fraction = x & ((1ull << f.mantissa_bits) - 1);
    int field = (int)(x >> f.mantissa_bits & ((1u << f.exponent_bits) - 1));
    *exponent = (field ? field : 1) - format_bias(f) - f.mantissa_bits;
    return field ? fraction | 1ull << f.mantissa_bits : fraction;
}

/* Random bits, with small, special, neighbouring and everyday numbers more often than chance has them. */
static inline uint64_t random_number(struct format f, uint64_t *state) {
    uint64_t r = random64(state), x = random64(state) & (2 * format_sign(f) - 1);
    uint64_t fraction = (1ull << f.mantissa_bits) - 1, one = (uint64_t)format_bias(f) << f.mantissa_bits;
    static const int shifts[] = {0, 1, 2, 3};
    switch (r & 15) {
    case 0:
        return x & format_sign(f); /* zero */
    case 1:
        return (x & format_sign(f)) | format_infinity(f); /* infinity */
    case 2:
        return (x & (format_sign(f) | fraction)) | format_infinity(f); /* NaN, mostly */
    case 3:
        return x & (format_sign(f) | fraction); /* subnormal */
    case 4:
        return (x & format_sign(f)) | (r >> 8 & 3); /* smallest */
    case 5:
        return (x & format_sign(f)) | (format_infinity(f) - (r >> 8 & 3)); /* largest */
    case 6:
        return (x & format_sign(f)) | ((1ull << f.mantissa_bits) + (r >> 8 & 3) - 1);
    case 7:
        return (x & format_sign(f)) | (one + (r >> 8 & 3) - 1);
    case 8:
    case 9:
    case 10: /* near one */
        return (x & (format_sign(f) | fraction)) |
               (one + ((r >> 8 & 7) << f.mantissa_bits) - (4ull << f.mantissa_bits));
    case 11: /* few bits */
        return (x & (format_sign(f) | (fraction & ~(fraction >> 4)))) |
               (one + ((uint64_t)shifts[r >> 8 & 3] << f.mantissa_bits));
    default:
        return x;
    }
}
