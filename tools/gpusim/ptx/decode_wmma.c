/* wmma.load.{a,b,c}, wmma.store.d, wmma.mma. */
#include "ptx/parse.h"
#include "exec/wmma.h"

#include <stdio.h>
#include <string.h>

/* Shape, layouts (1: col) and types, each in order; takes them off the modifiers. */
static bool shape_and_types(struct ptx_instruction *ins, struct gpusim_num_wmma *shape, int layout[2], int types[4],
                            int *n_types) {
    int n_layouts = 0, found = 0;
    *n_types = 0;
    for (uint32_t m = 0; m < ins->n_mods; m++) {
        const char *mod = ins->mods[m];
        if (!mod) continue;
        uint8_t type = ptx_type(mod);
        if (type && *n_types < 4)
            types[(*n_types)++] = ptx_number_type(type);
        else if (!found && sscanf(mod, "m%2dn%2dk%2d", &shape->m, &shape->n, &shape->k) == 3)
            found = 1;
        else if (n_layouts < 2 && (!strcmp(mod, "row") || !strcmp(mod, "col")))
            layout[n_layouts++] = mod[0] == 'c';
        else
            continue;
        ins->mods[m] = NULL;
    }
    for (int t = 0; t < *n_types; t++)
        if (types[t] < 0) return false;
    return found && n_layouts && *n_types;
}

static bool access(struct ptx_parser *p, struct ptx_instruction *ins, bool load) {
    static const char *const matrices[] = {"a", "b", "c", "d", NULL};
    static const char *const spaces[] = {"global", "shared", "shared::cta", NULL};
    int layout[2] = {0, 0}, types[4], n_types, matrix = ptx_take_any(ins, matrices);
    bool ok = ptx_take(ins, "sync") && ptx_take(ins, "aligned") && (load ? matrix >= 0 && matrix < 3 : matrix == 3);
    int space = ptx_take_any(ins, spaces);
    uint32_t data = load ? 0 : 1;
    struct gpusim_wmma *w = gpusim_module_alloc(p->module, sizeof *w);
    if (!w) return ptx_fail(p, "out of memory");
    if (!ok || !shape_and_types(ins, &w->shape, layout, types, &n_types) || n_types != 1)
        return ptx_unsupported(p, ins, "form");
    w->type = (enum gpusim_num_type)types[0];
    w->matrix = matrix > 1 ? GPUSIM_NUM_WMMA_C : (enum gpusim_num_wmma_matrix)matrix;
    w->column = layout[0];
    /* C says nothing of the factors' type but through k. */
    w->shape.type = matrix < 2 ? w->type : w->shape.k == 8 ? GPUSIM_NUM_TF32 : GPUSIM_NUM_BF16;
    bool sum = w->type == GPUSIM_NUM_F32 || w->type == GPUSIM_NUM_S32 || w->type == GPUSIM_NUM_F16;
    bool factor = w->type != GPUSIM_NUM_F32 && w->type != GPUSIM_NUM_S32;
    int n = gpusim_num_wmma_bytes(w->type) && (matrix < 2 ? factor : sum)
                ? gpusim_num_wmma_registers(&w->shape, w->matrix, w->type)
                : 0;
    if (!n) return ptx_unsupported(p, ins, "no such shape and type for sm_80");
    uint32_t *list = ptx_list(p, (uint32_t)n), address, stride;
    if (!list || !ptx_vector(p, ins, data, GPUSIM_T_B32, load, list, (uint32_t)n)) return false;
    if (ins->n_operands > 2) {
        if (!ptx_source(p, ins, 2, GPUSIM_T_B32, &stride)) return false;
    } else {
        int rows = w->matrix == GPUSIM_NUM_WMMA_B ? w->shape.k : w->shape.m;
        int columns = w->matrix == GPUSIM_NUM_WMMA_A ? w->shape.k : w->shape.n;
        if (!(stride = ptx_constant(p, 1, (uint64_t)(w->column ? rows : columns)))) return ptx_fail(p, "out of memory");
    }
    struct gpusim_op *op = ptx_op(p, ins, load ? "wmma.load" : "wmma.store", NULL);
    if (!op) return false;
    op->cls = load ? GPUSIM_CLASS_LOAD : GPUSIM_CLASS_STORE;
    op->space = space < 0 ? GPUSIM_GENERIC : space ? GPUSIM_SHARED : GPUSIM_GLOBAL;
    op->size = (uint8_t)gpusim_num_wmma_bytes(w->type);
    op->list = list;
    op->n_list = (uint16_t)n;
    op->b = stride;
    op->ref = w;
    if (!ptx_address(p, ins, load ? 1 : 0, op, &address)) return false;
    op->a = address;
    return true;
}

static bool product(struct ptx_parser *p, struct ptx_instruction *ins) {
    int layout[2] = {0, 0}, types[4], n_types;
    bool ok = ptx_take(ins, "sync") && ptx_take(ins, "aligned"), satfinite = ptx_take(ins, "satfinite");
    ptx_take(ins, "rn");
    struct gpusim_wmma *w = gpusim_module_alloc(p->module, sizeof *w);
    if (!w) return ptx_fail(p, "out of memory");
    if (!ok || !shape_and_types(ins, &w->shape, layout, types, &n_types) || (n_types != 2 && n_types != 4))
        return ptx_unsupported(p, ins, "form");
    int factor = n_types == 4 ? types[1] : GPUSIM_NUM_F16; /* f16: only D and C are named */
    if (types[0] != types[n_types - 1] || (n_types == 4 && types[2] != factor))
        return ptx_unsupported(p, ins, "mixed types");
    w->shape.type = (enum gpusim_num_type)factor;
    struct gpusim_num_mma mma = {.m = 16, .n = 8, .k = w->shape.k, .satfinite = satfinite, .fast = ptx_fast_mma()};
    mma.a = mma.b = w->shape.type;
    mma.c = mma.d = (enum gpusim_num_type)types[0];
    gpusim_num_mma_fn *call = gpusim_num_mma(&mma);
    uint32_t n_d = (uint32_t)gpusim_num_wmma_registers(&w->shape, GPUSIM_NUM_WMMA_C, mma.d);
    if (!call || !n_d) return ptx_unsupported(p, ins, "no such shape and types for sm_80");
    uint32_t n_a = (uint32_t)gpusim_num_wmma_registers(&w->shape, GPUSIM_NUM_WMMA_A, mma.a);
    uint32_t n_b = (uint32_t)gpusim_num_wmma_registers(&w->shape, GPUSIM_NUM_WMMA_B, mma.b);
    uint32_t total = 2 * n_d + n_a + n_b, *list = ptx_list(p, total);
    struct gpusim_op *op = list ? ptx_op(p, ins, "wmma.mma", NULL) : NULL;
    if (!op) return false;
    op->cls = GPUSIM_CLASS_MMA;
    op->list = list;
    op->n_list = (uint16_t)total;
    op->call.mma = call;
    op->ref = w;
    op->size = (uint8_t)n_d, op->vec = (uint8_t)n_a, op->code = (uint8_t)n_b;
    op->imm = (int64_t)w->shape.m * w->shape.n * w->shape.k;
    return ptx_vector(p, ins, 0, GPUSIM_T_B32, true, list, n_d) &&
           ptx_vector(p, ins, 1, GPUSIM_T_B32, false, list + n_d, n_a) &&
           ptx_vector(p, ins, 2, GPUSIM_T_B32, false, list + n_d + n_a, n_b) &&
           ptx_vector(p, ins, 3, GPUSIM_T_B32, false, list + n_d + n_a + n_b, n_d);
}

bool ptx_decode_wmma(struct ptx_parser *p, struct ptx_instruction *ins) {
    if (ptx_take(ins, "load")) return access(p, ins, true);
    if (ptx_take(ins, "store")) return access(p, ins, false);
    return ptx_take(ins, "mma") ? product(p, ins) : ptx_unsupported(p, ins, NULL);
}
