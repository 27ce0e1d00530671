/* setp, set, and logic on predicates. op->code is enum compare; op->imm how the result meets predicate c (enum
 * combine). */
#include "exec/lanes.h"
#include "exec/codes.h"

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

/* Floats: numerics/ has the comparison. Packed ones compare the low halves by call, the high ones by call2. */
static uint32_t test_float(const struct gpusim_warp *warp, const struct gpusim_op *op) {
    return op->call.compare(warp->regs + op->a, warp->regs + op->b);
}
static uint32_t test_high(const struct gpusim_warp *warp, const struct gpusim_op *op) {
    return op->call2.compare(warp->regs + op->a, warp->regs + op->b);
}

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
SETP(u32)
SETP(s32)
SETP(u64) SETP(s64) SETP(float)

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
    PACKED(packed, float, high)

        HANDLER(testp) {
    uint32_t *d = warp->regs + op->d;
    *d = (*d & ~mask) | (test_float(warp, op) & mask);
    return GPUSIM_NEXT;
}

#define LOGIC(name, ...)                                                                                               \
    HANDLER(name##_pred) {                                                                                             \
        uint32_t a = warp->regs[op->a] ^ (op->flags & GPUSIM_NOT_A ? ~0u : 0);                                         \
        uint32_t b = warp->regs[op->b] ^ (op->flags & GPUSIM_NOT_B ? ~0u : 0), *d = warp->regs + op->d;                \
        (void)b;                                                                                                       \
        *d = (*d & ~mask) | ((__VA_ARGS__)&mask);                                                                      \
        return GPUSIM_NEXT;                                                                                            \
    }
LOGIC(and, a &b)
LOGIC(or, a | b)
LOGIC(xor, a ^ b) LOGIC(not, ~a)

#define ROW_SET(type, name)                                                                                            \
    {"setp." type, setp_##name}, { "set." type, set_##name }
    const struct gpusim_entry TABLE(ops_compare)[] = {
        ROW_SET("u16", u16),    ROW_SET("b16", u16),     ROW_SET("s16", s16),       ROW_SET("u32", u32),
        ROW_SET("b32", u32),    ROW_SET("s32", s32),     ROW_SET("u64", u64),       ROW_SET("b64", u64),
        ROW_SET("s64", s64),    ROW_SET("float", float), ROW_SET("packed", packed), {"testp", testp},
        {"and.pred", and_pred}, {"or.pred", or_pred},    {"xor.pred", xor_pred},    {"not.pred", not_pred},
        {NULL, NULL},
};
