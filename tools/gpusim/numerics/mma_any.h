#pragma once

#include "tools/gpusim/numerics/numerics.h"

/* The products that gpusim_num_mma has no function of their own for, element by element: integers of 4 bits and single
 * bits, and a sparse A. Shapes m8n8 and m16n8 of sm_80, row.col. */
enum gpusim_num_small {
    GPUSIM_NUM_S4 = GPUSIM_NUM_N_TYPES, /* only here */
    GPUSIM_NUM_U4,
    GPUSIM_NUM_B1,
};
enum gpusim_num_bits { GPUSIM_NUM_BITS_NONE, GPUSIM_NUM_BITS_XOR, GPUSIM_NUM_BITS_AND }; /* then counted */

struct gpusim_num_mma_any {
    int m, n, k;
    int d, a, b, c; /* enum gpusim_num_type or enum gpusim_num_small */
    bool satfinite, sparse;
    enum gpusim_num_bits bits;
    int selector; /* sparse: which of the threads of four hold the metadata; below 4 / threads */
};

/* Is there such an instruction? Then *registers gets how many each operand takes (metadata not among them). */
bool gpusim_num_mma_any_known(const struct gpusim_num_mma_any *mma, struct gpusim_num_mma_registers *registers);

/* Fragments as for gpusim_num_mma_fn; metadata is a register, NULL for what is not sparse. Sums of floats: as those of
 * the dense product over k / 2 of what A stores, in its order (an assumption: no one has published the hardware's). */
void gpusim_num_mma_any(const struct gpusim_num_mma_any *mma, void *const *d, const void *const *a,
                        const void *const *b, const void *const *c, const uint32_t *metadata);
