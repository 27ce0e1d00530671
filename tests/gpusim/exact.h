/* Exact numbers for the tests of tools/gpusim/numerics: fixed point with room for every product of two f64 and sum with
 * a third, and rounding of one to a format bit by bit. */
#pragma once

#include "numerics_common.h"

__extension__ typedef unsigned __int128 u128;

enum { EXACT_WORDS = 72, EXACT_ONE = 2240 }; /* bit EXACT_ONE is 1 */

struct exact {
    int negative;
    uint64_t words[EXACT_WORDS];
};

/* x + mantissa * 2^exponent, magnitudes only. */
static inline void exact_add_bits(struct exact *x, u128 mantissa, int exponent) {
    int at = exponent + EXACT_ONE, word = at / 64, shift = at % 64;
    uint64_t parts[3] = {(uint64_t)mantissa << shift, (uint64_t)(mantissa >> (64 - shift)),
                         shift ? (uint64_t)(mantissa >> 64 >> (64 - shift)) : 0};
    uint64_t carry = 0;
    if (!shift) parts[1] = (uint64_t)(mantissa >> 64);
    for (int i = 0; word + i < EXACT_WORDS && (i < 3 || carry); i++) {
        u128 sum = (u128)x->words[word + i] + (i < 3 ? parts[i] : 0) + carry;
        x->words[word + i] = (uint64_t)sum;
        carry = (uint64_t)(sum >> 64);
    }
}
static inline struct exact exact_of(int negative, u128 mantissa, int exponent) {
    struct exact x;
    memset(&x, 0, sizeof x);
    x.negative = negative;
    exact_add_bits(&x, mantissa, exponent);
    return x;
}

static inline int exact_compare_size(const struct exact *x, const struct exact *y) {
    for (int i = EXACT_WORDS - 1; i >= 0; i--)
        if (x->words[i] != y->words[i]) return x->words[i] < y->words[i] ? -1 : 1;
    return 0;
}
static inline int exact_is_zero(const struct exact *x) {
    for (int i = 0; i < EXACT_WORDS; i++)
        if (x->words[i]) return 0;
    return 1;
}

static inline struct exact exact_sum(const struct exact *x, const struct exact *y) {
    struct exact r;
    uint64_t carry = 0;
    int larger = exact_compare_size(x, y) >= 0;
    const struct exact *a = larger ? x : y, *b = larger ? y : x;
    r.negative = a->negative;
    for (int i = 0; i < EXACT_WORDS; i++) {
        u128 w = x->negative == y->negative ? (u128)a->words[i] + b->words[i] + carry
                                            : (u128)a->words[i] - b->words[i] - carry;
        r.words[i] = (uint64_t)w;
        carry = (uint64_t)(w >> 64) & 1;
    }
    return r;
}

static inline int exact_top(const struct exact *x) { /* number of the highest bit, -1 for zero */
    for (int i = EXACT_WORDS - 1; i >= 0; i--)
        if (x->words[i]) return 64 * i + 63 - __builtin_clzll(x->words[i]);
    return -1;
}
static inline int exact_bit(const struct exact *x, int i) { return i < 0 ? 0 : (int)(x->words[i / 64] >> i % 64 & 1); }
static inline int exact_any_below(const struct exact *x, int n) {
    for (int i = 0; i < n; i++) {
        if (i % 64 == 0 && i + 64 <= n) {
            if (x->words[i / 64]) return 1;
            i += 63;
        } else if (exact_bit(x, i)) {
            return 1;
        }
    }
    return 0;
}
/* Bits from..top as a number, and whether rounding takes it up by one. */
static inline u128 exact_rounded_at(const struct exact *x, int from, enum gpusim_num_rounding rounding) {
    u128 kept = 0;
    for (int i = exact_top(x); i >= from; i--) kept = kept << 1 | (u128)exact_bit(x, i);
    int half = exact_bit(x, from - 1), below = exact_any_below(x, from - 1);
    switch (rounding) {
    case GPUSIM_NUM_RZ:
    case GPUSIM_NUM_RZI:
        return kept;
    case GPUSIM_NUM_RM:
    case GPUSIM_NUM_RMI:
        return kept + (x->negative && (half || below));
    case GPUSIM_NUM_RP:
    case GPUSIM_NUM_RPI:
        return kept + (!x->negative && (half || below));
    case GPUSIM_NUM_RNA:
        return kept + (u128)half;
    default:
        return kept + (half && (below || (kept & 1)));
    }
}

/* x in a format; zero keeps x's sign. */
static inline uint64_t exact_round(const struct exact *x, struct format f, enum gpusim_num_rounding rounding) {
    uint64_t sign = x->negative ? format_sign(f) : 0;
    int top = exact_top(x);
    if (top < 0) return sign;
    int exponent = top - EXACT_ONE, least = 1 - format_bias(f);
    if (exponent < least) exponent = least;
    u128 kept = exact_rounded_at(x, exponent - f.mantissa_bits + EXACT_ONE, rounding);
    if (kept >> (f.mantissa_bits + 1)) kept >>= 1, exponent++;
    if (exponent > format_bias(f)) {
        int largest = rounding == GPUSIM_NUM_RZ || rounding == (x->negative ? GPUSIM_NUM_RP : GPUSIM_NUM_RM);
        return sign | (format_infinity(f) - (uint64_t)largest);
    }
    uint64_t normal = kept >> f.mantissa_bits ? (uint64_t)(exponent + format_bias(f)) << f.mantissa_bits : 0;
    return sign | normal | ((uint64_t)kept & ((1ull << f.mantissa_bits) - 1));
}

static inline struct exact exact_number(uint64_t x, struct format f) {
    int e;
    uint64_t m = format_mantissa(x, f, &e);
    return exact_of((x & format_sign(f)) != 0, m, e);
}
