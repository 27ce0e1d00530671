/* cp.async, mbarrier, ldmatrix, movmatrix. */
#include "exec/codes.h"
#include "ptx/parse.h"

#include <string.h>

static void drop_level2(struct ptx_instruction *ins) {
    for (uint32_t m = 0; m < ins->n_mods; m++)
        if (ins->mods[m] && !strncmp(ins->mods[m], "L2::", 4)) ins->mods[m] = NULL;
}
static int take_shared(struct ptx_instruction *ins) {
    static const char *const names[] = {"shared", "shared::cta", NULL};
    return ptx_take_any(ins, names) >= 0 ? GPUSIM_SHARED : GPUSIM_GENERIC;
}

static bool copy(struct ptx_parser *p, struct ptx_instruction *ins) {
    bool global_only = ptx_take(ins, "cg");
    if (!global_only && !ptx_take(ins, "ca")) return ptx_unsupported(p, ins, "form");
    drop_level2(ins);
    ptx_take(ins, "global");
    take_shared(ins);
    struct gpusim_op *op = ptx_op(p, ins, "cp.async", NULL), source = {.space = GPUSIM_GLOBAL};
    uint32_t *list = ptx_list(p, 2);
    if (!op || !list || ins->n_operands < 3 || ins->operands[2].kind != PTX_OPERAND_IMMEDIATE)
        return ptx_unsupported(p, ins, "form");
    uint64_t bytes = ins->operands[2].bits;
    if ((bytes != 4 && bytes != 8 && bytes != 16) || (global_only && bytes != 16))
        return ptx_unsupported(p, ins, "copy size");
    op->space = GPUSIM_SHARED;
    op->size = (uint8_t)bytes;
    if (global_only) op->flags |= GPUSIM_CACHE_GLOBAL;
    if (!ptx_address(p, ins, 0, op, &op->a) || !ptx_address(p, ins, 1, &source, &list[0])) return false;
    if (!(source.flags & GPUSIM_ADDR64)) return ptx_unsupported(p, ins, "32-bit source address");
    op->ref = (const void *)(intptr_t)source.imm;
    op->list = list;
    op->n_list = 1;
    if (ins->n_operands < 4) return true;
    const struct ptx_operand *o = &ins->operands[3];
    if (o->kind == PTX_OPERAND_REGISTER && o->type == GPUSIM_T_PRED) { /* ignore-src */
        op->code = 1;
        return ptx_predicate(p, ins, 3, &op->c, &op->flags, GPUSIM_NOT_C);
    }
    if (o->kind == PTX_OPERAND_REGISTER && ptx_lane_words(o->type) == 2) return true; /* cache policy */
    op->n_list = 2;
    return ptx_source(p, ins, 3, GPUSIM_T_B32, &list[1]);
}

static bool mbarrier_op(struct ptx_parser *p, struct ptx_instruction *ins, int code, uint32_t address, int count,
                        uint8_t count_type) {
    int space = take_shared(ins);
    ptx_take(ins, "cta");
    ptx_take_type(ins);
    struct gpusim_op *op = ptx_op(p, ins, "mbarrier", NULL);
    if (!op) return false;
    op->space = (uint8_t)space;
    op->code = (uint8_t)code;
    if (!ptx_address(p, ins, address, op, &op->a)) return false;
    return count < 0 || (uint32_t)count >= ins->n_operands || ptx_source(p, ins, (uint32_t)count, count_type, &op->b);
}

bool ptx_decode_cp(struct ptx_parser *p, struct ptx_instruction *ins) {
    if (!ptx_take(ins, "async")) return ptx_unsupported(p, ins, NULL);
    if (ptx_take(ins, "commit_group")) return ptx_op(p, ins, "cp.async.commit", NULL);
    bool all = ptx_take(ins, "wait_all");
    if (all || ptx_take(ins, "wait_group")) {
        if (!all && (ins->n_operands != 1 || ins->operands[0].kind != PTX_OPERAND_IMMEDIATE))
            return ptx_unsupported(p, ins, "form");
        struct gpusim_op *op = ptx_op(p, ins, "cp.async.wait", NULL);
        if (op) op->imm = all ? (int64_t)UINT32_MAX : (int64_t)ins->operands[0].bits;
        return op;
    }
    if (ptx_take(ins, "mbarrier")) {
        if (!ptx_take(ins, "arrive")) return ptx_unsupported(p, ins, "form");
        int code = ptx_take(ins, "noinc") ? GPUSIM_MBARRIER_ASYNC_ARRIVE_NOINC : GPUSIM_MBARRIER_ASYNC_ARRIVE;
        return mbarrier_op(p, ins, code, 0, -1, 0);
    }
    return copy(p, ins);
}

bool ptx_decode_mbarrier(struct ptx_parser *p, struct ptx_instruction *ins) {
    static const char *const names[] = {"init", "inval", "arrive", "arrive_drop", "test_wait", "pending_count", NULL};
    static const char *const orders[] = {"release", "acquire", "relaxed", "noComplete", NULL};
    int code = ptx_take_any(ins, names);
    while (ptx_take_any(ins, orders) >= 0) {
    }
    bool parity = ptx_take(ins, "parity");
    if (code < 0) return ptx_unsupported(p, ins, NULL);
    if (code == 5) {
        ptx_take_type(ins);
        struct gpusim_op *op = ptx_op(p, ins, "mbarrier.pending", NULL);
        return op && ptx_target(p, ins, 0, GPUSIM_T_U32, &op->d) && ptx_source(p, ins, 1, GPUSIM_T_B64, &op->a);
    }
    if (code == GPUSIM_MBARRIER_INIT || code == GPUSIM_MBARRIER_INVAL)
        return mbarrier_op(p, ins, code, 0, code == GPUSIM_MBARRIER_INIT ? 1 : -1, GPUSIM_T_U32);
    uint32_t d;
    if (code == GPUSIM_MBARRIER_TEST_WAIT) {
        if (!ptx_target(p, ins, 0, GPUSIM_T_PRED, &d)) return false;
        if (!mbarrier_op(p, ins, parity ? GPUSIM_MBARRIER_TEST_PARITY : GPUSIM_MBARRIER_TEST_WAIT, 1, 2,
                         parity ? GPUSIM_T_U32 : GPUSIM_T_B64))
            return false;
    } else {
        bool none = ins->operands[0].kind == PTX_OPERAND_ADDRESS; /* without a result */
        d = 0;
        if (!none && !ptx_target(p, ins, 0, GPUSIM_T_B64, &d)) return false;
        if (!mbarrier_op(p, ins, code, none ? 0 : 1, none ? 1 : 2, GPUSIM_T_U32)) return false;
    }
    p->ops[p->n_ops - 1].d = d;
    return true;
}

bool ptx_vector(struct ptx_parser *p, struct ptx_instruction *ins, uint32_t operand, uint8_t type, bool target,
                uint32_t *list, uint32_t n) {
    const struct ptx_operand *o = operand < ins->n_operands ? &ins->operands[operand] : NULL;
    if (!o) return ptx_unsupported(p, ins, "too few operands");
    if (o->kind != PTX_OPERAND_VECTOR) {
        if (n != 1) return ptx_unsupported(p, ins, "number of registers");
        return target ? ptx_target_of(p, ins, o, type, list) : ptx_source_of(p, ins, o, type, list);
    }
    if (o->n != n) return ptx_unsupported(p, ins, "number of registers");
    for (uint32_t k = 0; k < n; k++) {
        const struct ptx_operand *e = &ins->elements[o->first + k];
        if (target ? !ptx_target_of(p, ins, e, type, &list[k]) : !ptx_source_of(p, ins, e, type, &list[k]))
            return false;
    }
    return true;
}

bool ptx_decode_ldmatrix(struct ptx_parser *p, struct ptx_instruction *ins) {
    static const char *const counts[] = {"x1", "x2", "x4", NULL};
    bool ok = ptx_take(ins, "sync") && ptx_take(ins, "aligned") && ptx_take(ins, "m8n8"),
         transposed = ptx_take(ins, "trans");
    int count = ptx_take_any(ins, counts), space = take_shared(ins);
    uint8_t type = ptx_take_type(ins);
    if (!ok || count < 0 || type != GPUSIM_T_B16) return ptx_unsupported(p, ins, "form");
    uint32_t n = 1u << count, *list = ptx_list(p, n);
    struct gpusim_op *op = list ? ptx_op(p, ins, "ldmatrix", NULL) : NULL;
    if (!op) return false;
    op->vec = (uint8_t)n;
    op->list = list;
    op->n_list = (uint16_t)n;
    op->size = 16;
    op->code = transposed;
    op->space = (uint8_t)space;
    return ptx_vector(p, ins, 0, GPUSIM_T_B32, true, list, n) && ptx_address(p, ins, 1, op, &op->a);
}

bool ptx_decode_movmatrix(struct ptx_parser *p, struct ptx_instruction *ins) {
    bool ok = ptx_take(ins, "sync") && ptx_take(ins, "aligned") && ptx_take(ins, "m8n8") && ptx_take(ins, "trans");
    ptx_take_type(ins);
    struct gpusim_op *op = ok ? ptx_op(p, ins, "movmatrix", NULL) : NULL;
    if (!ok) return ptx_unsupported(p, ins, "form");
    return op && ptx_target(p, ins, 0, GPUSIM_T_B32, &op->d) && ptx_source(p, ins, 1, GPUSIM_T_B32, &op->a);
}
