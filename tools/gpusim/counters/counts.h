/* What is counted of a kernel and what an A100 needs for it at least. The numbers of a sampled launch (GPUSIM_SAMPLE)
 * are scaled to all its blocks; `blocks_run` says how many were run.
 *
 * Everything is additive over launches but the shape, which is the last launch's. */
#pragma once

#include "exec/op.h"

enum gpusim_tensor {
    GPUSIM_TENSOR_F16,
    GPUSIM_TENSOR_BF16,
    GPUSIM_TENSOR_TF32,
    GPUSIM_TENSOR_INT8,
    GPUSIM_TENSOR_F64,
    GPUSIM_N_TENSORS,
};
enum gpusim_traffic { GPUSIM_LOADS, GPUSIM_STORES, GPUSIM_ATOMICS, GPUSIM_COPIES, GPUSIM_MATRICES, GPUSIM_N_TRAFFIC };

/* What can bind a kernel: see bound.c. */
enum gpusim_bound {
    GPUSIM_BOUND_TENSOR,
    GPUSIM_BOUND_ISSUE,
    GPUSIM_BOUND_UNITS,
    GPUSIM_BOUND_SHARED,
    GPUSIM_BOUND_L2,
    GPUSIM_BOUND_HBM,
    GPUSIM_N_BOUNDS,
};

/* Global memory, per request of a warp. A request is one instruction of a warp with any active lane. */
struct gpusim_global_counts {
    double requests;
    double bytes;      /* asked for: a byte that several lanes ask for counts once */
    double sectors;    /* of 32 bytes that the request touches */
    double l2_sectors; /* of those, not found in the modelled L1 */
};

/* Shared memory. A wavefront is what one clock of the 32 banks can give. */
struct gpusim_shared_counts {
    double requests;
    double wavefronts;
    double least; /* wavefronts without bank conflicts */
};

/* A place in the code that wastes bandwidth. */
struct gpusim_site {
    uint32_t ptx_line, source_line; /* ptx_line: the first such op's */
    char *file;                     /* NULL: no -lineinfo */
    double conflicts;               /* wavefronts above the least */
    double sectors, sector_excess;  /* excess: above what the bytes asked for fill */
    struct gpusim_site *next;
};

struct gpusim_counts {
    char *name;
    double launches, blocks, blocks_run;
    uint32_t grid[3], block[3];
    uint32_t static_shared, dynamic_shared;
    uint32_t registers;
    bool registers_exact; /* from the machine code; otherwise an estimate from the PTX */
    uint32_t spill_bytes; /* local memory per thread beyond what the PTX asks for; 0 when not registers_exact */
    uint32_t blocks_per_sm;
    const char *limit; /* what limits blocks_per_sm: "registers", "shared", "threads", "blocks" */

    double issued[GPUSIM_N_CLASSES]; /* PTX instructions of warps */
    double machine_issued;           /* machine instructions, estimated; PTX instructions where the code is unknown */
    double idle_lanes;               /* in all issued instructions */
    double tensor_flops[GPUSIM_N_TENSORS];
    struct gpusim_global_counts global[GPUSIM_N_TRAFFIC];
    struct gpusim_shared_counts shared[GPUSIM_N_TRAFFIC];
    double local_requests, local_bytes;
    double unique_read, unique_written; /* bytes of touched sectors, once per launch */

    double seconds[GPUSIM_N_BOUNDS]; /* what each resource needs at least */
    double bound_seconds;            /* sum over launches of the longest of these */
    double waves;                    /* sum over launches of blocks / (SMs x blocks_per_sm) */
    double quantised_blocks;         /* sum over launches of 108 x the most blocks that an SM gets */

    struct gpusim_site *sites;
    struct gpusim_counts *next;
};

extern const char *const gpusim_class_names[GPUSIM_N_CLASSES];
extern const char *const gpusim_tensor_names[GPUSIM_N_TENSORS];
extern const char *const gpusim_traffic_names[GPUSIM_N_TRAFFIC];
extern const char *const gpusim_bound_names[GPUSIM_N_BOUNDS];

/* For programs that run kernels on the simulator and look at the counts themselves; the driver's lock is not taken, so
 * not while work is queued. They turn counting on and off, set the sample (0: all blocks), forget all counts, give the
 * record of a kernel (the first with this name, or NULL) or a report ("json" or "text"; free() it). */
#define GPUSIM_PUBLIC __attribute__((visibility("default")))
GPUSIM_PUBLIC void gpusim_count(bool on);
GPUSIM_PUBLIC void gpusim_sample(uint64_t blocks);
GPUSIM_PUBLIC void gpusim_forget(void);
/* An array inside an allocation: a sampled launch's unique bytes are scaled, but to no more than an array's. At most
 * 256; forgotten with the counts. */
GPUSIM_PUBLIC void gpusim_region(uint64_t address, uint64_t bytes);
GPUSIM_PUBLIC const struct gpusim_counts *gpusim_counts_of(const char *kernel);
GPUSIM_PUBLIC char *gpusim_counts_text(const char *format);

const struct gpusim_counts *gpusim_all_counts(void);

/* Fills seconds, bound_seconds, waves and quantised_blocks from the other numbers of one launch. */
void gpusim_find_bound(struct gpusim_counts *counts);
