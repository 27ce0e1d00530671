/* f16 and bf16 arithmetic, single and packed. Sums and products are exact in double or correctly rounded from it; fma
 * goes through round-to-odd, so that everything is rounded once. */
#include "exec/lanes.h"
#include "numerics/half.h"

static inline uint32_t f16_flush(uint32_t h) { return h & 0x7c00 ? h : h & 0x8000; }
static inline uint32_t f16_done(uint32_t h, uint32_t flags) {
    if (flags & GPUSIM_FTZ) h = f16_flush(h);
    if (flags & GPUSIM_SAT) h = h & 0x8000 || (h & 0x7fff) > 0x7c00 ? 0 : h > 0x3c00 ? 0x3c00 : h;
    if (flags & GPUSIM_RELU) h = h & 0x8000 && (h & 0x7fff) <= 0x7c00 ? 0 : h;
    return h;
}
static inline uint32_t bf16_done(uint32_t h, uint32_t flags) {
    if (flags & GPUSIM_SAT) h = h & 0x8000 || (h & 0x7fff) > 0x7f80 ? 0 : h > 0x3f80 ? 0x3f80 : h;
    if (flags & GPUSIM_RELU) h = h & 0x8000 && (h & 0x7fff) <= 0x7f80 ? 0 : h;
    return h;
}
static inline float f16_in(uint32_t h, uint32_t flags) { return num_from_f16(flags & GPUSIM_FTZ ? f16_flush(h) : h); }
static inline float bf16_in(uint32_t h, uint32_t flags) {
    (void)flags;
    return num_from_bf16(h);
}

/* The sum or product of two halves in float is exact or so near that a second rounding to half is right (24 >= 2 * 11 +
 * 2). */
#define ADD(x, y, z) ((x) + (y))
#define SUB(x, y, z) ((x) - (y))
#define MUL(x, y, z) ((x) * (y))
#define FMA(x, y, z) num_f32_odd(num_fma_odd((double)(x), (double)(y), (double)(z)))
#define PICK(name, less, nan_wins)                                                                                     \
    static inline uint32_t name(uint32_t x, uint32_t y, uint32_t infinity) {                                           \
        bool nx = (x & 0x7fff) > infinity, ny = (y & 0x7fff) > infinity;                                               \
        int32_t ox = x & 0x8000 ? -(int32_t)(x & 0x7fff) - 1 : (int32_t)x;                                             \
        int32_t oy = y & 0x8000 ? -(int32_t)(y & 0x7fff) - 1 : (int32_t)y;                                             \
        if ((nx && ny) || ((nx || ny) && nan_wins)) return 0x7fff;                                                     \
        if (nx || ny) return nx ? y : x;                                                                               \
        return (ox < oy) == less ? x : y;                                                                              \
    }
PICK(pick_min, true, false)
PICK(pick_max, false, false)
PICK(pick_min_nan, true, true)
PICK(pick_max_nan, false, true)

#define HALF_OP(name, type, infinity, OP)                                                                              \
    static inline uint32_t name##_##type(uint32_t a, uint32_t b, uint32_t c, uint32_t flags) {                         \
        float x = type##_in(a, flags), y = type##_in(b, flags), z = type##_in(c, flags);                               \
        (void)z;                                                                                                       \
        return type##_done(num_to_##type(OP(x, y, z)), flags);                                                         \
    }
#define PICK_OP(name, type, infinity, PICKED)                                                                          \
    static inline uint32_t name##_##type(uint32_t a, uint32_t b, uint32_t c, uint32_t flags) {                         \
        (void)c;                                                                                                       \
        return type##_done(PICKED(a, b, infinity), flags);                                                             \
    }
#define BOTH(DEFINE, name, OP) DEFINE(name, f16, 0x7c00, OP) DEFINE(name, bf16, 0x7f80, OP)
BOTH(HALF_OP, add, ADD)
BOTH(HALF_OP, sub, SUB)
BOTH(HALF_OP, mul, MUL)
BOTH(HALF_OP, fma, FMA)
BOTH(PICK_OP, min, pick_min)
BOTH(PICK_OP, max, pick_max)
BOTH(PICK_OP, min_nan, pick_min_nan)
BOTH(PICK_OP, max_nan, pick_max_nan)
#define NEG_OP(name, type, infinity, OP)                                                                               \
    static inline uint32_t name##_##type(uint32_t a, uint32_t b, uint32_t c, uint32_t flags) {                         \
        (void)b, (void)c, (void)flags;                                                                                 \
        return (a & 0x7fff) > infinity ? 0x7fff : OP;                                                                  \
    }
BOTH(NEG_OP, neg, (a ^ 0x8000))
BOTH(NEG_OP, abs, (a & 0x7fff))

/* Handlers: operands that an op lacks are word 0 of the frame, which the constant part always covers. */
#define HALVES(name) HALF_HANDLERS(name, f16) HALF_HANDLERS(name, bf16)
#define HALF_HANDLERS(name, type)                                                                                      \
    HANDLER(run_##name##_##type) {                                                                                     \
        uint32_t *d = REGS32(op->d), flags = op->flags;                                                                \
        const uint32_t *a = REGS32(op->a), *b = REGS32(op->b), *c = REGS32(op->c);                                     \
        LANES(d[i] = name##_##type(a[i] & 0xffff, b[i] & 0xffff, c[i] & 0xffff, flags));                               \
        return GPUSIM_NEXT;                                                                                            \
    }                                                                                                                  \
    HANDLER(run_##name##_##type##x2) {                                                                                 \
        uint32_t *d = REGS32(op->d), flags = op->flags;                                                                \
        const uint32_t *a = REGS32(op->a), *b = REGS32(op->b), *c = REGS32(op->c);                                     \
        LANES(d[i] = name##_##type(a[i] & 0xffff, b[i] & 0xffff, c[i] & 0xffff, flags) |                               \
                     name##_##type(a[i] >> 16, b[i] >> 16, c[i] >> 16, flags) << 16);                                  \
        return GPUSIM_NEXT;                                                                                            \
    }
HALVES(add)
HALVES(sub)
HALVES(mul)
HALVES(fma)
HALVES(min)
HALVES(max)
HALVES(min_nan)
HALVES(max_nan)
HALVES(neg)
HALVES(abs)

#define ROW_H(key, name)                                                                                               \
    {key ".f16", run_##name##_f16}, {key ".f16x2", run_##name##_f16x2}, {key ".bf16", run_##name##_bf16},              \
        {key ".bf16x2", run_##name##_bf16x2}, {key ".ftz.f16", run_##name##_f16}, {                                    \
        key ".ftz.f16x2", run_##name##_f16x2                                                                           \
    }
const struct gpusim_entry TABLE(ops_half)[] = {
    ROW_H("add", add),
    ROW_H("sub", sub),
    ROW_H("mul", mul),
    ROW_H("fma", fma),
    ROW_H("min", min),
    ROW_H("max", max),
    ROW_H("min.nan", min_nan),
    ROW_H("max.nan", max_nan),
    {"min.ftz.nan.f16", run_min_nan_f16},
    {"max.ftz.nan.f16", run_max_nan_f16},
    {"min.ftz.nan.f16x2", run_min_nan_f16x2},
    {"max.ftz.nan.f16x2", run_max_nan_f16x2},
    ROW_H("neg", neg),
    ROW_H("abs", abs),
    {NULL, NULL},
};
