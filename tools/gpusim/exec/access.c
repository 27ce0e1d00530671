#include "exec/access.h"
#include "exec/heap.h"

#include <stdio.h>

static const char *verb(enum gpusim_access access) {
    switch (access) {
    case GPUSIM_ACCESS_STORE:
    case GPUSIM_ACCESS_ASYNC_TARGET:
        return "write";
    case GPUSIM_ACCESS_ATOMIC:
        return "atomic access";
    default:
        return "read";
    }
}

static int out_of_bounds(struct gpusim_warp *warp, const struct gpusim_op *op, enum gpusim_space space,
                         enum gpusim_access access, int lane, uint32_t bytes, uint64_t address) {
    struct gpusim_place place = {GPUSIM_REPORT_OUT_OF_BOUNDS, space, address, NULL};
    char where[160] = "no allocation is near";
    if (space == GPUSIM_GLOBAL || space == GPUSIM_CONST) {
        const struct gpusim_allocation *near = place.allocation = gpusim_memory_near(address, 1 << 20);
        uint64_t end = near ? near->base + near->bytes : 0;
        if (near && address < near->base)
            snprintf(where, sizeof where, "%llu bytes before it", (unsigned long long)(near->base - address));
        else if (near && address >= end)
            snprintf(where, sizeof where, "%llu bytes after its end", (unsigned long long)(address - end));
        else if (near) {
            if (near->freed) place.report = GPUSIM_REPORT_USE_AFTER_FREE;
            snprintf(where, sizeof where, "at its byte %llu%s", (unsigned long long)(address - near->base),
                     near->freed ? ", it was freed" : ", over its end");
        }
    } else {
        snprintf(where, sizeof where, "the %s has %u bytes",
                 space == GPUSIM_SHARED  ? "block"
                 : space == GPUSIM_LOCAL ? "thread"
                                         : "kernel",
                 space == GPUSIM_SHARED  ? warp->block->shared_bytes
                 : space == GPUSIM_LOCAL ? warp->local_bytes
                                         : warp->launch->function->param_bytes);
    }
    const char *name = place.allocation && place.allocation->name ? place.allocation->name : NULL;
    return gpusim_fault_at(warp, op, GPUSIM_FAULT_ADDRESS, lane, &place, "%s of %u bytes, %s%s%s%s", verb(access),
                           bytes, where, name ? " (variable " : "", name ? name : "", name ? ")" : "");
}

static int constant_written(struct gpusim_warp *warp, const struct gpusim_op *op, enum gpusim_access access, int lane,
                            uint64_t address, const struct gpusim_allocation *r) {
    struct gpusim_place place = {GPUSIM_REPORT_READ_ONLY, GPUSIM_CONST, address, r};
    return gpusim_fault_at(warp, op, GPUSIM_FAULT_ADDRESS, lane, &place, "%s of constant %s", verb(access), r->name);
}

/* Bytes of the heap: in a block that malloc gave and that was not freed? */
static int heap_access(struct gpusim_warp *warp, const struct gpusim_op *op, enum gpusim_access access, int lane,
                       uint32_t bytes, uint64_t address, const struct gpusim_allocation *r) {
    enum gpusim_heap_state state = gpusim_heap_look(r->heap, address, bytes);
    if (state == GPUSIM_HEAP_LIVE) return GPUSIM_NEXT;
    struct gpusim_place place = {state == GPUSIM_HEAP_FREED ? GPUSIM_REPORT_USE_AFTER_FREE
                                                            : GPUSIM_REPORT_OUT_OF_BOUNDS,
                                 GPUSIM_GLOBAL, address, r};
    return gpusim_fault_at(warp, op, GPUSIM_FAULT_ADDRESS, lane, &place, "%s of %u bytes of the device heap, %s",
                           verb(access), bytes,
                           state == GPUSIM_HEAP_FREED ? "which were freed" : "outside of what malloc gave");
}

/* Bytes of an allocation whose tensors are known (gpusim_tensors): in one of them? */
static int tensor_access(struct gpusim_warp *warp, const struct gpusim_op *op, enum gpusim_access access, int lane,
                         uint32_t bytes, uint64_t address, const struct gpusim_allocation *r) {
    const struct gpusim_launch *l = warp->launch;
    uint64_t end = 0;
    bool known = false;
    for (size_t i = 0; i < l->n_ranges; i++) {
        const struct gpusim_range *t = &l->ranges[i];
        if (address >= t->start && address + bytes <= t->start + t->bytes) return GPUSIM_NEXT;
        known |= t->start - r->base < r->bytes;
        if (t->start <= address && t->start + t->bytes > end) end = t->start + t->bytes;
    }
    if (!known) return GPUSIM_NEXT;
    struct gpusim_place place = {GPUSIM_REPORT_OUT_OF_BOUNDS, GPUSIM_GLOBAL, address, r};
    if (!end)
        return gpusim_fault_at(warp, op, GPUSIM_FAULT_ADDRESS, lane, &place, "%s of %u bytes, before the first tensor",
                               verb(access), bytes);
    return gpusim_fault_at(warp, op, GPUSIM_FAULT_ADDRESS, lane, &place,
                           "%s of %u bytes, %lld bytes after a tensor's end", verb(access), bytes,
                           (long long)(address - end));
}

static bool in_one_tensor(const struct gpusim_launch *l, uint64_t low, uint64_t end) {
    for (size_t i = 0; i < l->n_ranges; i++)
        if (low >= l->ranges[i].start && end <= l->ranges[i].start + l->ranges[i].bytes) return true;
    return false;
}

static int resolve_global(struct gpusim_warp *warp, const struct gpusim_op *op, enum gpusim_access access,
                          uint32_t mask, uint32_t bytes, uint64_t address[GPUSIM_WARP], uintptr_t host[GPUSIM_WARP],
                          struct gpusim_allocation **record) {
    uint64_t low = address[0], high = address[0];
    for (int i = 1; i < GPUSIM_WARP; i++) {
        low = address[i] < low ? address[i] : low;
        high = address[i] > high ? address[i] : high;
    }
    struct gpusim_allocation **recent = &warp->recent[access == GPUSIM_ACCESS_STORE];
    struct gpusim_allocation *r = *recent;
    if (!r || low < r->base || high + bytes > r->base + r->bytes || high + bytes < high) r = gpusim_memory_find(low);
    if (r && low >= r->base && high + bytes <= r->base + r->bytes && high + bytes > high) {
        *recent = *record = r;
        uintptr_t delta = (uintptr_t)r->host - (uintptr_t)r->base;
        _Pragma("omp simd") for (int i = 0; i < GPUSIM_WARP; i++) host[i] = (uintptr_t)address[i] + delta;
    } else {
        *record = NULL;
        EACH_LANE({
            r = gpusim_memory_find(address[i]);
            if (!r || address[i] + bytes > r->base + r->bytes)
                return out_of_bounds(warp, op, GPUSIM_GLOBAL, access, i, bytes, address[i]);
            if (r->kind == GPUSIM_MEMORY_CONSTANT && access != GPUSIM_ACCESS_LOAD)
                return constant_written(warp, op, access, i, address[i], r);
            if (r->heap && heap_access(warp, op, access, i, bytes, address[i], r)) return GPUSIM_FAULT;
            if (tensor_access(warp, op, access, i, bytes, address[i], r)) return GPUSIM_FAULT;
            host[i] = (uintptr_t)r->host + (uintptr_t)(address[i] - r->base);
        })
        for (int i = 0; i < GPUSIM_WARP; i++)
            if (!(mask >> i & 1)) host[i] = host[__builtin_ctz(mask)];
        return GPUSIM_NEXT;
    }
    if (warp->launch->n_ranges && !in_one_tensor(warp->launch, low, high + bytes))
        EACH_LANE(if (tensor_access(warp, op, access, i, bytes, address[i], r)) return GPUSIM_FAULT;)
    if (r->heap) EACH_LANE(if (heap_access(warp, op, access, i, bytes, address[i], r)) return GPUSIM_FAULT;)
    if (r->kind == GPUSIM_MEMORY_CONSTANT && access != GPUSIM_ACCESS_LOAD && access != GPUSIM_ACCESS_ASYNC_SOURCE)
        return constant_written(warp, op, access, __builtin_ctz(mask), address[__builtin_ctz(mask)], r);
    return GPUSIM_NEXT;
}

/* Shared, local and param memory: `bytes` from address must lie in a window of `limit` bytes at start (+ stride per
 * lane). */
static int resolve_window(struct gpusim_warp *warp, const struct gpusim_op *op, enum gpusim_space space,
                          enum gpusim_access access, uint32_t mask, uint32_t bytes, const uint64_t address[GPUSIM_WARP],
                          uintptr_t host[GPUSIM_WARP]) {
    uintptr_t start, stride = 0;
    uint64_t limit;
    if (space == GPUSIM_SHARED)
        start = (uintptr_t)warp->block->shared, limit = warp->block->shared_bytes;
    else if (space == GPUSIM_LOCAL)
        start = (uintptr_t)warp->local, limit = stride = warp->local_bytes;
    else
        start = (uintptr_t)warp->launch->params, limit = warp->launch->function->param_bytes;
    uint64_t high = 0;
    for (int i = 0; i < GPUSIM_WARP; i++) high = address[i] > high ? address[i] : high;
    if (high >= limit || high + bytes > limit)
        EACH_LANE(if (address[i] >= limit || address[i] + bytes > limit) return out_of_bounds(warp, op, space, access,
                                                                                              i, bytes, address[i]);)
    _Pragma("omp simd") for (int i = 0; i < GPUSIM_WARP; i++) host[i] =
        start + (uintptr_t)i * stride + (uintptr_t)address[i];
    return GPUSIM_NEXT;
}

static enum gpusim_space generic_space(uint64_t address) {
    if (address - GPUSIM_SHARED_WINDOW < GPUSIM_WINDOW_SPAN) return GPUSIM_SHARED;
    if (address - GPUSIM_LOCAL_WINDOW < GPUSIM_WINDOW_SPAN) return GPUSIM_LOCAL;
    if (address - GPUSIM_PARAM_WINDOW < GPUSIM_WINDOW_SPAN) return GPUSIM_PARAM;
    return GPUSIM_GLOBAL;
}
static uint64_t window_start(enum gpusim_space space) {
    return space == GPUSIM_SHARED  ? GPUSIM_SHARED_WINDOW
           : space == GPUSIM_LOCAL ? GPUSIM_LOCAL_WINDOW
           : space == GPUSIM_PARAM ? GPUSIM_PARAM_WINDOW
                                   : 0;
}

/* One space at a time: lanes of a generic access may lie in several. */
static int resolve_generic(struct gpusim_warp *warp, const struct gpusim_op *op, enum gpusim_access access,
                           uint32_t mask, uint32_t bytes, uint32_t align, uint64_t address[GPUSIM_WARP],
                           uintptr_t host[GPUSIM_WARP]) {
    while (mask) {
        int first = __builtin_ctz(mask);
        enum gpusim_space space = generic_space(address[first]);
        uint32_t part = 0;
        EACH_LANE(part |= (uint32_t)(generic_space(address[i]) == space) << i)
        uint64_t sub[GPUSIM_WARP];
        uintptr_t to[GPUSIM_WARP];
        for (int i = 0; i < GPUSIM_WARP; i++)
            sub[i] = (part >> i & 1 ? address[i] : address[first]) - window_start(space);
        int next = gpusim_resolve(warp, op, space, access, part, bytes, align, sub, to);
        if (next) return next;
        for (int i = 0; i < GPUSIM_WARP; i++)
            if (part >> i & 1) host[i] = to[i], address[i] = sub[i];
        mask &= ~part;
    }
    return GPUSIM_NEXT;
}

static int misaligned(struct gpusim_warp *warp, const struct gpusim_op *op, enum gpusim_space space,
                      enum gpusim_access access, int lane, uint32_t align, uint64_t address) {
    bool global = space == GPUSIM_GLOBAL || space == GPUSIM_CONST;
    struct gpusim_place place = {GPUSIM_REPORT_MISALIGNED, space, address, global ? gpusim_memory_find(address) : NULL};
    return gpusim_fault_at(warp, op, GPUSIM_FAULT_MISALIGNED, lane, &place, "%s: expected a multiple of %u",
                           verb(access), align);
}

int gpusim_resolve(struct gpusim_warp *warp, const struct gpusim_op *op, enum gpusim_space space,
                   enum gpusim_access access, uint32_t mask, uint32_t bytes, uint32_t align,
                   uint64_t address[GPUSIM_WARP], uintptr_t host[GPUSIM_WARP]) {
    struct gpusim_allocation *record = NULL;
    int next;
    if (space == GPUSIM_GENERIC) return resolve_generic(warp, op, access, mask, bytes, align, address, host);
    uint64_t low_bits = 0;
    _Pragma("omp simd reduction(| : low_bits)") for (int i = 0; i < GPUSIM_WARP; i++) low_bits |= address[i];
    if (low_bits & (align - 1))
        EACH_LANE(if (address[i] & (align - 1)) return misaligned(warp, op, space, access, i, align, address[i]);)
    if (space == GPUSIM_GLOBAL || space == GPUSIM_CONST)
        next = resolve_global(warp, op, access, mask, bytes, address, host, &record);
    else
        next = resolve_window(warp, op, space, access, mask, bytes, address, host);
    const struct gpusim_counting *counting = warp->launch->counting;
    if (next == GPUSIM_NEXT && counting) {
        struct gpusim_memory_event event = {access, space, mask, bytes, address, host, record};
        counting->memory(warp, op, &event);
    }
    if (next == GPUSIM_NEXT && warp->hooks && warp->hooks->memory) {
        struct gpusim_memory_event event = {access, space, mask, bytes, address, host, record};
        warp->hooks->memory(warp->hooks->context, warp, op, &event);
        if (__atomic_load_n(&warp->launch->stop, __ATOMIC_RELAXED)) return GPUSIM_FAULT;
    }
    return next;
}
