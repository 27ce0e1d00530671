/* Integer and bit instructions. Semantics: PTX ISA, "Integer Arithmetic Instructions" and "Logic and Shift
 * Instructions". */
#include "exec/lanes.h"

FOR_B(BINARY, add, x + y)
FOR_B(BINARY, sub, x - y)
FOR_B(BINARY, mul_lo, (uint64_t)x *y)
FOR_B(TERNARY, mad_lo, (uint64_t)x *y + z)
FOR_US(BINARY, min, x < y ? x : y)
FOR_US(BINARY, max, x > y ? x : y)
FOR_S(UNARY, abs, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)
FOR_S(UNARY, neg, 0 - (uint64_t)x)
FOR_B(BINARY, and, x &y)
FOR_B(BINARY, or, x | y)
FOR_B(BINARY, xor, x ^ y)
FOR_B(UNARY, not, ~x)
FOR_B(UNARY, cnot, x == 0)
FOR_B(SHIFT, shl, n < sizeof x * 8 ? (uint64_t)x << (n & 63) : 0)
FOR_U(SHIFT, shr, n < sizeof x * 8 ? x >> (n & 63) : 0)
FOR_S(SHIFT, shr, x >> (n < sizeof x * 8 ? n : sizeof x * 8 - 1))

/* Division by zero gives all ones, as the hardware does (the result is not specified). */
FOR_U(BINARY, div, y ? x / (y ? y : 1) : ~(uint64_t)0)
FOR_S(BINARY, div, y == 0 ? -1 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / (y ? y : 1))
FOR_U(BINARY, rem, y ? x % (y ? y : 1) : x)
FOR_S(BINARY, rem, y == 0 ? x : y == -1 ? 0 : x % (y ? y : 1))

BINARY(mul_hi_u16, uint32_t, uint16_t, uint16_t, (uint32_t)x *y >> 16)
BINARY(mul_hi_s16, uint32_t, int16_t, uint16_t, (int32_t)x *y >> 16)
BINARY(mul_hi_u32, uint32_t, uint32_t, uint32_t, (uint64_t)x *y >> 32)
BINARY(mul_hi_s32, uint32_t, int32_t, uint32_t, (int64_t)x *y >> 32)
BINARY(mul_hi_u64, uint64_t, uint64_t, uint64_t, (gpusim_u128)x *y >> 64)
BINARY(mul_hi_s64, uint64_t, int64_t, uint64_t, (gpusim_s128)x *y >> 64)
TERNARY(mad_hi_u16, uint32_t, uint16_t, uint16_t, ((uint32_t)x * y >> 16) + z)
TERNARY(mad_hi_s16, uint32_t, int16_t, uint16_t, ((int32_t)x * y >> 16) + z)
TERNARY(mad_hi_u32, uint32_t, uint32_t, uint32_t, ((uint64_t)x * y >> 32) + z)
TERNARY(mad_hi_s32, uint32_t, int32_t, uint32_t, ((int64_t)x * y >> 32) + z)
TERNARY(mad_hi_u64, uint64_t, uint64_t, uint64_t, (uint64_t)((gpusim_u128)x *y >> 64) + z)
TERNARY(mad_hi_s64, uint64_t, int64_t, uint64_t, (int64_t)((gpusim_s128)x *y >> 64) + z)

#define WIDE(name, R, V, P)                                                                                            \
    HANDLER(mul_wide_##name) {                                                                                         \
        R *d = (R *)REGS32(op->d);                                                                                     \
        const uint32_t *a = REGS32(op->a), *b = REGS32(op->b);                                                         \
        LANES(d[i] = (R)((P)(V)a[i] * (P)(V)b[i]));                                                                    \
        return GPUSIM_NEXT;                                                                                            \
    }                                                                                                                  \
    HANDLER(mad_wide_##name) {                                                                                         \
        R *d = (R *)REGS32(op->d);                                                                                     \
        const uint32_t *a = REGS32(op->a), *b = REGS32(op->b);                                                         \
        const R *c = (const R *)REGS32(op->c);                                                                         \
        LANES(d[i] = (R)((P)(V)a[i] * (P)(V)b[i]) + c[i]);                                                             \
        return GPUSIM_NEXT;                                                                                            \
    }
WIDE(u16, uint32_t, uint16_t, uint32_t)
WIDE(s16, uint32_t, int16_t, int32_t)
WIDE(u32, uint64_t, uint32_t, uint64_t)
WIDE(s32, uint64_t, int32_t, int64_t)

/* 24-bit operands; mul24.hi gives bits 47..16 of the product. */
#define U24(v) ((uint64_t)((v)&0xffffffu))
#define S24(v) ((int64_t)((int32_t)((uint32_t)(v) << 8) >> 8))
BINARY(mul24_lo_u32, uint32_t, uint32_t, uint32_t, U24(x) * U24(y))
BINARY(mul24_lo_s32, uint32_t, uint32_t, uint32_t, S24(x) * S24(y))
BINARY(mul24_hi_u32, uint32_t, uint32_t, uint32_t, U24(x) * U24(y) >> 16)
BINARY(mul24_hi_s32, uint32_t, uint32_t, uint32_t, S24(x) * S24(y) >> 16)
TERNARY(mad24_lo_u32, uint32_t, uint32_t, uint32_t, U24(x) * U24(y) + z)
TERNARY(mad24_lo_s32, uint32_t, uint32_t, uint32_t, S24(x) * S24(y) + z)
TERNARY(mad24_hi_u32, uint32_t, uint32_t, uint32_t, (U24(x) * U24(y) >> 16) + z)
TERNARY(mad24_hi_s32, uint32_t, uint32_t, uint32_t, (S24(x) * S24(y) >> 16) + z)

static inline uint32_t clamp_s32(int64_t v) {
    return (uint32_t)(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
}
BINARY(add_sat_s32, uint32_t, int32_t, uint32_t, clamp_s32((int64_t)x + y))
BINARY(sub_sat_s32, uint32_t, int32_t, uint32_t, clamp_s32((int64_t)x - y))
TERNARY(mad_hi_sat_s32, uint32_t, int32_t, uint32_t, clamp_s32(((int64_t)x * y >> 32) + z))

FOR_US(TERNARY, sad, (x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x) + (uint64_t)z)

/* The carry flag: word 1 of the frame, one bit per lane. */
#define CARRY(name, R, P, EXPR, OUT)                                                                                   \
    HANDLER(name) {                                                                                                    \
        R *d = (R *)REGS32(op->d);                                                                                     \
        const R *a = (const R *)REGS32(op->a), *b = (const R *)REGS32(op->b), *c = (const R *)REGS32(op->c);           \
        uint32_t flags = warp->regs[1], out = flags & ~mask;                                                           \
        for (int i = 0; i < GPUSIM_WARP; i++) {                                                                        \
            if (!(mask >> i & 1)) continue;                                                                            \
            P in = flags >> i & 1, x = a[i], y = b[i], z = c[i];                                                       \
            (void)in, (void)z;                                                                                         \
            P r = (EXPR);                                                                                              \
            d[i] = (R)r;                                                                                               \
            out |= (uint32_t)(r >> (sizeof(R) * 8) & 1) << i;                                                          \
        }                                                                                                              \
        if (OUT) warp->regs[1] = out;                                                                                  \
        return GPUSIM_NEXT;                                                                                            \
    }
#define CARRIES(suffix, R, P, BITS)                                                                                    \
    CARRY(add_cc_##suffix, R, P, x + y, true)                                                                          \
    CARRY(addc_##suffix, R, P, x + y + in, false)                                                                      \
    CARRY(addc_cc_##suffix, R, P, x + y + in, true)                                                                    \
    CARRY(sub_cc_##suffix, R, P, x - y, true)                                                                          \
    CARRY(subc_##suffix, R, P, x - y - in, false)                                                                      \
    CARRY(subc_cc_##suffix, R, P, x - y - in, true)                                                                    \
    CARRY(mad_lo_cc_##suffix, R, P, (P)(R)(x * y) + z, true)                                                           \
    CARRY(madc_lo_##suffix, R, P, (P)(R)(x * y) + z + in, false)                                                       \
    CARRY(madc_lo_cc_##suffix, R, P, (P)(R)(x * y) + z + in, true)                                                     \
    CARRY(mad_hi_cc_##suffix, R, P, (x * y >> BITS) + z, true)                                                         \
    CARRY(madc_hi_##suffix, R, P, (x * y >> BITS) + z + in, false)                                                     \
    CARRY(madc_hi_cc_##suffix, R, P, (x * y >> BITS) + z + in, true)
CARRIES(b32, uint32_t, uint64_t, 32)
CARRIES(b64, uint64_t, gpusim_u128, 64)
#define SIGNED_HI(R, S, P, BITS) (P)(R)((P)(S)(R)x * (P)(S)(R)y >> BITS)
CARRY(mad_hi_cc_s32, uint32_t, uint64_t, SIGNED_HI(uint32_t, int32_t, int64_t, 32) + z, true)
CARRY(madc_hi_s32, uint32_t, uint64_t, SIGNED_HI(uint32_t, int32_t, int64_t, 32) + z + in, false)
CARRY(madc_hi_cc_s32, uint32_t, uint64_t, SIGNED_HI(uint32_t, int32_t, int64_t, 32) + z + in, true)
#define ROW_CARRY(key, name)                                                                                           \
    {key ".b32", name##_b32}, { key ".b64", name##_b64 }

const struct gpusim_entry TABLE(ops_integer)[] = {
    ROW_B("add", add),
    ROW_B("sub", sub),
    ROW_B("mul.lo", mul_lo),
    ROW_B("mad.lo", mad_lo),
    ROW_US("min", min),
    ROW_US("max", max),
    ROW_S("abs", abs),
    ROW_S("neg", neg),
    ROW_B("and", and),
    ROW_B("or", or),
    ROW_B("xor", xor),
    ROW_B("not", not ),
    ROW_B("cnot", cnot),
    ROW_B("shl", shl),
    ROW_US("shr", shr),
    {"shr.b16", shr_u16},
    {"shr.b32", shr_u32},
    {"shr.b64", shr_u64},
    ROW_US("div", div),
    ROW_US("rem", rem),
    ROW_US("sad", sad),
    ROW_US("mul.hi", mul_hi),
    ROW_US("mad.hi", mad_hi),
    {"mul.wide.u16", mul_wide_u16},
    {"mul.wide.s16", mul_wide_s16},
    {"mul.wide.u32", mul_wide_u32},
    {"mul.wide.s32", mul_wide_s32},
    {"mad.wide.u16", mad_wide_u16},
    {"mad.wide.s16", mad_wide_s16},
    {"mad.wide.u32", mad_wide_u32},
    {"mad.wide.s32", mad_wide_s32},
    {"mul24.lo.u32", mul24_lo_u32},
    {"mul24.lo.s32", mul24_lo_s32},
    {"mul24.hi.u32", mul24_hi_u32},
    {"mul24.hi.s32", mul24_hi_s32},
    {"mad24.lo.u32", mad24_lo_u32},
    {"mad24.lo.s32", mad24_lo_s32},
    {"mad24.hi.u32", mad24_hi_u32},
    {"mad24.hi.s32", mad24_hi_s32},
    {"add.sat.s32", add_sat_s32},
    {"sub.sat.s32", sub_sat_s32},
    {"mad.hi.sat.s32", mad_hi_sat_s32},
    ROW_CARRY("add.cc", add_cc),
    ROW_CARRY("addc", addc),
    ROW_CARRY("addc.cc", addc_cc),
    ROW_CARRY("sub.cc", sub_cc),
    ROW_CARRY("subc", subc),
    ROW_CARRY("subc.cc", subc_cc),
    ROW_CARRY("mad.lo.cc", mad_lo_cc),
    ROW_CARRY("madc.lo", madc_lo),
    ROW_CARRY("madc.lo.cc", madc_lo_cc),
    {"mad.hi.cc.u32", mad_hi_cc_b32},
    {"madc.hi.u32", madc_hi_b32},
    {"madc.hi.cc.u32", madc_hi_cc_b32},
    {"mad.hi.cc.u64", mad_hi_cc_b64},
    {"madc.hi.u64", madc_hi_b64},
    {"madc.hi.cc.u64", madc_hi_cc_b64},
    {"mad.hi.cc.s32", mad_hi_cc_s32},
    {"madc.hi.s32", madc_hi_s32},
    {"madc.hi.cc.s32", madc_hi_cc_s32},
    {NULL, NULL},
};
