/* ldmatrix, movmatrix and mma.sync. Fragment layouts: PTX ISA, "Matrix Fragments for mma.m16n8k*". With g = lane / 4, t
 * = lane % 4 and `per` elements in a register: register r of A holds row g + 8 (r % 2), columns 4 per (r / 2) + per t +
 * e; register r of B holds rows 4 per r + per t + e of column g; C and D hold row g + 8 (r / 2), column 2 t + r % 2
 * (f16 pairs: row g + 8 r, columns 2 t + e). */
#include "exec/access.h"
#include "numerics/half.h"
#include "numerics/mma.h"

static bool aligned(struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask, int *next) {
    if (!gpusim_meet(warp, mask, UINT32_MAX, next)) return false;
    if (warp->hooks && warp->hooks->warp_sync) warp->hooks->warp_sync(warp->hooks->context, warp, op, mask);
    return true;
}

/* list: vec destination registers; lanes 8 m ... 8 m + 7 give the rows' addresses of matrix m. code 1: transposed. */
HANDLER(ldmatrix) {
    uint64_t address[GPUSIM_WARP];
    uintptr_t host[GPUSIM_WARP];
    int next;
    if (!aligned(warp, op, mask, &next)) return next;
    uint32_t rows = op->vec == 4 ? UINT32_MAX : (1u << (8 * op->vec)) - 1;
    gather_addresses(warp, op, op->a, op->imm, mask & rows, address);
    next = gpusim_resolve(warp, op, op->space, GPUSIM_ACCESS_MATRIX, mask & rows, 16, 16, address, host);
    if (next) return next;
    for (uint32_t m = 0; m < op->vec; m++) {
        uint32_t *d = REGS32(op->list[m]);
        if (!op->code) {
            for (int i = 0; i < GPUSIM_WARP; i++)
                memcpy(&d[i], (const void *)(host[8 * m + (uint32_t)i / 4] + 4 * ((uint32_t)i % 4)), 4);
            continue;
        }
        uint16_t tile[8][8];
        for (int row = 0; row < 8; row++) memcpy(tile[row], (const void *)host[8 * m + (uint32_t)row], 16);
        for (int i = 0; i < GPUSIM_WARP; i++)
            d[i] = tile[2 * (i % 4)][i / 4] | (uint32_t)tile[2 * (i % 4) + 1][i / 4] << 16;
    }
    return GPUSIM_NEXT;
}

HANDLER(movmatrix) { /* transposes an 8 x 8 matrix of 16-bit elements that lies in a register */
    int next;
    if (!aligned(warp, op, mask, &next)) return next;
    uint16_t tile[8][8];
    const uint32_t *a = REGS32(op->a);
    uint32_t *d = REGS32(op->d);
    for (int i = 0; i < GPUSIM_WARP; i++)
        tile[i / 4][2 * (i % 4)] = (uint16_t)a[i], tile[i / 4][2 * (i % 4) + 1] = (uint16_t)(a[i] >> 16);
    for (int i = 0; i < GPUSIM_WARP; i++)
        d[i] = tile[2 * (i % 4)][i / 4] | (uint32_t)tile[2 * (i % 4) + 1][i / 4] << 16;
    return GPUSIM_NEXT;
}

/* list: D registers, then A, B, C. op->code: k; op->from: type of A and B; op->size their per-register count of
 * elements. */
struct fragments {
    const uint32_t *d, *a, *b, *c;
    int n_d, n_a, n_b;
};
static struct fragments fragments(const struct gpusim_op *op, int k) {
    int per = op->size, n_d = op->type == GPUSIM_T_F16 ? 2 : 4, n_a = k / (2 * per), n_b = k / (4 * per);
    return (struct fragments){op->list, op->list + n_d, op->list + n_d + n_a, op->list + n_d + n_a + n_b, n_d, n_a,
                              n_b};
}

static inline float element(uint32_t word, int e, int type) {
    switch (type) {
    case GPUSIM_T_BF16:
        return as_float(e ? word & 0xffff0000u : word << 16);
    case GPUSIM_T_F16:
        return num_from_f16(e ? word >> 16 : word & 0xffff);
    default:
        return as_float(word & 0xffffe000u); /* tf32: the low 13 bits are not read */
    }
}

static inline void load_float(struct gpusim_warp *warp, const struct fragments *f, int k, int per, int type, float *a,
                              float *b) {
    for (int r = 0; r < f->n_a; r++) {
        const uint32_t *s = REGS32(f->a[r]);
        for (int i = 0; i < GPUSIM_WARP; i++)
            for (int e = 0; e < per; e++)
                a[(i / 4 + 8 * (r % 2)) * k + 4 * per * (r / 2) + per * (i % 4) + e] = element(s[i], e, type);
    }
    for (int r = 0; r < f->n_b; r++) {
        const uint32_t *s = REGS32(f->b[r]);
        for (int i = 0; i < GPUSIM_WARP; i++)
            for (int e = 0; e < per; e++) b[(4 * per * r + per * (i % 4) + e) * 8 + i / 4] = element(s[i], e, type);
    }
}

static inline void mma_float(struct gpusim_warp *warp, const struct gpusim_op *op, int k, int per, int type) {
    struct fragments f = fragments(op, k);
    float a[16 * 16], b[16 * 8], d[16 * 8];
    load_float(warp, &f, k, per, type, a, b);
    if (f.n_d == 2)
        for (int r = 0; r < 2; r++)
            for (int i = 0; i < GPUSIM_WARP; i++)
                for (int e = 0; e < 2; e++)
                    d[(i / 4 + 8 * r) * 8 + 2 * (i % 4) + e] = element(REGS32(f.c[r])[i], e, GPUSIM_T_F16);
    else
        for (int r = 0; r < 4; r++) {
            const uint32_t *s = REGS32(f.c[r]);
            for (int i = 0; i < GPUSIM_WARP; i++) d[(i / 4 + 8 * (r / 2)) * 8 + 2 * (i % 4) + r % 2] = as_float(s[i]);
        }
    num_mma_f32(k, a, b, d);
    for (int i = 0; i < 16 * 8; i++) d[i] = d[i] == d[i] ? d[i] : as_float(0x7fffffff);
    if (f.n_d == 2)
        for (int r = 0; r < 2; r++)
            for (int i = 0; i < GPUSIM_WARP; i++) {
                const float *pair = &d[(i / 4 + 8 * r) * 8 + 2 * (i % 4)];
                REGS32(f.d[r])[i] = num_to_f16(pair[0]) | num_to_f16(pair[1]) << 16;
            }
    else
        for (int r = 0; r < 4; r++) {
            uint32_t *to = REGS32(f.d[r]);
            for (int i = 0; i < GPUSIM_WARP; i++)
                to[i] = float_bits(d[(i / 4 + 8 * (r / 2)) * 8 + 2 * (i % 4) + r % 2]);
        }
}

#define MMA(name, k, per, type)                                                                                        \
    HANDLER(mma_##name) {                                                                                              \
        int next;                                                                                                      \
        if (!aligned(warp, op, mask, &next)) return next;                                                              \
        mma_float(warp, op, k, per, type);                                                                             \
        return GPUSIM_NEXT;                                                                                            \
    }
MMA(bf16_k16, 16, 2, GPUSIM_T_BF16)
MMA(bf16_k8, 8, 2, GPUSIM_T_BF16)
MMA(f16_k16, 16, 2, GPUSIM_T_F16)
MMA(f16_k8, 8, 2, GPUSIM_T_F16)
MMA(tf32_k8, 8, 1, GPUSIM_T_TF32)
MMA(tf32_k4, 4, 1, GPUSIM_T_TF32)

static int32_t integer(uint32_t word, int e, int bits, bool is_signed) {
    uint32_t v = word >> (e * bits) & ((1u << bits) - 1);
    return is_signed ? (int32_t)(v << (32 - bits)) >> (32 - bits) : (int32_t)v;
}

/* s8, u8, s4, u4: bits = 32 / per. op->flags: GPUSIM_SIGNED for A, GPUSIM_WRITE for B, GPUSIM_SAT. */
HANDLER(mma_integer) {
    int next, k = op->code, per = op->size, bits = 32 / per;
    if (!aligned(warp, op, mask, &next)) return next;
    struct fragments f = fragments(op, k);
    int32_t a[16 * 64], b[64 * 8], d[16 * 8];
    for (int r = 0; r < f.n_a; r++)
        for (int i = 0; i < GPUSIM_WARP; i++)
            for (int e = 0; e < per; e++)
                a[(i / 4 + 8 * (r % 2)) * k + 4 * per * (r / 2) + per * (i % 4) + e] =
                    integer(REGS32(f.a[r])[i], e, bits, op->flags & GPUSIM_SIGNED);
    for (int r = 0; r < f.n_b; r++)
        for (int i = 0; i < GPUSIM_WARP; i++)
            for (int e = 0; e < per; e++)
                b[(4 * per * r + per * (i % 4) + e) * 8 + i / 4] =
                    integer(REGS32(f.b[r])[i], e, bits, op->flags & GPUSIM_WRITE);
    for (int r = 0; r < 4; r++)
        for (int i = 0; i < GPUSIM_WARP; i++)
            d[(i / 4 + 8 * (r / 2)) * 8 + 2 * (i % 4) + r % 2] = (int32_t)REGS32(f.c[r])[i];
    num_mma_s32(k, a, b, d, op->flags & GPUSIM_SAT);
    for (int r = 0; r < 4; r++)
        for (int i = 0; i < GPUSIM_WARP; i++)
            REGS32(f.d[r])[i] = (uint32_t)d[(i / 4 + 8 * (r / 2)) * 8 + 2 * (i % 4) + r % 2];
    return GPUSIM_NEXT;
}

/* m8n8k4 in double: A row g, column t; B row t, column g; C and D row g, columns 2 t and 2 t + 1. */
HANDLER(mma_f64) {
    int next;
    if (!aligned(warp, op, mask, &next)) return next;
    const uint64_t *a = REGS64(op->list[2]), *b = REGS64(op->list[3]);
    uint64_t out[2][GPUSIM_WARP];
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < GPUSIM_WARP; i++) {
            double sum = as_double(REGS64(op->list[4 + r])[i]);
            for (int k = 0; k < 4; k++)
                sum = __builtin_fma(as_double(a[i / 4 * 4 + k]), as_double(b[(2 * (i % 4) + r) * 4 + k]), sum);
            out[r][i] = double_bits(sum);
        }
    for (int r = 0; r < 2; r++) memcpy(REGS64(op->list[r]), out[r], sizeof out[r]);
    return GPUSIM_NEXT;
}

const struct gpusim_entry TABLE(ops_matrix)[] = {
    {"ldmatrix", ldmatrix},
    {"movmatrix", movmatrix},
    {"mma.bf16.k16", mma_bf16_k16},
    {"mma.bf16.k8", mma_bf16_k8},
    {"mma.f16.k16", mma_f16_k16},
    {"mma.f16.k8", mma_f16_k8},
    {"mma.tf32.k8", mma_tf32_k8},
    {"mma.tf32.k4", mma_tf32_k4},
    {"mma.integer", mma_integer},
    {"mma.f64", mma_f64},
    {NULL, NULL},
};
