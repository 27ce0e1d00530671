/* atom and red. Other blocks run on other host threads, so each lane's operation is an atomic of the host. */
#include "exec/access.h"
#include "exec/codes.h"

/* add of a float type, for one lane: op->call has it for a warp. */
static uint64_t float_sum(const struct gpusim_op *op, uint64_t x, uint64_t y) {
    uint64_t a[GPUSIM_WARP], b[GPUSIM_WARP], d[GPUSIM_WARP];
    a[0] = x, b[0] = y, d[0] = 0;
    op->call.number(d, a, b, NULL, 1);
    return d[0];
}

static uint32_t new32(const struct gpusim_op *op, uint32_t old, uint32_t b, uint32_t c) {
    bool s = op->type == GPUSIM_T_S32;
    switch (op->code) {
    case GPUSIM_ATOM_ADD:
        return op->call.number ? (uint32_t)float_sum(op, old, b) : old + b;
    case GPUSIM_ATOM_MIN:
        return (s ? (int32_t)old < (int32_t)b : old < b) ? old : b;
    case GPUSIM_ATOM_MAX:
        return (s ? (int32_t)old > (int32_t)b : old > b) ? old : b;
    case GPUSIM_ATOM_INC:
        return old >= b ? 0 : old + 1;
    case GPUSIM_ATOM_DEC:
        return old == 0 || old > b ? b : old - 1;
    case GPUSIM_ATOM_AND:
        return old & b;
    case GPUSIM_ATOM_OR:
        return old | b;
    case GPUSIM_ATOM_XOR:
        return old ^ b;
    case GPUSIM_ATOM_EXCH:
        return b;
    default:
        return old == b ? c : old;
    }
}
static uint64_t new64(const struct gpusim_op *op, uint64_t old, uint64_t b, uint64_t c) {
    bool s = op->type == GPUSIM_T_S64;
    switch (op->code) {
    case GPUSIM_ATOM_ADD:
        return op->call.number ? float_sum(op, old, b) : old + b;
    case GPUSIM_ATOM_MIN:
        return (s ? (int64_t)old < (int64_t)b : old < b) ? old : b;
    case GPUSIM_ATOM_MAX:
        return (s ? (int64_t)old > (int64_t)b : old > b) ? old : b;
    case GPUSIM_ATOM_AND:
        return old & b;
    case GPUSIM_ATOM_OR:
        return old | b;
    case GPUSIM_ATOM_XOR:
        return old ^ b;
    case GPUSIM_ATOM_EXCH:
        return b;
    default:
        return old == b ? c : old;
    }
}
static uint16_t new16(const struct gpusim_op *op, uint16_t old, uint16_t b, uint16_t c) {
    if (op->code == GPUSIM_ATOM_ADD) return (uint16_t)float_sum(op, old, b);
    return op->code == GPUSIM_ATOM_EXCH ? b : old == b ? c : old;
}

/* Tries until nobody else has changed the word in between; `old` is what was there. */
#define SWAP_LOOP(T, at, old, value)                                                                                   \
    do {                                                                                                               \
        T *where_ = (T *)(at);                                                                                         \
        old = __atomic_load_n(where_, __ATOMIC_SEQ_CST);                                                               \
        for (;;) {                                                                                                     \
            T to_ = (value);                                                                                           \
            if (__atomic_compare_exchange_n(where_, &old, to_, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) break;      \
        }                                                                                                              \
    } while (0)

static void one_lane(struct gpusim_warp *warp, const struct gpusim_op *op, int i, uintptr_t at, uint32_t d,
                     uint32_t b) {
    if (op->size == 8) {
        uint64_t old, y = REGS64(b)[i], z = op->code == GPUSIM_ATOM_CAS ? REGS64(op->c)[i] : 0;
        SWAP_LOOP(uint64_t, at, old, new64(op, old, y, z));
        if (d) REGS64(d)[i] = old;
    } else if (op->size == 4) {
        uint32_t old, y = REGS32(b)[i], z = op->code == GPUSIM_ATOM_CAS ? REGS32(op->c)[i] : 0;
        SWAP_LOOP(uint32_t, at, old, new32(op, old, y, z));
        if (d) REGS32(d)[i] = old;
    } else {
        uint16_t old, y = (uint16_t)REGS32(b)[i], z = op->code == GPUSIM_ATOM_CAS ? (uint16_t)REGS32(op->c)[i] : 0;
        SWAP_LOOP(uint16_t, at, old, new16(op, old, y, z));
        if (d) REGS32(d)[i] = old;
    }
}

/* Lanes one after the other, from one drawn from the seed: the order is not specified. Without a destination (red)
 * op->d is 0. */
HANDLER(atom) {
    uint64_t address[GPUSIM_WARP];
    uintptr_t host[GPUSIM_WARP];
    gather_addresses(warp, op, op->a, op->imm, mask, address);
    int next = gpusim_resolve(warp, op, op->space, GPUSIM_ACCESS_ATOMIC, mask, op->size, op->size, address, host);
    if (next) return next;
    int first = (int)(gpusim_random(&warp->random) % GPUSIM_WARP);
    for (int k = 0; k < GPUSIM_WARP; k++) {
        int i = (first + k) % GPUSIM_WARP;
        if (mask >> i & 1) one_lane(warp, op, i, host[i], op->d, op->b);
    }
    return GPUSIM_NEXT;
}

const struct gpusim_entry TABLE(ops_atomic)[] = {{"atom", atom}, {NULL, NULL}};
