/* f32: add, sub, mul, fma, div, rcp, sqrt in four roundings with .ftz and .sat; abs, neg, min, max, copysign.
 * Round to nearest is the host's own operation. The directed roundings take a double that stands for the exact result
 * (products fit; sums are rounded to odd; quotients and roots of 24-bit numbers are never so near to a 25-bit number
 * that their double could fall on the wrong side of it) and round it once. */
#include "tools/gpusim/numerics/lanes.h"

INLINE uint32_t input(uint32_t x, unsigned flags) { return flags & GPUSIM_NUM_FTZ ? flush_f32(x) : x; }

INLINE uint32_t add(uint32_t a, uint32_t b, enum gpusim_num_rounding rounding, unsigned flags) {
    a = input(a, flags), b = input(b, flags);
    if (rounding == GPUSIM_NUM_RN) return finish_f32(bits_f32(f32_of(a) + f32_of(b)), flags);
    double s = odd_sum_f64(f32_of(a), f32_of(b));
    uint32_t r = round_f32(s, rounding);
    if (rounding == GPUSIM_NUM_RM) r = s == 0 ? (a | b) & 0x80000000 : r;
    return finish_f32(r, flags);
}
INLINE uint32_t sub(uint32_t a, uint32_t b, enum gpusim_num_rounding rounding, unsigned flags) {
    return add(a, b ^ 0x80000000, rounding, flags);
}
INLINE uint32_t mul(uint32_t a, uint32_t b, enum gpusim_num_rounding rounding, unsigned flags) {
    a = input(a, flags), b = input(b, flags);
    if (rounding == GPUSIM_NUM_RN) return finish_f32(bits_f32(f32_of(a) * f32_of(b)), flags);
    return finish_f32(round_f32((double)f32_of(a) * f32_of(b), rounding), flags);
}
INLINE uint32_t fma_(uint32_t a, uint32_t b, uint32_t c, enum gpusim_num_rounding rounding, unsigned flags) {
    a = input(a, flags), b = input(b, flags), c = input(c, flags);
#if defined(__FMA__)
    if (rounding == GPUSIM_NUM_RN) return finish_f32(bits_f32(__builtin_fmaf(f32_of(a), f32_of(b), f32_of(c))), flags);
#endif
    double s = odd_sum_f64((double)f32_of(a) * f32_of(b), f32_of(c));
    uint32_t r = round_f32(s, rounding);
    if (rounding == GPUSIM_NUM_RM) r = s == 0 ? ((a ^ b) | c) & 0x80000000 : r;
    return finish_f32(r, flags);
}
INLINE uint32_t div_(uint32_t a, uint32_t b, enum gpusim_num_rounding rounding, unsigned flags) {
    a = input(a, flags), b = input(b, flags);
    if (rounding == GPUSIM_NUM_RN) return finish_f32(bits_f32(f32_of(a) / f32_of(b)), flags);
    return finish_f32(round_f32((double)f32_of(a) / f32_of(b), rounding), flags);
}
INLINE uint32_t rcp(uint32_t a, enum gpusim_num_rounding rounding, unsigned flags) {
    return div_(0x3f800000, a, rounding, flags);
}
INLINE uint32_t sqrt_(uint32_t a, enum gpusim_num_rounding rounding, unsigned flags) {
    a = input(a, flags);
    if (rounding == GPUSIM_NUM_RN) return finish_f32(bits_f32(__builtin_sqrtf(f32_of(a))), flags);
    return finish_f32(round_f32(__builtin_sqrt(f32_of(a)), rounding), flags);
}

/* Order of the numbers as that of signed integers; -0 is below +0. */
INLINE int32_t order(uint32_t x) { return (int32_t)(x ^ (uint32_t)((int32_t)x >> 31) >> 1); }

INLINE uint32_t min_max(uint32_t a, uint32_t b, int want_max, unsigned flags) {
    a = input(a, flags), b = input(b, flags);
    int first = want_max ? order(a) > order(b) : order(a) < order(b);
    uint32_t r = first ? a : b;
    r = is_nan_f32(a) ? b : r;
    r = is_nan_f32(b) ? a : r;
    if (flags & GPUSIM_NUM_NAN) r = is_nan_f32(a) || is_nan_f32(b) ? NAN_F32 : r;
    return is_nan_f32(r) ? NAN_F32 : r;
}
INLINE uint32_t absolute(uint32_t a, unsigned flags) { return input(a, flags) & 0x7fffffff; }
INLINE uint32_t negated(uint32_t a, unsigned flags) { return input(a, flags) ^ 0x80000000; }

#define FOUR(NAME, ROUNDING, CALL)                                                                                     \
    LANES_32(NAME##ROUNDING##0, CALL(GPUSIM_NUM_##ROUNDING, 0))                                                        \
    LANES_32(NAME##ROUNDING##1, CALL(GPUSIM_NUM_##ROUNDING, 1))                                                        \
    LANES_32(NAME##ROUNDING##2, CALL(GPUSIM_NUM_##ROUNDING, 2))                                                        \
    LANES_32(NAME##ROUNDING##3, CALL(GPUSIM_NUM_##ROUNDING, 3))
#define FOUR_NAMES(NAME, ROUNDING) NAME##ROUNDING##0, NAME##ROUNDING##1, NAME##ROUNDING##2, NAME##ROUNDING##3
/* NAME_all[rounding * 4 + FTZ + SAT] */
#define SIXTEEN(NAME, CALL)                                                                                            \
    FOUR(NAME, RN, CALL)                                                                                               \
    FOUR(NAME, RZ, CALL)                                                                                               \
    FOUR(NAME, RM, CALL)                                                                                               \
    FOUR(NAME, RP, CALL)                                                                                               \
    static gpusim_num_fn *const NAME##_all[16] = {FOUR_NAMES(NAME, RN), FOUR_NAMES(NAME, RZ), FOUR_NAMES(NAME, RM),    \
                                                  FOUR_NAMES(NAME, RP)};

#define ADD(R, F)  add(x[l], y[l], R, F)
#define SUB(R, F)  sub(x[l], y[l], R, F)
#define MUL(R, F)  mul(x[l], y[l], R, F)
#define FMA(R, F)  fma_(x[l], y[l], z[l], R, F)
#define DIV(R, F)  div_(x[l], y[l], R, F)
#define RCP(R, F)  rcp(x[l], R, F)
#define SQRT(R, F) sqrt_(x[l], R, F)
SIXTEEN(add, ADD)
SIXTEEN(sub, SUB)
SIXTEEN(mul, MUL)
SIXTEEN(fma, FMA)
SIXTEEN(div, DIV)
SIXTEEN(rcp, RCP)
SIXTEEN(sqrt, SQRT)

LANES_32(abs_0, absolute(x[l], 0))
LANES_32(abs_1, absolute(x[l], GPUSIM_NUM_FTZ))
LANES_32(neg_0, negated(x[l], 0))
LANES_32(neg_1, negated(x[l], GPUSIM_NUM_FTZ))
LANES_32(copysign_0, (x[l] & 0x80000000) | (y[l] & 0x7fffffff))
LANES_32(min_0, min_max(x[l], y[l], 0, 0))
LANES_32(min_1, min_max(x[l], y[l], 0, GPUSIM_NUM_FTZ))
LANES_32(min_nan_0, min_max(x[l], y[l], 0, GPUSIM_NUM_NAN))
LANES_32(min_nan_1, min_max(x[l], y[l], 0, GPUSIM_NUM_NAN | GPUSIM_NUM_FTZ))
LANES_32(max_0, min_max(x[l], y[l], 1, 0))
LANES_32(max_1, min_max(x[l], y[l], 1, GPUSIM_NUM_FTZ))
LANES_32(max_nan_0, min_max(x[l], y[l], 1, GPUSIM_NUM_NAN))
LANES_32(max_nan_1, min_max(x[l], y[l], 1, GPUSIM_NUM_NAN | GPUSIM_NUM_FTZ))

static gpusim_num_fn *unrounded(enum gpusim_num_op op, unsigned flags) {
    int ftz = flags & GPUSIM_NUM_FTZ, nan = flags & GPUSIM_NUM_NAN;
    if (flags & ~(unsigned)(GPUSIM_NUM_FTZ | GPUSIM_NUM_NAN)) return NULL;
    if (op == GPUSIM_NUM_MIN) return nan ? (ftz ? min_nan_1 : min_nan_0) : (ftz ? min_1 : min_0);
    if (op == GPUSIM_NUM_MAX) return nan ? (ftz ? max_nan_1 : max_nan_0) : (ftz ? max_1 : max_0);
    if (nan) return NULL;
    if (op == GPUSIM_NUM_ABS) return ftz ? abs_1 : abs_0;
    if (op == GPUSIM_NUM_NEG) return ftz ? neg_1 : neg_0;
    return op == GPUSIM_NUM_COPYSIGN && !ftz ? copysign_0 : NULL;
}

gpusim_num_fn *ISA(num_arith_f32)(enum gpusim_num_op op, enum gpusim_num_rounding rounding, unsigned flags) {
    static gpusim_num_fn *const *const rounded[] = {
        [GPUSIM_NUM_ADD] = add_all,   [GPUSIM_NUM_SUB] = sub_all, [GPUSIM_NUM_MUL] = mul_all,
        [GPUSIM_NUM_FMA] = fma_all,   [GPUSIM_NUM_DIV] = div_all, [GPUSIM_NUM_RCP] = rcp_all,
        [GPUSIM_NUM_SQRT] = sqrt_all,
    };
    if (op > GPUSIM_NUM_SQRT) return rounding == GPUSIM_NUM_RN ? unrounded(op, flags) : NULL;
    unsigned allowed = op <= GPUSIM_NUM_FMA ? GPUSIM_NUM_FTZ | GPUSIM_NUM_SAT : GPUSIM_NUM_FTZ;
    if (flags & ~allowed || rounding > GPUSIM_NUM_RP) return NULL;
    return rounded[op][rounding * 4 + flags];
}
