/* How check/ and counters/ look on. A launch holds one struct of functions, each may be NULL; the run loop with no `op`
 * hook is a separate, faster loop. Hooks run on the host thread of the block; different blocks call them at the same
 * time. */
#pragma once

#include "exec/op.h"

struct gpusim_warp;
struct gpusim_block;
struct gpusim_launch;
struct gpusim_async;

enum gpusim_access {
    GPUSIM_ACCESS_LOAD,
    GPUSIM_ACCESS_STORE,
    GPUSIM_ACCESS_ATOMIC,
    GPUSIM_ACCESS_ASYNC_SOURCE, /* cp.async reads global memory */
    GPUSIM_ACCESS_ASYNC_TARGET, /* cp.async will write shared memory: the copy is issued; async_landed tells when it is
                                   done */
    GPUSIM_ACCESS_MATRIX,       /* ldmatrix: one row of 16 bytes per lane in mask */
    GPUSIM_ACCESS_BARRIER,      /* mbarrier object */
};

/* One memory instruction of one warp, after it passed the bounds and alignment checks, before it happens. */
struct gpusim_memory_event {
    enum gpusim_access access;
    enum gpusim_space space;          /* resolved: never GENERIC */
    uint32_t mask;                    /* lanes */
    uint32_t bytes;                   /* per lane, contiguous */
    const uint64_t *address;          /* [32] in that space (global: device address; shared: offset) */
    const uintptr_t *host;            /* [32] where the bytes are */
    struct gpusim_allocation *record; /* global: the allocation if all lanes are in one, else NULL */
};

/* What exec/ counts by itself, for every op of a function, so that counting costs no call. */
struct gpusim_tally {
    uint64_t issued, idle_lanes; /* idle_lanes: lanes that were elsewhere; those that the guard leaves out are not */
};

struct gpusim_function;

/* Counting, apart from the hooks, so that check/ and counters/ need not know of each other. None may be NULL. */
struct gpusim_counting {
    /* One host thread's part of a launch; its state is block->counters. False: no memory. */
    bool (*thread_begin)(struct gpusim_block *block);
    void (*thread_end)(struct gpusim_block *block);
    void (*block_begin)(struct gpusim_block *block);
    struct gpusim_tally *(*tally)(struct gpusim_block *block, struct gpusim_function *function); /* [n_ops] or NULL */
    void (*memory)(struct gpusim_warp *warp, const struct gpusim_op *op, const struct gpusim_memory_event *event);
};

struct gpusim_hooks {
    void *context;
    void (*launch_begin)(void *context, struct gpusim_launch *launch);
    void (*launch_end)(void *context, struct gpusim_launch *launch);
    void (*block_begin)(void *context, struct gpusim_block *block);
    void (*block_end)(void *context, struct gpusim_block *block);
    /* Before each op; `mask` are its active lanes after the guard (may be 0). */
    void (*op)(void *context, struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask);
    void (*memory)(void *context, struct gpusim_warp *warp, const struct gpusim_op *op,
                   const struct gpusim_memory_event *event);
    /* Lanes arrive at a block barrier; `waits` is false for bar.arrive. Then barrier_release when it completes. */
    void (*barrier_arrive)(void *context, struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask,
                           int barrier, bool waits);
    void (*barrier_release)(void *context, struct gpusim_block *block, int barrier);
    /* bar.warp.sync completed, or a .sync op (shfl, vote, match, redux, mma, ldmatrix) is about to run with `mask`. */
    void (*warp_sync)(void *context, struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask);
    /* Copies of the lanes in `mask` have been done; their threads may read what they wrote. */
    void (*async_landed)(void *context, struct gpusim_warp *warp, const struct gpusim_async *copy, uint32_t mask);
    /* Lanes wait for all but their last `keep` commit groups (UINT32_MAX: for every copy). */
    void (*async_wait)(void *context, struct gpusim_warp *warp, uint32_t mask, uint32_t keep);
    /* Frame memory: a function was entered (all of its frame is new), bytes were written by a call, return or driver
     * function. */
    void (*frame_enter)(void *context, struct gpusim_warp *warp, uint32_t mask, uint32_t offset, uint32_t bytes);
    void (*frame_write)(void *context, struct gpusim_warp *warp, uint32_t mask, uint32_t offset, uint32_t bytes);
    void (*fence)(void *context, struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask);
};
