#include "exec/access.h"

#include <stdio.h>

static const char *const space_names[] = {"generic", "global", "shared", "local", "param", "const"};
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
    char near_text[256] = "";
    if (space == GPUSIM_GLOBAL) {
        struct gpusim_allocation *near = gpusim_memory_near(address, 1 << 20);
        if (near) {
            int64_t before = (int64_t)(near->base - address), after = (int64_t)(address - (near->base + near->bytes));
            char where[64];
            if (before > 0)
                snprintf(where, sizeof where, "%lld bytes before", (long long)before);
            else if (after >= 0)
                snprintf(where, sizeof where, "%lld bytes after", (long long)after);
            else
                snprintf(where, sizeof where, "at byte %llu of", (unsigned long long)(address - near->base));
            snprintf(near_text, sizeof near_text, ", %s %sallocation %llu%s%s of %llu bytes at 0x%llx", where,
                     near->freed ? "freed " : "", (unsigned long long)near->id, near->name ? " " : "",
                     near->name ? near->name : "", (unsigned long long)near->bytes, (unsigned long long)near->base);
        }
    } else if (space == GPUSIM_SHARED) {
        snprintf(near_text, sizeof near_text, ", the block has %u bytes", warp->block->shared_bytes);
    } else if (space == GPUSIM_LOCAL) {
        snprintf(near_text, sizeof near_text, ", the thread has %u bytes", warp->local_bytes);
    } else if (space == GPUSIM_PARAM) {
        snprintf(near_text, sizeof near_text, ", the kernel has %u bytes", warp->launch->function->param_bytes);
    }
    return gpusim_fault(warp, op, GPUSIM_FAULT_ADDRESS, lane, "out-of-bounds %s %s of %u bytes at 0x%llx%s",
                        space_names[space], verb(access), bytes, (unsigned long long)address, near_text);
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
                return gpusim_fault(warp, op, GPUSIM_FAULT_ADDRESS, i, "%s of constant %s", verb(access), r->name);
            host[i] = (uintptr_t)r->host + (uintptr_t)(address[i] - r->base);
        })
        for (int i = 0; i < GPUSIM_WARP; i++)
            if (!(mask >> i & 1)) host[i] = host[__builtin_ctz(mask)];
        return GPUSIM_NEXT;
    }
    if (r->kind == GPUSIM_MEMORY_CONSTANT && access != GPUSIM_ACCESS_LOAD && access != GPUSIM_ACCESS_ASYNC_SOURCE)
        return gpusim_fault(warp, op, GPUSIM_FAULT_ADDRESS, __builtin_ctz(mask), "%s of constant %s", verb(access),
                            r->name);
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

int gpusim_resolve(struct gpusim_warp *warp, const struct gpusim_op *op, enum gpusim_space space,
                   enum gpusim_access access, uint32_t mask, uint32_t bytes, uint32_t align,
                   uint64_t address[GPUSIM_WARP], uintptr_t host[GPUSIM_WARP]) {
    struct gpusim_allocation *record = NULL;
    int next;
    if (space == GPUSIM_GENERIC) return resolve_generic(warp, op, access, mask, bytes, align, address, host);
    uint64_t low_bits = 0;
    _Pragma("omp simd reduction(| : low_bits)") for (int i = 0; i < GPUSIM_WARP; i++) low_bits |= address[i];
    if (low_bits & (align - 1))
        EACH_LANE(if (address[i] & (align - 1)) return gpusim_fault(
                      warp, op, GPUSIM_FAULT_MISALIGNED, i, "misaligned %s %s at 0x%llx: expected a multiple of %u",
                      space_names[space], verb(access), (unsigned long long)address[i], align);)
    if (space == GPUSIM_GLOBAL || space == GPUSIM_CONST)
        next = resolve_global(warp, op, access, mask, bytes, address, host, &record);
    else
        next = resolve_window(warp, op, space, access, mask, bytes, address, host);
    if (next == GPUSIM_NEXT && warp->hooks && warp->hooks->memory) {
        struct gpusim_memory_event event = {access, space, mask, bytes, address, host, record};
        warp->hooks->memory(warp->hooks->context, warp, op, &event);
        if (__atomic_load_n(&warp->launch->stop, __ATOMIC_RELAXED)) return GPUSIM_FAULT;
    }
    return next;
}
