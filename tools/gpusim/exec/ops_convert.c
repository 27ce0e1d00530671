/* cvt between integers; those from and to floats are in numerics/ (num). */
#include "exec/lanes.h"

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

struct range {
    int bits;
    bool is_signed;
};
static struct range range_of(int type) {
    int bits = type <= GPUSIM_T_S8 ? 8 : type <= GPUSIM_T_S16 ? 16 : type <= GPUSIM_T_S32 ? 32 : 64;
    return (struct range){bits,
                          type == GPUSIM_T_S8 || type == GPUSIM_T_S16 || type == GPUSIM_T_S32 || type == GPUSIM_T_S64};
}

static uint64_t extend(uint64_t bits, struct range r) {
    if (r.bits == 64) return bits;
    return r.is_signed ? (uint64_t)((int64_t)(bits << (64 - r.bits)) >> (64 - r.bits)) : bits & ((1ull << r.bits) - 1);
}

static uint64_t int_to_int(uint64_t bits, const struct gpusim_op *op) {
    struct range from = range_of(op->from), to = range_of(op->type);
    if (op->flags & GPUSIM_SAT) {
        bool negative = from.is_signed && (int64_t)bits < 0;
        uint64_t top = to.bits == 64 ? ~0ull >> to.is_signed : (1ull << (to.bits - to.is_signed)) - 1;
        if (negative && !to.is_signed)
            bits = 0;
        else if (negative && (int64_t)bits < -(int64_t)top - 1)
            bits = (uint64_t)(-(int64_t)top - 1);
        else if (!negative && bits > top)
            bits = top;
    }
    return extend(bits, to);
}

/* Integers with .sat, or in registers wider than their type. op->size: bytes of the destination register. */
HANDLER(cvt) {
    bool from64 = op->flags & GPUSIM_ADDR64, to64 = op->flags & GPUSIM_REG64;
    uint64_t keep = op->size == 2 ? 0xffff : op->size == 4 ? 0xffffffff : ~0ull;
    EACH_LANE({
        uint64_t a = extend(from64 ? REGS64(op->a)[i] : REGS32(op->a)[i], range_of(op->from)), r = int_to_int(a, op);
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
    ROW_CVT("u8", u8),      ROW_CVT("s8", s8),   ROW_CVT("u16", u16), ROW_CVT("s16", s16),
    ROW_CVT("u32", u32),    ROW_CVT("s32", s32), ROW_CVT("u64", u64), ROW_CVT("s64", s64),
    {"cvt.pack", cvt_pack}, {"cvt", cvt},        {NULL, NULL},
};
