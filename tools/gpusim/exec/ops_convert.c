/* cvt. The common conversions have vector code; all others go through one general handler, lane by lane. */
#include "exec/lanes.h"
#include "numerics/half.h"
#include "numerics/round.h"

#include <fenv.h>

/* Integers without .sat: read as the source type, cut to the destination. */
#define WIDEN(name, S, V)                                                                                              \
    HANDLER(cvt_b16_##name) {                                                                                          \
        uint32_t *d = REGS32(op->d);                                                                                   \
        const S *a = (const S *)REGS32(op->a);                                                                         \
        LANES(d[i] = (uint16_t)(V)a[i]);                                                                               \
        return GPUSIM_NEXT;                                                                                            \
    }                                                                                                                  \
    HANDLER(cvt_b32_##name) {                                                                                          \
        uint32_t *d = REGS32(op->d);                                                                                   \
        const S *a = (const S *)REGS32(op->a);                                                                         \
        LANES(d[i] = (uint32_t)(V)a[i]);                                                                               \
        return GPUSIM_NEXT;                                                                                            \
    }                                                                                                                  \
    HANDLER(cvt_b64_##name) {                                                                                          \
        uint64_t *d = REGS64(op->d);                                                                                   \
        const S *a = (const S *)REGS32(op->a);                                                                         \
        LANES(d[i] = (uint64_t)(V)a[i]);                                                                               \
        return GPUSIM_NEXT;                                                                                            \
    }
WIDEN(u8, uint32_t, uint8_t)
WIDEN(s8, uint32_t, int8_t)
WIDEN(u16, uint32_t, uint16_t)
WIDEN(s16, uint32_t, int16_t)
WIDEN(u32, uint32_t, uint32_t)
WIDEN(s32, uint32_t, int32_t)
WIDEN(u64, uint64_t, uint64_t)
WIDEN(s64, uint64_t, int64_t)

/* To nearest, no .ftz, no .sat. */
#define SIMPLE(name, R, S, ...)                                                                                        \
    HANDLER(cvt_##name) {                                                                                              \
        R *d = (R *)REGS32(op->d);                                                                                     \
        const S *a = (const S *)REGS32(op->a);                                                                         \
        LANES(S x = a[i]; d[i] = (__VA_ARGS__));                                                                       \
        return GPUSIM_NEXT;                                                                                            \
    }
static inline uint32_t bits32(float v) { return v == v ? float_bits(v) : 0x7fffffffu; }
SIMPLE(f32_s32, uint32_t, uint32_t, float_bits((float)(int32_t)x))
SIMPLE(f32_u32, uint32_t, uint32_t, float_bits((float)x))
SIMPLE(f32_f16, uint32_t, uint32_t, bits32(num_from_f16(x)))
SIMPLE(f32_bf16, uint32_t, uint32_t, bits32(num_from_bf16(x)))
SIMPLE(f16_f32, uint32_t, uint32_t, num_to_f16(as_float(x)))
SIMPLE(bf16_f32, uint32_t, uint32_t, num_to_bf16(as_float(x)))
SIMPLE(f64_s32, uint64_t, uint32_t, double_bits((double)(int32_t)x))
SIMPLE(f64_u32, uint64_t, uint32_t, double_bits((double)x))

/* Two f32 into one register: the first operand goes to the upper half. */
#define PAIR(name, TO)                                                                                                 \
    HANDLER(cvt_##name) {                                                                                              \
        uint32_t *d = REGS32(op->d);                                                                                   \
        const uint32_t *a = REGS32(op->a), *b = REGS32(op->b);                                                         \
        LANES(d[i] = TO(as_float(a[i])) << 16 | TO(as_float(b[i])));                                                   \
        return GPUSIM_NEXT;                                                                                            \
    }
PAIR(f16x2_f32, num_to_f16)
PAIR(bf16x2_f32, num_to_bf16)

static bool is_float_type(int type) { return type >= GPUSIM_T_F16 && type <= GPUSIM_T_TF32; }

static double read_float(uint64_t bits, int type, bool ftz) {
    switch (type) {
    case GPUSIM_T_F16:
        return (double)num_from_f16(bits & 0xffff);
    case GPUSIM_T_BF16:
        return (double)num_from_bf16(bits & 0xffff);
    case GPUSIM_T_F64:
        return as_double(bits);
    default: {
        uint32_t low = (uint32_t)bits;
        if (ftz && !(low & 0x7f800000)) low &= 0x80000000;
        return (double)as_float(low);
    }
    }
}

static uint64_t write_float(double v, int type, const struct gpusim_op *op) {
    int mode = op->rounding <= GPUSIM_RNA ? op->rounding : GPUSIM_RN;
    if (op->flags & GPUSIM_SAT) v = v > 0 ? v < 1 ? v : 1.0 : 0.0;
    if (op->flags & GPUSIM_RELU && v < 0) v = 0.0;
    bool nan = v != v;
    switch (type) {
    case GPUSIM_T_F16:
        return nan ? 0x7fff : num_to_f16((float)num_round(v, &num_f16_format, mode));
    case GPUSIM_T_BF16:
        return nan ? 0x7fff : num_to_bf16((float)num_round(v, &num_bf16_format, mode));
    case GPUSIM_T_F64:
        return nan ? 0xfff8000000000000ull : double_bits(v);
    default: {
        if (nan) return 0x7fffffff;
        uint32_t bits =
            float_bits((float)num_round(v, type == GPUSIM_T_TF32 ? &num_tf32_format : &num_f32_format, mode));
        if (op->flags & GPUSIM_FTZ && !(bits & 0x7f800000)) bits &= 0x80000000;
        return bits;
    }
    }
}

static double to_integral(double v, int rounding) {
    switch (rounding) {
    case GPUSIM_RZI:
        return trunc(v);
    case GPUSIM_RMI:
        return floor(v);
    case GPUSIM_RPI:
        return ceil(v);
    case GPUSIM_RNI:
        return rint(v);
    default:
        return v;
    }
}

struct range {
    int bits;
    bool is_signed;
};
static struct range range_of(int type) {
    switch (type) {
    case GPUSIM_T_B8:
    case GPUSIM_T_U8:
        return (struct range){8, false};
    case GPUSIM_T_S8:
        return (struct range){8, true};
    case GPUSIM_T_B16:
    case GPUSIM_T_U16:
        return (struct range){16, false};
    case GPUSIM_T_S16:
        return (struct range){16, true};
    case GPUSIM_T_B32:
    case GPUSIM_T_U32:
        return (struct range){32, false};
    case GPUSIM_T_S32:
        return (struct range){32, true};
    case GPUSIM_T_S64:
        return (struct range){64, true};
    default:
        return (struct range){64, false};
    }
}

/* Float to integer clamps always; NaN gives 0, or the top bit where 64 bits are in play. */
static uint64_t float_to_int(double v, const struct gpusim_op *op) {
    struct range to = range_of(op->type);
    if (v != v) return op->from == GPUSIM_T_F64 || to.bits == 64 ? 1ull << (to.bits - 1) : 0;
    v = to_integral(v, op->rounding);
    double high = ldexp(1.0, to.is_signed ? to.bits - 1 : to.bits);
    if (to.is_signed) {
        if (v >= high) return (1ull << (to.bits - 1)) - 1;
        if (v < -high) return (uint64_t)-1 << (to.bits - 1);
        return (uint64_t)(int64_t)v;
    }
    if (v <= 0) return 0;
    if (v >= high) return to.bits == 64 ? ~0ull : (1ull << to.bits) - 1;
    return (uint64_t)v;
}

/* The value of an integer as a double that rounds further as the integer would: low bits beyond 53 become one sticky
 * bit. */
static double int_to_double(uint64_t bits, bool negative) {
    uint64_t magnitude = negative ? 0 - bits : bits;
    if (magnitude >> 53) magnitude = (magnitude & ~0xfffull) | ((magnitude & 0xfff) ? 0x1000 : 0);
    double v = (double)magnitude;
    return negative ? -v : v;
}

static uint64_t extend(uint64_t bits, struct range r) {
    if (r.bits == 64) return bits;
    return r.is_signed ? (uint64_t)((int64_t)(bits << (64 - r.bits)) >> (64 - r.bits)) : bits & ((1ull << r.bits) - 1);
}

static uint64_t int_to_int(uint64_t bits, const struct gpusim_op *op) {
    struct range from = range_of(op->from), to = range_of(op->type);
    if (op->flags & GPUSIM_SAT) {
        bool negative = from.is_signed && (int64_t)bits < 0;
        uint64_t top = to.is_signed ? (1ull << (to.bits - 1)) - 1 : to.bits == 64 ? ~0ull : (1ull << to.bits) - 1;
        if (negative && !to.is_signed)
            bits = 0;
        else if (negative && to.bits < 64 && (int64_t)bits < -(int64_t)top - 1)
            bits = (uint64_t)(-(int64_t)top - 1);
        else if (!negative && bits > top)
            bits = top;
    }
    return extend(bits, to);
}

static uint64_t int_to_float(uint64_t bits, const struct gpusim_op *op) {
    bool negative = range_of(op->from).is_signed && (int64_t)bits < 0;
    if (op->type == GPUSIM_T_F64) { /* all integers but the 64-bit ones are exact */
        static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
        fesetround(modes[op->rounding & 3]);
        volatile int64_t s = (int64_t)bits;
        volatile double v = range_of(op->from).is_signed ? (double)s : (double)bits;
        fesetround(FE_TONEAREST);
        return write_float(v, op->type, op);
    }
    return write_float(int_to_double(bits, negative), op->type, op);
}

/* op->size: bytes of the destination register; list[0]: where the second half of a packed pair comes from. */
HANDLER(cvt) {
    bool from64 = op->flags & GPUSIM_ADDR64, to64 = op->flags & GPUSIM_REG64;
    uint64_t keep = op->size == 2 ? 0xffff : op->size == 4 ? 0xffffffff : ~0ull;
    bool to_pair = op->type == GPUSIM_T_F16X2 || op->type == GPUSIM_T_BF16X2;
    int type = op->type == GPUSIM_T_F16X2 ? GPUSIM_T_F16 : op->type == GPUSIM_T_BF16X2 ? GPUSIM_T_BF16 : op->type;
    EACH_LANE({
        uint64_t a = from64 ? REGS64(op->a)[i] : REGS32(op->a)[i], r;
        if (is_float_type(op->from)) {
            double v = read_float(a, op->from, op->flags & GPUSIM_FTZ);
            if (to_pair) {
                double w = read_float(REGS32(op->b)[i], op->from, op->flags & GPUSIM_FTZ);
                r = write_float(v, type, op) << 16 | write_float(w, type, op);
            } else
                r = is_float_type(type) ? write_float(to_integral(v, op->rounding), type, op) : float_to_int(v, op);
        } else {
            a = extend(a, range_of(op->from));
            r = is_float_type(type) ? int_to_float(a, op) : int_to_int(a, op);
        }
        if (to64)
            REGS64(op->d)[i] = r;
        else
            REGS32(op->d)[i] = (uint32_t)(r & keep);
    })
    return GPUSIM_NEXT;
}

/* cvt.pack.sat: two s32 into the low bits, above them the low bits of c. op->type: what to saturate to. */
HANDLER(cvt_pack) {
    struct range to = range_of(op->type);
    int32_t low = to.is_signed ? -(1 << (to.bits - 1)) : 0,
            high = to.is_signed ? (1 << (to.bits - 1)) - 1 : (1 << to.bits) - 1;
    uint32_t keep = to.bits == 16 ? 0xffff : 0xff;
    uint32_t *d = REGS32(op->d);
    const uint32_t *a = REGS32(op->a), *b = REGS32(op->b), *c = REGS32(op->c);
    LANES(int32_t x = (int32_t)a[i]; int32_t y = (int32_t)b[i]; x = x < low    ? low
                                                                    : x > high ? high
                                                                               : x;
          y = y < low    ? low
              : y > high ? high
                         : y;
          uint32_t above = to.bits == 16 ? 0 : c[i] << 16;
          d[i] = above | ((uint32_t)x & keep) << to.bits | ((uint32_t)y & keep));
    return GPUSIM_NEXT;
}

#define ROW_CVT(type, name)                                                                                            \
    {"cvt.b16." type, cvt_b16_##name}, {"cvt.b32." type, cvt_b32_##name}, { "cvt.b64." type, cvt_b64_##name }
const struct gpusim_entry TABLE(ops_convert)[] = {
    ROW_CVT("u8", u8),
    ROW_CVT("s8", s8),
    ROW_CVT("u16", u16),
    ROW_CVT("s16", s16),
    ROW_CVT("u32", u32),
    ROW_CVT("s32", s32),
    ROW_CVT("u64", u64),
    ROW_CVT("s64", s64),
    {"cvt.f32.s32", cvt_f32_s32},
    {"cvt.f32.u32", cvt_f32_u32},
    {"cvt.f32.f16", cvt_f32_f16},
    {"cvt.f32.bf16", cvt_f32_bf16},
    {"cvt.f16.f32", cvt_f16_f32},
    {"cvt.bf16.f32", cvt_bf16_f32},
    {"cvt.f64.s32", cvt_f64_s32},
    {"cvt.f64.u32", cvt_f64_u32},
    {"cvt.f16x2.f32", cvt_f16x2_f32},
    {"cvt.bf16x2.f32", cvt_bf16x2_f32},
    {"cvt.pack", cvt_pack},
    {"cvt", cvt},
    {NULL, NULL},
};
