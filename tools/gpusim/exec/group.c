/* The run loop of a warp, and how its lanes split into groups and meet again. Every lane can go its own way
 * (independent thread scheduling): lanes at the same pc of the same frame form a group; the lowest group runs until it
 * comes to the pc of another one, where they join. Now and then another group gets a turn, so that lanes that spin
 * cannot starve those they wait for. */
#include "exec/warp.h"

struct gpusim_group *gpusim_split(struct gpusim_warp *warp, uint32_t mask) {
    struct gpusim_group *group = &warp->group[warp->current];
    if (mask == warp->mask) return group;
    warp->mask &= ~mask;
    group->mask = warp->mask;
    group->pc = warp->pc + 1;
    struct gpusim_group *split = &warp->group[warp->n_groups++];
    *split = (struct gpusim_group){.frame = warp->frame, .mask = mask};
    return split;
}

void gpusim_remove_group(struct gpusim_warp *warp, struct gpusim_group *group) {
    *group = warp->group[--warp->n_groups];
}

bool gpusim_meet(struct gpusim_warp *warp, uint32_t mask, uint32_t member, int *next) {
    if ((member & warp->alive & ~mask) == 0) return true;
    uint32_t pc = warp->pc;
    if (warp->frame->tally) { /* it will be issued again */
        warp->frame->tally[pc].issued--;
        warp->frame->tally[pc].idle_lanes -= GPUSIM_WARP - (uint32_t)__builtin_popcount(warp->mask);
    }
    struct gpusim_group *group = gpusim_split(warp, mask);
    group->pc = pc;
    group->wait = GPUSIM_WAIT_SYNC;
    group->member = member;
    group->warp_barrier = 0;
    *next = GPUSIM_REGROUP;
    return false;
}

/* Runs before: by the pc in the innermost frame that both are in. */
static bool before(const struct gpusim_group *a, const struct gpusim_group *b) {
    const struct gpusim_frame *f = a->frame, *g = b->frame;
    uint32_t p = a->pc, q = b->pc;
    while (f != g) {
        uint32_t f_depth = f->depth, g_depth = g->depth;
        if (f_depth >= g_depth) p = f->return_pc - 1, f = f->parent;
        if (g_depth >= f_depth) q = g->return_pc - 1, g = g->parent;
    }
    return p != q ? p < q : a->frame->order < b->frame->order;
}

static void join_groups(struct gpusim_warp *warp) {
    for (uint32_t g = 0; g < warp->n_groups; g++) {
        struct gpusim_group *a = &warp->group[g];
        if (a->wait == GPUSIM_WAIT_BARRIER) continue;
        for (uint32_t h = g + 1; h < warp->n_groups;) {
            struct gpusim_group *b = &warp->group[h];
            if (b->wait == GPUSIM_WAIT_BARRIER || b->pc != a->pc || b->frame != a->frame) {
                h++;
                continue;
            }
            a->mask |= b->mask;
            a->wait = GPUSIM_RUNNABLE;
            gpusim_remove_group(warp, b);
        }
    }
}

/* Chooses the group to run; *limit is the pc at which it meets another one. False: none can run. */
static bool choose(struct gpusim_warp *warp, bool any, uint32_t *limit) {
    *limit = UINT32_MAX;
    if (warp->n_groups > 1) join_groups(warp);
    uint32_t best = UINT32_MAX, n_runnable = 0;
    for (uint32_t g = 0; g < warp->n_groups; g++) {
        if (warp->group[g].wait) continue;
        n_runnable++;
        if (best == UINT32_MAX)
            best = g;
        else if (any ? gpusim_random(&warp->random) % n_runnable == 0 : before(&warp->group[g], &warp->group[best]))
            best = g;
    }
    if (best == UINT32_MAX) return false;
    struct gpusim_group *group = &warp->group[best];
    warp->current = best;
    warp->frame = group->frame;
    warp->regs = group->frame->regs;
    warp->mask = group->mask;
    warp->pc = group->pc;
    for (uint32_t g = 0; g < warp->n_groups; g++) {
        const struct gpusim_group *other = &warp->group[g];
        if (g != best && other->wait != GPUSIM_WAIT_BARRIER && other->frame == group->frame && other->pc > group->pc &&
            other->pc < *limit)
            *limit = other->pc;
    }
    return true;
}

enum gpusim_outcome gpusim_warp_run(struct gpusim_warp *warp, uint32_t quantum) {
    uint32_t limit, left = quantum;
    bool any = ++warp->turns % 4 == 0;
    const struct gpusim_hooks *hooks = warp->hooks && warp->hooks->op ? warp->hooks : NULL;
    for (;;) {
        if (!warp->n_groups) return GPUSIM_WARP_DONE;
        if (!choose(warp, any, &limit)) return GPUSIM_WARP_BLOCKED;
        const struct gpusim_op *ops = warp->frame->function->ops;
        struct gpusim_tally *tally = warp->frame->tally;
        for (;;) {
            if (warp->pc >= limit) {
                warp->group[warp->current].pc = warp->pc;
                any = false;
                break;
            }
            if (left-- == 0) {
                warp->group[warp->current].pc = warp->pc;
                warp->issued += quantum;
                return GPUSIM_WARP_MORE;
            }
            const struct gpusim_op *op = &ops[warp->pc];
            uint32_t mask = warp->mask & (warp->regs[op->guard] ^ op->guard_xor);
            if (tally) {
                tally[warp->pc].issued++;
                if (warp->mask != UINT32_MAX)
                    tally[warp->pc].idle_lanes += GPUSIM_WARP - (uint32_t)__builtin_popcount(warp->mask);
            }
            if (hooks) hooks->op(hooks->context, warp, op, mask);
            int next = mask ? op->run(warp, op, mask) : GPUSIM_NEXT;
            if (next == GPUSIM_NEXT) {
                warp->pc++;
            } else if (next == GPUSIM_JUMP) {
                if (warp->n_groups == 1) continue;
                warp->group[warp->current].pc = warp->pc;
                break;
            } else if (next == GPUSIM_REGROUP) {
                break;
            } else {
                return GPUSIM_WARP_FAULT;
            }
        }
    }
}
