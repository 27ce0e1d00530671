/* Branches, calls, exits, special registers, barriers of the block and of the warp. */
#include "exec/codes.h"
#include "exec/lanes.h"

#include <time.h>

HANDLER(bra) {
    if (mask == warp->mask) {
        warp->pc = (uint32_t)op->imm;
        return GPUSIM_JUMP;
    }
    gpusim_split(warp, mask)->pc = (uint32_t)op->imm;
    return GPUSIM_REGROUP;
}

/* brx.idx: list is the table of targets, op->a the index. */
HANDLER(brx) {
    const uint32_t *a = REGS32(op->a);
    uint32_t left = mask;
    while (left) {
        uint32_t index = a[__builtin_ctz(left)], part = 0;
        for (int i = 0; i < GPUSIM_WARP; i++) part |= (uint32_t)(a[i] == index) << i;
        part &= left;
        if (index >= op->n_list)
            return gpusim_fault(warp, op, GPUSIM_FAULT_INSTRUCTION, __builtin_ctz(left),
                                "brx.idx: index %u, the table has %u", index, op->n_list);
        if (part == warp->mask) {
            warp->pc = op->list[index];
            return GPUSIM_JUMP;
        }
        gpusim_split(warp, part)->pc = op->list[index];
        left &= ~part;
    }
    return GPUSIM_REGROUP;
}

HANDLER(exit_lanes) {
    (void)op;
    struct gpusim_group *group = gpusim_split(warp, mask);
    for (struct gpusim_frame *f = group->frame; f; f = f->parent) f->lanes &= ~mask;
    gpusim_remove_group(warp, group);
    warp->alive &= ~mask;
    for (uint32_t g = 0; g < warp->n_groups; g++) /* those who wait for these lanes look again */
        if (warp->group[g].wait == GPUSIM_WAIT_SYNC) warp->group[g].wait = GPUSIM_RUNNABLE;
    for (int b = 0; b < GPUSIM_N_BARRIERS; b++)
        if (warp->block->barriers[b].arrived) gpusim_barrier_check(warp->block, b);
    return GPUSIM_REGROUP;
}

static void frame_write(struct gpusim_warp *warp, uint32_t mask, uint32_t offset, uint32_t bytes) {
    if (warp->hooks && warp->hooks->frame_write)
        warp->hooks->frame_write(warp->hooks->context, warp, mask, offset, bytes);
}

HANDLER(ret) {
    struct gpusim_frame *frame = warp->frame;
    if (!frame->parent) return exit_lanes(warp, op, mask);
    const struct gpusim_op *call = frame->call;
    const struct gpusim_function *function = frame->function;
    for (uint32_t r = 0; r < function->n_returns; r++) { /* list: return registers or frame offsets, then arguments */
        const struct gpusim_param *p = &function->returns[r];
        if (p->reg && p->lane_words == 2) {
            uint64_t *d = (uint64_t *)(frame->parent->regs + call->list[r]), *s = REGS64(p->reg);
            LANES(d[i] = s[i]);
        } else if (p->reg) {
            uint32_t *d = frame->parent->regs + call->list[r], *s = REGS32(p->reg);
            LANES(d[i] = s[i]);
        } else {
            EACH_LANE({
                uint8_t *stack = warp->local + (size_t)i * warp->local_bytes;
                memcpy(stack + frame->parent->local_base + call->list[r], stack + frame->local_base + p->offset,
                       p->bytes);
            })
            frame_write(warp, mask, frame->parent->local_base + call->list[r], p->bytes);
        }
    }
    if (function->uses_alloca) LANES(warp->stack[i] = frame->stack[i]);
    struct gpusim_group *group = gpusim_split(warp, mask);
    group->pc = frame->return_pc;
    group->frame = frame->parent;
    gpusim_frame_leave(warp, frame, mask);
    return GPUSIM_REGROUP;
}

static int enter(struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask,
                 struct gpusim_function *function) {
    struct gpusim_frame *caller = warp->frame, *frame = gpusim_frame_new(warp, function);
    if (!frame) return gpusim_fault(warp, op, GPUSIM_FAULT_MEMORY, -1, "no memory for the frame of %s", function->name);
    frame->parent = caller;
    frame->call = op;
    frame->return_pc = warp->pc + 1;
    frame->lanes = mask;
    frame->depth = caller->depth + 1;
    frame->local_base = (caller->local_base + caller->function->local_bytes + 15) & ~15u;
    memcpy(frame->stack, warp->stack, sizeof frame->stack);
    if ((uint64_t)frame->local_base + function->local_bytes > warp->local_bytes - warp->launch->alloca_bytes)
        return gpusim_fault(warp, op, GPUSIM_FAULT_STACK, __builtin_ctz(mask),
                            "stack overflow: %s needs %u bytes at %u of %u", function->name, function->local_bytes,
                            frame->local_base, warp->local_bytes);
    if (warp->hooks && warp->hooks->frame_enter)
        warp->hooks->frame_enter(warp->hooks->context, warp, mask, frame->local_base, function->local_bytes);
    for (uint32_t k = 0; k < function->n_params; k++) {
        const struct gpusim_param *p = &function->params[k];
        uint32_t from = op->list[function->n_returns + k];
        if (p->reg && p->lane_words == 2) {
            uint64_t *d = (uint64_t *)(frame->regs + p->reg), *s = REGS64(from);
            LANES(d[i] = s[i]);
        } else if (p->reg) {
            uint32_t *d = frame->regs + p->reg, *s = REGS32(from);
            LANES(d[i] = s[i]);
        } else {
            EACH_LANE({
                uint8_t *stack = warp->local + (size_t)i * warp->local_bytes;
                memcpy(stack + frame->local_base + p->offset, stack + caller->local_base + from, p->bytes);
            })
            frame_write(warp, mask, frame->local_base + p->offset, p->bytes);
        }
    }
    struct gpusim_group *group = gpusim_split(warp, mask);
    group->frame = frame;
    group->pc = 0;
    return GPUSIM_REGROUP;
}
HANDLER(call) { return enter(warp, op, mask, (struct gpusim_function *)(uintptr_t)op->ref); }

/* Indirect call: op->a holds function addresses, which are host pointers of functions of this module. */
HANDLER(call_indirect) {
    const uint64_t *a = REGS64(op->a);
    struct gpusim_module *module = warp->frame->function->module;
    uint64_t target = a[__builtin_ctz(mask)];
    struct gpusim_function *function = NULL;
    for (uint32_t f = 0; f < module->n_functions && !function; f++)
        if ((uint64_t)(uintptr_t)module->functions[f] == target) function = module->functions[f];
    if (!function || !function->defined || function->n_params + function->n_returns != op->n_list)
        return gpusim_fault(warp, op, GPUSIM_FAULT_ADDRESS, __builtin_ctz(mask),
                            "call of 0x%llx, which is no such function", (unsigned long long)target);
    uint32_t part = 0;
    EACH_LANE(part |= (uint32_t)(a[i] == target) << i)
    if (part != mask) { /* the others come back to this op */
        uint32_t pc = warp->pc;
        gpusim_split(warp, mask & ~part)->pc = pc;
    }
    return enter(warp, op, part, function);
}

/* a: bytes, imm: alignment; d: an address of local memory. */
HANDLER(alloca_local) {
    uint32_t align = (uint32_t)op->imm;
    EACH_LANE({
        bool wide = op->flags & GPUSIM_REG64;
        uint64_t bytes = wide ? REGS64(op->a)[i] : REGS32(op->a)[i];
        uint32_t at = (warp->stack[i] + align - 1) & ~(align - 1);
        if (at > warp->local_bytes || bytes > warp->local_bytes - at)
            return gpusim_fault(warp, op, GPUSIM_FAULT_STACK, i, "stack overflow: alloca of %llu bytes, %u are left",
                                (unsigned long long)bytes, at < warp->local_bytes ? warp->local_bytes - at : 0);
        warp->stack[i] = at + (uint32_t)bytes;
        if (warp->hooks && warp->hooks->frame_enter)
            warp->hooks->frame_enter(warp->hooks->context, warp, 1u << i, at, (uint32_t)bytes);
        if (wide)
            REGS64(op->d)[i] = at;
        else
            REGS32(op->d)[i] = at;
    })
    return GPUSIM_NEXT;
}
HANDLER(stacksave) {
    if (op->flags & GPUSIM_REG64)
        EACH_LANE(REGS64(op->d)[i] = warp->stack[i];)
    else
        EACH_LANE(REGS32(op->d)[i] = warp->stack[i];)
    return GPUSIM_NEXT;
}
HANDLER(stackrestore) {
    EACH_LANE({
        uint64_t saved = op->flags & GPUSIM_REG64 ? REGS64(op->a)[i] : REGS32(op->a)[i];
        if (saved > warp->stack[i] || saved < warp->local_bytes - warp->launch->alloca_bytes)
            return gpusim_fault(warp, op, GPUSIM_FAULT_STACK, i, "stackrestore of 0x%llx, which stacksave did not give",
                                (unsigned long long)saved);
        warp->stack[i] = (uint32_t)saved;
    })
    return GPUSIM_NEXT;
}

HANDLER(trap) { return gpusim_fault(warp, op, GPUSIM_FAULT_TRAP, __builtin_ctz(mask), "trap"); }

/* Barriers. op->a: barrier number, op->b: number of threads (0: all), op->c: predicate of bar.red, op->d its result. */
HANDLER(bar) {
    uint32_t number = REGS32(op->a)[__builtin_ctz(mask)], threads = op->n_list ? REGS32(op->b)[__builtin_ctz(mask)] : 0;
    if (number >= GPUSIM_N_BARRIERS)
        return gpusim_fault(warp, op, GPUSIM_FAULT_INSTRUCTION, __builtin_ctz(mask), "barrier %u: there are 16",
                            number);
    struct gpusim_barrier *barrier = &warp->block->barriers[number];
    bool waits = op->code != GPUSIM_BAR_ARRIVE;
    if (barrier->arrived && barrier->expected != threads)
        return gpusim_fault_at(warp, op, GPUSIM_FAULT_DEADLOCK, __builtin_ctz(mask),
                               &(struct gpusim_place){.report = GPUSIM_REPORT_BARRIER_MISMATCHED},
                               "barrier %u: expected %u threads as those who wait there, got %u (0: all)", number,
                               barrier->expected, threads);
    if (!barrier->arrived) barrier->expected = threads, barrier->red_count = barrier->red_threads = 0;
    /* Lanes that the block does not have come with the warp's first lane: counts are in whole warps. */
    barrier->arrived += (uint32_t)__builtin_popcount(mask);
    if (mask >> __builtin_ctz(warp->exists) & 1) barrier->arrived += (uint32_t)__builtin_popcount(~warp->exists);
    struct gpusim_group *group = gpusim_split(warp, mask);
    group->pc = warp->pc + 1;
    if (waits) {
        group->wait = GPUSIM_WAIT_BARRIER;
        group->member = number;
        group->red = NULL;
        if (op->code >= GPUSIM_BAR_POPC) {
            uint32_t p = warp->regs[op->c] ^ (op->flags & GPUSIM_NOT_C ? ~0u : 0);
            barrier->red_count += (uint32_t)__builtin_popcount(p & mask);
            barrier->red_threads += (uint32_t)__builtin_popcount(mask);
            group->red = warp->regs + op->d;
            group->red_predicate = op->code;
        }
    }
    if (warp->hooks && warp->hooks->barrier_arrive)
        warp->hooks->barrier_arrive(warp->hooks->context, warp, op, mask, (int)number, waits);
    gpusim_barrier_check(warp->block, (int)number);
    return GPUSIM_REGROUP;
}

HANDLER(bar_warp) {
    uint32_t member = REGS32(op->a)[__builtin_ctz(mask)];
    if (!(member & mask)) member |= mask;
    struct gpusim_group *group = gpusim_split(warp, mask);
    group->pc = warp->pc;
    group->wait = GPUSIM_WAIT_SYNC;
    group->member = member;
    group->warp_barrier = 1;
    uint32_t here = 0;
    for (uint32_t g = 0; g < warp->n_groups; g++)
        if (warp->group[g].wait == GPUSIM_WAIT_SYNC && warp->group[g].warp_barrier && warp->group[g].member == member)
            here |= warp->group[g].mask;
    if ((member & warp->alive & ~here) == 0) {
        for (uint32_t g = 0; g < warp->n_groups; g++)
            if (warp->group[g].mask & here) warp->group[g].wait = GPUSIM_RUNNABLE, warp->group[g].pc++;
        if (warp->hooks && warp->hooks->warp_sync) warp->hooks->warp_sync(warp->hooks->context, warp, op, here);
    }
    return GPUSIM_REGROUP;
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t special_uniform(const struct gpusim_warp *warp, int code) {
    const struct gpusim_launch *launch = warp->launch;
    const struct gpusim_block *block = warp->block;
    switch (code) {
    case GPUSIM_SR_NTID_X:
    case GPUSIM_SR_NTID_Y:
    case GPUSIM_SR_NTID_Z:
        return launch->block[code - GPUSIM_SR_NTID_X];
    case GPUSIM_SR_CTAID_X:
    case GPUSIM_SR_CTAID_Y:
    case GPUSIM_SR_CTAID_Z:
        return block->ctaid[code - GPUSIM_SR_CTAID_X];
    case GPUSIM_SR_NCTAID_X:
    case GPUSIM_SR_NCTAID_Y:
    case GPUSIM_SR_NCTAID_Z:
        return launch->grid[code - GPUSIM_SR_NCTAID_X];
    case GPUSIM_SR_WARPID:
        return warp->index;
    case GPUSIM_SR_NWARPID:
        return GPUSIM_THREADS_PER_SM / GPUSIM_WARP;
    case GPUSIM_SR_SMID:
        return block->sm;
    case GPUSIM_SR_NSMID:
        return GPUSIM_N_SMS;
    case GPUSIM_SR_GRIDID:
        return launch->number;
    case GPUSIM_SR_CLOCK:
        return (uint32_t)(warp->issued * 4);
    case GPUSIM_SR_CLOCK_HI:
        return warp->issued * 4 >> 32;
    case GPUSIM_SR_CLOCK64:
        return warp->issued * 4;
    case GPUSIM_SR_GLOBALTIMER:
        return now_ns();
    case GPUSIM_SR_GLOBALTIMER_LO:
        return (uint32_t)now_ns();
    case GPUSIM_SR_GLOBALTIMER_HI:
        return now_ns() >> 32;
    case GPUSIM_SR_DYNAMIC_SMEM:
        return launch->dynamic_shared_bytes;
    case GPUSIM_SR_TOTAL_SMEM:
    case GPUSIM_SR_AGGR_SMEM:
        return launch->dynamic_base + launch->dynamic_shared_bytes;
    case GPUSIM_SR_ENVREG1:
        return launch->workspace >> 32;
    case GPUSIM_SR_ENVREG2:
        return (uint32_t)launch->workspace;
    case GPUSIM_SR_RESERVED_SMEM:
        return launch->reserved_base;
    default:
        return 0;
    }
}

HANDLER(mov_special) {
    uint64_t value[GPUSIM_WARP];
    for (int i = 0; i < GPUSIM_WARP; i++) {
        switch (op->code) {
        case GPUSIM_SR_TID_X:
        case GPUSIM_SR_TID_Y:
        case GPUSIM_SR_TID_Z:
            value[i] = warp->tid[op->code - GPUSIM_SR_TID_X][i];
            break;
        case GPUSIM_SR_LANEID:
            value[i] = (uint32_t)i;
            break;
        case GPUSIM_SR_LANEMASK_EQ:
            value[i] = 1u << i;
            break;
        case GPUSIM_SR_LANEMASK_LE:
            value[i] = (2u << i) - 1;
            break;
        case GPUSIM_SR_LANEMASK_LT:
            value[i] = (1u << i) - 1;
            break;
        case GPUSIM_SR_LANEMASK_GE:
            value[i] = ~0u << i;
            break;
        case GPUSIM_SR_LANEMASK_GT:
            value[i] = ~1u << i;
            break;
        default:
            value[i] = i ? value[0] : special_uniform(warp, op->code);
        }
    }
    if (op->flags & GPUSIM_REG64) {
        uint64_t *d = REGS64(op->d);
        LANES(d[i] = value[i]);
    } else {
        uint32_t *d = REGS32(op->d), keep = op->type == GPUSIM_T_B16 ? 0xffff : ~0u;
        LANES(d[i] = (uint32_t)value[i] & keep);
    }
    return GPUSIM_NEXT;
}

const struct gpusim_entry TABLE(ops_control)[] = {
    {"bra", bra},
    {"brx.idx", brx},
    {"exit", exit_lanes},
    {"ret", ret},
    {"call", call},
    {"call.indirect", call_indirect},
    {"trap", trap},
    {"alloca", alloca_local},
    {"stacksave", stacksave},
    {"stackrestore", stackrestore},
    {"bar", bar},
    {"bar.warp.sync", bar_warp},
    {"mov.special", mov_special},
    {NULL, NULL},
};
