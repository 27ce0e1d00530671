/* From the addresses of a memory op to host pointers, with the bounds and alignment checks that hardware makes. */
#pragma once

#include "exec/lanes.h"

/* Addresses of a memory op's lanes in its own space, from op->a, op->imm and op->base. Lanes outside the mask get the
 * address of the first lane in it, so that whole-warp vector code needs no mask. */
static inline void gather_addresses(struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t reg, int64_t imm,
                                    uint32_t mask, uint64_t address[GPUSIM_WARP]) {
    if (op->base == GPUSIM_BASE_FRAME)
        imm += warp->frame->local_base;
    else if (op->base == GPUSIM_BASE_DYNAMIC_SHARED)
        imm += warp->launch->dynamic_base;
    if (op->flags & GPUSIM_ADDR64) {
        const uint64_t *a = REGS64(reg);
        _Pragma("omp simd") for (int i = 0; i < GPUSIM_WARP; i++) address[i] = a[i] + (uint64_t)imm;
    } else {
        const uint32_t *a = REGS32(reg);
        _Pragma("omp simd") for (int i = 0; i < GPUSIM_WARP; i++) address[i] = (uint32_t)(a[i] + (uint32_t)imm);
    }
    if (mask != UINT32_MAX) {
        uint64_t first = address[__builtin_ctz(mask)];
        _Pragma("omp simd") for (int i = 0; i < GPUSIM_WARP; i++) address[i] = mask >> i & 1 ? address[i] : first;
    }
}

/* Fills host[] for the lanes; resolves generic addresses (address[] is then in the resolved space of each lane). Calls
 * the memory hook. Returns GPUSIM_NEXT or GPUSIM_FAULT. */
int gpusim_resolve(struct gpusim_warp *warp, const struct gpusim_op *op, enum gpusim_space space,
                   enum gpusim_access access, uint32_t mask, uint32_t bytes, uint32_t align,
                   uint64_t address[GPUSIM_WARP], uintptr_t host[GPUSIM_WARP]);
