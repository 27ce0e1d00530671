/* wmma.load, wmma.store, wmma.mma. Which lane holds what is in numerics/wmma.c. */
#include "exec/access.h"
#include "exec/wmma.h"

static bool all_meet(struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask, int *next) {
    if (!gpusim_meet(warp, mask, UINT32_MAX, next)) return false;
    if (warp->hooks && warp->hooks->warp_sync) warp->hooks->warp_sync(warp->hooks->context, warp, op, mask);
    return true;
}

/* One access of the warp: element h of each lane's register `data`. */
static int part(struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask, enum gpusim_access access,
                uint64_t address[GPUSIM_WARP], uint8_t *data, int h) {
    uintptr_t host[GPUSIM_WARP];
    size_t lane = op->size == 8 ? 8 : 4, at = op->size * (size_t)h;
    int next = gpusim_resolve(warp, op, op->space, access, mask, op->size, op->size, address, host);
    if (next) return next;
    for (size_t i = 0; i < GPUSIM_WARP; i++) {
        if (access == GPUSIM_ACCESS_STORE)
            memcpy((void *)host[i], data + i * lane + at, op->size);
        else
            memcpy(data + i * lane + at, (const void *)host[i], op->size);
    }
    return GPUSIM_NEXT;
}

/* b: stride in elements. */
static int fragment(struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask, enum gpusim_access access) {
    const struct gpusim_wmma *w = op->ref;
    uint64_t base[GPUSIM_WARP], address[GPUSIM_WARP];
    const uint32_t *stride = REGS32(op->b);
    int next;
    if (!all_meet(warp, op, mask, &next)) return next;
    gather_addresses(warp, op, op->a, op->imm, mask, base);
    for (int r = 0; r < op->n_list; r++) {
        uint64_t in[GPUSIM_WARP];
        bool load = access == GPUSIM_ACCESS_LOAD;
        uint8_t *data = load ? (uint8_t *)in : (uint8_t *)REGS32(op->list[r]);
        for (int h = 0; h < (op->size == 8 ? 1 : 4 / op->size); h++) {
            for (int i = 0; i < GPUSIM_WARP; i++) {
                struct gpusim_num_wmma_place at = gpusim_num_wmma_place(&w->shape, w->matrix, w->type, r, i, h);
                uint64_t slow = (uint64_t)(w->column ? at.column : at.row),
                         fast = (uint64_t)(w->column ? at.row : at.column);
                address[i] = base[i] + (slow * stride[i] / (uint32_t)w->per_unit + fast) * op->size;
            }
            next = part(warp, op, mask, access, address, data, h);
            if (next) return next;
        }
        if (load) memcpy(REGS32(op->list[r]), in, op->size == 8 ? sizeof in : sizeof in / 2);
    }
    return GPUSIM_NEXT;
}
HANDLER(wmma_load) { return fragment(warp, op, mask, GPUSIM_ACCESS_LOAD); }
HANDLER(wmma_store) { return fragment(warp, op, mask, GPUSIM_ACCESS_STORE); }

/* list: registers of D, A, B, C; size, vec, code: how many D, A and B have. */
HANDLER(wmma_mma) {
    const struct gpusim_wmma *w = op->ref;
    void *registers[64];
    int next;
    if (!all_meet(warp, op, mask, &next)) return next;
    for (uint32_t r = 0; r < op->n_list; r++) registers[r] = warp->regs + op->list[r];
    void **a = registers + op->size, **b = a + op->vec, **c = b + op->code;
    gpusim_num_wmma(&w->shape, op->call.mma, op->size / 2, registers, (const void *const *)a, (const void *const *)b,
                    (const void *const *)c);
    return GPUSIM_NEXT;
}

/* The same with f16 C and f32 D, or the other way round: summed in f32; call2 converts. */
HANDLER(wmma_mixed) {
    const struct gpusim_wmma *w = op->ref;
    const void *in[64];
    uint32_t sums[8][GPUSIM_WARP], half[GPUSIM_WARP];
    void *s[8];
    int next;
    if (!all_meet(warp, op, mask, &next)) return next;
    for (uint32_t r = 0; r < op->n_list; r++) in[r] = warp->regs + op->list[r];
    const void *const *a = in + op->size, *const *b = a + op->vec, *const *c = b + op->code;
    for (int r = 0; r < 8; r++) {
        s[r] = sums[r];
        if (!w->half_c) memcpy(sums[r], c[r], sizeof sums[r]);
        for (int i = 0; w->half_c && i < GPUSIM_WARP; i++) half[i] = ((const uint32_t *)c[r / 2])[i] >> 16 * (r & 1);
        if (w->half_c) op->call2.number(sums[r], half, NULL, NULL, UINT32_MAX);
    }
    gpusim_num_wmma(&w->shape, op->call.mma, 4, s, a, b, (const void *const *)s);
    for (int r = 0; r < 8; r++) {
        uint32_t *d = REGS32(op->list[w->half_d ? r / 2 : r]);
        if (w->half_d) op->call2.number(sums[r], sums[r], NULL, NULL, UINT32_MAX);
        for (int i = 0; i < GPUSIM_WARP; i++) d[i] = w->half_d && r & 1 ? d[i] | sums[r][i] << 16 : sums[r][i];
    }
    return GPUSIM_NEXT;
}

const struct gpusim_entry TABLE(ops_wmma)[] = {
    {"wmma.load", wmma_load},
    {"wmma.store", wmma_store},
    {"wmma.mma", wmma_mma},
    {"wmma.mixed", wmma_mixed},
    {NULL, NULL},
};
