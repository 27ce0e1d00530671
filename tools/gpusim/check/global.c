/* Global and pinned memory: bytes that nothing wrote, blocks of a launch that race, streams that are not in order. */
#include "check/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CELL64_SPLIT        (1ull << 33)
#define NUMBER(cell)        ((uint32_t)((cell) >> 34))
#define BLOCK(cell)         ((uint32_t)(cell))
#define CELL(number, block) ((uint64_t)(number) << 34 | (block))

static void shadow_free(void *pointer) {
    struct global_shadow *s = pointer;
    if (s->memory) munmap(s->memory, s->memory_bytes);
    free(s);
}

/* Address space only: pages come when they are touched. */
void check_memory_new(struct gpusim_allocation *a) {
    struct global_shadow *s = calloc(1, sizeof *s);
    uint64_t granules = a->bytes / 16 + 1;
    bool all = gpusim_settings()->checks == GPUSIM_CHECKS_ALL;
    if (!s) return;
    s->memory_bytes = granules * (2 + (all ? 16 + 256 : 0));
    s->memory = mmap(NULL, s->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->memory == MAP_FAILED) {
        gpusim_say("allocation %llu of %llu bytes is not checked: no address space", (unsigned long long)a->id,
                   (unsigned long long)a->bytes);
        free(s);
        return;
    }
    if (all) {
        s->writes = s->memory;
        s->reads = s->writes + granules;
        s->byte_writes = s->reads + granules;
        s->byte_reads = s->byte_writes + granules * 16;
        s->written = (uint16_t *)(s->byte_reads + granules * 16);
    } else {
        s->written = s->memory;
    }
    if (a->kind != GPUSIM_MEMORY_DEVICE && a->kind != GPUSIM_MEMORY_HEAP) { /* the host or the module has filled it */
        if (!all) {
            munmap(s->memory, s->memory_bytes);
            free(s);
            return;
        }
        s->written = NULL;
    }
    a->shadow = s;
    a->shadow_free = shadow_free;
}

void check_mark_written(struct global_shadow *s, uint64_t offset, uint64_t bytes) {
    if (!s || !s->written || !bytes) return;
    uint64_t first = offset / 16, last = (offset + bytes - 1) / 16;
    uint16_t head = (uint16_t)(0xffffu << (offset & 15)),
             tail = (uint16_t)(0xffffu >> (15 - ((offset + bytes - 1) & 15)));
    if (first == last) {
        s->written[first] |= head & tail;
        return;
    }
    s->written[first] |= head;
    memset(&s->written[first + 1], 0xff, (last - first - 1) * 2);
    s->written[last] |= tail;
}

static bool conflict(struct global_access *x, uint64_t other, bool wrote, enum gpusim_report_kind kind) {
    x->other = other;
    x->other_wrote = wrote;
    x->conflict = kind;
    return false;
}

/* One cell of each kind; false: conflict. */
static bool look(struct global_access *x, uint64_t *writes, uint64_t *reads) {
    const struct gpusim_operation *op = x->operation;
    uint64_t w = __atomic_load_n(writes, __ATOMIC_RELAXED), r = __atomic_load_n(reads, __ATOMIC_RELAXED);
    if (NUMBER(w) == op->number) {
        if (BLOCK(w) != x->block && BLOCK(w) != GLOBAL_EXEMPT && !x->exempt)
            return conflict(x, w, true, GPUSIM_REPORT_RACE_GLOBAL);
    } else if (NUMBER(w) > op->horizon && !check_ordered(op, NUMBER(w))) {
        return conflict(x, w, true, GPUSIM_REPORT_STREAM_ORDER);
    }
    uint64_t mine = CELL(op->number, x->exempt ? GLOBAL_EXEMPT : x->block);
    if (!x->write) {
        if (r == mine || r == CELL(op->number, GLOBAL_MANY)) return true;
        bool here = NUMBER(r) == op->number;
        if (x->exempt && here) return true;
        if (here && BLOCK(r) != GLOBAL_EXEMPT) mine = CELL(op->number, GLOBAL_MANY);
        __atomic_store_n(reads, mine, __ATOMIC_RELAXED);
        return true;
    }
    if (NUMBER(r) == op->number) {
        if (BLOCK(r) != x->block && BLOCK(r) != GLOBAL_EXEMPT && !x->exempt)
            return conflict(x, r, false, GPUSIM_REPORT_RACE_GLOBAL);
    } else if (NUMBER(r) > op->horizon && !check_ordered(op, NUMBER(r))) {
        return conflict(x, r, false, GPUSIM_REPORT_STREAM_ORDER);
    }
    if (w != mine && !(x->exempt && NUMBER(w) == op->number)) __atomic_store_n(writes, mine, __ATOMIC_RELAXED);
    return true;
}

static void split(struct global_shadow *s, uint32_t granule) {
    uint64_t w = s->writes[granule], r = s->reads[granule];
    for (uint32_t i = 0; i < 16; i++) {
        __atomic_store_n(&s->byte_writes[granule * 16ull + i], w, __ATOMIC_RELAXED);
        __atomic_store_n(&s->byte_reads[granule * 16ull + i], r, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&s->writes[granule], w | CELL64_SPLIT, __ATOMIC_RELAXED);
}

bool check_global_piece(struct global_access *x, struct global_shadow *s, struct piece piece) {
    uint64_t *w = &s->writes[piece.granule], *r = &s->reads[piece.granule];
    if (!(__atomic_load_n(w, __ATOMIC_RELAXED) & CELL64_SPLIT)) {
        if (piece.bytes == 0xffff) return look(x, w, r);
        split(s, piece.granule);
    }
    uint64_t *bw = &s->byte_writes[piece.granule * 16ull], *br = &s->byte_reads[piece.granule * 16ull];
    for (uint32_t rest = piece.bytes; rest; rest &= rest - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(rest);
        if (!look(x, bw + i, br + i)) return false;
    }
    if (piece.bytes == 0xffff && x->write && !x->exempt) { /* uniform again */
        __atomic_store_n(r, *br, __ATOMIC_RELAXED);
        bool same = true;
        for (int i = 1; i < 16; i++) same &= bw[i] == bw[0] && br[i] == br[0];
        if (same) __atomic_store_n(w, bw[0], __ATOMIC_RELAXED);
    }
    return true;
}

static const char *verb(const struct gpusim_memory_event *event) {
    return event->access == GPUSIM_ACCESS_STORE    ? "write"
           : event->access == GPUSIM_ACCESS_ATOMIC ? "atomic access"
                                                   : "read";
}

static void report(struct gpusim_warp *warp, const struct gpusim_op *op, const struct gpusim_memory_event *event,
                   const struct gpusim_allocation *a, const struct global_access *x, struct piece piece) {
    int lane = check_lane_of(event, a->base, piece);
    struct gpusim_place place = {x->conflict, GPUSIM_GLOBAL, event->address[lane], a};
    const uint32_t *grid = warp->launch->grid;
    uint32_t b = BLOCK(x->other);
    char who[256];
    if (x->conflict == GPUSIM_REPORT_STREAM_ORDER) {
        check_describe(NUMBER(x->other), who, sizeof who);
        gpusim_fault_at(warp, op, GPUSIM_FAULT_CHECK, lane, &place,
                        "%s of %u bytes, nothing orders it after %s, which %s them", verb(event), event->bytes, who,
                        x->other_wrote ? "wrote" : "read");
        return;
    }
    if (b == GLOBAL_MANY)
        snprintf(who, sizeof who, "several blocks");
    else
        snprintf(who, sizeof who, "block (%u,%u,%u)", b % grid[0], b / grid[0] % grid[1], b / grid[0] / grid[1]);
    gpusim_fault_at(warp, op, GPUSIM_FAULT_CHECK, lane, &place, "%s of %u bytes, %s of the same launch %s them",
                    verb(event), event->bytes, who, x->other_wrote ? "wrote" : "read");
}

static bool check_written(struct gpusim_warp *warp, const struct gpusim_op *op, const struct gpusim_memory_event *event,
                          const struct gpusim_allocation *a, uint16_t *written, struct piece piece) {
    uint16_t *at = &written[piece.granule];
    uint32_t missing = piece.bytes & ~(uint32_t)__atomic_load_n(at, __ATOMIC_RELAXED);
    if (!missing) return true;
    if (gpusim_settings()->sample) return true; /* whoever should have written it may not have run */
    if (event->access == GPUSIM_ACCESS_STORE) {
        __atomic_fetch_or(at, (uint16_t)piece.bytes, __ATOMIC_RELAXED);
        return true;
    }
    struct piece first = {piece.granule, missing};
    int lane = check_lane_of(event, a->base, first);
    struct gpusim_place place = {GPUSIM_REPORT_UNINITIALISED, GPUSIM_GLOBAL, event->address[lane], a};
    gpusim_fault_at(warp, op, GPUSIM_FAULT_CHECK, lane, &place, "%s of %u bytes that nothing has written", verb(event),
                    event->bytes);
    return false;
}

static bool in_one(struct gpusim_warp *warp, const struct gpusim_op *op, const struct gpusim_memory_event *event,
                   uint32_t lanes, struct gpusim_allocation *a) {
    struct global_shadow *s = a->shadow;
    struct piece pieces[GPUSIM_WARP];
    if (!s) return true;
    bool exempt = event->access == GPUSIM_ACCESS_ATOMIC || op->flags & GPUSIM_VOLATILE;
    struct global_access x = {.operation = warp->launch->check,
                              .block = (uint32_t)warp->block->number,
                              .write = event->access == GPUSIM_ACCESS_STORE || event->access == GPUSIM_ACCESS_ATOMIC,
                              .exempt = exempt};
    uint32_t n = check_pieces(event, lanes, a->base, pieces);
    bool order = x.operation && s->writes;
    for (uint32_t p = 0; p < n; p++) {
        if (s->written && !check_written(warp, op, event, a, s->written, pieces[p])) return false;
        if (!order || check_global_piece(&x, s, pieces[p])) continue;
        if (x.conflict == GPUSIM_REPORT_RACE_GLOBAL) {
            uint32_t other = BLOCK(x.other);
            if (x.write && check_same_value(warp, op, event, a->base, pieces[p])) continue;
            if (other != GLOBAL_MANY && check_fenced(warp->launch, other, x.block)) continue;
            if (other == GLOBAL_MANY && check_fenced(warp->launch, GLOBAL_MANY, x.block)) continue;
        }
        report(warp, op, event, a, &x, pieces[p]);
        return false;
    }
    return true;
}

void check_global(struct gpusim_warp *warp, const struct gpusim_op *op, const struct gpusim_memory_event *event) {
    bool all = gpusim_settings()->checks == GPUSIM_CHECKS_ALL;
    if (all) check_acquired(warp);
    if (all && (event->access == GPUSIM_ACCESS_ATOMIC || op->flags & GPUSIM_VOLATILE)) check_signal(warp, op);
    if (all && !check_lanes_agree(warp, op, event)) return;
    if (event->record) {
        in_one(warp, op, event, event->mask, event->record);
        return;
    }
    for (uint32_t rest = event->mask; rest;) {
        struct gpusim_allocation *a = gpusim_memory_find(event->address[__builtin_ctz(rest)]);
        uint32_t lanes = 0;
        for (uint32_t r = rest; r; r &= r - 1)
            if (event->address[__builtin_ctz(r)] - a->base < a->bytes) lanes |= r & -r;
        if (!in_one(warp, op, event, lanes, a)) return;
        rest &= ~lanes;
    }
}

static void report_range(const struct gpusim_operation *operation, const struct gpusim_allocation *a, uint64_t address,
                         const struct global_access *x) {
    struct gpusim_report r = {.kind = GPUSIM_REPORT_STREAM_ORDER,
                              .space = "global",
                              .address = address,
                              .allocation = a->id,
                              .allocation_base = a->base,
                              .allocation_bytes = a->bytes};
    char me[128], other[128];
    check_describe(operation->number, me, sizeof me);
    check_describe(NUMBER(x->other), other, sizeof other);
    snprintf(r.what, sizeof r.what, "%s %s, nothing orders it after %s, which %s", me, x->write ? "writes" : "reads",
             other, x->other_wrote ? "wrote there" : "read there");
    gpusim_report_emit(&r);
}

bool gpusim_check_range(const struct gpusim_operation *operation, uint64_t address, uint64_t bytes, bool write) {
    struct gpusim_allocation *a = gpusim_memory_find(address);
    struct global_shadow *s = a ? a->shadow : NULL;
    if (!s || !s->writes || !operation) return true;
    struct global_access x = {.operation = operation, .block = GLOBAL_HOST, .write = write};
    uint64_t offset = address - a->base, end = offset + bytes;
    while (offset < end) {
        uint64_t granule = offset / 16, stop = granule * 16 + 16 < end ? granule * 16 + 16 : end;
        uint32_t mask = (uint32_t)((1u << (stop - offset)) - 1) << (offset & 15);
        if (!check_global_piece(&x, s, (struct piece){(uint32_t)granule, mask})) {
            report_range(operation, a, a->base + offset, &x);
            return false;
        }
        offset = stop;
    }
    return true;
}

void gpusim_check_copied(uint64_t target, uint64_t source, uint64_t bytes) {
    struct gpusim_allocation *to = gpusim_memory_find(target), *from = source ? gpusim_memory_find(source) : NULL;
    struct global_shadow *t = to ? to->shadow : NULL, *f = from ? from->shadow : NULL;
    if (!t || !t->written) return;
    uint64_t at = target - to->base;
    if (!f || !f->written) {
        check_mark_written(t, at, bytes);
        return;
    }
    uint64_t start = source - from->base;
    for (uint64_t i = 0; i < bytes;) {
        bool whole = bytes - i >= 16 && !((at + i) & 15) && !((start + i) & 15);
        if (whole) {
            t->written[(at + i) / 16] = f->written[(start + i) / 16];
            i += 16;
            continue;
        }
        uint16_t bit = (uint16_t)(1u << ((at + i) & 15));
        if (f->written[(start + i) / 16] >> ((start + i) & 15) & 1)
            t->written[(at + i) / 16] |= bit;
        else
            t->written[(at + i) / 16] &= (uint16_t)~bit;
        i++;
    }
}
