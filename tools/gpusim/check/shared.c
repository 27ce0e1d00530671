/* Shared memory: bytes that nothing wrote, races between warps and between lanes, copies that were not waited for.
 *
 * Each warp knows up to which time it has met every other warp (barriers, mbarriers). An access conflicts with an
 * earlier one when one of them writes and the earlier one's time is not known. Within a warp, lanes meet at barriers
 * and in bar.warp.sync only. */
#include "check/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct access {
    struct gpusim_warp *warp;
    const struct gpusim_op *op;
    const struct gpusim_memory_event *event;
    struct block_check *block;
    struct warp_check *mine;
    uint32_t me;
    bool writes, exempt, pending, settle;
    struct piece now; /* what is being looked at */
    /* Within the warp: pieces whose lanes must be compared. */
    struct piece same_warp[GPUSIM_WARP];
    uint32_t same_warp_time[GPUSIM_WARP];
    uint32_t n_same_warp;
    bool after_write; /* same_warp: against writes; else against reads */
    bool failed;
    uint32_t settle_time; /* of the write that a copy becomes */
};

static void earlier(const struct access *x, const struct cell *cell, char *out, size_t n) {
    const struct gpusim_function *function = x->warp->launch->function;
    struct gpusim_report at = {.line = 0};
    out[0] = 0;
    if (cell->write_op == UINT16_MAX || cell->write_op >= function->n_ops) return;
    const struct gpusim_op *op = &function->ops[cell->write_op];
    bool known = gpusim_source(function, op, &at);
    const char *slash = strrchr(at.file, '/');
    if (known)
        snprintf(out, n, " at PTX line %u (%.80s:%u)", op->line, slash ? slash + 1 : at.file, at.line);
    else
        snprintf(out, n, " at PTX line %u", op->line);
}

static void report(struct access *x, enum gpusim_report_kind kind, int lane, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void report(struct access *x, enum gpusim_report_kind kind, int lane, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    x->failed = true;
    struct gpusim_place place = {kind, GPUSIM_SHARED,
                                 (uint64_t)x->now.granule * 16 + (uint32_t)__builtin_ctz(x->now.bytes), NULL};
    gpusim_fault_at(x->warp, x->op, GPUSIM_FAULT_CHECK, lane, &place, "%s", text);
}

static const char *verb(const struct access *x) {
    return x->pending ? "cp.async writes" : x->exempt && x->writes ? "atomic access" : x->writes ? "write" : "read";
}

static void conflict(struct access *x, const struct cell *cell, bool wrote, uint32_t other) {
    char where[200] = "";
    if (wrote) earlier(x, cell, where, sizeof where);
    int lane = check_lane_of(x->event, 0, x->now);
    if (wrote && cell->flags & CELL_PENDING)
        report(x, GPUSIM_REPORT_ASYNC_UNWAITED, lane,
               "%s bytes of a cp.async of warp %u%s that it has not waited for (cp.async.wait_group)", verb(x), other,
               where);
    else
        report(x, GPUSIM_REPORT_RACE_SHARED, lane, "%s by warp %u, no barrier after the %s of warp %u%s", verb(x),
               x->me, wrote ? "write" : "read", other, where);
}

static void keep_for_lanes(struct access *x, bool after_write, uint32_t time) {
    if (x->n_same_warp && x->after_write != after_write) return;
    if (x->n_same_warp == GPUSIM_WARP) return;
    x->after_write = after_write;
    x->same_warp_time[x->n_same_warp] = time;
    x->same_warp[x->n_same_warp++] = x->now;
}

static void check_cell(struct access *x, const struct cell *cell) {
    const struct block_check *b = x->block;
    if (cell->flags & CELL_PENDING) {
        conflict(x, cell, true, cell->writer);
        return;
    }
    bool both_atomic = x->exempt && cell->flags & CELL_ATOMIC;
    if (cell->write_time >= b->block_time && !both_atomic) {
        if (cell->writer == x->me) {
            if (cell->write_time >= x->mine->lanes_time) keep_for_lanes(x, true, cell->write_time);
        } else if (cell->write_time >= x->mine->known[cell->writer] &&
                   !(x->writes && check_same_value(x->warp, x->op, x->event, 0, x->now))) {
            conflict(x, cell, true, cell->writer);
            return;
        }
    }
    if (!x->writes || cell->read_time < b->block_time || (x->exempt && cell->flags & CELL_RELAXED)) return;
    for (uint32_t rest = cell->readers; rest; rest &= rest - 1) {
        uint32_t u = (uint32_t)__builtin_ctz(rest);
        if (u == x->me) {
            if (cell->read_time >= x->mine->lanes_time) keep_for_lanes(x, false, cell->read_time);
        } else if (cell->read_time >= x->mine->known[u] && !check_same_value(x->warp, x->op, x->event, 0, x->now)) {
            conflict(x, cell, false, u);
            return;
        }
    }
}

static void update_cell(struct access *x, struct cell *cell) {
    uint32_t now = x->block->time, bit = 1u << x->me;
    if (x->writes) {
        const struct gpusim_op *ops = x->warp->launch->function->ops;
        uint64_t index = (uint64_t)(x->op - ops);
        *cell = (struct cell){.write_time = now,
                              .write_op = x->op >= ops && index < x->warp->launch->function->n_ops && index < UINT16_MAX
                                              ? (uint16_t)index
                                              : UINT16_MAX,
                              .writer = (uint8_t)x->me,
                              .flags = (uint8_t)((x->exempt ? CELL_ATOMIC : 0) | (x->pending ? CELL_PENDING : 0))};
        return;
    }
    if (cell->read_time < x->block->block_time) {
        cell->readers = bit;
        cell->read_time = now;
        cell->flags = (uint8_t)((cell->flags & ~CELL_RELAXED) | (x->exempt ? CELL_RELAXED : 0));
        return;
    }
    if (!x->exempt) cell->flags &= (uint8_t)~CELL_RELAXED;
    if (cell->read_time >= x->mine->known_most) {
        cell->readers |= bit;
        return;
    }
    /* Readers that are done for this warp need not be remembered: who comes after it comes after them. */
    uint32_t others = 0;
    for (uint32_t rest = cell->readers & ~bit; rest; rest &= rest - 1) {
        uint32_t u = (uint32_t)__builtin_ctz(rest);
        if (cell->read_time >= x->mine->known[u]) others |= 1u << u;
    }
    if (!others) cell->read_time = now;
    cell->readers = others | bit;
}

static void visit(struct access *x, struct cell *cell, uint32_t granule, uint32_t bytes) {
    x->now = (struct piece){granule, bytes};
    if (x->settle) { /* the copy is waited for: from now on a write of its warp */
        if (cell->flags & CELL_PENDING && cell->writer == x->me) {
            cell->flags &= (uint8_t)~CELL_PENDING;
            cell->write_time = x->settle_time;
        }
        return;
    }
    if (!x->failed) check_cell(x, cell);
    if (!x->failed) update_cell(x, cell);
}

static bool any_pending(const struct block_check *b, uint32_t granule) {
    for (uint32_t k = 0; k < 4; k++) {
        const struct cell *c4 = &b->cell4[granule * 4 + k];
        if (!(c4->flags & CELL_SPLIT) && c4->flags & CELL_PENDING) return true;
        for (uint32_t i = 0; c4->flags & CELL_SPLIT && i < 4; i++)
            if (b->cell1[granule * 16 + k * 4 + i].flags & CELL_PENDING) return true;
    }
    return false;
}

static void split(struct cell *cell, struct cell *parts) {
    for (int i = 0; i < 4; i++) parts[i] = *cell;
    cell->flags |= CELL_SPLIT;
}

static void visit_word(struct access *x, uint32_t granule, uint32_t k, uint32_t bytes) {
    struct block_check *b = x->block;
    struct cell *cell = &b->cell4[granule * 4 + k], *parts = &b->cell1[(granule * 4 + k) * 4];
    if (!(cell->flags & CELL_SPLIT)) {
        if (bytes == 15) {
            visit(x, cell, granule, bytes << (4 * k));
            return;
        }
        split(cell, parts);
    }
    for (uint32_t i = 0; i < 4; i++)
        if (bytes >> i & 1) visit(x, &parts[i], granule, 1u << (4 * k + i));
    if (bytes == 15 && x->writes && !x->settle && !x->failed) *cell = parts[0];
}

static void visit_granule(struct access *x, struct piece piece) {
    struct block_check *b = x->block;
    struct cell *cell = &b->cell16[piece.granule], *parts = &b->cell4[piece.granule * 4];
    if (cell->flags & CELL_SPLIT && cell->write_time < b->block_time && !any_pending(b, piece.granule))
        *cell = (struct cell){0};
    if (!(cell->flags & CELL_SPLIT)) {
        if (piece.bytes == 0xffff) {
            visit(x, cell, piece.granule, piece.bytes);
            return;
        }
        bool stale =
            cell->write_time < b->block_time && cell->read_time < b->block_time && !(cell->flags & CELL_PENDING);
        if (stale) *cell = (struct cell){0};
        split(cell, parts);
    }
    cell->write_time = b->time;
    for (uint32_t k = 0; k < 4; k++) {
        uint32_t bytes = piece.bytes >> (4 * k) & 15;
        if (bytes) visit_word(x, piece.granule, k, bytes);
    }
    if (piece.bytes == 0xffff && x->writes && !x->settle && !x->failed) *cell = parts[0];
}

/* Lanes of this warp that touched the bytes before and have not met the lane that touches them now. What
 * cooperative_groups does in its own, reserved memory is left alone: its lanes read a result and then write there. */
static void compare_lanes(struct access *x) {
    if (x->event->address[__builtin_ctz(x->event->mask)] >= x->warp->launch->reserved_base) return;
    const uint8_t *before = x->after_write ? x->block->write_lane : x->block->read_lane;
    const struct gpusim_memory_event *e = x->event;
    for (uint32_t p = 0; p < x->n_same_warp && !x->failed; p++) {
        x->now = x->same_warp[p];
        for (uint32_t rest = e->mask; rest && !x->failed; rest &= rest - 1) {
            uint32_t lane = (uint32_t)__builtin_ctz(rest);
            for (uint32_t k = 0; k < e->bytes; k++) {
                uint64_t at = e->address[lane] + k;
                if (at >> 4 != x->now.granule || !(x->now.bytes >> (at & 15) & 1)) continue;
                uint8_t other = before[at];
                if (other == CHECK_NO_LANE || (other == lane && e->access != GPUSIM_ACCESS_MATRIX)) continue;
                if (x->mine->pair_time && other < GPUSIM_WARP && x->mine->pair_time[lane][other] > x->same_warp_time[p])
                    continue;
                if (x->writes && check_same_value(x->warp, x->op, e, 0, x->now)) continue;
                x->now = (struct piece){(uint32_t)(at >> 4), 1u << (at & 15)};
                char who[24];
                snprintf(who, sizeof who, other == CHECK_MANY ? "several lanes" : "lane %u", other);
                report(x, GPUSIM_REPORT_RACE_WARP, (int)lane,
                       "%s by lane %u, no __syncwarp after the %s of %s of its warp", verb(x), lane,
                       x->after_write ? "write" : "read", who);
                break;
            }
        }
    }
}

static void note_lanes(struct access *x) {
    const struct gpusim_memory_event *e = x->event;
    uint8_t *lanes = x->writes ? x->block->write_lane : x->block->read_lane;
    uint32_t wrong = 0;
    for (uint32_t rest = e->mask; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest), id = e->access == GPUSIM_ACCESS_MATRIX ? CHECK_NO_LANE : lane;
        uint64_t word = id * 0x0101010101010101ull;
        uint8_t *at = lanes + e->address[lane];
        if (e->bytes == 4)
            memcpy(at, &word, 4);
        else if (e->bytes == 16)
            memcpy(at, &word, 8), memcpy(at + 8, &word, 8);
        else if (e->bytes == 8)
            memcpy(at, &word, 8);
        else
            memset(at, (int)id, e->bytes);
    }
    if (e->access == GPUSIM_ACCESS_MATRIX) return;
    for (uint32_t rest = e->mask; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        wrong |= lanes[e->address[lane]] ^ lane;
    }
    if (!wrong || x->writes) return;
    for (uint32_t rest = e->mask; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        if (lanes[e->address[lane]] != lane) memset(lanes + e->address[lane], CHECK_MANY, e->bytes);
    }
}

static void note_pending(struct access *x) {
    struct warp_check *mine = x->mine;
    if (mine->n_pending == mine->n_reserved) {
        uint32_t reserved = mine->n_reserved ? mine->n_reserved * 2 : 32;
        struct pending_copy *grown = realloc(mine->pending, reserved * sizeof *grown);
        if (!grown) {
            gpusim_fault(x->warp, x->op, GPUSIM_FAULT_MEMORY, -1, "no memory to follow copies");
            return;
        }
        mine->pending = grown;
        mine->n_reserved = reserved;
    }
    struct pending_copy *copy = &mine->pending[mine->n_pending++];
    copy->op = x->op;
    copy->lanes = x->event->mask;
    copy->bytes = x->event->bytes;
    for (int i = 0; i < GPUSIM_WARP; i++) {
        copy->target[i] = (uint32_t)x->event->address[i];
        copy->group[i] = x->warp->async_open[i];
        copy->mbarrier[i] = 0;
    }
}

static bool check_written(struct access *x, const struct piece *pieces, uint32_t n) {
    uint16_t *written = x->block->written;
    bool reads = !x->writes || x->event->access == GPUSIM_ACCESS_ATOMIC, may = gpusim_settings()->shared_unwritten;
    for (uint32_t p = 0; p < n; p++) {
        uint32_t missing = pieces[p].bytes & ~(uint32_t)written[pieces[p].granule];
        if (!missing) continue;
        if (reads && may) continue;
        if (reads) {
            x->now = (struct piece){pieces[p].granule, missing};
            report(x, GPUSIM_REPORT_UNINITIALISED, check_lane_of(x->event, 0, x->now),
                   "%s of %u bytes that this block has not written so far (or a barrier is missing)", verb(x),
                   x->event->bytes);
            return false;
        }
        written[pieces[p].granule] |= (uint16_t)pieces[p].bytes;
    }
    return true;
}

/* A whole granule that nobody touched since all warps met, or that was only read: nothing to find. */
static inline bool quick(struct access *x, struct cell *cell) {
    uint32_t since = x->block->block_time;
    if (cell->flags & (CELL_SPLIT | CELL_PENDING) || cell->write_time >= since) return false;
    if (x->writes && cell->read_time >= since) return false;
    update_cell(x, cell);
    return true;
}

static void note_row(struct access *x, enum shape shape) {
    uint8_t *lanes = (x->writes ? x->block->write_lane : x->block->read_lane) + x->event->address[0];
    uint32_t bytes = x->event->bytes;
    if (shape == SHAPE_SAME) {
        memset(lanes, CHECK_MANY, bytes);
        return;
    }
    for (uint32_t lane = 0; lane < GPUSIM_WARP; lane++, lanes += bytes) {
        uint64_t word = lane * 0x0101010101010101ull;
        if (bytes == 4)
            memcpy(lanes, &word, 4);
        else
            memset(lanes, (int)lane, bytes);
    }
}

/* The common shapes. False: left to the general way, nothing done. */
static bool whole_warp(struct access *x) {
    const struct gpusim_memory_event *e = x->event;
    struct block_check *b = x->block;
    enum shape shape = check_shape(e);
    uint32_t first = (uint32_t)e->address[0] / 16, n = GPUSIM_WARP * e->bytes / 16;
    if (shape == SHAPE_SAME && !x->writes) {
        struct piece piece = {first, ((1u << e->bytes) - 1) << (e->address[0] & 15)};
        if (piece.bytes & ~(uint32_t)b->written[first]) return false;
        if (gpusim_settings()->checks < GPUSIM_CHECKS_ALL) return true;
        visit_granule(x, piece);
        if (!x->failed && x->n_same_warp) compare_lanes(x);
    } else if (shape == SHAPE_ROW && !(e->address[0] & 15) && n) {
        uint32_t all = 0xffff;
        if (x->writes)
            memset(&b->written[first], 0xff, (size_t)n * 2);
        else
            for (uint32_t g = first; g < first + n; g++) all &= b->written[g];
        if (all != 0xffff) return false;
        if (gpusim_settings()->checks < GPUSIM_CHECKS_ALL) return true;
        for (uint32_t g = first; g < first + n && !x->failed; g++)
            if (!quick(x, &b->cell16[g])) visit_granule(x, (struct piece){g, 0xffff});
        if (!x->failed && x->n_same_warp) compare_lanes(x);
    } else {
        return false;
    }
    if (!x->failed) note_row(x, shape);
    return true;
}

void check_shared(struct gpusim_warp *warp, const struct gpusim_op *op, const struct gpusim_memory_event *event) {
    struct piece pieces[GPUSIM_WARP];
    struct block_check *block = warp->block->check;
    struct access x;
    if (!block) return;
    x.warp = warp, x.op = op, x.event = event, x.block = block;
    x.me = warp->index;
    x.mine = &block->warps[x.me];
    x.pending = event->access == GPUSIM_ACCESS_ASYNC_TARGET;
    x.writes = x.pending || event->access == GPUSIM_ACCESS_STORE || event->access == GPUSIM_ACCESS_ATOMIC;
    x.exempt = event->access == GPUSIM_ACCESS_ATOMIC || op->flags & GPUSIM_VOLATILE;
    x.settle = x.failed = false;
    x.n_same_warp = 0;
    if (event->access <= GPUSIM_ACCESS_STORE && !x.exempt && whole_warp(&x)) return;
    uint32_t n = check_pieces(event, event->mask, 0, pieces);
    if (!check_written(&x, pieces, n) || gpusim_settings()->checks < GPUSIM_CHECKS_ALL) return;
    if (!check_lanes_agree(warp, op, event)) return;
    for (uint32_t p = 0; p < n && !x.failed; p++)
        if (pieces[p].bytes != 0xffff || !quick(&x, &block->cell16[pieces[p].granule])) visit_granule(&x, pieces[p]);
    if (x.failed) return;
    if (x.n_same_warp && !(x.exempt && x.writes)) compare_lanes(&x);
    if (x.failed) return;
    note_lanes(&x);
    if (x.pending) note_pending(&x);
    if (x.exempt) check_signal_shared(warp, op, event);
}

/* The copies `done` of the warp are waited for: from now on they are its writes. */
static void settle(struct gpusim_warp *warp, const struct pending_copy *copy, uint32_t done, uint32_t time) {
    struct block_check *block = warp->block->check;
    uint64_t address[GPUSIM_WARP];
    struct piece pieces[GPUSIM_WARP];
    for (int i = 0; i < GPUSIM_WARP; i++) address[i] = copy->target[i];
    struct gpusim_memory_event event = {.mask = done, .bytes = copy->bytes, .address = address};
    struct access x = {.warp = warp,
                       .event = &event,
                       .block = block,
                       .mine = &block->warps[warp->index],
                       .me = warp->index,
                       .writes = true,
                       .settle = true,
                       .settle_time = time};
    uint32_t n = check_pieces(&event, done, 0, pieces);
    for (uint32_t p = 0; p < n; p++) visit_granule(&x, pieces[p]);
}

static void drop_settled(struct warp_check *mine) {
    uint32_t kept = 0;
    for (uint32_t k = 0; k < mine->n_pending; k++) {
        if (!mine->pending[k].lanes) continue;
        if (kept != k) mine->pending[kept] = mine->pending[k];
        kept++;
    }
    mine->n_pending = kept;
}

void check_shared_wait(struct gpusim_warp *warp, uint32_t mask, uint32_t keep) {
    struct block_check *block = warp->block->check;
    if (!block) return;
    struct warp_check *mine = &block->warps[warp->index];
    for (uint32_t k = 0; k < mine->n_pending; k++) {
        struct pending_copy *copy = &mine->pending[k];
        uint32_t done = 0;
        for (uint32_t rest = copy->lanes & mask; rest; rest &= rest - 1) {
            int i = __builtin_ctz(rest);
            if (keep == UINT32_MAX || copy->group[i] + keep < warp->async_open[i]) done |= 1u << i;
        }
        if (done) settle(warp, copy, done, block->time);
        copy->lanes &= ~done;
    }
    drop_settled(mine);
}

void check_shared_bind(struct gpusim_warp *warp, uint32_t mask, uint32_t word) {
    struct block_check *block = warp->block->check;
    struct warp_check *mine = &block->warps[warp->index];
    for (uint32_t k = 0; k < mine->n_pending; k++)
        for (uint32_t rest = mine->pending[k].lanes & mask; rest; rest &= rest - 1) {
            int i = __builtin_ctz(rest);
            if (mine->pending[k].mbarrier[i]) continue;
            mine->pending[k].mbarrier[i] = word + 1;
            mine->pending[k].arrival[i] = block->time;
        }
}

void check_shared_landed(struct gpusim_block *b, uint32_t word) {
    struct block_check *block = b->check;
    for (uint32_t w = 0; w < b->n_warps; w++) {
        struct warp_check *warp = &block->warps[w];
        for (uint32_t k = 0; k < warp->n_pending; k++) {
            struct pending_copy *copy = &warp->pending[k];
            for (uint32_t rest = copy->lanes; rest; rest &= rest - 1) {
                int i = __builtin_ctz(rest);
                if (copy->mbarrier[i] != word + 1) continue;
                settle(&b->warps[w], copy, 1u << i, copy->arrival[i]);
                copy->lanes &= ~(1u << i);
            }
        }
        if (warp->n_pending) drop_settled(warp);
    }
}
