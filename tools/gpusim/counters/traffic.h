/* What one memory instruction of a warp costs. Addresses of lanes outside the mask must equal an active lane's. */
#pragma once

#include "gpusim.h"

struct gpusim_sectors {
    uint32_t n, bytes;            /* bytes: asked for, each once */
    uint64_t sector[GPUSIM_WARP]; /* address / 32, each once; ascending when `run` */
    bool run;                     /* they are sector[0] + 0, 1, 2 ... */
};

/* `bytes` per lane, at most 16, aligned to themselves: each lane's lie in one sector. */
void gpusim_find_sectors(const uint64_t address[GPUSIM_WARP], uint32_t mask, uint32_t bytes,
                         struct gpusim_sectors *out);

/* Wavefronts of a shared-memory instruction. 32 banks of 4 bytes; 8 bytes per lane go by half warps, 16 by quarter
 * warps; lanes that want the same word share it, but for atomics, which take turns. *least: the same without bank
 * conflicts. */
uint32_t gpusim_wavefronts(const uint64_t address[GPUSIM_WARP], uint32_t mask, uint32_t bytes, bool atomic,
                           uint32_t *least);
