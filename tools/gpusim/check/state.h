/* The checkers' own state. */
#pragma once

#include "check/check.h"
#include "exec/warp.h"

/* ---- bytes that were written: 16 bits for each 16 bytes of memory, called a granule ---- */

/* A part of a granule that one instruction accesses. */
struct piece {
    uint32_t granule;
    uint32_t bytes; /* bit per byte */
};
/* The granules that the lanes of an event touch; lanes next to each other in one granule are joined. Returns how many.
 * `base` is taken off the addresses. */
uint32_t check_pieces(const struct gpusim_memory_event *event, uint32_t lanes, uint64_t base,
                      struct piece out[GPUSIM_WARP]);
/* Most accesses of a whole warp are one after the other (ROW) or all the same (SAME). */
enum shape { SHAPE_ANY, SHAPE_ROW, SHAPE_SAME };
static inline enum shape check_shape(const struct gpusim_memory_event *event) {
    uint64_t first = event->address[0], step = event->address[1] - first, wrong = 0;
    if (event->mask != UINT32_MAX || (step && step != event->bytes)) return SHAPE_ANY;
    for (uint64_t i = 0; i < GPUSIM_WARP; i++) wrong |= event->address[i] ^ (first + i * step);
    return wrong ? SHAPE_ANY : step ? SHAPE_ROW : SHAPE_SAME;
}
/* First lane of the event that touches the piece. */
int check_lane_of(const struct gpusim_memory_event *event, uint64_t base, struct piece piece);

/* The 1 to 16 bytes that lane `lane` of a store will write. */
void check_stored(const struct gpusim_warp *warp, const struct gpusim_op *op, int lane, uint8_t out[32]);
/* Does the store write what is already there, in all lanes that touch the piece? */
bool check_same_value(const struct gpusim_warp *warp, const struct gpusim_op *op,
                      const struct gpusim_memory_event *event, uint64_t base, struct piece piece);

/* Lanes of one store that write different values to the same bytes. False: reported. */
bool check_lanes_agree(struct gpusim_warp *warp, const struct gpusim_op *op, const struct gpusim_memory_event *event);

/* ---- blocks: shared and local memory ---- */

/* Last accesses of some bytes of shared memory. Times are values of block_check.time. */
struct cell {
    uint32_t write_time, read_time; /* in a split cell write_time is the last of any access */
    uint32_t readers;               /* warps that read since the write; read_time is the earliest */
    uint16_t write_op;              /* index in the kernel's ops, UINT16_MAX: unknown */
    uint8_t writer;                 /* warp */
    uint8_t flags;
};
/* CELL_RELAXED: all reads since the write were atomic or volatile. */
enum { CELL_SPLIT = 1, CELL_ATOMIC = 2, CELL_PENDING = 4, CELL_RELAXED = 8 };

struct pending_copy {
    const struct gpusim_op *op;
    uint32_t lanes, bytes;
    uint32_t target[GPUSIM_WARP], group[GPUSIM_WARP];
    uint32_t mbarrier[GPUSIM_WARP]; /* that tells when it is done: its word, from 1; 0: none */
    uint32_t arrival[GPUSIM_WARP];  /* when it was told to */
};
struct warp_check {
    uint32_t known[GPUSIM_MAX_WARPS];   /* accesses of warp u before known[u] are done for this warp */
    uint32_t known_most;                /* the largest of known[] but its own */
    uint32_t fenced[GPUSIM_MAX_WARPS];  /* known[] at its last fence: what its signals give away */
    uint32_t seen[GPUSIM_MAX_WARPS];    /* from signals that it read: known after the next fence */
    uint32_t lanes_time;                /* accesses of this warp before this are done for all of its lanes */
    uint32_t (*pair_time)[GPUSIM_WARP]; /* [32][32] the same for pairs of lanes, when part of a warp has met; or NULL */
    struct pending_copy *pending;
    uint32_t n_pending, n_reserved;
    uint16_t *local; /* [granules][32] written bytes */
    uint32_t local_granules, local_used;
};
/* A barrier of tiles of several warps, as cooperative_groups has it in reserved shared memory: a word with a bit per
 * warp, set by its arrival and cleared by the last warp of its tile. */
struct tile_barrier {
    uint32_t arrived[GPUSIM_MAX_WARPS][GPUSIM_MAX_WARPS];   /* what a warp knew when it came */
    uint32_t completed[GPUSIM_MAX_WARPS][GPUSIM_MAX_WARPS]; /* what its tile knew when all had come */
    uint32_t waiting;                                       /* warps */
};
enum { CHECK_TILE_BARRIERS = 8 };
struct block_check {
    uint32_t time;       /* grows with every meeting in the block, and on from block to block */
    uint32_t block_time; /* accesses before this are done for all warps */
    struct warp_check warps[GPUSIM_MAX_WARPS];
    uint32_t barrier_known[GPUSIM_N_BARRIERS][GPUSIM_MAX_WARPS];
    uint32_t barrier_lanes[GPUSIM_N_BARRIERS][GPUSIM_MAX_WARPS]; /* that have come */
    uint32_t (*signals)[GPUSIM_MAX_WARPS]; /* per 4 bytes of shared memory: what those knew who arrived or released
                                              there */
    bool any_signal;                       /* of this block */
    struct tile_barrier *tiles;            /* [CHECK_TILE_BARRIERS] */
    uint16_t *written;                     /* [granules] of shared memory */
    struct cell *cell16, *cell4, *cell1;   /* per 16, 4 and 1 bytes: the finer ones where the coarser one is split */
    uint8_t *write_lane, *read_lane;       /* per byte: 0-31, or CHECK_MANY */
    void *memory;
    size_t memory_bytes;
    struct block_check *next;
};
enum { CHECK_MANY = 0xff, CHECK_NO_LANE = 0xfe };

void check_shared(struct gpusim_warp *warp, const struct gpusim_op *op, const struct gpusim_memory_event *event);
void check_shared_wait(struct gpusim_warp *warp, uint32_t mask, uint32_t keep);
/* An mbarrier's word is told of, or asked for, copies that are done. */
void check_shared_bind(struct gpusim_warp *warp, uint32_t mask, uint32_t word);
void check_shared_landed(struct gpusim_block *block, uint32_t word);
void check_local(struct gpusim_warp *warp, const struct gpusim_op *op, const struct gpusim_memory_event *event);
void check_frame_enter(void *context, struct gpusim_warp *warp, uint32_t mask, uint32_t offset, uint32_t bytes);
void check_frame_write(void *context, struct gpusim_warp *warp, uint32_t mask, uint32_t offset, uint32_t bytes);

void check_block_begin(void *context, struct gpusim_block *block);
void check_blocks_done(void);

void check_barrier_arrive(void *context, struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask,
                          int barrier, bool waits);
void check_barrier_release(void *context, struct gpusim_block *block, int barrier);
void check_warp_sync(void *context, struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask);

/* Signals through shared memory (signals.c). */
void check_mbarrier(struct gpusim_warp *warp, const struct gpusim_op *op, const struct gpusim_memory_event *event);
void check_signal_fence(struct gpusim_warp *warp);
void check_signal_shared(struct gpusim_warp *warp, const struct gpusim_op *op, const struct gpusim_memory_event *event);
/* Accesses that are done for whoever knew `known` are done for the warp too. */
void check_take(struct warp_check *mine, const uint32_t *known);

/* ---- launches and copies: global memory ---- */

/* Last accesses of 16 bytes of global memory: operation number above bit 34, CELL64_SPLIT, block. Values are read and
 * written whole, so that blocks on other host threads cause no false report. */
struct global_shadow {
    uint16_t *written;
    uint64_t *writes, *reads;           /* [granules] */
    uint64_t *byte_writes, *byte_reads; /* [bytes] where a granule is split */
    void *memory;
    size_t memory_bytes;
};
struct global_access {
    const struct gpusim_operation *operation;
    uint32_t block; /* number, or GLOBAL_HOST */
    bool write, exempt;
    uint64_t other; /* of a conflict: the cell */
    enum gpusim_report_kind conflict;
    bool other_wrote;
};
#define GLOBAL_HOST   0xffffffffu /* a copy or set */
#define GLOBAL_MANY   0xfffffffeu /* read by several blocks */
#define GLOBAL_EXEMPT 0xfffffffdu /* atomic or volatile */

void check_memory_new(struct gpusim_allocation *allocation);
/* False: a conflict, described in `access`. */
bool check_global_piece(struct global_access *access, struct global_shadow *shadow, struct piece piece);
void check_global(struct gpusim_warp *warp, const struct gpusim_op *op, const struct gpusim_memory_event *event);
void check_mark_written(struct global_shadow *shadow, uint64_t offset, uint64_t bytes);

/* Fences and atomics of a launch's blocks (threadfence.c). */
void check_fences_begin(struct gpusim_launch *launch);
void check_fences_end(void);
void check_fence(void *context, struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask);
void check_signal(struct gpusim_warp *warp, const struct gpusim_op *op);
/* Before each access of global memory. */
void check_acquired(const struct gpusim_warp *warp);
bool check_fenced(const struct gpusim_launch *launch, uint64_t writer, uint64_t reader);

/* order.c */
bool check_ordered(const struct gpusim_operation *operation, uint32_t earlier);
void check_describe(uint32_t operation, char *out, size_t n);
