/* Branches, calls, exits, barriers. */
#include "ptx/parse.h"

#include <string.h>

bool ptx_decode_branch(struct ptx_parser *p, struct ptx_instruction *ins) {
    ptx_take(ins, "uni");
    if (ins->n_operands != 1 || ins->operands[0].kind != PTX_OPERAND_NAME)
        return ptx_unsupported(p, ins, "expected a label");
    if (!ptx_grow(p, (void **)&p->references, p->n_references, &p->references_reserved, sizeof *p->references))
        return false;
    if (!ptx_op(p, ins, "bra", NULL)) return false;
    p->references[p->n_references++] =
        (struct ptx_reference){ins->operands[0].name, p->scopes[p->depth], p->n_ops - 1, ins->line, -1};
    return true;
}

bool ptx_decode_brx(struct ptx_parser *p, struct ptx_instruction *ins) {
    uint32_t index;
    struct ptx_symbol *table = ins->n_operands == 2 ? ins->operands[1].symbol : NULL;
    ptx_take(ins, "uni");
    if (!ptx_take(ins, "idx") || !table || table->kind != PTX_TABLE)
        return ptx_unsupported(p, ins, "expected a table of targets");
    if (!ptx_source(p, ins, 0, GPUSIM_T_U32, &index)) return false;
    struct gpusim_op *op = ptx_op(p, ins, "brx.idx", NULL);
    uint32_t *list = ptx_list(p, table->n_table);
    if (!op || !list) return false;
    op->a = index;
    op->list = list;
    op->n_list = (uint16_t)table->n_table;
    p->list_kinds[p->n_ops - 1] = PTX_LIST_TARGETS;
    for (uint32_t k = 0; k < table->n_table; k++) {
        if (!ptx_grow(p, (void **)&p->references, p->n_references, &p->references_reserved, sizeof *p->references))
            return false;
        struct ptx_reference r = p->references[table->table_label + k];
        r.op = p->n_ops - 1;
        p->references[p->n_references++] = r;
    }
    return true;
}

/* Each argument: a register for .reg parameters, else where it lies in the frame memory of the caller. */
static bool argument(struct ptx_parser *p, struct ptx_instruction *ins, const struct ptx_operand *o,
                     const struct gpusim_param *param, uint32_t *out) {
    if (param && param->reg) {
        uint8_t type = param->lane_words == 2 ? GPUSIM_T_B64 : GPUSIM_T_B32;
        return ptx_source_of(p, ins, o, type, out);
    }
    if (o->kind != PTX_OPERAND_VARIABLE || o->symbol->space != GPUSIM_LOCAL)
        return ptx_unsupported(p, ins, "argument is no .param variable");
    if (param && o->symbol->bytes < param->bytes)
        return ptx_unsupported(p, ins, "argument is smaller than the parameter");
    *out = (uint32_t)o->symbol->address;
    return true;
}

static const char *builtin_key(int builtin) {
    static const char *const keys[] = {"call", "call.vprintf", "call.assertfail", "call.malloc", "call.free"};
    return keys[builtin];
}

bool ptx_decode_call(struct ptx_parser *p, struct ptx_instruction *ins) {
    ptx_take(ins, "uni");
    uint32_t at = 0, n = 0, target = 0;
    const struct ptx_operand *returns = NULL, *arguments = NULL;
    if (at < ins->n_operands && ins->operands[at].kind == PTX_OPERAND_LIST) returns = &ins->operands[at++];
    if (at >= ins->n_operands) return ptx_unsupported(p, ins, "form");
    const struct ptx_operand *callee = &ins->operands[at++];
    if (at < ins->n_operands && ins->operands[at].kind == PTX_OPERAND_LIST) arguments = &ins->operands[at];
    struct gpusim_function *f = callee->kind == PTX_OPERAND_FUNCTION ? callee->symbol->function : NULL;
    uint32_t n_returns = returns ? returns->n : 0, n_arguments = arguments ? arguments->n : 0;
    if (!f && callee->kind != PTX_OPERAND_REGISTER) return ptx_unsupported(p, ins, "expected a function");
    if (f && f->kernel) return ptx_unsupported(p, ins, "call of a kernel");
    if (f && (f->n_returns != n_returns || f->n_params != n_arguments))
        return ptx_unsupported(p, ins, "number of arguments");
    static const uint8_t n_builtin[][2] = {{0, 0}, {1, 2}, {0, 5}, {1, 1}, {0, 1}}; /* returns, arguments */
    if (f && f->builtin && (n_returns != n_builtin[f->builtin][0] || n_arguments != n_builtin[f->builtin][1]))
        return ptx_unsupported(p, ins, "number of arguments of a built-in function");
    if (f && f->builtin && f->defined) return ptx_unsupported(p, ins, "a function of this name is built in");
    uint32_t *list = ptx_list(p, n_returns + n_arguments + 1);
    if (!list) return false;
    for (uint32_t k = 0; k < n_returns; k++)
        if (!argument(p, ins, &ins->elements[returns->first + k], f ? &f->returns[k] : NULL, &list[n++])) return false;
    for (uint32_t k = 0; k < n_arguments; k++)
        if (!argument(p, ins, &ins->elements[arguments->first + k], f ? &f->params[k] : NULL, &list[n++])) return false;
    if (!f && !ptx_source_of(p, ins, callee, GPUSIM_T_U64, &target)) return false;
    struct gpusim_op *op = ptx_op(p, ins, f ? builtin_key(f->builtin) : "call.indirect", NULL);
    if (!op) return false;
    p->list_kinds[p->n_ops - 1] = f ? PTX_LIST_CALL : PTX_LIST_TARGETS;
    op->ref = f;
    op->a = target;
    op->list = list;
    op->n_list = (uint16_t)n;
    p->function->uses_calls = true;
    if (f && (f->builtin == GPUSIM_BUILTIN_MALLOC || f->builtin == GPUSIM_BUILTIN_FREE)) p->module->uses_heap = true;
    return true;
}

/* alloca.type d, bytes{, alignment};  stacksave.type d;  stackrestore.type a; */
bool ptx_decode_alloca(struct ptx_parser *p, struct ptx_instruction *ins) {
    uint8_t type = ptx_take_type(ins);
    bool restore = !strcmp(ins->text, "stackrestore"), alloca = !strcmp(ins->text, "alloca");
    uint32_t d = 0, a = 0;
    uint64_t align = 8;
    if (type != GPUSIM_T_U32 && type != GPUSIM_T_U64) return ptx_unsupported(p, ins, "form");
    if (!restore && !ptx_target(p, ins, 0, type, &d)) return false;
    if ((restore || alloca) && !ptx_source(p, ins, alloca ? 1 : 0, type, &a)) return false;
    if (alloca && ins->n_operands > 2) {
        if (ins->operands[2].kind != PTX_OPERAND_IMMEDIATE) return ptx_unsupported(p, ins, "form");
        align = ins->operands[2].bits;
    }
    if (!align || align & (align - 1) || align > 4096) return ptx_unsupported(p, ins, "alignment");
    struct gpusim_op *op = ptx_op(p, ins, ins->text, NULL);
    if (!op) return false;
    op->d = d;
    op->a = a;
    op->imm = (int64_t)align;
    op->flags = type == GPUSIM_T_U64 ? GPUSIM_REG64 : 0;
    p->function->uses_alloca = p->module->uses_alloca = true;
    return true;
}

bool ptx_decode_return(struct ptx_parser *p, struct ptx_instruction *ins) {
    ptx_take(ins, "uni");
    return ptx_op(p, ins, ins->text, NULL);
}

/* bar.warp.sync m;  bar{rier}{.cta}.sync|arrive{.aligned} a{, b};  bar.red.popc|and|or.type d, a{, b}, {!}p; */
bool ptx_decode_barrier(struct ptx_parser *p, struct ptx_instruction *ins) {
    static const char *const kinds[] = {"sync", "arrive", "red", NULL}, *const reductions[] = {"popc", "and", "or",
                                                                                               NULL};
    uint32_t member, number, threads = 0, predicate = 0, d = 0, at = 0;
    uint16_t flags = 0;
    bool warp = ptx_take(ins, "warp");
    int kind = ptx_take_any(ins, kinds);
    if (warp) {
        if (!ptx_source(p, ins, 0, GPUSIM_T_B32, &member)) return false;
        struct gpusim_op *op = ptx_op(p, ins, "bar.warp.sync", NULL);
        if (op) op->a = member;
        return op;
    }
    ptx_take(ins, "cta");
    if (ptx_take(ins, "aligned") || ins->text[3] == 0) flags |= GPUSIM_ALIGNED;
    int code = kind;
    if (kind < 0) return ptx_unsupported(p, ins, "form");
    if (kind == 2) {
        int reduction = ptx_take_any(ins, reductions);
        uint8_t type = ptx_take_type(ins);
        if (reduction < 0 || ins->n_operands < 3) return ptx_unsupported(p, ins, "form");
        code = GPUSIM_BAR_POPC + reduction;
        if (!ptx_target(p, ins, 0, type, &d) ||
            !ptx_predicate(p, ins, ins->n_operands - 1, &predicate, &flags, GPUSIM_NOT_C))
            return false;
        ins->n_operands--;
        at = 1;
    }
    bool counted = ins->n_operands > at + 1;
    if (!ptx_source(p, ins, at, GPUSIM_T_U32, &number) ||
        (counted && !ptx_source(p, ins, at + 1, GPUSIM_T_U32, &threads)))
        return false;
    struct gpusim_op *op = ptx_op(p, ins, "bar", NULL);
    if (!op) return false;
    op->a = number;
    op->b = threads;
    op->c = predicate;
    op->d = d;
    op->code = (uint8_t)code;
    op->flags = flags;
    op->n_list = counted; /* without a list: only a mark */
    return true;
}
