/* f64. Round to nearest is the host's own operation; directed roundings are soft_f64.c's. NaN, where the PTX ISA leaves
 * the payload open: the first operand that is NaN, made quiet; an invalid operation gives 0xfff8000000000000. */
#include <math.h>

#include "tools/gpusim/numerics/lanes.h"
#include "tools/gpusim/numerics/soft_f64.h"

#define SIGN (1ull << 63)

INLINE uint64_t quiet(uint64_t x) { return x | 1ull << 51; }

INLINE uint64_t lane_nan_f64(uint64_t r, uint64_t a, uint64_t b, uint64_t c) {
    uint64_t nan = is_nan_f64(a) ? quiet(a) : is_nan_f64(b) ? quiet(b) : is_nan_f64(c) ? quiet(c) : NAN_F64;
    return is_nan_f64(r) ? nan : r;
}

INLINE uint64_t add(uint64_t a, uint64_t b, enum gpusim_num_rounding rounding) {
    uint64_t r =
        rounding == GPUSIM_NUM_RN ? bits_f64(f64_of(a) + f64_of(b)) : num_soft_fma_f64(a, bits_f64(1), b, rounding);
    return lane_nan_f64(r, a, b, 0);
}
INLINE uint64_t sub(uint64_t a, uint64_t b, enum gpusim_num_rounding rounding) {
    uint64_t r = rounding == GPUSIM_NUM_RN ? bits_f64(f64_of(a) - f64_of(b))
                                           : num_soft_fma_f64(a, bits_f64(1), b ^ SIGN, rounding);
    return lane_nan_f64(r, a, b, 0);
}
INLINE uint64_t mul(uint64_t a, uint64_t b, enum gpusim_num_rounding rounding) {
    uint64_t r =
        rounding == GPUSIM_NUM_RN ? bits_f64(f64_of(a) * f64_of(b)) : num_soft_fma_f64(a, b, (a ^ b) & SIGN, rounding);
    return lane_nan_f64(r, a, b, 0);
}
INLINE uint64_t fma_(uint64_t a, uint64_t b, uint64_t c, enum gpusim_num_rounding rounding) {
    uint64_t r = rounding == GPUSIM_NUM_RN ? bits_f64(fma(f64_of(a), f64_of(b), f64_of(c)))
                                           : num_soft_fma_f64(a, b, c, rounding);
    return lane_nan_f64(r, a, b, c);
}
INLINE uint64_t div_(uint64_t a, uint64_t b, enum gpusim_num_rounding rounding) {
    uint64_t r = rounding == GPUSIM_NUM_RN ? bits_f64(f64_of(a) / f64_of(b)) : num_soft_div_f64(a, b, rounding);
    return lane_nan_f64(r, a, b, 0);
}
INLINE uint64_t rcp(uint64_t a, enum gpusim_num_rounding rounding) { return div_(bits_f64(1), a, rounding); }
INLINE uint64_t sqrt_(uint64_t a, enum gpusim_num_rounding rounding) {
    uint64_t r = rounding == GPUSIM_NUM_RN ? bits_f64(__builtin_sqrt(f64_of(a))) : num_soft_sqrt_f64(a, rounding);
    return lane_nan_f64(r, a, 0, 0);
}

INLINE int64_t order(uint64_t x) { return (int64_t)(x ^ (x >> 63 ? ~SIGN : 0)); }

INLINE uint64_t min_max(uint64_t a, uint64_t b, int want_max) {
    int first = want_max ? order(a) > order(b) : order(a) < order(b);
    uint64_t r = first ? a : b;
    r = is_nan_f64(a) ? b : r;
    r = is_nan_f64(b) ? a : r;
    return lane_nan_f64(r, a, b, 0);
}

#define FOUR(NAME, CALL)                                                                                               \
    LANES_64(NAME##_rn, CALL(GPUSIM_NUM_RN))                                                                           \
    LANES_64(NAME##_rz, CALL(GPUSIM_NUM_RZ))                                                                           \
    LANES_64(NAME##_rm, CALL(GPUSIM_NUM_RM))                                                                           \
    LANES_64(NAME##_rp, CALL(GPUSIM_NUM_RP))                                                                           \
    static gpusim_num_fn *const NAME##_all[4] = {NAME##_rn, NAME##_rz, NAME##_rm, NAME##_rp};

#define ADD(R)  add(x[l], y[l], R)
#define SUB(R)  sub(x[l], y[l], R)
#define MUL(R)  mul(x[l], y[l], R)
#define FMA(R)  fma_(x[l], y[l], z[l], R)
#define DIV(R)  div_(x[l], y[l], R)
#define RCP(R)  rcp(x[l], R)
#define SQRT(R) sqrt_(x[l], R)
FOUR(add, ADD)
FOUR(sub, SUB)
FOUR(mul, MUL)
FOUR(fma, FMA)
FOUR(div, DIV)
FOUR(rcp, RCP)
FOUR(sqrt, SQRT)
LANES_64(abs_, x[l] & ~SIGN)
LANES_64(neg_, x[l] ^ SIGN)
LANES_64(copysign_, (x[l] & SIGN) | (y[l] & ~SIGN))
LANES_64(min_, min_max(x[l], y[l], 0))
LANES_64(max_, min_max(x[l], y[l], 1))

gpusim_num_fn *ISA(num_arith_f64)(enum gpusim_num_op op, enum gpusim_num_rounding rounding, unsigned flags) {
    static gpusim_num_fn *const *const rounded[] = {
        [GPUSIM_NUM_ADD] = add_all,   [GPUSIM_NUM_SUB] = sub_all, [GPUSIM_NUM_MUL] = mul_all,
        [GPUSIM_NUM_FMA] = fma_all,   [GPUSIM_NUM_DIV] = div_all, [GPUSIM_NUM_RCP] = rcp_all,
        [GPUSIM_NUM_SQRT] = sqrt_all,
    };
    static gpusim_num_fn *const unrounded[] = {
        [GPUSIM_NUM_ABS] = abs_, [GPUSIM_NUM_NEG] = neg_,           [GPUSIM_NUM_MIN] = min_,
        [GPUSIM_NUM_MAX] = max_, [GPUSIM_NUM_COPYSIGN] = copysign_,
    };
    if (flags || rounding > GPUSIM_NUM_RP) return NULL;
    if (op <= GPUSIM_NUM_SQRT) return rounded[op][rounding];
    return rounding == GPUSIM_NUM_RN && op <= GPUSIM_NUM_COPYSIGN ? unrounded[op] : NULL;
}
