/* Frames, block barriers, and the running of one block: its warps take turns in an order drawn from the seed. */
#include "exec/block.h"

#include <stdlib.h>
#include <string.h>

struct gpusim_frame *gpusim_frame_new(struct gpusim_warp *warp, struct gpusim_function *function) {
    struct gpusim_frame **link = &warp->free_frames, *frame;
    while (*link && (*link)->function != function) link = &(*link)->next_free;
    frame = *link;
    if (frame) {
        *link = frame->next_free;
    } else {
        frame = calloc(1, sizeof *frame);
        size_t bytes = ((size_t)function->frame_words * 4 + 63) & ~(size_t)63;
        if (frame) frame->regs = aligned_alloc(64, bytes);
        if (!frame || !frame->regs) {
            free(frame);
            return NULL;
        }
        memset(frame->regs, 0, bytes);
        memcpy(frame->regs, function->constants, (size_t)function->n_constant_words * 4);
        frame->function = function;
        const struct gpusim_counting *counting = warp->launch->counting;
        if (counting) frame->tally = counting->tally(warp->block, function);
    }
    frame->parent = NULL;
    frame->call = NULL;
    frame->depth = frame->local_base = frame->return_pc = 0;
    frame->order = ++warp->frame_count;
    return frame;
}

void gpusim_frame_leave(struct gpusim_warp *warp, struct gpusim_frame *frame, uint32_t lanes) {
    frame->lanes &= ~lanes;
    if (frame->lanes) return;
    frame->next_free = warp->free_frames;
    warp->free_frames = frame;
}

static uint32_t threads_left(const struct gpusim_block *block) {
    uint32_t n = 0;
    for (uint32_t w = 0; w < block->n_warps; w++) {
        const struct gpusim_warp *warp = &block->warps[w];
        n += (uint32_t)__builtin_popcount(warp->alive);
        if (warp->alive >> __builtin_ctz(warp->exists) & 1) n += (uint32_t)__builtin_popcount(~warp->exists);
    }
    return n;
}

static void finish_reduction(const struct gpusim_barrier *barrier, struct gpusim_group *group) {
    bool yes =
        group->red_predicate == GPUSIM_BAR_AND ? barrier->red_count == barrier->red_threads : barrier->red_count > 0;
    if (group->red_predicate == GPUSIM_BAR_POPC) {
        for (int i = 0; i < GPUSIM_WARP; i++)
            if (group->mask >> i & 1) group->red[i] = barrier->red_count;
    } else {
        *group->red = (*group->red & ~group->mask) | (yes ? group->mask : 0);
    }
}

void gpusim_barrier_check(struct gpusim_block *block, int number) {
    struct gpusim_barrier *barrier = &block->barriers[number];
    uint32_t needed = barrier->expected ? barrier->expected : threads_left(block);
    if (barrier->arrived < needed) return;
    const struct gpusim_hooks *hooks = block->launch->hooks;
    if (hooks && hooks->barrier_release) hooks->barrier_release(hooks->context, block, number);
    for (uint32_t w = 0; w < block->n_warps; w++) {
        struct gpusim_warp *warp = &block->warps[w];
        for (uint32_t g = 0; g < warp->n_groups; g++) {
            struct gpusim_group *group = &warp->group[g];
            if (group->wait != GPUSIM_WAIT_BARRIER || group->member != (uint32_t)number) continue;
            if (group->red) finish_reduction(barrier, group);
            group->red = NULL;
            group->wait = GPUSIM_RUNNABLE;
            block->ready |= 1u << w;
        }
    }
    *barrier = (struct gpusim_barrier){0};
}

bool gpusim_resident_new(struct gpusim_resident *r, struct gpusim_launch *launch, uint32_t local_bytes) {
    const uint32_t *dim = launch->block, threads = dim[0] * dim[1] * dim[2];
    struct gpusim_block *block = &r->block;
    *r = (struct gpusim_resident){0};
    block->launch = launch;
    block->shared_bytes = launch->shared_bytes;
    block->n_warps = (threads + GPUSIM_WARP - 1) / GPUSIM_WARP;
    block->warps = calloc(block->n_warps, sizeof *block->warps);
    block->shared = aligned_alloc(1024, ((size_t)launch->shared_bytes + 2047) & ~(size_t)1023);
    if (!block->warps || !block->shared) return false;
    if (launch->counting && !launch->counting->thread_begin(block)) return false;
    for (uint32_t w = 0; w < block->n_warps; w++) {
        struct gpusim_warp *warp = &block->warps[w];
        warp->block = block;
        warp->launch = launch;
        warp->hooks = launch->hooks;
        warp->index = w;
        warp->local_bytes = local_bytes;
        for (uint32_t i = 0; i < GPUSIM_WARP; i++) {
            uint32_t t = w * GPUSIM_WARP + i;
            warp->tid[0][i] = t % dim[0];
            warp->tid[1][i] = t / dim[0] % dim[1];
            warp->tid[2][i] = t / dim[0] / dim[1];
            if (t < threads) warp->exists |= 1u << i;
        }
        if (local_bytes && !(warp->local = calloc(GPUSIM_WARP, local_bytes))) return false;
        if (!(warp->kernel_frame = gpusim_frame_new(warp, launch->function))) return false;
    }
    return true;
}

static void free_frames(struct gpusim_frame *frame) {
    while (frame) {
        struct gpusim_frame *next = frame->next_free;
        free(frame->regs);
        free(frame);
        frame = next;
    }
}

void gpusim_resident_free(struct gpusim_resident *r) {
    for (uint32_t w = 0; r->block.warps && w < r->block.n_warps; w++) {
        struct gpusim_warp *warp = &r->block.warps[w];
        /* After a fault frames may still be in use by groups: walk from those to the kernel's frame. */
        for (uint32_t g = 0; g < warp->n_groups; g++)
            for (struct gpusim_frame *f = warp->group[g].frame; f && f->parent;) {
                struct gpusim_frame *parent = f->parent;
                gpusim_frame_leave(warp, f, warp->group[g].mask);
                f = parent;
            }
        if (warp->kernel_frame) warp->kernel_frame->next_free = NULL;
        free_frames(warp->free_frames);
        free_frames(warp->kernel_frame);
        free(warp->local);
        free(warp->async);
    }
    if (r->block.counters) r->block.launch->counting->thread_end(&r->block);
    free(r->block.warps);
    free(r->block.shared);
}

void gpusim_block_start(struct gpusim_resident *r, uint64_t number) {
    struct gpusim_block *block = &r->block;
    struct gpusim_launch *launch = block->launch;
    block->number = number;
    block->ctaid[0] = (uint32_t)(number % launch->grid[0]);
    block->ctaid[1] = (uint32_t)(number / launch->grid[0] % launch->grid[1]);
    block->ctaid[2] = (uint32_t)(number / launch->grid[0] / launch->grid[1]);
    block->sm = (uint32_t)(number % GPUSIM_N_SMS);
    block->random = gpusim_settings()->seed ^ launch->number * 0x9e3779b97f4a7c15ull ^ number * 0xd1342543de82ef95ull;
    block->n_live = block->n_warps;
    block->ready = block->n_warps == 32 ? UINT32_MAX : (1u << block->n_warps) - 1;
    memset(block->barriers, 0, sizeof block->barriers);
    memset(block->shared, 0xff, launch->reserved_base);
    memset(block->shared + launch->reserved_base, 0, block->shared_bytes - launch->reserved_base);
    for (uint32_t w = 0; w < block->n_warps; w++) {
        struct gpusim_warp *warp = &block->warps[w];
        warp->alive = warp->exists;
        warp->n_groups = 1;
        warp->n_async = 0;
        memset(warp->async_open, 0, sizeof warp->async_open);
        warp->group[0] = (struct gpusim_group){.frame = warp->kernel_frame, .mask = warp->exists};
        warp->kernel_frame->lanes = warp->exists;
        warp->random = gpusim_random(&block->random);
        for (int i = 0; i < GPUSIM_WARP; i++) warp->stack[i] = warp->local_bytes - launch->alloca_bytes;
        warp->turns = 0;
        warp->issued = 0;
    }
    r->live = true;
    if (launch->counting) launch->counting->block_begin(block);
    if (launch->hooks && launch->hooks->block_begin) launch->hooks->block_begin(launch->hooks->context, block);
}

static bool deadlock(struct gpusim_block *block) {
    for (uint32_t w = 0; w < block->n_warps; w++) {
        struct gpusim_warp *warp = &block->warps[w];
        for (uint32_t g = 0; g < warp->n_groups; g++) {
            struct gpusim_group *group = &warp->group[g];
            bool barrier = group->wait == GPUSIM_WAIT_BARRIER;
            const struct gpusim_op *op = &group->frame->function->ops[group->pc - barrier];
            if (barrier)
                gpusim_fault(warp, op, GPUSIM_FAULT_DEADLOCK, __builtin_ctz(group->mask),
                             "lanes 0x%08x wait at barrier %u, where %u threads arrived, and nothing else can run",
                             group->mask, group->member, block->barriers[group->member & 15].arrived);
            else
                gpusim_fault_at(warp, op, GPUSIM_FAULT_DEADLOCK, __builtin_ctz(group->mask),
                                &(struct gpusim_place){.report = GPUSIM_REPORT_INACTIVE_LANES},
                                "lanes 0x%08x wait for lanes 0x%08x of their warp, which never come", group->mask,
                                group->member & warp->alive & ~group->mask);
            return false;
        }
    }
    return false;
}

/* A warp that has been running for too long. */
static bool watchdog(struct gpusim_warp *warp) {
    uint64_t most = gpusim_settings()->watchdog;
    if (!most || warp->issued < most) return true;
    const struct gpusim_group *group = &warp->group[warp->current];
    gpusim_fault(warp, &group->frame->function->ops[group->pc], GPUSIM_FAULT_DEADLOCK, __builtin_ctz(group->mask),
                 "the warp has run %llu instructions and does not end (GPUSIM_WATCHDOG allows more)",
                 (unsigned long long)warp->issued);
    return false;
}

/* A bit of `ready`, drawn from the block's random numbers. */
static uint32_t draw(struct gpusim_block *block) {
    uint32_t bits = block->ready, skip = (uint32_t)(gpusim_random(&block->random) % (uint32_t)__builtin_popcount(bits));
    while (skip--) bits &= bits - 1;
    return (uint32_t)__builtin_ctz(bits);
}

bool gpusim_block_step(struct gpusim_resident *r, uint32_t turns) {
    struct gpusim_block *block = &r->block;
    while (turns--) {
        if (__atomic_load_n(&block->launch->stop, __ATOMIC_RELAXED)) return false;
        if (!block->ready) return deadlock(block);
        uint32_t w = draw(block);
        uint64_t n = gpusim_random(&block->random);
        /* Mostly long turns, which keep registers in cache; some short ones, for finer interleavings. */
        uint32_t quantum = n % 8 == 0 ? 1 + (uint32_t)(n >> 8) % 32 : 128 + (uint32_t)(n >> 8) % 1024;
        switch (gpusim_warp_run(&block->warps[w], quantum)) {
        case GPUSIM_WARP_MORE:
            if (!watchdog(&block->warps[w])) return false;
            break;
        case GPUSIM_WARP_BLOCKED:
            block->ready &= ~(1u << w);
            break;
        case GPUSIM_WARP_FAULT:
            return false;
        case GPUSIM_WARP_DONE:
            block->ready &= ~(1u << w);
            if (--block->n_live) break;
            r->live = false;
            if (block->launch->hooks && block->launch->hooks->block_end)
                block->launch->hooks->block_end(block->launch->hooks->context, block);
            return true;
        }
    }
    return true;
}
