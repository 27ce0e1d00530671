/* ldmatrix, movmatrix and mma.sync: fragments are in numerics/, here only who takes part and where the bytes are. */
#include "exec/access.h"
#include "numerics/mma_any.h"

static bool aligned(struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask, int *next) {
    if (!gpusim_meet(warp, mask, UINT32_MAX, next)) return false;
    if (warp->hooks && warp->hooks->warp_sync) warp->hooks->warp_sync(warp->hooks->context, warp, op, mask);
    return true;
}

/* list: vec destination registers; lanes 8 m ... 8 m + 7 give the rows' addresses of matrix m. code 1: transposed. */
HANDLER(ldmatrix) {
    uint64_t address[GPUSIM_WARP];
    uintptr_t host[GPUSIM_WARP];
    uint8_t rows[GPUSIM_WARP][16];
    uint32_t *d[4];
    int next;
    if (!aligned(warp, op, mask, &next)) return next;
    uint32_t givers = op->vec == 4 ? UINT32_MAX : (1u << (8 * op->vec)) - 1;
    gather_addresses(warp, op, op->a, op->imm, mask & givers, address);
    next = gpusim_resolve(warp, op, op->space, GPUSIM_ACCESS_MATRIX, mask & givers, 16, 16, address, host);
    if (next) return next;
    for (uint32_t i = 0; i < 8u * op->vec; i++) memcpy(rows[i], (const void *)host[i], 16);
    for (uint32_t m = 0; m < op->vec; m++) d[m] = REGS32(op->list[m]);
    gpusim_num_ldmatrix(d, (const uint8_t(*)[16])rows, op->vec, op->code);
    return GPUSIM_NEXT;
}

HANDLER(movmatrix) {
    int next;
    if (!aligned(warp, op, mask, &next)) return next;
    gpusim_num_movmatrix(REGS32(op->d), REGS32(op->a));
    return GPUSIM_NEXT;
}

/* list: registers of D, A, B, C; size, vec: how many D (and C) and A have, code: B. */
HANDLER(mma) {
    void *registers[64];
    int next;
    if (!aligned(warp, op, mask, &next)) return next;
    for (uint32_t r = 0; r < op->n_list; r++) registers[r] = warp->regs + op->list[r];
    void **a = registers + op->size, **b = a + op->vec, **c = b + op->code;
    op->call.mma(registers, (const void *const *)a, (const void *const *)b, (const void *const *)c);
    return GPUSIM_NEXT;
}

/* The same for what ref says; a: metadata. */
HANDLER(mma_any) {
    const void *in[64];
    void *out[16];
    int next;
    if (!aligned(warp, op, mask, &next)) return next;
    for (uint32_t r = 0; r < op->n_list; r++) in[r] = warp->regs + op->list[r];
    for (uint32_t r = 0; r < op->size; r++) out[r] = warp->regs + op->list[r];
    const void *const *a = in + op->size, *const *b = a + op->vec, *const *c = b + op->code;
    gpusim_num_mma_any(op->ref, out, a, b, c, REGS32(op->a));
    return GPUSIM_NEXT;
}

const struct gpusim_entry TABLE(ops_matrix)[] = {
    {"ldmatrix", ldmatrix}, {"movmatrix", movmatrix}, {"mma", mma}, {"mma.any", mma_any}, {NULL, NULL},
};
