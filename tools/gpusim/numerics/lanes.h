/* Functions over 32 lanes. Every source of the lane functions is compiled once per instruction set (CMakeLists.txt);
 * ISA(name) is the name that this compilation gives to what others link to. */
#pragma once

#include "tools/gpusim/numerics/float_bits.h"

#ifndef NUMERICS_ISA
#define NUMERICS_ISA portable
#endif
#define ISA_JOIN(name, isa)   name##_##isa
#define ISA_EXPAND(name, isa) ISA_JOIN(name, isa)
#define ISA(name)             ISA_EXPAND(name, NUMERICS_ISA)

INLINE void store_lanes_32(uint32_t *restrict d, const uint32_t *restrict r, uint32_t mask) {
    if (mask == ~0u) {
        memcpy(d, r, 32 * sizeof *d);
        return;
    }
    for (int l = 0; l < 32; l++) d[l] = mask >> l & 1 ? r[l] : d[l];
}
INLINE void store_lanes_64(uint64_t *restrict d, const uint64_t *restrict r, uint32_t mask) {
    if (mask == ~0u) {
        memcpy(d, r, 32 * sizeof *d);
        return;
    }
    for (int l = 0; l < 32; l++) d[l] = mask >> l & 1 ? r[l] : d[l];
}

/* A gpusim_num_fn NAME with d[l] = EXPRESSION of x[l], y[l], z[l]; D, A, B, C: bits of a lane of d, a, b, c. */
#define LANES(NAME, D, A, B, C, EXPRESSION)                                                                            \
    static void NAME(void *d, const void *a, const void *b, const void *c, uint32_t mask) {                            \
        const uint##A##_t *x = a;                                                                                      \
        const uint##B##_t *y = b;                                                                                      \
        const uint##C##_t *z = c;                                                                                      \
        uint##D##_t r[32];                                                                                             \
        (void)y, (void)z;                                                                                              \
        for (int l = 0; l < 32; l++) r[l] = EXPRESSION;                                                                \
        store_lanes_##D(d, r, mask);                                                                                   \
    }
#define LANES_32(NAME, EXPRESSION) LANES(NAME, 32, 32, 32, 32, EXPRESSION)
#define LANES_64(NAME, EXPRESSION) LANES(NAME, 64, 64, 64, 64, EXPRESSION)

/* Look-ups that table.c of each instruction set gathers. */
struct num_table {
    gpusim_num_fn *(*arith_f32)(enum gpusim_num_op op, enum gpusim_num_rounding rounding, unsigned flags);
    gpusim_num_fn *(*arith_f64)(enum gpusim_num_op op, enum gpusim_num_rounding rounding, unsigned flags);
    gpusim_num_fn *(*arith_half)(enum gpusim_num_op op, enum gpusim_num_type type, enum gpusim_num_rounding rounding,
                                 unsigned flags);
    gpusim_num_fn *(*approx)(enum gpusim_num_op op, enum gpusim_num_type type, unsigned flags);
    gpusim_num_fn *(*convert)(enum gpusim_num_type to, enum gpusim_num_type from, enum gpusim_num_rounding rounding,
                              unsigned flags);
    gpusim_num_compare_fn *(*compare)(enum gpusim_num_comparison comparison, enum gpusim_num_type type, unsigned flags);
    gpusim_num_compare_fn *(*testp)(enum gpusim_num_test test, enum gpusim_num_type type);
    gpusim_num_mma_fn *(*mma)(const struct gpusim_num_mma *mma);
};
