/* atom and red. Other blocks run on other host threads, so each lane's operation is an atomic of the host. */
#include "exec/access.h"
#include "exec/codes.h"
#include "numerics/half.h"

static uint32_t new32(const struct gpusim_op *op, uint32_t old, uint32_t b, uint32_t c) {
    bool s = op->type == GPUSIM_T_S32;
    switch (op->code) {
    case GPUSIM_ATOM_ADD:
        return op->type == GPUSIM_T_F32 ? float_bits(as_float(old) + as_float(b)) : old + b;
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
        return op->type == GPUSIM_T_F64 ? double_bits(as_double(old) + as_double(b)) : old + b;
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
static uint32_t add_half(int type, uint32_t x, uint32_t y) {
    bool bf16 = type == GPUSIM_T_BF16 || type == GPUSIM_T_BF16X2;
    return bf16 ? num_to_bf16(num_from_bf16(x) + num_from_bf16(y)) : num_to_f16(num_from_f16(x) + num_from_f16(y));
}
static uint32_t new_half2(const struct gpusim_op *op, uint32_t old, uint32_t b) {
    return add_half(op->type, old & 0xffff, b & 0xffff) | add_half(op->type, old >> 16, b >> 16) << 16;
}
static uint16_t new16(const struct gpusim_op *op, uint16_t old, uint16_t b, uint16_t c) {
    if (op->code == GPUSIM_ATOM_ADD) return (uint16_t)add_half(op->type, old, b);
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
        bool pair = op->type == GPUSIM_T_F16X2 || op->type == GPUSIM_T_BF16X2;
        SWAP_LOOP(uint32_t, at, old, pair ? new_half2(op, old, y) : new32(op, old, y, z));
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
