/* One mma as 16 x 8 dot products, unpacked from its fragments. */
#pragma once

#include "tools/gpusim/numerics/float_bits.h"

/* Exponents are biased by 127, of the number as it stands (not normalised): at least that of the type's smallest
 * normal number; 1 for zero. */
enum { MMA_SPECIAL = 1000 }; /* infinity and NaN */

/* An element of a factor, from its bits. */
INLINE int32_t mma_exponent(uint32_t x, enum gpusim_num_type type) {
    if (type == GPUSIM_NUM_F16) {
        int32_t field = x >> 10 & 31;
        int32_t e = field == 31 ? MMA_SPECIAL : (field ? field : 1) + 112;
        return x & 0x7fff ? e : 1;
    }
    int32_t field = (int32_t)(type == GPUSIM_NUM_BF16 ? x >> 7 & 255 : x >> 23 & 255);
    return field == 255 ? MMA_SPECIAL : field ? field : 1;
}
INLINE float mma_value(uint32_t x, enum gpusim_num_type type) {
    if (type == GPUSIM_NUM_F16) return f32_of(f32_from_f16(x));
    return f32_of(type == GPUSIM_NUM_BF16 ? x << 16 : x & 0xffffe000);
}

/* The products of one element of D come in chunks; a chunk is added to the accumulator at once. Chunk r holds k =
 * 8 r + 2 t + h of 16-bit types (halves h = 0, 1), k = 4 r + t of tf32 (h = 0 only), t = 0..3. */
struct mma_operands {
    float a[2][2][4][16]; /* [chunk][h][t][row] */
    int32_t exponent_a[2][2][4][16];
    float b[2][2][32];            /* [chunk][h][4 * column + t] */
    int32_t exponent_b[2][2][32]; /* less 127 */
};

/* One chunk exactly, any numbers: c + sum a[i] b[i] over n products (f32 bits; exponents as above, eb less 127).
 * half: the result is rounded to f16 (nearest, ties to even) and returned as f32. */
uint32_t num_mma_chunk(uint32_t c, const uint32_t *a, const uint32_t *b, const int32_t *ea, const int32_t *eb, int n,
                       int half);
