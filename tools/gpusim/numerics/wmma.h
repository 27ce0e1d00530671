#pragma once

#include "tools/gpusim/numerics/mma_any.h"

/* wmma: fragments of m16n16, m32n8 and m8n32 are those of two m16n8 products (m8n32: of the transposed matrices), so
 * that a wmma.mma is two mma.sync, as on an A100. f16 A and B have more registers than that takes; they repeat.
 * m8n8 (f64, small integers) has the fragments of mma.sync m8n8. */
enum gpusim_num_wmma_matrix { GPUSIM_NUM_WMMA_A, GPUSIM_NUM_WMMA_B, GPUSIM_NUM_WMMA_C };
struct gpusim_num_wmma {
    int m, n, k;
    int type; /* of A and B: F16, BF16, TF32, S8, U8, F64, S4, U4, B1 */
};
/* Bytes of an element of the matrix, whose type is `type` (smaller ones: of the 32 bits of them that count as one
 * element); registers of its fragment. 0: no such fragment. */
int gpusim_num_wmma_bytes(int type);
int gpusim_num_wmma_registers(const struct gpusim_num_wmma *wmma, enum gpusim_num_wmma_matrix matrix, int type);
/* Where element h of lane l's register r lies. C is also D. */
struct gpusim_num_wmma_place {
    int row, column;
};
struct gpusim_num_wmma_place gpusim_num_wmma_place(const struct gpusim_num_wmma *wmma,
                                                   enum gpusim_num_wmma_matrix matrix, int type, int r, int l, int h);
/* D = A B + C with the m16n8 product `mma`, whose D has n_d registers. */
void gpusim_num_wmma(const struct gpusim_num_wmma *wmma, gpusim_num_mma_fn *mma, int n_d, void *const *d,
                     const void *const *a, const void *const *b, const void *const *c);
