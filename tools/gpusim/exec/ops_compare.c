/* setp, set, and logic on predicates. op->code is enum compare; op->imm how the result meets predicate c (enum
 * combine). */
#include "exec/lanes.h"
#include "exec/codes.h"
#include "numerics/half.h"

/* Results as a mask of lanes for each comparison of an integer type. */
#define COMPARE(name, R, V)                                                                                            \
    static uint32_t test_##name(const struct gpusim_warp *warp, const struct gpusim_op *op) {                          \
        const R *a = (const R *)REGS32(op->a), *b = (const R *)REGS32(op->b);                                          \
        uint32_t r = 0;                                                                                                \
        switch (op->code) {                                                                                            \
        case GPUSIM_EQ:                                                                                                \
            BITS(V, x == y);                                                                                           \
            break;                                                                                                     \
        case GPUSIM_NE:                                                                                                \
            BITS(V, x != y);                                                                                           \
            break;                                                                                                     \
        case GPUSIM_LT:                                                                                                \
            BITS(V, x < y);                                                                                            \
            break;                                                                                                     \
        case GPUSIM_LE:                                                                                                \
            BITS(V, x <= y);                                                                                           \
            break;                                                                                                     \
        case GPUSIM_GT:                                                                                                \
            BITS(V, x > y);                                                                                            \
            break;                                                                                                     \
        default:                                                                                                       \
            BITS(V, x >= y);                                                                                           \
            break;                                                                                                     \
        }                                                                                                              \
        return r;                                                                                                      \
    }
/* Sets bit i of r: through an array of words, which vectorises better than shifts do. */
#define BITS(V, TEST)                                                                                                  \
    _Pragma("omp simd reduction(| : r)") for (int i = 0; i < GPUSIM_WARP; i++) {                                       \
        V x = (V)a[i], y = (V)b[i];                                                                                    \
        r |= (TEST) ? 1u << i : 0u;                                                                                    \
    }
COMPARE(u16, uint32_t, uint16_t)
COMPARE(s16, uint32_t, int16_t)
COMPARE(u32, uint32_t, uint32_t)
COMPARE(s32, uint32_t, int32_t)
COMPARE(u64, uint64_t, uint64_t)
COMPARE(s64, uint64_t, int64_t)

/* Ordered comparisons fail on NaN, unordered ones (equ ...) succeed. */
#define FLOAT_COMPARE(name, R, F, READ)                                                                                \
    static uint32_t test_##name(const struct gpusim_warp *warp, const struct gpusim_op *op) {                          \
        const R *a = (const R *)REGS32(op->a), *b = (const R *)REGS32(op->b);                                          \
        uint32_t r = 0;                                                                                                \
        switch (op->code) {                                                                                            \
        case GPUSIM_EQ:                                                                                                \
            FBITS(F, READ, x == y);                                                                                    \
            break;                                                                                                     \
        case GPUSIM_NE:                                                                                                \
            FBITS(F, READ, x<y || x> y);                                                                               \
            break;                                                                                                     \
        case GPUSIM_LT:                                                                                                \
            FBITS(F, READ, x < y);                                                                                     \
            break;                                                                                                     \
        case GPUSIM_LE:                                                                                                \
            FBITS(F, READ, x <= y);                                                                                    \
            break;                                                                                                     \
        case GPUSIM_GT:                                                                                                \
            FBITS(F, READ, x > y);                                                                                     \
            break;                                                                                                     \
        case GPUSIM_GE:                                                                                                \
            FBITS(F, READ, x >= y);                                                                                    \
            break;                                                                                                     \
        case GPUSIM_EQU:                                                                                               \
            FBITS(F, READ, !(x < y || x > y));                                                                         \
            break;                                                                                                     \
        case GPUSIM_NEU:                                                                                               \
            FBITS(F, READ, x != y);                                                                                    \
            break;                                                                                                     \
        case GPUSIM_LTU:                                                                                               \
            FBITS(F, READ, !(x >= y));                                                                                 \
            break;                                                                                                     \
        case GPUSIM_LEU:                                                                                               \
            FBITS(F, READ, !(x > y));                                                                                  \
            break;                                                                                                     \
        case GPUSIM_GTU:                                                                                               \
            FBITS(F, READ, !(x <= y));                                                                                 \
            break;                                                                                                     \
        case GPUSIM_GEU:                                                                                               \
            FBITS(F, READ, !(x < y));                                                                                  \
            break;                                                                                                     \
        case GPUSIM_NUM:                                                                                               \
            FBITS(F, READ, x == x && y == y);                                                                          \
            break;                                                                                                     \
        default:                                                                                                       \
            FBITS(F, READ, x != x || y != y);                                                                          \
            break;                                                                                                     \
        }                                                                                                              \
        return r;                                                                                                      \
    }
#define FBITS(F, READ, TEST)                                                                                           \
    _Pragma("omp simd reduction(| : r)") for (int i = 0; i < GPUSIM_WARP; i++) {                                       \
        F x = READ(a[i]), y = READ(b[i]);                                                                              \
        r |= (TEST) ? 1u << i : 0u;                                                                                    \
    }
#define FLUSH32(v) as_float((v)&0x7f800000 ? (v) : (v)&0x80000000)
#define FLUSH16(v) num_from_f16((v)&0x7c00 ? (v) : (v)&0x8000)
FLOAT_COMPARE(f32, uint32_t, float, as_float)
FLOAT_COMPARE(ftz_f32, uint32_t, float, FLUSH32)
FLOAT_COMPARE(f64, uint64_t, double, as_double)
FLOAT_COMPARE(f16, uint32_t, float, num_from_f16)
FLOAT_COMPARE(ftz_f16, uint32_t, float, FLUSH16)
FLOAT_COMPARE(bf16, uint32_t, float, num_from_bf16)
#define HI_F16(v)  num_from_f16((v) >> 16)
#define LO_F16(v)  num_from_f16((v)&0xffff)
#define HI_BF16(v) as_float((v)&0xffff0000u)
#define HI_FTZ(v)  FLUSH16((v) >> 16)
#define LO_FTZ(v)  FLUSH16((v)&0xffff)
FLOAT_COMPARE(lo_f16, uint32_t, float, LO_F16)
FLOAT_COMPARE(hi_f16, uint32_t, float, HI_F16)
FLOAT_COMPARE(lo_ftz_f16, uint32_t, float, LO_FTZ)
FLOAT_COMPARE(hi_ftz_f16, uint32_t, float, HI_FTZ)
FLOAT_COMPARE(lo_bf16, uint32_t, float, num_from_bf16)
FLOAT_COMPARE(hi_bf16, uint32_t, float, HI_BF16)

static uint32_t combine(const struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t r) {
    uint32_t c = warp->regs[op->c] ^ (op->flags & GPUSIM_NOT_C ? ~0u : 0);
    switch (op->imm) {
    case GPUSIM_COMBINE_AND:
        return r & c;
    case GPUSIM_COMBINE_OR:
        return r | c;
    case GPUSIM_COMBINE_XOR:
        return r ^ c;
    default:
        return r;
    }
}

/* setp p|q: q gets the negated comparison, combined likewise. list[0] is q, if there is one. */
static void set_predicates(struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask, uint32_t r) {
    uint32_t p = combine(warp, op, r), q = combine(warp, op, ~r);
    uint32_t *d = warp->regs + op->d;
    *d = (*d & ~mask) | (p & mask);
    if (op->n_list) {
        uint32_t *e = warp->regs + op->list[0];
        *e = (*e & ~mask) | (q & mask);
    }
}
#define SETP(name)                                                                                                     \
    HANDLER(setp_##name) {                                                                                             \
        set_predicates(warp, op, mask, test_##name(warp, op));                                                         \
        return GPUSIM_NEXT;                                                                                            \
    }                                                                                                                  \
    HANDLER(set_##name) {                                                                                              \
        uint32_t r = combine(warp, op, test_##name(warp, op)), yes = op->type == GPUSIM_T_F32 ? 0x3f800000 : ~0u;      \
        if (op->type == GPUSIM_T_F16) yes = 0x3c00;                                                                    \
        if (op->type == GPUSIM_T_BF16) yes = 0x3f80;                                                                   \
        if (op->type == GPUSIM_T_U16 || op->type == GPUSIM_T_S16) yes = 0xffff;                                        \
        uint32_t *d = REGS32(op->d);                                                                                   \
        LANES(d[i] = r >> i & 1 ? yes : 0);                                                                            \
        return GPUSIM_NEXT;                                                                                            \
    }
SETP(u16)
SETP(s16)
SETP(u32) SETP(s32) SETP(u64) SETP(s64) SETP(f32) SETP(ftz_f32) SETP(f64) SETP(f16) SETP(ftz_f16) SETP(bf16)

/* Packed: setp p|q takes the low and the high halves' results; set writes both halves. */
#define PACKED(name, LO, HI)                                                                                           \
    HANDLER(setp_##name) {                                                                                             \
        uint32_t p = combine(warp, op, test_##LO(warp, op)), q = combine(warp, op, test_##HI(warp, op));               \
        warp->regs[op->d] = (warp->regs[op->d] & ~mask) | (p & mask);                                                  \
        if (op->n_list) warp->regs[op->list[0]] = (warp->regs[op->list[0]] & ~mask) | (q & mask);                      \
        return GPUSIM_NEXT;                                                                                            \
    }                                                                                                                  \
    HANDLER(set_##name) {                                                                                              \
        uint32_t lo = combine(warp, op, test_##LO(warp, op)), hi = combine(warp, op, test_##HI(warp, op));             \
        uint32_t yes = op->type == GPUSIM_T_F16X2 ? 0x3c00 : op->type == GPUSIM_T_BF16X2 ? 0x3f80 : 0xffff;            \
        uint32_t *d = REGS32(op->d);                                                                                   \
        LANES(d[i] = (lo >> i & 1 ? yes : 0) | (hi >> i & 1 ? yes << 16 : 0));                                         \
        return GPUSIM_NEXT;                                                                                            \
    }
    PACKED(f16x2, lo_f16, hi_f16) PACKED(ftz_f16x2, lo_ftz_f16, hi_ftz_f16) PACKED(bf16x2, lo_bf16, hi_bf16)

#define LOGIC(name, ...)                                                                                               \
    HANDLER(name##_pred) {                                                                                             \
        uint32_t a = warp->regs[op->a] ^ (op->flags & GPUSIM_NOT_A ? ~0u : 0);                                         \
        uint32_t b = warp->regs[op->b] ^ (op->flags & GPUSIM_NOT_B ? ~0u : 0), *d = warp->regs + op->d;                \
        (void)b;                                                                                                       \
        *d = (*d & ~mask) | ((__VA_ARGS__)&mask);                                                                      \
        return GPUSIM_NEXT;                                                                                            \
    }
        LOGIC(and, a &b) LOGIC(or, a | b) LOGIC(xor, a ^ b) LOGIC(not, ~a)

#define ROW_SET(type, name)                                                                                            \
    {"setp." type, setp_##name}, { "set." type, set_##name }
            const struct gpusim_entry TABLE(ops_compare)[] = {
                ROW_SET("u16", u16),
                ROW_SET("b16", u16),
                ROW_SET("s16", s16),
                ROW_SET("u32", u32),
                ROW_SET("b32", u32),
                ROW_SET("s32", s32),
                ROW_SET("u64", u64),
                ROW_SET("b64", u64),
                ROW_SET("s64", s64),
                ROW_SET("f32", f32),
                ROW_SET("ftz.f32", ftz_f32),
                ROW_SET("f64", f64),
                ROW_SET("f16", f16),
                ROW_SET("ftz.f16", ftz_f16),
                ROW_SET("bf16", bf16),
                ROW_SET("f16x2", f16x2),
                ROW_SET("ftz.f16x2", ftz_f16x2),
                ROW_SET("bf16x2", bf16x2),
                {"and.pred", and_pred},
                {"or.pred", or_pred},
                {"xor.pred", xor_pred},
                {"not.pred", not_pred},
                {NULL, NULL},
};
