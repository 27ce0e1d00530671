/* f32 and f64 arithmetic. NaN results are canonical (f32: 0x7fffffff, f64: 0xfff8000000000000), as the A100's are.
 * Rounding other than to nearest even and .sat are done by wrappers (float.wrap), .ftz by handlers of their own. */
#include "exec/lanes.h"

#include <fenv.h>
#include <math.h>

#define NAN32 0x7fffffffu
#define NAN64 0xfff8000000000000ull
static inline uint32_t out32(float v) { return v == v ? float_bits(v) : NAN32; }
static inline uint64_t out64(double v) { return v == v ? double_bits(v) : NAN64; }
static inline uint32_t flush(uint32_t v) { return v & 0x7f800000 ? v : v & 0x80000000; }

#define F32_OPS(name, PRE, POST, ARGS, ...)                                                                            \
    HANDLER(name) {                                                                                                    \
        uint32_t *d = REGS32(op->d);                                                                                   \
        const uint32_t *a = REGS32(op->a), *b = REGS32(op->b), *c = REGS32(op->c);                                     \
        (void)a, (void)b, (void)c;                                                                                     \
        LANES(ARGS(PRE) d[i] = POST(out32(__VA_ARGS__)));                                                              \
        return GPUSIM_NEXT;                                                                                            \
    }
#define SAME(v)    (v)
#define ONE(PRE)   float x = as_float(PRE(a[i]));
#define TWO(PRE)   ONE(PRE) float y = as_float(PRE(b[i]));
#define THREE(PRE) TWO(PRE) float z = as_float(PRE(c[i]));
#define F32(name, ARGS, ...)                                                                                           \
    F32_OPS(name##_f32, SAME, SAME, ARGS, __VA_ARGS__) F32_OPS(name##_ftz_f32, flush, flush, ARGS, __VA_ARGS__)
F32(add, TWO, x + y)
F32(sub, TWO, x - y)
F32(mul, TWO, x *y)
F32(div, TWO, x / y)
F32(fma, THREE, __builtin_fmaf(x, y, z))
F32(sqrt, ONE, sqrtf(x))
F32(rcp, ONE, 1.0f / x)
F32(rsqrt, ONE, (float)(1.0 / sqrt((double)x)))

#define F64(name, ARGS, ...)                                                                                           \
    HANDLER(name##_f64) {                                                                                              \
        uint64_t *d = REGS64(op->d);                                                                                   \
        const uint64_t *a = REGS64(op->a), *b = REGS64(op->b), *c = REGS64(op->c);                                     \
        (void)a, (void)b, (void)c;                                                                                     \
        LANES(ARGS d[i] = out64(__VA_ARGS__));                                                                         \
        return GPUSIM_NEXT;                                                                                            \
    }
#define D_ONE   double x = as_double(a[i]);
#define D_TWO   D_ONE double y = as_double(b[i]);
#define D_THREE D_TWO double z = as_double(c[i]);
F64(add, D_TWO, x + y)
F64(sub, D_TWO, x - y)
F64(mul, D_TWO, x *y)
F64(div, D_TWO, x / y)
F64(fma, D_THREE, __builtin_fma(x, y, z))
F64(sqrt, D_ONE, sqrt(x))
F64(rcp, D_ONE, 1.0 / x)
F64(rsqrt, D_ONE, 1.0 / sqrt(x))

/* min, max: a NaN loses (with .NaN it wins); -0 is less than +0. Bits pass unchanged but for NaN. */
#define IS_NAN32(v) (((v)&0x7fffffffu) > 0x7f800000u)
static inline int32_t order32(uint32_t v) { return (int32_t)(v >> 31 ? v ^ 0x7fffffffu : v); }
static inline uint32_t pick32(uint32_t x, uint32_t y, bool larger, bool nan_wins) {
    uint32_t chosen = (order32(x) < order32(y)) != larger ? x : y;
    bool nx = IS_NAN32(x), ny = IS_NAN32(y);
    uint32_t with_nan = (nx && ny) || nan_wins ? NAN32 : nx ? y : x;
    return nx || ny ? with_nan : chosen;
}
#define MINMAX(name, larger, nan_wins)                                                                                 \
    BINARY(name##_f32, uint32_t, uint32_t, uint32_t, pick32(x, y, larger, nan_wins))                                   \
    BINARY(name##_ftz_f32, uint32_t, uint32_t, uint32_t, pick32(flush(x), flush(y), larger, nan_wins))
MINMAX(min, false, false)
MINMAX(max, true, false)
MINMAX(min_nan, false, true)
MINMAX(max_nan, true, true)
/* .xorsign.abs: of the absolute values, with the sign a xor b. */
#define ABS32(v) ((v)&0x7fffffffu)
#define XORSIGN(name, larger, nan_wins, PRE)                                                                           \
    BINARY(name, uint32_t, uint32_t, uint32_t,                                                                         \
           pick32(PRE(ABS32(x)), PRE(ABS32(y)), larger, nan_wins) | ((x ^ y) & 0x80000000u))
XORSIGN(min_xorsign_f32, false, false, SAME)
XORSIGN(max_xorsign_f32, true, false, SAME)
XORSIGN(min_ftz_xorsign_f32, false, false, flush)
XORSIGN(max_ftz_xorsign_f32, true, false, flush)
XORSIGN(min_nan_xorsign_f32, false, true, SAME)
XORSIGN(max_nan_xorsign_f32, true, true, SAME)
XORSIGN(min_ftz_nan_xorsign_f32, false, true, flush)
XORSIGN(max_ftz_nan_xorsign_f32, true, true, flush)

#define IS_NAN64(v) (((v) & ~(1ull << 63)) > 0x7ff0000000000000ull)
static inline uint64_t pick64(uint64_t x, uint64_t y, bool larger) {
    int64_t ox = (int64_t)(x >> 63 ? x ^ ~(1ull << 63) : x), oy = (int64_t)(y >> 63 ? y ^ ~(1ull << 63) : y);
    if (IS_NAN64(x)) return IS_NAN64(y) ? NAN64 : y;
    if (IS_NAN64(y)) return x;
    return (ox < oy) != larger ? x : y;
}
BINARY(min_f64, uint64_t, uint64_t, uint64_t, pick64(x, y, false))
BINARY(max_f64, uint64_t, uint64_t, uint64_t, pick64(x, y, true))

UNARY(abs_f32, uint32_t, uint32_t, uint32_t, IS_NAN32(x) ? NAN32 : ABS32(x))
UNARY(neg_f32, uint32_t, uint32_t, uint32_t, IS_NAN32(x) ? NAN32 : x ^ 0x80000000u)
UNARY(abs_ftz_f32, uint32_t, uint32_t, uint32_t, IS_NAN32(x) ? NAN32 : ABS32(flush(x)))
UNARY(neg_ftz_f32, uint32_t, uint32_t, uint32_t, IS_NAN32(x) ? NAN32 : flush(x) ^ 0x80000000u)
UNARY(abs_f64, uint64_t, uint64_t, uint64_t, x & ~(1ull << 63))
UNARY(neg_f64, uint64_t, uint64_t, uint64_t, x ^ 1ull << 63)

BINARY(copysign_f32, uint32_t, uint32_t, uint32_t, (y & 0x7fffffffu) | (x & 0x80000000u))
BINARY(copysign_f64, uint64_t, uint64_t, uint64_t, (y & ~(1ull << 63)) | (x & 1ull << 63))

/* testp: op->code 0 finite, 1 infinite, 2 number, 3 notanumber, 4 normal, 5 subnormal. */
static inline bool test_class(int code, uint64_t magnitude, uint64_t infinity, uint64_t normal) {
    switch (code) {
    case 0:
        return magnitude < infinity;
    case 1:
        return magnitude == infinity;
    case 2:
        return magnitude <= infinity;
    case 3:
        return magnitude > infinity;
    case 4:
        return magnitude >= normal && magnitude < infinity;
    default:
        return magnitude && magnitude < normal;
    }
}
HANDLER(testp_f32) {
    const uint32_t *a = REGS32(op->a);
    uint32_t r = 0, *d = warp->regs + op->d;
    EACH_LANE(r |= (uint32_t)test_class(op->code, ABS32(a[i]), 0x7f800000, 0x00800000) << i)
    *d = (*d & ~mask) | r;
    return GPUSIM_NEXT;
}
HANDLER(testp_f64) {
    const uint64_t *a = REGS64(op->a);
    uint32_t r = 0, *d = warp->regs + op->d;
    EACH_LANE(r |= (uint32_t)test_class(op->code, a[i] & ~(1ull << 63), 0x7ff0000000000000ull, 1ull << 52) << i)
    *d = (*d & ~mask) | r;
    return GPUSIM_NEXT;
}

/* Calls op->inner under op->rounding, then clamps the result to [0, 1] for .sat. The call goes through a pointer, so
 * that no arithmetic is moved across the change of mode. */
HANDLER(float_wrap) {
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    bool other = op->rounding >= GPUSIM_RZ && op->rounding <= GPUSIM_RP;
    if (other) fesetround(modes[op->rounding]);
    int next = op->inner(warp, op, mask);
    if (other) fesetround(FE_TONEAREST);
    if (op->flags & GPUSIM_SAT && op->type == GPUSIM_T_F32) {
        uint32_t *d = REGS32(op->d);
        LANES(float v = as_float(d[i]); d[i] = v > 0.0f ? v < 1.0f ? d[i] : 0x3f800000 : 0);
    } else if (op->flags & GPUSIM_SAT && op->type == GPUSIM_T_F64) {
        uint64_t *d = REGS64(op->d);
        LANES(double v = as_double(d[i]); d[i] = v > 0.0 ? v < 1.0 ? d[i] : 0x3ff0000000000000ull : 0);
    }
    return next;
}

#define ROW_F(key, name)                                                                                               \
    {key ".f32", name##_f32}, {key ".ftz.f32", name##_ftz_f32}, { key ".f64", name##_f64 }
#define ROW_F32(key, name)                                                                                             \
    {key ".f32", name##_f32}, { key ".ftz.f32", name##_ftz_f32 }
const struct gpusim_entry TABLE(ops_float)[] = {
    ROW_F("add", add),
    ROW_F("sub", sub),
    ROW_F("mul", mul),
    ROW_F("div", div),
    ROW_F("fma", fma),
    ROW_F("sqrt", sqrt),
    ROW_F("rcp", rcp),
    ROW_F("rsqrt", rsqrt),
    ROW_F32("min", min),
    ROW_F32("max", max),
    ROW_F32("min.nan", min_nan),
    ROW_F32("max.nan", max_nan),
    {"min.ftz.nan.f32", min_nan_ftz_f32},
    {"max.ftz.nan.f32", max_nan_ftz_f32},
    {"min.xorsign.f32", min_xorsign_f32},
    {"max.xorsign.f32", max_xorsign_f32},
    {"min.ftz.xorsign.f32", min_ftz_xorsign_f32},
    {"max.ftz.xorsign.f32", max_ftz_xorsign_f32},
    {"min.nan.xorsign.f32", min_nan_xorsign_f32},
    {"max.nan.xorsign.f32", max_nan_xorsign_f32},
    {"min.ftz.nan.xorsign.f32", min_ftz_nan_xorsign_f32},
    {"max.ftz.nan.xorsign.f32", max_ftz_nan_xorsign_f32},
    {"min.f64", min_f64},
    {"max.f64", max_f64},
    ROW_F32("abs", abs),
    {"abs.f64", abs_f64},
    ROW_F32("neg", neg),
    {"neg.f64", neg_f64},
    {"copysign.f32", copysign_f32},
    {"copysign.f64", copysign_f64},
    {"testp.f32", testp_f32},
    {"testp.f64", testp_f64},
    {"float.wrap", float_wrap},
    {NULL, NULL},
};
