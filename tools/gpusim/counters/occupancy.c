#include "counters/occupancy.h"

static uint32_t max_threads(const struct gpusim_function *f) {
    const uint32_t *bound = f->req_ntid[0] ? f->req_ntid : f->max_ntid;
    return bound[0] ? bound[0] * bound[1] * bound[2] : GPUSIM_THREADS_PER_BLOCK;
}

/* Registers go to warps in units of 256, and a warp's come from one of the SM's four partitions. */
static uint32_t by_registers(uint32_t registers, uint32_t warps) {
    enum { PARTITIONS = 4, UNIT = 256 };
    uint32_t per_warp = (registers * GPUSIM_WARP + UNIT - 1) / UNIT * UNIT;
    if (!per_warp) return GPUSIM_BLOCKS_PER_SM;
    return GPUSIM_REGISTERS_PER_SM / PARTITIONS / per_warp * PARTITIONS / warps;
}

int gpusim_occupancy_limit(const struct gpusim_function *f, uint32_t threads, size_t dynamic_shared,
                           const char **limit) {
    const char *ignored;
    if (!limit) limit = &ignored;
    *limit = "threads";
    if (!threads || threads > max_threads(f)) return 0;
    uint32_t warps = (threads + GPUSIM_WARP - 1) / GPUSIM_WARP;
    size_t shared = f->shared_bytes + dynamic_shared;
    *limit = "shared";
    if (shared > (size_t)gpusim_settings()->shared_optin) return 0;
    shared = (shared + GPUSIM_SHARED_RESERVED + 127) & ~(size_t)127;
    const struct {
        const char *name;
        uint32_t blocks;
    } limits[] = {{"blocks", GPUSIM_BLOCKS_PER_SM},
                  {"threads", GPUSIM_THREADS_PER_SM / GPUSIM_WARP / warps},
                  {"shared", (uint32_t)(gpusim_shared_per_sm() / shared)},
                  {"registers", by_registers(f->registers, warps)}};
    uint32_t least = UINT32_MAX;
    for (int i = 0; i < 4; i++)
        if (limits[i].blocks < least) least = limits[i].blocks, *limit = limits[i].name;
    return (int)least;
}
