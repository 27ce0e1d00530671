/* Who has met whom: block barriers, warps; and barriers and warp operations that are used wrongly. */
#include "check/state.h"
#include "exec/codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int report(struct gpusim_warp *warp, const struct gpusim_op *op, int lane, enum gpusim_report_kind kind,
                  const char *text) {
    struct gpusim_place place = {.report = kind};
    return gpusim_fault_at(warp, op, GPUSIM_FAULT_CHECK, lane, &place, "%s", text);
}

void check_barrier_arrive(void *context, struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask,
                          int barrier, bool waits) {
    struct block_check *b = warp->block->check;
    (void)context, (void)waits;
    if (!b) return;
    uint32_t *known = b->barrier_known[barrier], *lanes = &b->barrier_lanes[barrier][warp->index];
    const uint32_t *mine = b->warps[warp->index].known;
    if (*lanes & mask) {
        char text[160];
        snprintf(text, sizeof text, "lanes 0x%08x of warp %u come to barrier %d a second time before it is complete",
                 *lanes & mask, warp->index, barrier);
        report(warp, op, __builtin_ctz(*lanes & mask), GPUSIM_REPORT_BARRIER_MISMATCHED, text);
    }
    *lanes |= mask;
    for (int u = 0; u < GPUSIM_MAX_WARPS; u++) known[u] = known[u] > mine[u] ? known[u] : mine[u];
    known[warp->index] = ++b->time;
}

static const struct gpusim_op *barrier_of(const struct gpusim_group *group) {
    return &group->frame->function->ops[group->pc - 1];
}

/* The barrier is complete; looks at those who wait there. `all`: the barrier is for all threads of the block. */
static void check_waiting(struct gpusim_block *block, int barrier, bool all) {
    const struct gpusim_op *first = NULL;
    uint32_t first_warp = 0;
    char text[300];
    for (uint32_t w = 0; w < block->n_warps; w++) {
        struct gpusim_warp *warp = &block->warps[w];
        const struct gpusim_op *op = NULL;
        uint32_t lanes = 0;
        for (uint32_t g = 0; g < warp->n_groups; g++) {
            const struct gpusim_group *group = &warp->group[g];
            if (group->wait != GPUSIM_WAIT_BARRIER || group->member != (uint32_t)barrier) continue;
            const struct gpusim_op *here = barrier_of(group);
            if (op && op != here && (here->flags | op->flags) & GPUSIM_ALIGNED) {
                snprintf(text, sizeof text, "lanes 0x%08x of warp %u are at this barrier, lanes 0x%08x at PTX line %u",
                         group->mask, w, lanes, op->line);
                report(warp, here, __builtin_ctz(group->mask), GPUSIM_REPORT_BARRIER_DIVERGENT, text);
                return;
            }
            op = here;
            lanes |= group->mask;
        }
        if (!op) continue;
        int lane = __builtin_ctz(lanes);
        if (op->flags & GPUSIM_ALIGNED && warp->alive & ~lanes) {
            snprintf(text, sizeof text, "lanes 0x%08x of warp %u are at this barrier, lanes 0x%08x are elsewhere",
                     lanes, w, warp->alive & ~lanes);
            report(warp, op, lane, GPUSIM_REPORT_BARRIER_DIVERGENT, text);
            return;
        }
        if (!all) continue;
        if (first && op != first && (op->flags & first->flags) & GPUSIM_ALIGNED) {
            snprintf(text, sizeof text, "warp %u waits at this barrier, warp %u at PTX line %u", w, first_warp,
                     first->line);
            report(warp, op, lane, GPUSIM_REPORT_BARRIER_MISMATCHED, text);
            return;
        }
        if (!first) first = op, first_warp = w;
    }
    for (uint32_t w = 0; all && first && w < block->n_warps; w++) {
        struct gpusim_warp *warp = &block->warps[w];
        uint32_t gone = warp->exists & ~warp->alive;
        if (!gone) continue;
        int lane = __builtin_ctz(gone);
        snprintf(text, sizeof text, "thread (%u,%u,%u) and %d others of warp %u have exited before this barrier",
                 warp->tid[0][lane], warp->tid[1][lane], warp->tid[2][lane], __builtin_popcount(gone) - 1, w);
        struct gpusim_warp *waiting = &block->warps[first_warp];
        report(waiting, first, __builtin_ctz(waiting->alive), GPUSIM_REPORT_BARRIER_EXITED, text);
        return;
    }
}

void check_take(struct warp_check *mine, const uint32_t *known) {
    for (int u = 0; u < GPUSIM_MAX_WARPS; u++) {
        mine->known[u] = known[u] > mine->known[u] ? known[u] : mine->known[u];
        mine->known_most = mine->known[u] > mine->known_most ? mine->known[u] : mine->known_most;
    }
}

void check_barrier_release(void *context, struct gpusim_block *block, int barrier) {
    struct block_check *b = block->check;
    (void)context;
    if (!b) return;
    uint32_t now = ++b->time, met = 0, living = 0;
    uint32_t *known = b->barrier_known[barrier];
    check_waiting(block, barrier, block->barriers[barrier].expected == 0);
    for (uint32_t w = 0; w < block->n_warps; w++) {
        const struct gpusim_warp *warp = &block->warps[w];
        uint32_t lanes = 0;
        for (uint32_t g = 0; g < warp->n_groups; g++)
            if (warp->group[g].wait == GPUSIM_WAIT_BARRIER && warp->group[g].member == (uint32_t)barrier)
                lanes |= warp->group[g].mask;
        if (warp->alive) living |= 1u << w;
        if (!lanes) continue;
        struct warp_check *mine = &b->warps[w];
        check_take(mine, known);
        if (lanes != warp->alive) continue;
        mine->lanes_time = now;
        met |= 1u << w;
    }
    memset(known, 0, sizeof b->barrier_known[0]);
    memset(b->barrier_lanes[barrier], 0, sizeof b->barrier_lanes[0]);
    /* What exited threads did before is done as well: nobody can have met them later. */
    if (met == living && block->barriers[barrier].expected == 0) {
        b->block_time = now;
        for (uint32_t w = 0; w < block->n_warps; w++) {
            for (int u = 0; u < GPUSIM_MAX_WARPS; u++) b->warps[w].known[u] = now;
            b->warps[w].known_most = now;
        }
    }
}

static void lanes_meet(struct gpusim_warp *warp, uint32_t mask) {
    struct block_check *b = warp->block->check;
    if (!b) return;
    struct warp_check *mine = &b->warps[warp->index];
    uint32_t now = ++b->time;
    if (!(warp->alive & ~mask)) {
        mine->lanes_time = now;
        return;
    }
    if (!mine->pair_time && !(mine->pair_time = calloc(GPUSIM_WARP, sizeof *mine->pair_time))) {
        mine->lanes_time = now; /* finds less, reports nothing wrong */
        return;
    }
    for (uint32_t i = mask; i; i &= i - 1)
        for (uint32_t j = mask; j; j &= j - 1) mine->pair_time[__builtin_ctz(i)][__builtin_ctz(j)] = now;
}

void check_warp_sync(void *context, struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask) {
    (void)context;
    char text[200];
    bool barrier = op->cls == GPUSIM_CLASS_BARRIER;
    if (!barrier && (op->cls != GPUSIM_CLASS_WARP || !op->n_list)) { /* mma, ldmatrix, movmatrix: the whole warp */
        if (mask == UINT32_MAX) return;
        snprintf(text, sizeof text, "the whole warp must take part, lanes 0x%08x have exited or do not exist", ~mask);
        report(warp, op, __builtin_ctz(mask), GPUSIM_REPORT_INACTIVE_LANES, text);
        return;
    }
    const uint32_t *member = REGS32(barrier ? op->a : op->list[0]);
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        if (!(member[lane] >> lane & 1)) {
            snprintf(text, sizeof text, "the lane is not in its own mask 0x%08x", member[lane]);
            report(warp, op, lane, GPUSIM_REPORT_INACTIVE_LANES, text);
            return;
        }
        uint32_t gone = member[lane] & warp->exists & ~warp->alive;
        if (gone) {
            snprintf(text, sizeof text, "the mask 0x%08x names lanes 0x%08x, which have exited", member[lane], gone);
            report(warp, op, lane, GPUSIM_REPORT_INACTIVE_LANES, text);
            return;
        }
        if (!barrier && member[lane] & warp->alive & ~mask) {
            snprintf(text, sizeof text, "the mask 0x%08x names lanes 0x%08x, which are elsewhere", member[lane],
                     member[lane] & warp->alive & ~mask);
            report(warp, op, lane, GPUSIM_REPORT_INACTIVE_LANES, text);
            return;
        }
    }
    if (barrier) lanes_meet(warp, mask);
}
