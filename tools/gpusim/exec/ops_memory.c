/* ld, st, isspacep, cvta, prefetch. A load's registers are list[0..vec), or op->d when vec is 1. */
#include "exec/access.h"

#define LOAD_LANES(T, R)                                                                                               \
    do {                                                                                                               \
        for (uint32_t k = 0; k < op->vec; k++) {                                                                       \
            R *d = (R *)REGS32(op->vec > 1 ? op->list[k] : op->d);                                                     \
            const uintptr_t offset = k * sizeof(T);                                                                    \
            LANES(d[i] = (R) * (const volatile T *)(host[i] + offset));                                                \
        }                                                                                                              \
    } while (0)

/* All lanes next to each other: one copy. */
#define LOAD_ROW(T)                                                                                                    \
    (mask == UINT32_MAX && op->vec == 1 && host[31] - host[0] == 31 * sizeof(T) && consecutive(host, sizeof(T)))

static inline bool consecutive(const uintptr_t host[GPUSIM_WARP], uintptr_t step) {
    uintptr_t wrong = 0;
    _Pragma("omp simd reduction(| : wrong)") for (int i = 0; i < GPUSIM_WARP; i++) wrong |=
        host[i] ^ (host[0] + step * (uintptr_t)i);
    return !wrong;
}

static void load(struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask,
                 const uintptr_t host[GPUSIM_WARP]) {
    bool wide = op->flags & GPUSIM_REG64, is_signed = op->flags & GPUSIM_SIGNED;
    switch (op->size) {
    case 1:
        if (is_signed && wide)
            LOAD_LANES(int8_t, uint64_t);
        else if (wide)
            LOAD_LANES(uint8_t, uint64_t);
        else if (op->flags & GPUSIM_SIGNED && op->type == GPUSIM_T_B16)
            LOAD_LANES(int8_t, uint32_t);
        else if (is_signed)
            LOAD_LANES(int8_t, uint32_t);
        else
            LOAD_LANES(uint8_t, uint32_t);
        break;
    case 2:
        if (is_signed && wide)
            LOAD_LANES(int16_t, uint64_t);
        else if (wide)
            LOAD_LANES(uint16_t, uint64_t);
        else if (is_signed)
            LOAD_LANES(int16_t, uint32_t);
        else
            LOAD_LANES(uint16_t, uint32_t);
        break;
    case 4:
        if (is_signed && wide)
            LOAD_LANES(int32_t, uint64_t);
        else if (wide)
            LOAD_LANES(uint32_t, uint64_t);
        else if (LOAD_ROW(uint32_t))
            memcpy(REGS32(op->d), (const void *)host[0], 128);
        else
            LOAD_LANES(uint32_t, uint32_t);
        break;
    default:
        if (LOAD_ROW(uint64_t))
            memcpy(REGS64(op->d), (const void *)host[0], 256);
        else
            LOAD_LANES(uint64_t, uint64_t);
    }
    if (is_signed && op->type == GPUSIM_T_B16) /* 16-bit registers are held zero-extended */
        for (uint32_t k = 0; k < op->vec; k++) {
            uint32_t *d = REGS32(op->vec > 1 ? op->list[k] : op->d);
            LANES(d[i] &= 0xffff);
        }
}

HANDLER(ld) {
    uint64_t address[GPUSIM_WARP];
    uintptr_t host[GPUSIM_WARP];
    uint32_t bytes = (uint32_t)op->size * op->vec;
    gather_addresses(warp, op, op->a, op->imm, mask, address);
    int next = gpusim_resolve(warp, op, op->space, GPUSIM_ACCESS_LOAD, mask, bytes, bytes, address, host);
    if (next == GPUSIM_NEXT) load(warp, op, mask, host);
    return next;
}

/* Kernel parameters at a constant offset: the same for all lanes. The decoder has checked the bounds. */
HANDLER(ld_param) {
    const uint8_t *from = warp->launch->params + op->imm;
    for (uint32_t k = 0; k < op->vec; k++, from += op->size) {
        uint32_t reg = op->vec > 1 ? op->list[k] : op->d;
        uint64_t value = 0;
        memcpy(&value, from, op->size);
        if (op->flags & GPUSIM_SIGNED)
            value = (uint64_t)((int64_t)(value << (64 - 8 * op->size)) >> (64 - 8 * op->size));
        if (op->type == GPUSIM_T_B16) value &= 0xffff;
        if (op->flags & GPUSIM_REG64) {
            uint64_t *d = REGS64(reg);
            LANES(d[i] = value);
        } else {
            uint32_t *d = REGS32(reg);
            LANES(d[i] = (uint32_t)value);
        }
    }
    return GPUSIM_NEXT;
}

#define STORE_LANES(T, R)                                                                                              \
    do {                                                                                                               \
        for (uint32_t k = 0; k < op->vec; k++) {                                                                       \
            const R *s = (const R *)REGS32(op->vec > 1 ? op->list[k] : op->b);                                         \
            const uintptr_t offset = k * sizeof(T);                                                                    \
            EACH_LANE(*(volatile T *)(host[i] + offset) = (T)s[i])                                                     \
        }                                                                                                              \
    } while (0)
HANDLER(st) {
    uint64_t address[GPUSIM_WARP];
    uintptr_t host[GPUSIM_WARP];
    uint32_t bytes = (uint32_t)op->size * op->vec;
    gather_addresses(warp, op, op->a, op->imm, mask, address);
    int next = gpusim_resolve(warp, op, op->space, GPUSIM_ACCESS_STORE, mask, bytes, bytes, address, host);
    if (next) return next;
    bool wide = op->flags & GPUSIM_REG64;
    switch (op->size * 2 + wide) {
    case 2:
        STORE_LANES(uint8_t, uint32_t);
        break;
    case 3:
        STORE_LANES(uint8_t, uint64_t);
        break;
    case 4:
        STORE_LANES(uint16_t, uint32_t);
        break;
    case 5:
        STORE_LANES(uint16_t, uint64_t);
        break;
    case 8:
        if (LOAD_ROW(uint32_t))
            memcpy((void *)host[0], REGS32(op->b), 128);
        else
            STORE_LANES(uint32_t, uint32_t);
        break;
    case 9:
        STORE_LANES(uint32_t, uint64_t);
        break;
    default:
        STORE_LANES(uint64_t, uint64_t);
    }
    return GPUSIM_NEXT;
}

/* cvta: adds or takes off the window of op->space (shared, local, param); global and const addresses are generic
 * already. */
HANDLER(cvta) {
    uint64_t *d = REGS64(op->d);
    const uint64_t *a = REGS64(op->a);
    int64_t add = op->imm;
    LANES(d[i] = a[i] + (uint64_t)add);
    return GPUSIM_NEXT;
}
HANDLER(cvta_32) {
    uint32_t *d = REGS32(op->d);
    const uint32_t *a = REGS32(op->a);
    LANES(d[i] = a[i]);
    return GPUSIM_NEXT;
}

HANDLER(isspacep) {
    const uint64_t *a = REGS64(op->a);
    uint32_t r = 0, *d = warp->regs + op->d;
    EACH_LANE({
        uint64_t v = a[i];
        bool shared = v - GPUSIM_SHARED_WINDOW < GPUSIM_WINDOW_SPAN,
             local = v - GPUSIM_LOCAL_WINDOW < GPUSIM_WINDOW_SPAN;
        bool param = v - GPUSIM_PARAM_WINDOW < GPUSIM_WINDOW_SPAN, constant = false, yes;
        if (op->space == GPUSIM_CONST) {
            struct gpusim_allocation *record = gpusim_memory_find(v);
            constant = record && record->kind == GPUSIM_MEMORY_CONSTANT;
        }
        switch (op->space) {
        case GPUSIM_SHARED:
            yes = shared;
            break;
        case GPUSIM_LOCAL:
            yes = local;
            break;
        case GPUSIM_PARAM:
            yes = param;
            break;
        case GPUSIM_CONST:
            yes = constant;
            break;
        default:
            yes = !shared && !local && !param;
            break;
        }
        r |= (uint32_t)yes << i;
    })
    *d = (*d & ~mask) | r;
    return GPUSIM_NEXT;
}

HANDLER(nop) {
    (void)warp, (void)op, (void)mask;
    return GPUSIM_NEXT;
}

HANDLER(fence) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (warp->hooks && warp->hooks->fence) warp->hooks->fence(warp->hooks->context, warp, op, mask);
    return GPUSIM_NEXT;
}

const struct gpusim_entry TABLE(ops_memory)[] = {
    {"ld", ld},   {"ld.param", ld_param}, {"st", st},   {"cvta", cvta}, {"cvta.32", cvta_32}, {"isspacep", isspacep},
    {"nop", nop}, {"fence", fence},       {NULL, NULL},
};
