/* mma.sync and mma.sp. */
#include "ptx/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ptx_fast_mma(void) {
    const char *mode = getenv("GPUSIM_MMA");
    return mode && !strcmp(mode, "fast");
}

static int small_type(const char *name) {
    static const char *const names[] = {"s4", "u4", "b1", NULL};
    for (int t = 0; names[t]; t++)
        if (!strcmp(names[t], name)) return GPUSIM_NUM_S4 + t;
    return -1;
}

bool ptx_take_matrix_form(struct ptx_instruction *ins, struct ptx_matrix_form *form) {
    static const char *const operations[] = {"xor", "and", NULL};
    *form = (struct ptx_matrix_form){.m = 0};
    form->bits = (enum gpusim_num_bits)(ptx_take_any(ins, operations) + 1);
    if (form->bits && !ptx_take(ins, "popc")) return false;
    for (uint32_t at = 0; at < ins->n_mods; at++) {
        const char *mod = ins->mods[at];
        if (!mod) continue;
        uint8_t type = ptx_type(mod);
        int small = small_type(mod);
        if ((type || small >= 0) && form->n_types < 4) {
            form->types[form->n_types] = type ? ptx_number_type(type) : small;
            form->names[form->n_types++] = type;
        } else if (!form->m && sscanf(mod, "m%2dn%2dk%3d", &form->m, &form->n, &form->k) == 3)
            ;
        else if (form->n_layouts < 2 && (!strcmp(mod, "row") || !strcmp(mod, "col")))
            form->column[form->n_layouts++] = mod[0] == 'c';
        else
            continue;
        ins->mods[at] = NULL;
    }
    for (int t = 0; t < form->n_types; t++)
        if (form->types[t] < 0) return false;
    return form->m && form->n_types;
}

static bool any_of(const struct ptx_matrix_form *form, bool satfinite, struct gpusim_num_mma_any *mma,
                   struct gpusim_num_mma_registers *n) {
    if (form->column[0] || !form->column[1]) return false;
    mma->m = form->m, mma->n = form->n, mma->k = form->k;
    mma->d = form->types[0], mma->a = form->types[1], mma->b = form->types[2], mma->c = form->types[3];
    mma->satfinite = satfinite;
    mma->bits = form->bits;
    return gpusim_num_mma_any_known(mma, n);
}

/* What has no function of its own: D, A, B, C, and for a sparse A the metadata and the selector. */
static bool any(struct ptx_parser *p, struct ptx_instruction *ins, const struct ptx_matrix_form *form, bool satfinite,
                bool sparse) {
    struct gpusim_num_mma_any *mma = gpusim_module_alloc(p->module, sizeof *mma);
    if (!mma) return ptx_fail(p, "out of memory");
    mma->sparse = sparse;
    uint32_t metadata = 0;
    if (sparse) {
        const struct ptx_operand *selector = ins->n_operands == 6 ? &ins->operands[5] : NULL;
        if (!selector || selector->kind != PTX_OPERAND_IMMEDIATE || selector->bits > 3)
            return ptx_unsupported(p, ins, "expected metadata and a selector of 0 to 3");
        mma->selector = (int)selector->bits;
        if (!ptx_source(p, ins, 4, GPUSIM_T_B32, &metadata)) return false;
    }
    struct gpusim_num_mma_registers n;
    if (!any_of(form, satfinite, mma, &n)) return ptx_unsupported(p, ins, "no such shape and types for sm_80");
    uint32_t total = (uint32_t)(n.d + n.a + n.b + n.c), *list = ptx_list(p, total);
    struct gpusim_op *op = list ? ptx_op(p, ins, "mma.any", NULL) : NULL;
    if (!op) return false;
    op->cls = GPUSIM_CLASS_MMA;
    op->list = list;
    op->n_list = (uint16_t)total;
    op->ref = mma;
    op->a = metadata;
    op->size = (uint8_t)n.d, op->vec = (uint8_t)n.a, op->code = (uint8_t)n.b;
    op->type = form->names[0];
    op->from = form->names[1] ? form->names[1] : GPUSIM_T_S8;
    /* Counters take small integers as so many bytes, and of a sparse matrix what is there: the tensor core's time. */
    op->imm = (int64_t)mma->m * mma->n * mma->k / (mma->sparse ? 2 : 1);
    if (!form->names[1]) op->imm /= mma->a == GPUSIM_NUM_B1 ? 8 : 2;
    return ptx_vector(p, ins, 0, GPUSIM_T_B32, true, list, (uint32_t)n.d) &&
           ptx_vector(p, ins, 1, GPUSIM_T_B32, false, list + n.d, (uint32_t)n.a) &&
           ptx_vector(p, ins, 2, GPUSIM_T_B32, false, list + n.d + n.a, (uint32_t)n.b) &&
           ptx_vector(p, ins, 3, GPUSIM_T_B32, false, list + n.d + n.a + n.b, (uint32_t)n.c);
}

bool ptx_mma_of(struct ptx_parser *p, struct ptx_instruction *ins, const struct ptx_matrix_form *form, bool satfinite,
                bool sparse) {
    struct gpusim_num_mma mma = {.fast = ptx_fast_mma(), .satfinite = satfinite};
    if (form->n_types != 4) return ptx_unsupported(p, ins, "form");
    if (sparse || !form->names[1]) return any(p, ins, form, satfinite, sparse);
    mma.m = form->m, mma.n = form->n, mma.k = form->k;
    mma.d = (enum gpusim_num_type)form->types[0], mma.a = (enum gpusim_num_type)form->types[1];
    mma.b = (enum gpusim_num_type)form->types[2], mma.c = (enum gpusim_num_type)form->types[3];
    mma.a_column = form->column[0], mma.b_row = !form->column[1];
    bool small = !form->names[0] || !form->names[2] || !form->names[3];
    gpusim_num_mma_fn *call = form->bits || small ? NULL : gpusim_num_mma(&mma);
    if (!call) return ptx_unsupported(p, ins, "no such shape and types for sm_80");
    struct gpusim_num_mma_registers n = gpusim_num_mma_registers(&mma);
    uint32_t total = (uint32_t)(n.d + n.a + n.b + n.c), *list = ptx_list(p, total);
    struct gpusim_op *op = list ? ptx_op(p, ins, "mma", NULL) : NULL;
    if (!op) return false;
    op->cls = GPUSIM_CLASS_MMA;
    op->list = list;
    op->n_list = (uint16_t)total;
    op->call.mma = call;
    op->size = (uint8_t)n.d, op->vec = (uint8_t)n.a, op->code = (uint8_t)n.b;
    op->type = form->names[0];
    op->from = form->names[1];
    op->imm = (int64_t)mma.m * mma.n * mma.k; /* multiply-adds, for counters */
    uint8_t lanes = op->type == GPUSIM_T_F64 ? GPUSIM_T_F64 : GPUSIM_T_B32;
    return ptx_vector(p, ins, 0, lanes, true, list, (uint32_t)n.d) &&
           ptx_vector(p, ins, 1, lanes, false, list + n.d, (uint32_t)n.a) &&
           ptx_vector(p, ins, 2, lanes, false, list + n.d + n.a, (uint32_t)n.b) &&
           ptx_vector(p, ins, 3, lanes, false, list + n.d + n.a + n.b, (uint32_t)n.c);
}

bool ptx_decode_mma(struct ptx_parser *p, struct ptx_instruction *ins) {
    struct ptx_matrix_form form;
    bool sparse = ptx_take(ins, "sp") || ptx_take(ins, "sp::ordered_metadata");
    bool ok = ptx_take(ins, "sync") && ptx_take(ins, "aligned"), satfinite = ptx_take(ins, "satfinite");
    ptx_take(ins, "rn");
    if (!ok || !ptx_take_matrix_form(ins, &form)) return ptx_unsupported(p, ins, "form");
    return ptx_mma_of(p, ins, &form, satfinite, sparse);
}
