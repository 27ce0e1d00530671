/* Running state: launch -> block -> warp -> group of lanes -> frame. */
#pragma once

#include "exec/hooks.h"
#include "exec/memory.h"
#include "exec/module.h"

#include <pthread.h>

/* The registers of one call of a function by some lanes of a warp. */
struct gpusim_frame {
    struct gpusim_function *function;
    struct gpusim_frame *parent;
    const struct gpusim_op *call; /* in the parent; NULL for the kernel */
    uint32_t return_pc;
    uint32_t lanes;             /* lanes still inside */
    uint32_t depth;             /* kernel: 0 */
    uint32_t local_base;        /* where its frame memory starts in each thread's local memory */
    uint32_t *regs;             /* [function->frame_words], 64-byte aligned */
    struct gpusim_tally *tally; /* [function->n_ops], NULL: not counted */
    struct gpusim_frame *next_free;
    uint64_t order;              /* creation number: tells frames of one depth apart */
    uint32_t stack[GPUSIM_WARP]; /* of functions with alloca: warp->stack when they were entered */
};

enum gpusim_wait { GPUSIM_RUNNABLE, GPUSIM_WAIT_BARRIER, GPUSIM_WAIT_SYNC };

/* Lanes of a warp that are at the same pc of the same frame. */
struct gpusim_group {
    struct gpusim_frame *frame;
    uint32_t pc, mask;
    uint32_t wait;         /* enum gpusim_wait */
    uint32_t member;       /* WAIT_SYNC: lanes that must come; WAIT_BARRIER: barrier number */
    uint32_t warp_barrier; /* WAIT_SYNC in bar.warp.sync, which may be met at different pcs */
    uint32_t *red;         /* WAIT_BARRIER: where bar.red's result goes (register), or NULL */
    uint32_t red_predicate;
};

/* cp.async: one op's copies, done when waited for (or earlier, by the seed). Bounds were checked when it was issued. */
struct gpusim_async {
    const struct gpusim_op *op;
    uint32_t mask; /* lanes whose copy has not landed */
    uint32_t bytes;
    uintptr_t source[GPUSIM_WARP], target[GPUSIM_WARP]; /* host addresses */
    uint32_t source_bytes[GPUSIM_WARP];                 /* the rest of the target is zeroed */
    uint32_t target_offset[GPUSIM_WARP];                /* in shared memory */
    uint32_t group[GPUSIM_WARP];                        /* number of its lane's commit group */
};

struct gpusim_warp {
    /* Hot: the running group. */
    uint32_t *regs;
    uint32_t pc, mask;
    struct gpusim_frame *frame;
    struct gpusim_block *block;
    struct gpusim_launch *launch;
    const struct gpusim_hooks *hooks;    /* NULL: none */
    struct gpusim_allocation *recent[2]; /* the allocations last used by loads and by stores */
    uint8_t *local;                      /* [32][local_bytes] */
    uint32_t local_bytes;
    uint32_t index;              /* in the block */
    uint32_t stack[GPUSIM_WARP]; /* where the next alloca starts; above all frames */

    struct gpusim_group group[GPUSIM_WARP];
    uint32_t n_groups, current;
    uint32_t alive, exists; /* lanes */
    uint32_t turns;  /* counts quanta: some go to another group than the lowest, so that spinning lanes make way */
    uint64_t issued; /* ops */

    struct gpusim_async *async;
    uint32_t n_async, n_async_reserved;
    uint32_t async_open[GPUSIM_WARP]; /* per lane: number of the commit group being filled */

    uint32_t tid[3][GPUSIM_WARP];
    struct gpusim_frame *kernel_frame, *free_frames;
    uint64_t frame_count;
    uint64_t random;
};

struct gpusim_barrier {
    uint32_t arrived, expected; /* threads; expected 0: all of the block */
    uint32_t red_count, red_threads;
};

struct gpusim_block {
    struct gpusim_launch *launch;
    uint32_t ctaid[3];
    uint64_t number; /* linear index */
    uint8_t *shared;
    uint32_t shared_bytes;
    uint32_t sm;
    struct gpusim_warp *warps;
    uint32_t n_warps, n_live; /* n_live: warps with lanes that have not exited */
    uint32_t ready;           /* warps that may run */
    struct gpusim_barrier barriers[GPUSIM_N_BARRIERS];
    uint64_t random;
    void *check; /* for check/ */
    void *counters;
};

enum gpusim_fault_kind {
    GPUSIM_FAULT_NONE,
    GPUSIM_FAULT_ADDRESS,
    GPUSIM_FAULT_MISALIGNED,
    GPUSIM_FAULT_TRAP,
    GPUSIM_FAULT_ASSERT,
    GPUSIM_FAULT_INSTRUCTION, /* not implemented */
    GPUSIM_FAULT_DEADLOCK,
    GPUSIM_FAULT_STACK,
    GPUSIM_FAULT_CHECK, /* a checker's finding */
    GPUSIM_FAULT_MEMORY,
};

struct gpusim_launch {
    struct gpusim_function *function;
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared_bytes, shared_bytes; /* shared_bytes: static + dynamic */
    uint32_t dynamic_base;
    uint32_t alloca_bytes;  /* of each thread's local memory, the last ones */
    uint32_t reserved_base; /* from here to shared_bytes, usually nothing: zeros at the start of a block */
    const uint8_t *params;
    int device;
    bool cooperative;
    struct gpusim_heap *heap; /* NULL: the module has no malloc, or there is no memory for it */
    uint64_t workspace; /* cooperative: device address of its size and a barrier word, which cooperative_groups uses */
    uint64_t number;    /* counts launches of the process from 1 */
    const struct gpusim_hooks *hooks;
    const struct gpusim_counting *counting;        /* NULL: not counted */
    void *counters;                                /* for counters/ */
    uint64_t sample;                               /* how many blocks to run, 0: all */
    struct gpusim_range ranges[GPUSIM_MAX_RANGES]; /* gpusim_tensors; none: not told */
    size_t n_ranges;

    /* Running. */
    uint64_t n_blocks, n_run, next_block; /* n_run: of n_blocks, or the sample; next_block: atomic, below n_run */
    int stop;                             /* atomic: a fault happened */
    pthread_mutex_t mutex;
    enum gpusim_fault_kind fault;
    struct gpusim_report report; /* of the first fault */
    void *check;                 /* for check/: where the launch stands among the operations of all streams */
};

/* Runs all blocks; false when the launch failed (fault, report). */
bool gpusim_launch_run(struct gpusim_launch *launch);

/* Records the launch's first fault with kernel, PTX line, source line, block, thread; returns GPUSIM_FAULT. `lane` -1:
 * none. */
int gpusim_fault(struct gpusim_warp *warp, const struct gpusim_op *op, enum gpusim_fault_kind kind, int lane,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The same, naming what was accessed. `kind` ADDRESS, MISALIGNED or CHECK; the finding is place->report. */
struct gpusim_place {
    enum gpusim_report_kind report;
    enum gpusim_space space;
    uint64_t address;
    const struct gpusim_allocation *allocation; /* or NULL */
};
int gpusim_fault_at(struct gpusim_warp *warp, const struct gpusim_op *op, enum gpusim_fault_kind kind, int lane,
                    const struct gpusim_place *place, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* The source line of an op, into file, line, at_file, at_line; false: not known. */
bool gpusim_source(const struct gpusim_function *function, const struct gpusim_op *op, struct gpusim_report *out);

/* group.c: runs a warp for up to `quantum` ops. */
enum gpusim_outcome { GPUSIM_WARP_MORE, GPUSIM_WARP_BLOCKED, GPUSIM_WARP_DONE, GPUSIM_WARP_FAULT };
enum gpusim_outcome gpusim_warp_run(struct gpusim_warp *warp, uint32_t quantum);

/* Splits the lanes `mask` off the running group into a new group and returns it; the rest goes on at pc + 1.
 * When `mask` is the whole group, returns the group itself. */
struct gpusim_group *gpusim_split(struct gpusim_warp *warp, uint32_t mask);
void gpusim_remove_group(struct gpusim_warp *warp, struct gpusim_group *group);

/* For .sync ops: true when all living lanes of `member` are in `mask`; otherwise the lanes wait at this op and the
 * handler must return *next. */
bool gpusim_meet(struct gpusim_warp *warp, uint32_t mask, uint32_t member, int *next);

/* frame.c */
struct gpusim_frame *gpusim_frame_new(struct gpusim_warp *warp, struct gpusim_function *function);
void gpusim_frame_leave(struct gpusim_warp *warp, struct gpusim_frame *frame, uint32_t lanes);

/* barrier.c: lanes arrive; completes the barrier if it is full. */
void gpusim_barrier_check(struct gpusim_block *block, int number);

/* Registers. */
#define REGS32(offset) ((uint32_t *)__builtin_assume_aligned(warp->regs + (offset), 64))
#define REGS64(offset) ((uint64_t *)__builtin_assume_aligned(warp->regs + (offset), 64))
