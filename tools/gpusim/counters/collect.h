/* Counting a launch: begin before it runs, end after. */
#pragma once

#include "exec/warp.h"

/* Sets launch->counting when this launch is to be counted, and launch->sample. */
void gpusim_counters_begin(struct gpusim_launch *launch);
void gpusim_counters_end(struct gpusim_launch *launch);

/* What one memory op has done. */
struct gpusim_op_traffic {
    uint64_t global_requests, bytes, sectors, l2_sectors;
    uint64_t shared_requests, wavefronts, least;
    uint64_t local_requests, local_bytes;
};

/* The counts of a function's ops in one launch, or in one host thread's part of it. */
struct gpusim_part {
    struct gpusim_function *function;
    struct gpusim_tally *tally;        /* [n_ops] */
    struct gpusim_op_traffic *traffic; /* [n_ops] */
    struct gpusim_part *next;
};

/* machine.c: machine instructions that warps issued, estimated; 0: unknown. */
double gpusim_machine_issued(const struct gpusim_function *function, const struct gpusim_tally *tally);

/* records.c: adds a launch to the record of its kernel. */
void gpusim_record(const struct gpusim_launch *launch, const struct gpusim_part *parts);
