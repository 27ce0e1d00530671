#include "tools/gpusim/numerics/convert_any.h"

#include <math.h>

#include "tools/gpusim/numerics/lanes.h"

#define SIGN (1ull << 63)

static int is_float(enum gpusim_num_type type) { return type <= GPUSIM_NUM_F64; }
static int is_signed(enum gpusim_num_type type) { return (type - GPUSIM_NUM_S8) % 2 == 0; }
static int width(enum gpusim_num_type type) { return 8 << (type - GPUSIM_NUM_S8) / 2; }

/* The value as an f64, which holds every f16, bf16 and f32. */
static double float_value(uint64_t x, enum gpusim_num_type from, unsigned flags) {
    switch (from) {
    case GPUSIM_NUM_F16:
        return f32_of(f32_from_f16((uint32_t)x & 0xffff));
    case GPUSIM_NUM_BF16:
        return f32_of(f32_from_bf16((uint32_t)x & 0xffff));
    case GPUSIM_NUM_F32:
        return f32_of(flags & GPUSIM_NUM_FTZ ? flush_f32((uint32_t)x) : (uint32_t)x);
    default:
        return f64_of(x);
    }
}

static uint64_t finish_f64(double x, unsigned flags) {
    if (!(flags & GPUSIM_NUM_SAT)) return is_nan_f64(bits_f64(x)) ? bits_f64(x) | 1ull << 51 : bits_f64(x);
    return x > 0 ? bits_f64(x > 1 ? 1 : x) : 0;
}

static uint64_t to_float(double x, enum gpusim_num_type to, enum gpusim_num_rounding rounding, unsigned flags) {
    unsigned half_flags = flags & ~(unsigned)GPUSIM_NUM_FTZ;
    switch (to) {
    case GPUSIM_NUM_F16:
        return finish_f16(f16_from_f32(odd_f32(x), rounding), half_flags);
    case GPUSIM_NUM_BF16:
        return finish_bf16(bf16_from_f32(odd_f32(x), rounding), half_flags);
    case GPUSIM_NUM_F32:
        return finish_f32(round_f32(x, rounding), flags);
    default:
        return finish_f64(x, flags);
    }
}

static double integral(double x, enum gpusim_num_rounding rounding) {
    switch (rounding) {
    case GPUSIM_NUM_RNI:
        return rint(x);
    case GPUSIM_NUM_RZI:
        return trunc(x);
    case GPUSIM_NUM_RMI:
        return floor(x);
    default:
        return ceil(x);
    }
}

/* The low bits of x, extended to 64. */
static uint64_t extended(uint64_t x, enum gpusim_num_type type) {
    int unused = 64 - width(type);
    return is_signed(type) ? (uint64_t)((int64_t)(x << unused) >> unused) : x << unused >> unused;
}

static uint64_t float_to_integer(double x, enum gpusim_num_type to, enum gpusim_num_type from,
                                 enum gpusim_num_rounding rounding) {
    int bits = width(to);
    if (x != x) return from != GPUSIM_NUM_F64 && bits < 64 ? 0 : extended(1ull << (bits - 1), to);
    x = integral(x, rounding);
    double limit = ldexp(1, is_signed(to) ? bits - 1 : bits);
    if (x >= limit) return ~0ull >> (64 - bits + is_signed(to));
    if (!is_signed(to)) return x <= 0 ? 0 : (uint64_t)x;
    return x <= -limit ? 0 - (1ull << (bits - 1)) : (uint64_t)(int64_t)x;
}

/* magnitude, rounded to f64 in the direction that the sign makes of `rounding`. */
static double f64_from_magnitude(uint64_t magnitude, int negative, enum gpusim_num_rounding rounding) {
    double nearest = (double)magnitude;
    int above = nearest >= 0x1p64 || (uint64_t)nearest > magnitude;
    int below = !above && (uint64_t)nearest < magnitude;
    int down = rounding == GPUSIM_NUM_RZ || rounding == (negative ? GPUSIM_NUM_RP : GPUSIM_NUM_RM);
    int up = rounding == (negative ? GPUSIM_NUM_RM : GPUSIM_NUM_RP);
    uint64_t bits = bits_f64(nearest);
    return f64_of(bits - (uint64_t)(down & above) + (uint64_t)(up & below));
}

static uint64_t integer_to_float(uint64_t x, enum gpusim_num_type to, enum gpusim_num_type from,
                                 enum gpusim_num_rounding rounding, unsigned flags) {
    int negative = is_signed(from) && x >> 63;
    uint64_t magnitude = negative ? 0 - x : x;
    double value;
    if (to == GPUSIM_NUM_F64) {
        value = f64_from_magnitude(magnitude, negative, rounding);
    } else {
        /* 53 bits, the last of them sticky: rounded to odd */
        uint64_t kept = magnitude >> 53 ? magnitude >> 11 | ((magnitude & 0x7ff) != 0) : magnitude;
        value = magnitude >> 53 ? (double)kept * 0x1p11 : (double)kept;
    }
    return to_float(negative ? -value : value, to, rounding, flags);
}

static uint64_t integer_to_integer(uint64_t x, enum gpusim_num_type to, enum gpusim_num_type from, unsigned flags) {
    if (!(flags & GPUSIM_NUM_SAT)) return extended(x, to);
    int negative = is_signed(from) && x >> 63;
    uint64_t most = ~0ull >> (64 - width(to) + is_signed(to));
    if (!negative) return x > most ? most : x;
    if (!is_signed(to)) return 0;
    return (int64_t)x < -(int64_t)most - 1 ? ~most : x;
}

static uint64_t convert(uint64_t x, enum gpusim_num_type to, enum gpusim_num_type from,
                        enum gpusim_num_rounding rounding, unsigned flags) {
    if (!is_float(from)) {
        x = extended(x, from);
        return is_float(to) ? integer_to_float(x, to, from, rounding, flags) : integer_to_integer(x, to, from, flags);
    }
    double value = float_value(x, from, flags);
    if (!is_float(to)) return float_to_integer(value, to, from, rounding);
    if (rounding >= GPUSIM_NUM_RNI) value = integral(value, rounding);
    return to_float(value, to, rounding, flags);
}

static int is_wide(enum gpusim_num_type type) {
    return type == GPUSIM_NUM_F64 || type == GPUSIM_NUM_S64 || type == GPUSIM_NUM_U64;
}

/* The lanes of `mask`; a lane of a wide type has 64 bits, of another 32. */
static __attribute__((noinline)) void convert_lanes(void *d, const void *a, uint32_t mask, enum gpusim_num_type to,
                                                    enum gpusim_num_type from, enum gpusim_num_rounding rounding,
                                                    unsigned flags) {
    const uint32_t *narrow = a;
    const uint64_t *wide = a;
    for (int l = 0; l < 32; l++) {
        if (!(mask >> l & 1)) continue;
        uint64_t r = convert(is_wide(from) ? wide[l] : narrow[l], to, from, rounding, flags);
        if (is_wide(to))
            ((uint64_t *)d)[l] = r;
        else
            ((uint32_t *)d)[l] = (uint32_t)r;
    }
}

#define NAME_OF(TO, FROM, R, F) TO##_##FROM##_##R##F
#define CONVERT(TO, FROM, R, F)                                                                                        \
    static void NAME_OF(TO, FROM, R, F)(void *d, const void *a, const void *b, const void *c, uint32_t mask) {         \
        (void)b, (void)c;                                                                                              \
        convert_lanes(d, a, mask, GPUSIM_NUM_##TO, GPUSIM_NUM_##FROM, GPUSIM_NUM_##R, F);                              \
    }

/* Per pair of types one row [rounding][flags], every flag of FTZ + SAT. */
#define MODE(TO, FROM, R)                                                                                              \
    CONVERT(TO, FROM, R, 0) CONVERT(TO, FROM, R, 1) CONVERT(TO, FROM, R, 2) CONVERT(TO, FROM, R, 3)
#define MODE_NAMES(TO, FROM, R)                                                                                        \
    [GPUSIM_NUM_##                                                                                                     \
        R] = {NAME_OF(TO, FROM, R, 0), NAME_OF(TO, FROM, R, 1), NAME_OF(TO, FROM, R, 2), NAME_OF(TO, FROM, R, 3)}
#define ROUNDED(TO, FROM) MODE(TO, FROM, RN) MODE(TO, FROM, RZ) MODE(TO, FROM, RM) MODE(TO, FROM, RP)
#define ROUNDED_NAMES(TO, FROM)                                                                                        \
    MODE_NAMES(TO, FROM, RN), MODE_NAMES(TO, FROM, RZ), MODE_NAMES(TO, FROM, RM), MODE_NAMES(TO, FROM, RP)
#define INTEGRAL(TO, FROM) MODE(TO, FROM, RNI) MODE(TO, FROM, RZI) MODE(TO, FROM, RMI) MODE(TO, FROM, RPI)
#define INTEGRAL_NAMES(TO, FROM)                                                                                       \
    MODE_NAMES(TO, FROM, RNI), MODE_NAMES(TO, FROM, RZI), MODE_NAMES(TO, FROM, RMI), MODE_NAMES(TO, FROM, RPI)

#define TO_FLOAT(TO, FROM)       ROUNDED(TO, FROM)
#define TO_FLOAT_NAMES(TO, FROM) [GPUSIM_NUM_##TO][GPUSIM_NUM_##FROM] = {ROUNDED_NAMES(TO, FROM)}
#define SAME(TYPE)               ROUNDED(TYPE, TYPE) INTEGRAL(TYPE, TYPE)
#define SAME_NAMES(TYPE)                                                                                               \
    [GPUSIM_NUM_##TYPE][GPUSIM_NUM_##TYPE] = {ROUNDED_NAMES(TYPE, TYPE), INTEGRAL_NAMES(TYPE, TYPE)}
#define TO_INTEGER(TO, FROM)       INTEGRAL(TO, FROM)
#define TO_INTEGER_NAMES(TO, FROM) [GPUSIM_NUM_##TO][GPUSIM_NUM_##FROM] = {INTEGRAL_NAMES(TO, FROM)}
#define INTEGERS(TO, FROM)         CONVERT(TO, FROM, RN, 0) CONVERT(TO, FROM, RN, 2)
#define INTEGERS_NAMES(TO, FROM)                                                                                       \
    [GPUSIM_NUM_##                                                                                                     \
        TO][GPUSIM_NUM_##FROM] = {[GPUSIM_NUM_RN] = {NAME_OF(TO, FROM, RN, 0), NULL, NAME_OF(TO, FROM, RN, 2), NULL}}

#define EACH_INTEGER(WHAT, TYPE)                                                                                       \
    WHAT(TYPE, S8)                                                                                                     \
    WHAT(TYPE, U8) WHAT(TYPE, S16) WHAT(TYPE, U16) WHAT(TYPE, S32) WHAT(TYPE, U32) WHAT(TYPE, S64) WHAT(TYPE, U64)
#define EACH_INTEGER_NAMES(WHAT, TYPE)                                                                                 \
    WHAT(TYPE, S8), WHAT(TYPE, U8), WHAT(TYPE, S16), WHAT(TYPE, U16), WHAT(TYPE, S32), WHAT(TYPE, U32),                \
        WHAT(TYPE, S64), WHAT(TYPE, U64)
#define TO_FLOATS(FROM_, FROM) TO_FLOAT(F16, FROM) TO_FLOAT(BF16, FROM) TO_FLOAT(F32, FROM) TO_FLOAT(F64, FROM)
#define FROM_FLOATS(FROM_, TO) TO_INTEGER(TO, F16) TO_INTEGER(TO, BF16) TO_INTEGER(TO, F32) TO_INTEGER(TO, F64)
#define TO_FLOATS_NAMES(FROM_, FROM)                                                                                   \
    TO_FLOAT_NAMES(F16, FROM), TO_FLOAT_NAMES(BF16, FROM), TO_FLOAT_NAMES(F32, FROM), TO_FLOAT_NAMES(F64, FROM)
#define FROM_FLOATS_NAMES(FROM_, TO)                                                                                   \
    TO_INTEGER_NAMES(TO, F16), TO_INTEGER_NAMES(TO, BF16), TO_INTEGER_NAMES(TO, F32), TO_INTEGER_NAMES(TO, F64)

EACH_INTEGER(TO_FLOATS, )
EACH_INTEGER(FROM_FLOATS, )
EACH_INTEGER(INTEGERS, S8)
EACH_INTEGER(INTEGERS, U8)
EACH_INTEGER(INTEGERS, S16)
EACH_INTEGER(INTEGERS, U16)
EACH_INTEGER(INTEGERS, S32)
EACH_INTEGER(INTEGERS, U32)
EACH_INTEGER(INTEGERS, S64)
EACH_INTEGER(INTEGERS, U64)
SAME(F16)
SAME(BF16)
SAME(F32)
SAME(F64)
TO_FLOAT(F16, BF16)
TO_FLOAT(F16, F32)
TO_FLOAT(F16, F64)
TO_FLOAT(BF16, F16)
TO_FLOAT(BF16, F32)
TO_FLOAT(BF16, F64)
TO_FLOAT(F32, F16)
TO_FLOAT(F32, BF16)
TO_FLOAT(F32, F64)
TO_FLOAT(F64, F16)
TO_FLOAT(F64, BF16)
TO_FLOAT(F64, F32)

static gpusim_num_fn *const all[GPUSIM_NUM_N_TYPES][GPUSIM_NUM_N_TYPES][9][4] = {
    EACH_INTEGER_NAMES(TO_FLOATS_NAMES, ),
    EACH_INTEGER_NAMES(FROM_FLOATS_NAMES, ),
    EACH_INTEGER_NAMES(INTEGERS_NAMES, S8),
    EACH_INTEGER_NAMES(INTEGERS_NAMES, U8),
    EACH_INTEGER_NAMES(INTEGERS_NAMES, S16),
    EACH_INTEGER_NAMES(INTEGERS_NAMES, U16),
    EACH_INTEGER_NAMES(INTEGERS_NAMES, S32),
    EACH_INTEGER_NAMES(INTEGERS_NAMES, U32),
    EACH_INTEGER_NAMES(INTEGERS_NAMES, S64),
    EACH_INTEGER_NAMES(INTEGERS_NAMES, U64),
    SAME_NAMES(F16),
    SAME_NAMES(BF16),
    SAME_NAMES(F32),
    SAME_NAMES(F64),
    TO_FLOAT_NAMES(F16, BF16),
    TO_FLOAT_NAMES(F16, F32),
    TO_FLOAT_NAMES(F16, F64),
    TO_FLOAT_NAMES(BF16, F16),
    TO_FLOAT_NAMES(BF16, F32),
    TO_FLOAT_NAMES(BF16, F64),
    TO_FLOAT_NAMES(F32, F16),
    TO_FLOAT_NAMES(F32, BF16),
    TO_FLOAT_NAMES(F32, F64),
    TO_FLOAT_NAMES(F64, F16),
    TO_FLOAT_NAMES(F64, BF16),
    TO_FLOAT_NAMES(F64, F32),
};

gpusim_num_fn *num_convert_any(enum gpusim_num_type to, enum gpusim_num_type from, enum gpusim_num_rounding rounding,
                               unsigned flags) {
    if (flags > 3 || (to == GPUSIM_NUM_BF16 && flags & GPUSIM_NUM_SAT)) return NULL;
    return all[to][from][rounding][flags];
}
