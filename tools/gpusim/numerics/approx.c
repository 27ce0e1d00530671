/* The .approx instructions, within the errors that the PTX ISA states. A GPU's own bits are not published; these are
 * polynomials in f64 from additions and multiplications that every host rounds alike, nearly always the f32 next to
 * the true value. */
#include <math.h>

#include "tools/gpusim/numerics/lanes.h"

#define SIGN_F32 0x80000000u

INLINE uint32_t input(uint32_t x, unsigned flags) { return flags & GPUSIM_NUM_FTZ ? flush_f32(x) : x; }

/* x rounded to an integer, |x| < 2^51; *n gets its low 64 bits. */
INLINE double integral(double x, uint64_t *n) {
    double shifted = x + 0x1.8p52;
    *n = bits_f64(shifted) - bits_f64(0x1.8p52);
    return shifted - 0x1.8p52;
}

/* 2^x, |x| < 1000: 2^(x - n) by its series, relative error < 2^-44. */
INLINE double exp2_f64(double x) {
    uint64_t n;
    double f = x - integral(x, &n);
    double p = 7.054911620801123e-9;
    p = p * f + 1.0178086009239699e-7;
    p = p * f + 1.3215486790144307e-6;
    p = p * f + 1.5252733804059841e-5;
    p = p * f + 1.5403530393381608e-4;
    p = p * f + 1.3333558146428443e-3;
    p = p * f + 9.6181291076284772e-3;
    p = p * f + 5.5504108664821580e-2;
    p = p * f + 2.4022650695910072e-1;
    p = p * f + 6.9314718055994531e-1;
    p = p * f + 1.0;
    return f64_of(bits_f64(p) + (n << 52));
}

INLINE uint32_t ex2(uint32_t a, unsigned flags) {
    a = input(a, flags);
    double x = f32_of(a);
    x = x > 200 ? 200 : x;
    x = x < -200 ? -200 : x;
    x = x == x ? x : 0;
    uint32_t r = bits_f32((float)exp2_f64(x));
    return finish_f32(is_nan_f32(a) ? a : r, flags & GPUSIM_NUM_FTZ);
}

/* A choice that the compiler cannot turn into a branch, which would keep lg2's lanes from being vectors. */
INLINE uint32_t chosen(uint32_t condition, uint32_t yes, uint32_t no) {
    uint32_t all = 0 - condition;
    return (yes & all) | (no & ~all);
}

/* log2 by the series of atanh((m - 1) / (m + 1)), m in [sqrt(1/2), sqrt(2)). */
INLINE uint32_t lg2(uint32_t a, unsigned flags) {
    a = input(a, flags);
    uint64_t bits = bits_f64(f32_of(a & ~SIGN_F32));
    uint64_t above = (bits & ((1ull << 52) - 1)) > 0x6a09e667f3bcdull;
    /* the exponent as the low bits of 2^52, which makes it a number without a conversion */
    double exponent = f64_of((bits >> 52) + above + bits_f64(0x1p52)) - (0x1p52 + 1023);
    double m = f64_of((bits & ((1ull << 52) - 1)) | (1023 - above) << 52);
    double z = (m - 1) / (m + 1), w = z * z;
    double p = 1.0 / 17;
    p = p * w + 1.0 / 15;
    p = p * w + 1.0 / 13;
    p = p * w + 1.0 / 11;
    p = p * w + 1.0 / 9;
    p = p * w + 1.0 / 7;
    p = p * w + 1.0 / 5;
    p = p * w + 1.0 / 3;
    p = p * w + 1.0;
    uint32_t r = bits_f32((float)(exponent + z * p * 2.8853900817779268));
    r = chosen(a == 0x7f800000, a, r);
    r = chosen(a > 0x7f800000, NAN_F32, r); /* NaN, or negative */
    r = chosen(!(a & ~SIGN_F32), 0xff800000, r);
    return finish_f32(r, flags & GPUSIM_NUM_FTZ);
}

/* Beyond 2^20 the PTX ISA promises nothing; here the angle is first taken modulo the f64 next to 2 pi. */
INLINE double near_angle(uint32_t a) {
    double x = f32_of(a);
    return (a & ~SIGN_F32) > 0x49800000 && (a & ~SIGN_F32) < 0x7f800000 ? fmod(x, 6.283185307179586) : x;
}
INLINE uint32_t sine(uint32_t a, double x, uint32_t quarter, unsigned flags) {
    x = x - x == 0 ? x : 0;
    uint64_t n;
    double turns = integral(x * 0.63661977236758134, &n);
    double f = x - turns * 0x1.921fb54400000p+0 - turns * 0x1.0b4611a626331p-34, w = f * f;
    double s = -2.5052108385441719e-8;
    s = s * w + 2.7557319223985891e-6;
    s = s * w - 1.9841269841269841e-4;
    s = s * w + 8.3333333333333333e-3;
    s = s * w - 1.6666666666666667e-1;
    s = s * w + 1.0;
    s = s * f;
    double c = 2.0876756987868099e-9;
    c = c * w - 2.7557319223985891e-7;
    c = c * w + 2.4801587301587302e-5;
    c = c * w - 1.3888888888888889e-3;
    c = c * w + 4.1666666666666667e-2;
    c = c * w - 0.5;
    c = c * w + 1.0;
    uint32_t turn = (uint32_t)n + quarter;
    double r = turn & 1 ? c : s;
    uint32_t bits = bits_f32((float)r) ^ (turn & 2) << 30;
    bits = (a & ~SIGN_F32) || quarter ? bits : a; /* sin(-0) = -0 */
    return finish_f32((a & 0x7f800000) == 0x7f800000 ? NAN_F32 : bits, flags & GPUSIM_NUM_FTZ);
}

INLINE uint32_t tanh_(uint32_t a) {
    double x = f32_of(a & ~SIGN_F32);
    x = x < 20 ? x : 20;
    double t = 1 - 2 / (exp2_f64(x * 2.8853900817779268) + 1);
    t = x < 0x1p-12 ? x - x * x * x * (1.0 / 3) : t;
    uint32_t r = bits_f32((float)t) | (a & SIGN_F32);
    return is_nan_f32(a) ? NAN_F32 : r;
}

INLINE uint32_t rcp(uint32_t a, unsigned flags) {
    return finish_f32(bits_f32(1 / f32_of(input(a, flags))), flags & GPUSIM_NUM_FTZ);
}
INLINE uint32_t sqrt_(uint32_t a, unsigned flags) {
    return finish_f32(bits_f32(__builtin_sqrtf(f32_of(input(a, flags)))), flags & GPUSIM_NUM_FTZ);
}
INLINE uint32_t rsqrt(uint32_t a, unsigned flags) {
    return finish_f32(bits_f32((float)(1 / __builtin_sqrt(f32_of(input(a, flags))))), flags & GPUSIM_NUM_FTZ);
}
INLINE uint32_t div_full(uint32_t a, uint32_t b, unsigned flags) {
    return finish_f32(bits_f32(f32_of(input(a, flags)) / f32_of(input(b, flags))), flags & GPUSIM_NUM_FTZ);
}
/* For 2^126 < |b| < 2^128 the reciprocal counts as 0: infinity gives NaN, other dividends 0. */
INLINE uint32_t div_approx(uint32_t a, uint32_t b, unsigned flags) {
    a = input(a, flags), b = input(b, flags);
    uint32_t magnitude = b & ~SIGN_F32;
    float large = f32_of(a) * f32_of(b & SIGN_F32);
    float r = magnitude > 0x7e800000 && magnitude < 0x7f800000 ? large : f32_of(a) / f32_of(b);
    return finish_f32(bits_f32(r), flags & GPUSIM_NUM_FTZ);
}

/* The upper word of a only, in and out: 20 bits of mantissa, flushed. */
INLINE uint64_t upper_word(double r) {
    uint64_t bits = bits_f64(r);
    if (is_nan_f64(bits)) return 0x7fffffff00000000ull;
    if (!(bits >> 52 & 0x7ff)) return bits & 1ull << 63;
    if ((bits >> 52 & 0x7ff) != 0x7ff) bits += 0x7fffffff + (bits >> 32 & 1);
    return bits & 0xffffffff00000000ull;
}
INLINE double upper_input(uint64_t a) {
    a &= 0xffffffff00000000ull;
    if (is_nan_f64(a)) return f64_of(a);
    return f64_of(a >> 52 & 0x7ff ? a : a & 1ull << 63);
}
INLINE uint64_t rcp_upper(uint64_t a) { return is_nan_f64(a) ? 0x7fffffff00000000ull : upper_word(1 / upper_input(a)); }
INLINE uint64_t rsqrt_upper(uint64_t a) {
    return is_nan_f64(a) ? 0x7fffffff00000000ull : upper_word(1 / __builtin_sqrt(upper_input(a)));
}
INLINE uint64_t rsqrt_f64(uint64_t a) {
    uint64_t r = bits_f64(1 / __builtin_sqrt(f64_of(a)));
    return is_nan_f64(r) ? (is_nan_f64(a) ? a | 1ull << 51 : NAN_F64) : r;
}

INLINE uint32_t ex2_f16(uint32_t a) { return f16_from_f32(ex2(f32_from_f16(a & 0xffff), 0), GPUSIM_NUM_RN); }
INLINE uint32_t tanh_f16(uint32_t a) { return f16_from_f32(tanh_(f32_from_f16(a & 0xffff)), GPUSIM_NUM_RN); }

#define FTZ_PAIR(NAME, CALL)                                                                                           \
    LANES_32(NAME##_0, CALL(0))                                                                                        \
    LANES_32(NAME##_1, CALL(GPUSIM_NUM_FTZ))
#define EX2(F)        ex2(x[l], F)
#define LG2(F)        lg2(x[l], F)
#define RCP(F)        rcp(x[l], F)
#define SQRT(F)       sqrt_(x[l], F)
#define RSQRT(F)      rsqrt(x[l], F)
#define DIV_FULL(F)   div_full(x[l], y[l], F)
#define DIV_APPROX(F) div_approx(x[l], y[l], F)
FTZ_PAIR(ex2, EX2)
FTZ_PAIR(lg2, LG2)
FTZ_PAIR(rcp, RCP)
FTZ_PAIR(sqrt, SQRT)
FTZ_PAIR(rsqrt, RSQRT)
FTZ_PAIR(div_full, DIV_FULL)
FTZ_PAIR(div_approx, DIV_APPROX)

/* Large angles go lane by lane, so that the rest is vector code. */
#define ANGLE_LANES(NAME, QUARTER, FLAGS)                                                                              \
    static void NAME(void *d, const void *a, const void *b, const void *c, uint32_t mask) {                            \
        const uint32_t *x = a;                                                                                         \
        double angle[32];                                                                                              \
        uint32_t r[32];                                                                                                \
        (void)b, (void)c;                                                                                              \
        for (int l = 0; l < 32; l++) angle[l] = near_angle(input(x[l], FLAGS));                                        \
        for (int l = 0; l < 32; l++) r[l] = sine(input(x[l], FLAGS), angle[l], QUARTER, FLAGS);                        \
        store_lanes_32(d, r, mask);                                                                                    \
    }
ANGLE_LANES(sin_0, 0, 0)
ANGLE_LANES(sin_1, 0, GPUSIM_NUM_FTZ)
ANGLE_LANES(cos_0, 1, 0)
ANGLE_LANES(cos_1, 1, GPUSIM_NUM_FTZ)

LANES_32(tanh_0, tanh_(x[l]))
LANES_32(ex2_h1, ex2_f16(x[l]))
LANES_32(ex2_h2, ex2_f16(x[l]) | ex2_f16(x[l] >> 16) << 16)
LANES_32(tanh_h1, tanh_f16(x[l]))
LANES_32(tanh_h2, tanh_f16(x[l]) | tanh_f16(x[l] >> 16) << 16)
LANES_64(rcp_upper_, rcp_upper(x[l]))
LANES_64(rsqrt_upper_, rsqrt_upper(x[l]))
LANES_64(rsqrt_f64_, rsqrt_f64(x[l]))

static gpusim_num_fn *half(enum gpusim_num_op op, int pair) {
    if (op == GPUSIM_NUM_EX2_APPROX) return pair ? ex2_h2 : ex2_h1;
    if (op == GPUSIM_NUM_TANH_APPROX) return pair ? tanh_h2 : tanh_h1;
    return NULL;
}

gpusim_num_fn *ISA(num_approx)(enum gpusim_num_op op, enum gpusim_num_type type, unsigned flags) {
    static gpusim_num_fn *const f32[][2] = {
        {div_approx_0, div_approx_1},
        {div_full_0, div_full_1},
        {rcp_0, rcp_1},
        {sqrt_0, sqrt_1},
        {rsqrt_0, rsqrt_1},
        {ex2_0, ex2_1},
        {lg2_0, lg2_1},
        {sin_0, sin_1},
        {cos_0, cos_1},
        {tanh_0, NULL},
    };
    if (flags & ~(unsigned)GPUSIM_NUM_FTZ) return NULL;
    if (type == GPUSIM_NUM_F32) return f32[op - GPUSIM_NUM_DIV_APPROX][flags];
    if (type == GPUSIM_NUM_F16 || type == GPUSIM_NUM_F16X2) return flags ? NULL : half(op, type == GPUSIM_NUM_F16X2);
    if (type != GPUSIM_NUM_F64) return NULL;
    if (op == GPUSIM_NUM_RCP_APPROX) return flags ? rcp_upper_ : NULL;
    if (op == GPUSIM_NUM_RSQRT_APPROX) return flags ? rsqrt_upper_ : rsqrt_f64_;
    return NULL;
}
