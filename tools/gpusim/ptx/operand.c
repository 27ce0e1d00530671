#include "ptx/parse.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int code;
} specials[] = {
    {"%tid.x", GPUSIM_SR_TID_X},
    {"%tid.y", GPUSIM_SR_TID_Y},
    {"%tid.z", GPUSIM_SR_TID_Z},
    {"%ntid.x", GPUSIM_SR_NTID_X},
    {"%ntid.y", GPUSIM_SR_NTID_Y},
    {"%ntid.z", GPUSIM_SR_NTID_Z},
    {"%ctaid.x", GPUSIM_SR_CTAID_X},
    {"%ctaid.y", GPUSIM_SR_CTAID_Y},
    {"%ctaid.z", GPUSIM_SR_CTAID_Z},
    {"%nctaid.x", GPUSIM_SR_NCTAID_X},
    {"%nctaid.y", GPUSIM_SR_NCTAID_Y},
    {"%nctaid.z", GPUSIM_SR_NCTAID_Z},
    {"%laneid", GPUSIM_SR_LANEID},
    {"%warpid", GPUSIM_SR_WARPID},
    {"%nwarpid", GPUSIM_SR_NWARPID},
    {"%smid", GPUSIM_SR_SMID},
    {"%nsmid", GPUSIM_SR_NSMID},
    {"%gridid", GPUSIM_SR_GRIDID},
    {"%lanemask_eq", GPUSIM_SR_LANEMASK_EQ},
    {"%lanemask_le", GPUSIM_SR_LANEMASK_LE},
    {"%lanemask_lt", GPUSIM_SR_LANEMASK_LT},
    {"%lanemask_ge", GPUSIM_SR_LANEMASK_GE},
    {"%lanemask_gt", GPUSIM_SR_LANEMASK_GT},
    {"%clock", GPUSIM_SR_CLOCK},
    {"%clock_hi", GPUSIM_SR_CLOCK_HI},
    {"%clock64", GPUSIM_SR_CLOCK64},
    {"%globaltimer", GPUSIM_SR_GLOBALTIMER},
    {"%globaltimer_lo", GPUSIM_SR_GLOBALTIMER_LO},
    {"%globaltimer_hi", GPUSIM_SR_GLOBALTIMER_HI},
    {"%dynamic_smem_size", GPUSIM_SR_DYNAMIC_SMEM},
    {"%total_smem_size", GPUSIM_SR_TOTAL_SMEM},
    {"%aggr_smem_size", GPUSIM_SR_AGGR_SMEM},
    {"%reserved_smem_offset_1", GPUSIM_SR_RESERVED_SMEM},
};

static int special_code(const char *name, size_t n) {
    if (n > 7 && !strncmp(name, "%envreg", 7)) {
        bool one = n == 8 && name[7] == '1', two = n == 8 && name[7] == '2';
        return one ? GPUSIM_SR_ENVREG1 : two ? GPUSIM_SR_ENVREG2 : GPUSIM_SR_ENVREG;
    }
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++)
        if (!strncmp(specials[i].name, name, n) && !specials[i].name[n]) return specials[i].code;
    return GPUSIM_SR_NONE;
}

static bool register_operand(struct ptx_operand *o, const struct ptx_symbol *s, uint32_t number) {
    o->kind = PTX_OPERAND_REGISTER;
    o->type = s->type;
    o->reg = s->reg + number * s->vec;
    return true;
}

/* A word: register, variable, function, special register, _ or a name for later. */
static bool word(struct ptx_parser *p, struct ptx_operand *o) {
    uint32_t number;
    struct ptx_symbol *s = ptx_find(p, p->start, p->length, &number);
    if (ptx_is(p, "_")) {
        o->kind = PTX_OPERAND_SINK;
    } else if (!s) {
        const char *dot = p->start[0] == '%' ? memchr(p->start, '.', p->length) : NULL;
        if (dot && (s = ptx_find(p, p->start, (size_t)(dot - p->start), &number)) && s->vec > 1 &&
            (s->kind == PTX_REGISTER || s->kind == PTX_REGISTER_RANGE)) { /* %v.x */
            const char *at = strchr("xyzw", dot[1]);
            if (!at || at - "xyzw" >= s->vec)
                return ptx_fail(p, "vector register element '%.*s'", (int)p->length, p->start);
            register_operand(o, s, number);
            o->reg += (uint32_t)(at - "xyzw");
        } else if ((o->special = special_code(p->start, p->length))) {
            o->kind = PTX_OPERAND_SPECIAL;
            if (p->function && o->special == GPUSIM_SR_RESERVED_SMEM) p->function->uses_reserved_shared = true;
        } else if (ptx_is(p, "WARP_SZ")) {
            o->kind = PTX_OPERAND_IMMEDIATE;
            o->bits = GPUSIM_WARP;
        } else {
            o->kind = PTX_OPERAND_NAME;
            if (!(o->name = ptx_copy(p, p->start, p->length))) return false;
        }
    } else if (s->kind == PTX_REGISTER || s->kind == PTX_REGISTER_RANGE) {
        register_operand(o, s, number);
        o->symbol = s;
    } else {
        o->kind = s->kind == PTX_FUNCTION   ? PTX_OPERAND_FUNCTION
                  : s->kind == PTX_VARIABLE ? PTX_OPERAND_VARIABLE
                                            : PTX_OPERAND_NAME;
        o->symbol = s;
        if (o->kind == PTX_OPERAND_NAME) o->name = s->name;
    }
    return ptx_next(p);
}

static bool number(struct ptx_parser *p, struct ptx_operand *o, bool minus) {
    bool f32 = p->length > 1 && p->start[0] == '0' && (p->start[1] | 32) == 'f';
    o->kind = PTX_OPERAND_IMMEDIATE;
    if (!ptx_number(p, &o->bits, &o->real, &o->is_float)) return false;
    if (minus && o->is_float)
        o->real = -o->real, o->bits ^= f32 ? 0x80000000u : 1ull << 63;
    else if (minus)
        o->bits = 0 - o->bits;
    if (o->is_float) o->type = f32 ? GPUSIM_T_F32 : GPUSIM_T_F64;
    return true;
}

static bool offset(struct ptx_parser *p, int64_t *sum) {
    while (ptx_is(p, "+") || ptx_is(p, "-")) {
        uint64_t bits;
        double real;
        bool is_float, minus = ptx_is(p, "-");
        if (!ptx_next(p)) return false;
        if (ptx_accept(p, "-")) minus = !minus;
        if (!ptx_number(p, &bits, &real, &is_float)) return false;
        *sum += (int64_t)(minus ? 0 - bits : bits);
    }
    return true;
}

static bool operand(struct ptx_parser *p, struct ptx_instruction *ins, struct ptx_operand *o);

static bool elements(struct ptx_parser *p, struct ptx_instruction *ins, struct ptx_operand *o, const char *close) {
    o->first = ins->n_elements;
    while (!ptx_is(p, close)) {
        if (ins->n_elements == PTX_MAX_ELEMENTS) return ptx_fail(p, "more than %d vector elements", PTX_MAX_ELEMENTS);
        struct ptx_operand *e = &ins->elements[ins->n_elements++];
        *e = (struct ptx_operand){0};
        if (!operand(p, ins, e)) return false;
        if (e->kind == PTX_OPERAND_VECTOR || e->kind == PTX_OPERAND_LIST) return ptx_fail(p, "vector in a vector");
        o->n++;
        if (!ptx_is(p, close) && !ptx_expect(p, ",")) return false;
    }
    return ptx_expect(p, close);
}

static bool address(struct ptx_parser *p, struct ptx_operand *o) {
    if (p->token == PTX_NUMBER) {
        if (!number(p, o, false)) return false;
        o->offset = (int64_t)o->bits;
        o->kind = PTX_OPERAND_IMMEDIATE;
    } else if (p->token != PTX_WORD || !word(p, o))
        return ptx_fail(p, "address: expected a register or a variable");
    if (o->kind == PTX_OPERAND_NAME) return ptx_fail(p, "unknown name '%s'", o->name);
    if (!offset(p, &o->offset)) return false;
    /* kept: register in reg, variable in symbol, plain number neither */
    if (o->kind == PTX_OPERAND_REGISTER)
        o->symbol = NULL;
    else
        o->reg = 0;
    o->kind = PTX_OPERAND_ADDRESS;
    return ptx_expect(p, "]");
}

/* A .b128 register becomes the vector of its halves. */
static bool halves(struct ptx_parser *p, struct ptx_instruction *ins, struct ptx_operand *o) {
    if (ins->n_elements + 2 > PTX_MAX_ELEMENTS) return ptx_fail(p, "more than %d vector elements", PTX_MAX_ELEMENTS);
    uint32_t reg = o->reg;
    *o = (struct ptx_operand){.kind = PTX_OPERAND_VECTOR, .first = ins->n_elements, .n = 2};
    for (uint32_t k = 0; k < 2; k++)
        ins->elements[ins->n_elements++] =
            (struct ptx_operand){.kind = PTX_OPERAND_REGISTER, .type = GPUSIM_T_B64, .reg = reg + k};
    return true;
}

static bool operand(struct ptx_parser *p, struct ptx_instruction *ins, struct ptx_operand *o) {
    if (ptx_accept(p, "[")) return address(p, o);
    if (ptx_accept(p, "{")) {
        o->kind = PTX_OPERAND_VECTOR;
        return elements(p, ins, o, "}");
    }
    if (ptx_accept(p, "(")) {
        o->kind = PTX_OPERAND_LIST;
        return elements(p, ins, o, ")");
    }
    if (ptx_accept(p, "!")) o->negated = true;
    if (ptx_accept(p, "-")) return number(p, o, true);
    if (p->token == PTX_NUMBER) return number(p, o, false);
    if (p->token != PTX_WORD) return ptx_fail(p, "operand: got '%.*s'", (int)p->length, p->start);
    if (!word(p, o)) return false;
    if (o->kind == PTX_OPERAND_REGISTER && o->type == GPUSIM_T_B128) return halves(p, ins, o);
    if (o->kind == PTX_OPERAND_VARIABLE && !offset(p, &o->offset)) return false;
    if (!ptx_accept(p, "|")) return true;
    struct ptx_operand pair = {0};
    if (p->token != PTX_WORD || !word(p, &pair)) return ptx_fail(p, "expected a predicate after '|'");
    o->has_pair = pair.kind == PTX_OPERAND_REGISTER;
    o->pair = pair.reg;
    if (pair.kind != PTX_OPERAND_REGISTER && pair.kind != PTX_OPERAND_SINK)
        return ptx_fail(p, "expected a predicate after '|'");
    return true;
}

bool ptx_operands(struct ptx_parser *p, struct ptx_instruction *ins) {
    if (ptx_accept(p, ";")) return true;
    do {
        if (ins->n_operands == PTX_MAX_OPERANDS) return ptx_fail(p, "more than %d operands", PTX_MAX_OPERANDS);
        struct ptx_operand *o = &ins->operands[ins->n_operands++];
        *o = (struct ptx_operand){0};
        if (!operand(p, ins, o)) return false;
    } while (ptx_accept(p, ","));
    return ptx_expect(p, ";");
}
