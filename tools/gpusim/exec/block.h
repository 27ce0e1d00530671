/* A block that is being run, with memory that is used again for the next block. */
#pragma once

#include "exec/codes.h"
#include "exec/warp.h"

struct gpusim_resident {
    struct gpusim_block block;
    bool live;
};

bool gpusim_resident_new(struct gpusim_resident *resident, struct gpusim_launch *launch, uint32_t local_bytes);
void gpusim_resident_free(struct gpusim_resident *resident);

void gpusim_block_start(struct gpusim_resident *resident, uint64_t number);

/* Gives up to `turns` turns to the block's warps; clears `live` when all threads have exited. False: fault. */
bool gpusim_block_step(struct gpusim_resident *resident, uint32_t turns);
