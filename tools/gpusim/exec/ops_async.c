/* cp.async and mbarrier. A copy is checked when issued and done when it is waited for, or earlier if the seed says so:
 * code that reads too early sees old data. */
#include "exec/access.h"
#include "exec/codes.h"

#include <stdlib.h>

static void land(struct gpusim_warp *warp, struct gpusim_async *copy, uint32_t mask) {
    mask &= copy->mask;
    if (!mask) return;
    EACH_LANE({
        memcpy((void *)copy->target[i], (const void *)copy->source[i], copy->source_bytes[i]);
        memset((uint8_t *)copy->target[i] + copy->source_bytes[i], 0, copy->bytes - copy->source_bytes[i]);
    })
    copy->mask &= ~mask;
    if (warp->hooks && warp->hooks->async_landed) warp->hooks->async_landed(warp->hooks->context, warp, copy, mask);
}

/* Lands the copies of `mask` that belong to all but the last `keep` committed groups (keep ~0: everything). */
static void land_groups(struct gpusim_warp *warp, uint32_t mask, uint32_t keep) {
    uint32_t kept = 0;
    for (uint32_t k = 0; k < warp->n_async; k++) {
        struct gpusim_async *copy = &warp->async[k];
        uint32_t done = keep == UINT32_MAX ? mask : 0;
        if (!done) EACH_LANE(done |= (uint32_t)(copy->group[i] + keep < warp->async_open[i]) << i)
        land(warp, copy, done);
        if (!copy->mask) continue;
        if (kept != k) warp->async[kept] = *copy;
        kept++;
    }
    warp->n_async = kept;
}

static bool room(struct gpusim_warp *warp) {
    if (warp->n_async < warp->n_async_reserved) return true;
    uint32_t reserved = warp->n_async_reserved ? warp->n_async_reserved * 2 : 16;
    struct gpusim_async *grown = realloc(warp->async, reserved * sizeof *grown);
    if (!grown) return false;
    warp->async = grown;
    warp->n_async_reserved = reserved;
    return true;
}

/* a: target (shared), list[0]: source, list[1]: source size if n_list > 1, c: predicate ignore-src if code is 1. imm
 * and base are the target's, op->ref holds the source's constant part. */
HANDLER(cp_async) {
    uint64_t target[GPUSIM_WARP], source[GPUSIM_WARP];
    uintptr_t to[GPUSIM_WARP], from[GPUSIM_WARP];
    uint32_t bytes = op->size, used = mask;
    struct gpusim_op source_op = *op;
    source_op.base = GPUSIM_BASE_NONE;
    source_op.flags |= GPUSIM_ADDR64;
    gather_addresses(warp, op, op->a, op->imm, mask, target);
    gather_addresses(warp, &source_op, op->list[0], (int64_t)(intptr_t)op->ref, mask, source);
    int next = gpusim_resolve(warp, op, GPUSIM_SHARED, GPUSIM_ACCESS_ASYNC_TARGET, mask, bytes, bytes, target, to);
    if (next) return next;
    if (!room(warp)) return gpusim_fault(warp, op, GPUSIM_FAULT_MEMORY, -1, "no memory for pending copies");
    struct gpusim_async *copy = &warp->async[warp->n_async];
    const uint32_t *size = op->n_list > 1 ? REGS32(op->list[1]) : NULL;
    uint32_t ignored = op->code ? warp->regs[op->c] ^ (op->flags & GPUSIM_NOT_C ? ~0u : 0) : 0;
    for (int i = 0; i < GPUSIM_WARP; i++) {
        uint32_t n = ignored >> i & 1 ? 0 : size ? size[i] : bytes;
        if (mask >> i & 1 && n > bytes)
            return gpusim_fault(warp, op, GPUSIM_FAULT_INSTRUCTION, i, "cp.async: source size %u, copy size %u", n,
                                bytes);
        copy->source_bytes[i] = n;
        if (!n) used &= ~(1u << i); /* nothing is read there: the address may be any */
    }
    if (used) {
        if (used != mask)
            for (int i = 0; i < GPUSIM_WARP; i++)
                if (!(used >> i & 1)) source[i] = source[__builtin_ctz(used)];
        /* A short source is checked as if whole: nothing but its alignment differs. */
        uint32_t least = bytes;
        for (int i = 0; size && i < GPUSIM_WARP; i++)
            if (used >> i & 1 && copy->source_bytes[i] < least) least = copy->source_bytes[i];
        next = gpusim_resolve(warp, op, GPUSIM_GLOBAL, GPUSIM_ACCESS_ASYNC_SOURCE, used, least, bytes, source, from);
        if (next) return next;
    }
    copy->op = op;
    copy->mask = mask;
    copy->bytes = bytes;
    for (int i = 0; i < GPUSIM_WARP; i++) {
        copy->source[i] = used >> i & 1 ? from[i] : to[i];
        copy->target[i] = to[i];
        copy->target_offset[i] = (uint32_t)target[i];
        copy->group[i] = warp->async_open[i];
    }
    warp->n_async++;
    if (gpusim_random(&warp->random) % 16 == 0) land(warp, copy, mask);
    return GPUSIM_NEXT;
}
HANDLER(cp_async_commit) {
    (void)op;
    EACH_LANE(warp->async_open[i]++;)
    return GPUSIM_NEXT;
}
HANDLER(cp_async_wait) {
    if (warp->hooks && warp->hooks->async_wait)
        warp->hooks->async_wait(warp->hooks->context, warp, mask, (uint32_t)op->imm);
    land_groups(warp, mask, (uint32_t)op->imm);
    return GPUSIM_NEXT;
}

/* An mbarrier object: 20 bits of pending arrivals, 20 of those expected in the next phase, and the phase's number
 * above. */
#define PENDING(s)                      ((uint32_t)((s)&0xfffff))
#define EXPECTED(s)                     ((uint32_t)((s) >> 20 & 0xfffff))
#define PHASE(s)                        ((s) >> 40)
#define STATE(pending, expected, phase) ((uint64_t)(pending) | (uint64_t)(expected) << 20 | (uint64_t)(phase) << 40)

static uint64_t arrive(uint64_t s, uint32_t count, uint32_t drop) {
    uint32_t pending = PENDING(s) - count, expected = EXPECTED(s) - drop;
    return pending ? STATE(pending, expected, PHASE(s)) : STATE(expected, expected, PHASE(s) + 1);
}

/* op->code as above; a address, b count, state or parity (0: count 1), d result (0: none). */
HANDLER(mbarrier) {
    uint64_t address[GPUSIM_WARP];
    uintptr_t host[GPUSIM_WARP];
    gather_addresses(warp, op, op->a, op->imm, mask, address);
    int next = gpusim_resolve(warp, op, op->space, GPUSIM_ACCESS_BARRIER, mask, 8, 8, address, host);
    if (next) return next;
    if (op->code >= GPUSIM_MBARRIER_ASYNC_ARRIVE) land_groups(warp, mask, UINT32_MAX);
    EACH_LANE({
        uint64_t *object = (uint64_t *)host[i], old = *object;
        uint32_t count = op->b ? REGS32(op->b)[i] : 1;
        switch (op->code) {
        case GPUSIM_MBARRIER_INIT:
            *object = STATE(count, count, 0);
            break;
        case GPUSIM_MBARRIER_INVAL:
            *object = ~0ull;
            break;
        case GPUSIM_MBARRIER_ARRIVE:
        case GPUSIM_MBARRIER_ARRIVE_DROP:
        case GPUSIM_MBARRIER_ASYNC_ARRIVE_NOINC:
            if (!count || count > PENDING(old))
                return gpusim_fault(warp, op, GPUSIM_FAULT_INSTRUCTION, i, "mbarrier: %u arrivals, %u are pending",
                                    count, PENDING(old));
            *object = arrive(old, count, op->code == GPUSIM_MBARRIER_ARRIVE_DROP ? count : 0);
            if (op->d) REGS64(op->d)[i] = old;
            break;
        case GPUSIM_MBARRIER_TEST_WAIT:
        case GPUSIM_MBARRIER_TEST_PARITY: {
            bool done = op->code == GPUSIM_MBARRIER_TEST_WAIT ? PHASE(old) != PHASE(REGS64(op->b)[i])
                                                              : (PHASE(old) & 1) != (REGS32(op->b)[i] & 1);
            warp->regs[op->d] = (warp->regs[op->d] & ~(1u << i)) | (uint32_t)done << i;
            break;
        }
        default:
            break;
        }
    })
    return GPUSIM_NEXT;
}
HANDLER(mbarrier_pending) {
    uint32_t *d = REGS32(op->d);
    const uint64_t *a = REGS64(op->a);
    LANES(d[i] = PENDING(a[i]));
    return GPUSIM_NEXT;
}

const struct gpusim_entry TABLE(ops_async)[] = {
    {"cp.async", cp_async}, {"cp.async.commit", cp_async_commit},   {"cp.async.wait", cp_async_wait},
    {"mbarrier", mbarrier}, {"mbarrier.pending", mbarrier_pending}, {NULL, NULL},
};
