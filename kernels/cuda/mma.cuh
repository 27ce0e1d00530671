/* The sm_80 instructions of matrix products, one function each (PTX ISA: mma, ldmatrix, cp.async). Shared memory is
 * addressed in its own 32-bit window. */
#pragma once

#include <stdint.h>

__device__ __forceinline__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

/* Starts the copy of 16 bytes; only the first `bytes` are read, the others become 0. Both addresses are multiples of
 * 16. */
__device__ __forceinline__ void copy_async(unsigned shared, const void *global, int bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/* Waits until at most N of this thread's groups are under way. */
template <int N> __device__ __forceinline__ void copy_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

__device__ __forceinline__ void store_shared(unsigned shared, uint4 v) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

/* Four 8x8 matrices of 16-bit elements. Lanes 8 i .. 8 i + 7 give the addresses of the rows of matrix i; lane l gets
 * elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 of each. */
__device__ __forceinline__ void load_matrices(unsigned (&m)[4], unsigned shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(shared)
                 : "memory");
}

/* The same of each matrix transposed: lane l gets elements l / 4 of rows 2 (l % 4) and 2 (l % 4) + 1. */
__device__ __forceinline__ void load_matrices_transposed(unsigned (&m)[4], unsigned shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(shared)
                 : "memory");
}

/* c += a b: a 16x16 by rows, b 16x8 by columns, c 16x8 in f32. Lane l holds of c rows l / 4 (c[0], c[1]) and l / 4 + 8
 * (c[2], c[3]), columns 2 (l % 4) and 2 (l % 4) + 1; of a the same in pairs, a[0] and a[1] columns 0 to 7, a[2] and
 * a[3] columns 8 to 15; of b column l / 4, b0 rows 2 (l % 4) and 2 (l % 4) + 1, b1 those + 8. Lower indices lie in
 * lower halves. */
__device__ __forceinline__ void mma_bf16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Two values rounded to bf16 (nearest even), the first in the lower half. */
__device__ __forceinline__ unsigned pack_bf16(float low, float high) {
    unsigned packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}

/* 2^x within 2 ulp; results below the least normal number are 0. exp2_fast(0) is 1. */
__device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
