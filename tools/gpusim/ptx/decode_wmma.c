/* wmma.load.{a,b,c}, wmma.store.d, wmma.mma. */
#include "ptx/parse.h"
#include "exec/wmma.h"

static bool access(struct ptx_parser *p, struct ptx_instruction *ins, bool load) {
    static const char *const matrices[] = {"a", "b", "c", "d", NULL};
    static const char *const spaces[] = {"global", "shared", "shared::cta", NULL};
    int matrix = ptx_take_any(ins, matrices);
    bool ok = ptx_take(ins, "sync") && ptx_take(ins, "aligned") && (load ? matrix >= 0 && matrix < 3 : matrix == 3);
    int space = ptx_take_any(ins, spaces);
    uint32_t data = load ? 0 : 1;
    struct ptx_matrix_form form;
    struct gpusim_wmma *w = gpusim_module_alloc(p->module, sizeof *w);
    if (!w) return ptx_fail(p, "out of memory");
    if (!ok || !ptx_take_matrix_form(ins, &form) || form.n_types != 1 || form.n_layouts != 1)
        return ptx_unsupported(p, ins, "form");
    w->shape.m = form.m, w->shape.n = form.n, w->shape.k = form.k;
    w->type = form.types[0];
    w->matrix = matrix > 1 ? GPUSIM_NUM_WMMA_C : (enum gpusim_num_wmma_matrix)matrix;
    w->column = form.column[0];
    /* C says nothing of the factors' type but through k. */
    static const int factors[][2] = {
        {4, GPUSIM_NUM_F64}, {8, GPUSIM_NUM_TF32}, {32, GPUSIM_NUM_S4}, {128, GPUSIM_NUM_B1}};
    w->shape.type = matrix < 2 ? w->type : GPUSIM_NUM_BF16;
    for (int f = 0; f < 4 && matrix > 1; f++)
        if (factors[f][0] == form.k) w->shape.type = factors[f][1];
    w->per_unit = w->type == GPUSIM_NUM_B1 ? 32 : w->type == GPUSIM_NUM_S4 || w->type == GPUSIM_NUM_U4 ? 8 : 1;
    bool sum = w->type == GPUSIM_NUM_F32 || w->type == GPUSIM_NUM_S32;
    bool both = w->type == GPUSIM_NUM_F16 || w->type == GPUSIM_NUM_F64;
    bool along = w->per_unit == 1 || w->column == (matrix == 1); /* small integers lie along k */
    int n = along && gpusim_num_wmma_bytes(w->type) && (both || sum == (matrix > 1))
                ? gpusim_num_wmma_registers(&w->shape, w->matrix, w->type)
                : 0;
    if (!n) return ptx_unsupported(p, ins, "no such shape and type for sm_80");
    uint32_t *list = ptx_list(p, (uint32_t)n), address, stride;
    uint8_t lanes = w->type == GPUSIM_NUM_F64 ? GPUSIM_T_F64 : GPUSIM_T_B32;
    if (!list || !ptx_vector(p, ins, data, lanes, load, list, (uint32_t)n)) return false;
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

/* The op over the fragments w->shape; `type`: of the factors. */
static bool two_products(struct ptx_parser *p, struct ptx_instruction *ins, const struct ptx_matrix_form *form,
                         struct gpusim_wmma *w, bool satfinite, uint8_t type) {
    int d = form->types[0], c = form->types[form->n_types - 1];
    w->half_d = d == GPUSIM_NUM_F16, w->half_c = c == GPUSIM_NUM_F16;
    bool mixed = w->half_d != w->half_c;
    if ((mixed ? d + c != GPUSIM_NUM_F16 + GPUSIM_NUM_F32 : d != c) || w->shape.type >= GPUSIM_NUM_N_TYPES)
        return ptx_unsupported(p, ins, "mixed types");
    struct gpusim_num_mma mma = {.m = 16, .n = 8, .k = form->k, .satfinite = satfinite, .fast = ptx_fast_mma()};
    mma.a = mma.b = (enum gpusim_num_type)w->shape.type;
    mma.c = mma.d = mixed ? GPUSIM_NUM_F32 : (enum gpusim_num_type)d;
    gpusim_num_mma_fn *call = form->bits ? NULL : gpusim_num_mma(&mma);
    uint32_t n_d = (uint32_t)gpusim_num_wmma_registers(&w->shape, GPUSIM_NUM_WMMA_C, d);
    uint32_t n_c = (uint32_t)gpusim_num_wmma_registers(&w->shape, GPUSIM_NUM_WMMA_C, c);
    if (!call || !n_d) return ptx_unsupported(p, ins, "no such shape and types for sm_80");
    uint32_t n_a = (uint32_t)gpusim_num_wmma_registers(&w->shape, GPUSIM_NUM_WMMA_A, w->shape.type);
    uint32_t n_b = (uint32_t)gpusim_num_wmma_registers(&w->shape, GPUSIM_NUM_WMMA_B, w->shape.type);
    uint32_t total = n_d + n_a + n_b + n_c, *list = ptx_list(p, total);
    struct gpusim_op *op = list ? ptx_op(p, ins, mixed ? "wmma.mixed" : "wmma.mma", NULL) : NULL;
    if (!op) return false;
    op->cls = GPUSIM_CLASS_MMA;
    op->list = list;
    op->n_list = (uint16_t)total;
    op->call.mma = call;
    if (mixed)
        op->call2.number = w->half_c ? gpusim_num_convert(GPUSIM_NUM_F32, GPUSIM_NUM_F16, GPUSIM_NUM_RN, 0)
                                     : gpusim_num_convert(GPUSIM_NUM_F16, GPUSIM_NUM_F32, GPUSIM_NUM_RN, 0);
    op->ref = w;
    op->from = type;
    op->size = (uint8_t)n_d, op->vec = (uint8_t)n_a, op->code = (uint8_t)n_b;
    op->imm = (int64_t)w->shape.m * w->shape.n * w->shape.k;
    return ptx_vector(p, ins, 0, GPUSIM_T_B32, true, list, n_d) &&
           ptx_vector(p, ins, 1, GPUSIM_T_B32, false, list + n_d, n_a) &&
           ptx_vector(p, ins, 2, GPUSIM_T_B32, false, list + n_d + n_a, n_b) &&
           ptx_vector(p, ins, 3, GPUSIM_T_B32, false, list + n_d + n_a + n_b, n_c);
}

static bool product(struct ptx_parser *p, struct ptx_instruction *ins) {
    bool ok = ptx_take(ins, "sync") && ptx_take(ins, "aligned"), satfinite = ptx_take(ins, "satfinite");
    struct ptx_matrix_form form;
    ptx_take(ins, "rn");
    struct gpusim_wmma *w = gpusim_module_alloc(p->module, sizeof *w);
    if (!w) return ptx_fail(p, "out of memory");
    if (!ok || !ptx_take_matrix_form(ins, &form) || (form.n_types != 2 && form.n_types != 4) || form.n_layouts != 2)
        return ptx_unsupported(p, ins, "form");
    bool named = form.n_types == 4; /* f16: only D and C are */
    if (named && form.types[1] != form.types[2]) return ptx_unsupported(p, ins, "mixed types");
    if (form.m == 8 && form.n == 8) {
        if (form.names[1] == GPUSIM_T_F64) form.column[0] = 0, form.column[1] = 1; /* of the matrices in memory */
        return ptx_mma_of(p, ins, &form, satfinite, false);
    }
    w->shape = (struct gpusim_num_wmma){form.m, form.n, form.k, named ? form.types[1] : GPUSIM_NUM_F16};
    return two_products(p, ins, &form, w, satfinite, named ? form.names[1] : GPUSIM_T_F16);
}

bool ptx_decode_wmma(struct ptx_parser *p, struct ptx_instruction *ins) {
    if (ptx_take(ins, "load")) return access(p, ins, true);
    if (ptx_take(ins, "store")) return access(p, ins, false);
    return ptx_take(ins, "mma") ? product(p, ins) : ptx_unsupported(p, ins, NULL);
}
