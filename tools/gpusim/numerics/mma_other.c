/* mma.sync of f64, of 8-bit integers, and m8n8k4 of f16: element by element. */
#include <math.h>

#include "tools/gpusim/numerics/lanes.h"
#include "tools/gpusim/numerics/mma_dot.h"

gpusim_num_mma_fn *ISA(num_mma_dot)(const struct gpusim_num_mma *mma);

/* m8n8k4: fma over k in order, to nearest. A: row g, column t; B: row t, column g; C: row g, columns 2 t, 2 t + 1. */
static void mma_f64(void *const *d, const void *const *a, const void *const *b, const void *const *c) {
    gpusim_num_fn *fma_lanes = gpusim_num_arith(GPUSIM_NUM_FMA, GPUSIM_NUM_F64, GPUSIM_NUM_RN, 0);
    const uint64_t *x = a[0], *y = b[0];
    uint64_t sum[2][32];
    for (int j = 0; j < 2; j++) {
        memcpy(sum[j], c[j], sizeof sum[j]);
        for (int k = 0; k < 4; k++) {
            uint64_t p[32], q[32];
            for (int l = 0; l < 32; l++) p[l] = x[(l & ~3) + k], q[l] = y[4 * (2 * (l & 3) + j) + k];
            fma_lanes(sum[j], p, q, sum[j], ~0u);
        }
    }
    memcpy(d[0], sum[0], sizeof sum[0]), memcpy(d[1], sum[1], sizeof sum[1]);
}

/* Byte k of row or column i: registers of `regs` step 16 columns of k per pair of row halves. */
INLINE void unpack_bytes(int32_t out[16][32], const void *const *regs, int rows, int k, int is_signed) {
    for (int r = 0; r < rows / 8 * k / 16; r++) {
        const uint32_t *words = regs[r];
        int row0 = rows == 16 ? r % 2 * 8 : 0, k0 = (rows == 16 ? r / 2 : r) * 16;
        for (int l = 0; l < 32; l++)
            for (int i = 0; i < 4; i++) {
                uint32_t byte = words[l] >> 8 * i & 255;
                out[row0 + l / 4][k0 + l % 4 * 4 + i] = is_signed ? (int8_t)byte : (int32_t)byte;
            }
    }
}

/* The sum over k is exact; it is added to C and wraps, or is clamped. */
INLINE void mma_int(void *const *d, const void *const *a, const void *const *b, const void *const *c, int m, int k,
                    int signed_a, int signed_b, int satfinite) {
    int32_t x[16][32], y[16][32], sum[16][8];
    unpack_bytes(x, a, m, k, signed_a);
    unpack_bytes(y, b, 8, k, signed_b);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < 8; j++) {
            int32_t s = 0;
            for (int h = 0; h < k; h++) s += x[i][h] * y[j][h];
            sum[i][j] = s;
        }
    for (int r = 0; r < m / 4; r++) {
        const int32_t *in = c[r];
        int32_t *out = d[r];
        for (int l = 0; l < 32; l++) {
            int64_t s = (int64_t)sum[l / 4 + r / 2 * 8][l % 4 * 2 + r % 2] + in[l];
            if (satfinite) s = s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : s;
            out[l] = (int32_t)(uint32_t)s;
        }
    }
}

/* m8n8k4 of f16: four products of matrices, the q-th by lanes 4 q .. 4 q + 3 and 16 more. */
static uint32_t element(const void *const *regs, int lane, int i) {
    const uint32_t *words = regs[i / 2];
    return words[lane] >> 16 * (i % 2) & 0xffff;
}
/* Lane and index of the f32 accumulator of row i, column j. */
static void f32_place(int q, int i, int j, int *lane, int *index) {
    *lane = 4 * q + (i & 4 ? 16 : 0) + (i & 1) + (j & 2);
    *index = (i & 2) + (j & 4) + (j & 1);
}
INLINE void mma_quads(void *const *d, const void *const *a, const void *const *b, const void *const *c, int column_a,
                      int row_b, int half_c, int half_d) {
    uint32_t out[8][32] = {{0}};
    for (int q = 0; q < 4; q++)
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < 8; j++) {
                int group_i = 4 * q + (i & 4 ? 16 : 0), group_j = 4 * q + (j & 4 ? 16 : 0), lane, index;
                uint32_t x[4], y[4];
                int32_t ex[4], ey[4];
                for (int k = 0; k < 4; k++) {
                    uint32_t p = column_a ? element(a, group_i + k, i & 3) : element(a, group_i + (i & 3), k);
                    uint32_t r = row_b ? element(b, group_j + k, j & 3) : element(b, group_j + (j & 3), k);
                    uint32_t field_p = p >> 10 & 31, field_r = r >> 10 & 31;
                    ex[k] = p & 0x7fff ? (int32_t)(field_p ? field_p : 1) + 112 : 1;
                    ey[k] = (r & 0x7fff ? (int32_t)(field_r ? field_r : 1) + 112 : 1) - 127;
                    x[k] = f32_from_f16(p), y[k] = f32_from_f16(r);
                }
                f32_place(q, i, j, &lane, &index);
                uint32_t sum =
                    half_c ? f32_from_f16(element(c, group_i + (i & 3), j)) : ((const uint32_t *)c[index])[lane];
                sum = num_mma_chunk(sum, x, y, ex, ey, 4, half_d);
                if (half_d)
                    out[j / 2][group_i + (i & 3)] |= f16_from_f32(sum, GPUSIM_NUM_RN) << 16 * (j % 2);
                else
                    out[index][lane] = sum;
            }
    for (int r = 0; r < (half_d ? 4 : 8); r++) memcpy(d[r], out[r], sizeof out[r]);
}

#define MMA(NAME, CALL)                                                                                                \
    static void NAME(void *const *d, const void *const *a, const void *const *b, const void *const *c) { CALL; }
#define INTEGER(NAME, M, K)                                                                                            \
    MMA(NAME##_uu, mma_int(d, a, b, c, M, K, 0, 0, 0))                                                                 \
    MMA(NAME##_us, mma_int(d, a, b, c, M, K, 0, 1, 0))                                                                 \
    MMA(NAME##_su, mma_int(d, a, b, c, M, K, 1, 0, 0))                                                                 \
    MMA(NAME##_ss, mma_int(d, a, b, c, M, K, 1, 1, 0))                                                                 \
    MMA(NAME##_uu_sat, mma_int(d, a, b, c, M, K, 0, 0, 1))                                                             \
    MMA(NAME##_us_sat, mma_int(d, a, b, c, M, K, 0, 1, 1))                                                             \
    MMA(NAME##_su_sat, mma_int(d, a, b, c, M, K, 1, 0, 1))                                                             \
    MMA(NAME##_ss_sat, mma_int(d, a, b, c, M, K, 1, 1, 1))                                                             \
    static gpusim_num_mma_fn *const NAME[2][2][2] = {{{NAME##_uu, NAME##_uu_sat}, {NAME##_us, NAME##_us_sat}},         \
                                                     {{NAME##_su, NAME##_su_sat}, {NAME##_ss, NAME##_ss_sat}}};
INTEGER(m8n8k16, 8, 16)
INTEGER(m16n8k16, 16, 16)
INTEGER(m16n8k32, 16, 32)

#define QUADS(NAME, A, B)                                                                                              \
    MMA(NAME##_ff, mma_quads(d, a, b, c, A, B, 0, 0))                                                                  \
    MMA(NAME##_fh, mma_quads(d, a, b, c, A, B, 1, 0))                                                                  \
    MMA(NAME##_hh, mma_quads(d, a, b, c, A, B, 1, 1))
#define QUADS_NAMES(NAME)                                                                                              \
    { NAME##_ff, NAME##_fh, NULL, NAME##_hh }
QUADS(row_column, 0, 0)
QUADS(row_row, 0, 1)
QUADS(column_column, 1, 0)
QUADS(column_row, 1, 1)

static gpusim_num_mma_fn *integer(const struct gpusim_num_mma *mma) {
    int signed_a = mma->a == GPUSIM_NUM_S8, signed_b = mma->b == GPUSIM_NUM_S8;
    if ((!signed_a && mma->a != GPUSIM_NUM_U8) || (!signed_b && mma->b != GPUSIM_NUM_U8)) return NULL;
    if (mma->c != GPUSIM_NUM_S32 || mma->n != 8 || mma->a_column || mma->b_row) return NULL;
    if (mma->m == 8 && mma->k == 16) return m8n8k16[signed_a][signed_b][mma->satfinite];
    if (mma->m == 16 && mma->k == 16) return m16n8k16[signed_a][signed_b][mma->satfinite];
    return mma->m == 16 && mma->k == 32 ? m16n8k32[signed_a][signed_b][mma->satfinite] : NULL;
}

static gpusim_num_mma_fn *quads(const struct gpusim_num_mma *mma) {
    static gpusim_num_mma_fn *const all[4][4] = {QUADS_NAMES(row_column), QUADS_NAMES(row_row),
                                                 QUADS_NAMES(column_column), QUADS_NAMES(column_row)};
    int half_c = mma->c == GPUSIM_NUM_F16, half_d = mma->d == GPUSIM_NUM_F16;
    if ((!half_c && mma->c != GPUSIM_NUM_F32) || (!half_d && mma->d != GPUSIM_NUM_F32)) return NULL;
    return mma->a == GPUSIM_NUM_F16 && mma->b == GPUSIM_NUM_F16 && !mma->satfinite
               ? all[mma->a_column * 2 + mma->b_row][half_d * 2 + half_c]
               : NULL;
}

gpusim_num_mma_fn *ISA(num_mma)(const struct gpusim_num_mma *mma);
gpusim_num_mma_fn *ISA(num_mma)(const struct gpusim_num_mma *mma) {
    int f64 = mma->a == GPUSIM_NUM_F64 && mma->b == GPUSIM_NUM_F64 && mma->c == GPUSIM_NUM_F64;
    if (mma->d == GPUSIM_NUM_S32) return integer(mma);
    if (mma->m == 16) return ISA(num_mma_dot)(mma);
    if (mma->m != 8 || mma->n != 8 || mma->k != 4) return NULL;
    if (mma->d == GPUSIM_NUM_F64) return f64 && !mma->a_column && !mma->b_row && !mma->satfinite ? mma_f64 : NULL;
    return quads(mma);
}
