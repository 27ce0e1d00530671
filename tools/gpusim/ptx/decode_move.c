/* mov, cvta, isspacep, ld, st and what is only noted. */
#include "ptx/parse.h"

#include <stdio.h>
#include <string.h>

static const char *const spaces[] = {"generic", "global",      "shared",       "local",       "param",
                                     "const",   "shared::cta", "param::entry", "param::func", NULL};
static int take_space(struct ptx_instruction *ins) {
    int space = ptx_take_any(ins, spaces);
    return space < 0 ? GPUSIM_GENERIC : space == 6 ? GPUSIM_SHARED : space >= 7 ? GPUSIM_PARAM : space;
}

static bool pack(struct ptx_parser *p, struct ptx_instruction *ins, uint8_t type, uint32_t vector, uint32_t scalar) {
    const struct ptx_operand *v = &ins->operands[vector];
    bool unpack = vector == 0;
    uint32_t bytes = ptx_type_bytes(type), reg, *list = v->n ? ptx_list(p, v->n) : NULL;
    if (!list || bytes % v->n || bytes > 8) return ptx_unsupported(p, ins, "vector of this many elements");
    uint8_t element = bytes / v->n == 4 ? GPUSIM_T_B32 : bytes / v->n == 2 ? GPUSIM_T_B16 : GPUSIM_T_B8;
    for (uint32_t k = 0; k < v->n; k++) {
        const struct ptx_operand *e = &ins->elements[v->first + k];
        if (unpack ? !ptx_target_of(p, ins, e, element, &reg) : !ptx_source_of(p, ins, e, element, &reg)) return false;
        list[k] = reg;
    }
    if (unpack ? !ptx_source(p, ins, scalar, type, &reg) : !ptx_target(p, ins, scalar, type, &reg)) return false;
    struct gpusim_op *op = ptx_op(p, ins, unpack ? "mov.unpack" : "mov.pack", NULL);
    if (!op) return false;
    op->list = list;
    op->n_list = (uint16_t)v->n;
    op->size = (uint8_t)(bytes / v->n);
    if (bytes == 8) op->flags |= GPUSIM_REG64;
    *(unpack ? &op->a : &op->d) = reg;
    return true;
}

static bool move_pair(struct ptx_parser *p, struct ptx_instruction *ins) {
    uint32_t d[2], a[2];
    if (!ptx_vector(p, ins, 0, GPUSIM_T_B64, true, d, 2) || !ptx_vector(p, ins, 1, GPUSIM_T_B64, false, a, 2))
        return false;
    for (int k = 0; k < 2; k++) {
        struct gpusim_op *op = ptx_op(p, ins, "mov", "b64");
        if (!op) return false;
        op->d = d[k];
        op->a = a[k];
    }
    return true;
}

bool ptx_decode_move(struct ptx_parser *p, struct ptx_instruction *ins) {
    uint8_t type = ptx_take_type(ins);
    uint32_t d, a;
    if (!type || ins->n_operands != 2) return ptx_unsupported(p, ins, "form");
    if (type == GPUSIM_T_B128) return move_pair(p, ins);
    if (ins->operands[1].kind == PTX_OPERAND_VECTOR) return pack(p, ins, type, 1, 0);
    if (ins->operands[0].kind == PTX_OPERAND_VECTOR) return pack(p, ins, type, 0, 1);
    const struct ptx_operand *o = &ins->operands[1];
    if (!ptx_target(p, ins, 0, type, &d)) return false;
    uint16_t wide = ptx_lane_words(type) == 2 ? GPUSIM_REG64 : 0;
    struct gpusim_op *op;
    if (o->kind == PTX_OPERAND_SPECIAL) {
        if (!(op = ptx_op(p, ins, "mov.special", NULL))) return false;
        op->code = (uint8_t)o->special;
        op->flags = wide;
        op->type = ptx_type_bytes(type) == 2 ? GPUSIM_T_B16 : GPUSIM_T_B32;
    } else if (o->kind == PTX_OPERAND_VARIABLE || o->kind == PTX_OPERAND_FUNCTION) {
        if (!(op = ptx_op(p, ins, "mov.frame", NULL))) return false;
        bool variable = o->kind == PTX_OPERAND_VARIABLE;
        op->imm = variable ? (int64_t)o->symbol->address + o->offset : (int64_t)(intptr_t)o->symbol->function;
        op->base = variable ? o->symbol->base : GPUSIM_BASE_NONE;
        op->flags = wide;
    } else {
        if (!ptx_source(p, ins, 1, type, &a) || !(op = ptx_op(p, ins, "mov",
                                                              type == GPUSIM_T_PRED ? "pred"
                                                              : wide                ? "b64"
                                                                                    : "b32")))
            return false;
        op->a = a;
    }
    op->d = d;
    return true;
}

static int64_t window(int space) {
    return (int64_t)(space == GPUSIM_SHARED  ? GPUSIM_SHARED_WINDOW
                     : space == GPUSIM_LOCAL ? GPUSIM_LOCAL_WINDOW
                     : space == GPUSIM_PARAM ? GPUSIM_PARAM_WINDOW
                                             : 0);
}

bool ptx_decode_cvta(struct ptx_parser *p, struct ptx_instruction *ins) {
    bool to = ptx_take(ins, "to");
    int space = take_space(ins);
    uint8_t type = ptx_take_type(ins);
    uint32_t d, a;
    if (!ptx_target(p, ins, 0, type, &d) || !ptx_source(p, ins, 1, type, &a)) return false;
    struct gpusim_op *op = ptx_op(p, ins, ptx_lane_words(type) == 2 ? "cvta" : "cvta.32", NULL);
    if (!op) return false;
    op->d = d;
    op->a = a;
    op->imm = to ? -window(space) : window(space);
    return true;
}

bool ptx_decode_isspacep(struct ptx_parser *p, struct ptx_instruction *ins) {
    int space = take_space(ins);
    uint32_t d, a;
    if (!ptx_target(p, ins, 0, GPUSIM_T_PRED, &d) || !ptx_source(p, ins, 1, GPUSIM_T_U64, &a)) return false;
    struct gpusim_op *op = ptx_op(p, ins, "isspacep", NULL);
    if (!op) return false;
    op->d = d;
    op->a = a;
    op->space = (uint8_t)space;
    return true;
}

/* Hints and orders that change nothing here: a load or store is done at once and in order. */
static void drop_hints(struct ptx_instruction *ins) {
    static const char *const hints[] = {"ca",  "cg",   "cs",       "lu",      "cv",      "wb",      "wt",
                                        "nc",  "weak", "volatile", "relaxed", "acquire", "release", "cta",
                                        "gpu", "sys",  "cluster",  "mmio",    NULL};
    for (uint32_t m = 0; m < ins->n_mods; m++)
        if (ins->mods[m] && (!strncmp(ins->mods[m], "L1::", 4) || !strncmp(ins->mods[m], "L2::", 4)))
            ins->mods[m] = NULL;
    while (ptx_take_any(ins, hints) >= 0) {
    }
}

/* The vector length, and the registers of a vector operand into *list. */
static bool data_registers(struct ptx_parser *p, struct ptx_instruction *ins, uint32_t operand, uint8_t type, bool load,
                           uint32_t *reg, uint32_t **list, uint32_t *n, bool *wide) {
    const struct ptx_operand *o = &ins->operands[operand];
    bool vector = o->kind == PTX_OPERAND_VECTOR;
    *n = vector ? o->n : 1;
    *list = NULL;
    *wide = ptx_lane_words(type) == 2;
    if (vector && !(*list = ptx_list(p, o->n))) return false;
    for (uint32_t k = 0; k < *n; k++) {
        const struct ptx_operand *e = vector ? &ins->elements[o->first + k] : o;
        uint8_t as = type;
        if (e->kind == PTX_OPERAND_REGISTER) {
            /* A register may be wider than the data. */
            if (ptx_lane_words(e->type) > ptx_lane_words(type)) as = GPUSIM_T_B64;
            if (k && ((as == GPUSIM_T_B64) || ptx_lane_words(type) == 2) != *wide)
                return ptx_unsupported(p, ins, "registers of several widths");
            *wide = ptx_lane_words(as) == 2;
        }
        if (load ? !ptx_target_of(p, ins, e, as, reg) : !ptx_source_of(p, ins, e, as, reg)) return false;
        if (vector) (*list)[k] = *reg;
    }
    return true;
}

static bool memory(struct ptx_parser *p, struct ptx_instruction *ins, bool load) {
    static const char *const vectors[] = {"v2", "v4", "v8", NULL};
    static const char *const orders[] = {"acquire", "release", NULL};
    bool is_ordered = ptx_take_any(ins, orders) >= 0;
    bool is_volatile = ptx_take(ins, "volatile"), is_relaxed = ptx_take(ins, "relaxed"),
         cache_global = ptx_take(ins, "cg");
    is_volatile = is_volatile || is_relaxed || is_ordered;
    drop_hints(ins);
    int space = take_space(ins), vec = ptx_take_any(ins, vectors);
    uint8_t type = ptx_take_type(ins);
    uint32_t n, reg, *list, address, data = load ? 0 : 1;
    bool wide;
    if (type == GPUSIM_T_B128 && vec < 0) type = GPUSIM_T_B64, vec = 0; /* the halves */
    if (!type || type == GPUSIM_T_PRED || type == GPUSIM_T_B128 || ins->n_operands < 2)
        return ptx_unsupported(p, ins, "form");
    if (ins->n_operands == 3) ins->n_operands = 2; /* cache policy */
    if (!data_registers(p, ins, data, type, load, &reg, &list, &n, &wide)) return false;
    if ((vec < 0 && n != 1) || (vec >= 0 && n != 2u << vec)) return ptx_unsupported(p, ins, "vector length");
    const struct ptx_operand *target = &ins->operands[load ? 1 : 0];
    bool kernel_param = space == GPUSIM_PARAM && target->kind == PTX_OPERAND_ADDRESS && target->symbol &&
                        target->symbol->space == GPUSIM_PARAM;
    if (space == GPUSIM_PARAM && target->kind == PTX_OPERAND_ADDRESS && target->symbol &&
        target->symbol->space == GPUSIM_LOCAL)
        space = GPUSIM_LOCAL;
    if (kernel_param && !load) return ptx_unsupported(p, ins, "kernel parameters are read only");
    uint32_t bytes = ptx_type_bytes(type);
    if (kernel_param && (target->offset < 0 || (uint64_t)target->offset + (uint64_t)bytes * n > target->symbol->bytes))
        return ptx_unsupported(p, ins, "outside of the parameter");
    struct gpusim_op *op = ptx_op(p, ins, load ? kernel_param ? "ld.param" : "ld" : "st", NULL);
    if (!op) return false;
    op->space = (uint8_t)space;
    op->size = (uint8_t)bytes;
    op->vec = (uint8_t)n;
    op->list = list;
    op->n_list = list ? (uint16_t)n : 0;
    *(load ? &op->d : &op->b) = list ? 0 : reg;
    op->flags = (uint16_t)((wide ? GPUSIM_REG64 : 0) | (is_volatile ? GPUSIM_VOLATILE : 0) |
                           (is_ordered ? GPUSIM_ORDERED : 0) | (cache_global ? GPUSIM_CACHE_GLOBAL : 0));
    if (type == GPUSIM_T_S8 || type == GPUSIM_T_S16 || type == GPUSIM_T_S32) op->flags |= GPUSIM_SIGNED;
    const struct ptx_operand *first = list ? &ins->elements[ins->operands[data].first] : &ins->operands[data];
    op->type = first->kind == PTX_OPERAND_REGISTER && ptx_type_bytes(first->type) == 2 ? GPUSIM_T_B16 : type;
    if (!ptx_address(p, ins, load ? 1 : 0, op, &address)) return false;
    op->a = address;
    return true;
}
bool ptx_decode_load(struct ptx_parser *p, struct ptx_instruction *ins) { return memory(p, ins, true); }
bool ptx_decode_store(struct ptx_parser *p, struct ptx_instruction *ins) { return memory(p, ins, false); }

bool ptx_decode_ignore(struct ptx_parser *p, struct ptx_instruction *ins) {
    ins->n_mods = 0;
    return ptx_op(p, ins, "nop", NULL);
}
bool ptx_decode_fence(struct ptx_parser *p, struct ptx_instruction *ins) {
    static const char *const scopes[] = {"cta",     "gl",      "gpu",     "sys",   "sc",
                                         "acq_rel", "acquire", "release", "level", NULL};
    while (ptx_take_any(ins, scopes) >= 0) {
    }
    return ptx_op(p, ins, "fence", NULL);
}
