/* wmma.load, wmma.store, wmma.mma. Which lane holds what is in numerics/wmma.c. */
#include "exec/access.h"
#include "exec/wmma.h"

static bool all_meet(struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask, int *next) {
    if (!gpusim_meet(warp, mask, UINT32_MAX, next)) return false;
    if (warp->hooks && warp->hooks->warp_sync) warp->hooks->warp_sync(warp->hooks->context, warp, op, mask);
    return true;
}

/* b: stride in elements. Element h of each lane's register r: one access of the warp. */
static int fragment(struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask, enum gpusim_access access) {
    const struct gpusim_wmma *w = op->ref;
    uint64_t base[GPUSIM_WARP], address[GPUSIM_WARP];
    uintptr_t host[GPUSIM_WARP];
    const uint32_t *stride = REGS32(op->b);
    int next;
    if (!all_meet(warp, op, mask, &next)) return next;
    gather_addresses(warp, op, op->a, op->imm, mask, base);
    for (int r = 0; r < op->n_list; r++) {
        uint32_t *data = REGS32(op->list[r]), in[GPUSIM_WARP] = {0};
        for (int h = 0; h < 4 / op->size; h++) {
            for (int i = 0; i < GPUSIM_WARP; i++) {
                struct gpusim_num_wmma_place at = gpusim_num_wmma_place(&w->shape, w->matrix, w->type, r, i, h);
                uint64_t slow = (uint64_t)(w->column ? at.column : at.row),
                         fast = (uint64_t)(w->column ? at.row : at.column);
                address[i] = base[i] + (slow * stride[i] + fast) * op->size;
            }
            next = gpusim_resolve(warp, op, op->space, access, mask, op->size, op->size, address, host);
            if (next) return next;
            for (int i = 0; i < GPUSIM_WARP; i++) {
                uint32_t value = data[i] >> (8 * op->size * h % 32);
                if (access == GPUSIM_ACCESS_STORE)
                    memcpy((void *)host[i], &value, op->size);
                else {
                    value = 0;
                    memcpy(&value, (const void *)host[i], op->size);
                    in[i] |= value << (8 * op->size * h % 32);
                }
            }
        }
        if (access == GPUSIM_ACCESS_LOAD) memcpy(data, in, sizeof in);
    }
    return GPUSIM_NEXT;
}
HANDLER(wmma_load) { return fragment(warp, op, mask, GPUSIM_ACCESS_LOAD); }
HANDLER(wmma_store) { return fragment(warp, op, mask, GPUSIM_ACCESS_STORE); }

/* list: registers of D, A, B, C; size, vec, code: how many D (and C), A and B have. */
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

const struct gpusim_entry TABLE(ops_wmma)[] = {
    {"wmma.load", wmma_load},
    {"wmma.store", wmma_store},
    {"wmma.mma", wmma_mma},
    {NULL, NULL},
};
