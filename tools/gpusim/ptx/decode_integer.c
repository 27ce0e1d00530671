/* Integer arithmetic, logic, bits, selects. */
#include "ptx/parse.h"

#include <stdio.h>
#include <string.h>

/* Joins what is left of the modifiers to the key: "mul" + ".wide". */
static void join_mods(struct ptx_instruction *ins, char *key, size_t n) {
    for (uint32_t m = 0; m < ins->n_mods; m++) {
        if (!ins->mods[m]) continue;
        size_t used = strlen(key);
        snprintf(key + used, n - used, ".%s", ins->mods[m]);
        ins->mods[m] = NULL;
    }
}

static bool sources(struct ptx_parser *p, struct ptx_instruction *ins, struct gpusim_op *op, uint32_t n,
                    const uint8_t *types) {
    uint32_t *fields[3] = {&op->a, &op->b, &op->c};
    for (uint32_t k = 0; k < n; k++)
        if (!ptx_source(p, ins, k + 1, types[k], fields[k])) return false;
    return true;
}

bool ptx_decode_arithmetic(struct ptx_parser *p, struct ptx_instruction *ins) {
    uint8_t type = ptx_take_type(ins);
    char key[224];
    if (!type || ins->n_operands < 2) return ptx_unsupported(p, ins, "no type");
    if (type >= GPUSIM_T_F16 && type <= GPUSIM_T_F64) return ptx_decode_number(p, ins, type);
    snprintf(key, sizeof key, "%s", ins->text);
    if (!strcmp(ins->text, "mad") || !strcmp(ins->text, "madc") || !strcmp(ins->text, "mul") ||
        !strcmp(ins->text, "mad24") || !strcmp(ins->text, "mul24")) {
        static const char *const parts[] = {"lo", "hi", "wide", NULL};
        int part = ptx_take_any(ins, parts);
        if (part < 0) return ptx_unsupported(p, ins, "expected .lo, .hi or .wide");
        snprintf(key, sizeof key, "%s.%s", ins->text, parts[part]);
    }
    join_mods(ins, key, sizeof key);
    struct gpusim_op *op = ptx_op(p, ins, key, ptx_type_name(type));
    if (!op) return false;
    bool wide = strstr(key, ".wide");
    uint8_t result = wide ? (type == GPUSIM_T_U32 || type == GPUSIM_T_S32 ? GPUSIM_T_B64 : GPUSIM_T_B32) : type;
    uint8_t types[3] = {type, type, wide ? result : type};
    uint32_t at = (uint32_t)(op - p->ops), d;
    if (!ptx_target(p, ins, 0, result, &d)) return false;
    p->ops[at].d = d;
    p->ops[at].type = type;
    if (ins->n_operands > 4) return ptx_unsupported(p, ins, "too many operands");
    if (type == GPUSIM_T_PRED)
        for (uint32_t k = 1; k < ins->n_operands; k++)
            if (ins->operands[k].negated) p->ops[at].flags |= k == 1 ? GPUSIM_NOT_A : GPUSIM_NOT_B;
    return sources(p, ins, &p->ops[at], ins->n_operands - 1, types);
}

/* lop3 in the forms that compilers use most. */
static const char *lop3_key(int64_t table) {
    switch (table) {
    case 0x6a:
        return "lop3.and_xor"; /* c ^ (a & b) */
    case 0x96:
        return "lop3.xor3";
    case 0xea:
        return "lop3.and_or"; /* c | (a & b) */
    default:
        return "lop3.b32";
    }
}

static bool bits_result(struct ptx_parser *p, struct ptx_instruction *ins, struct gpusim_op *op, uint8_t type,
                        uint32_t *at) {
    uint32_t d;
    if (!op || !ptx_target(p, ins, 0, type, &d)) return false;
    op->d = d;
    *at = (uint32_t)(op - p->ops);
    return true;
}

static bool prmt_or_lop3(struct ptx_parser *p, struct ptx_instruction *ins, uint8_t type) {
    static const char *const modes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16", NULL};
    static const uint8_t all32[3] = {GPUSIM_T_B32, GPUSIM_T_B32, GPUSIM_T_B32};
    uint32_t at;
    bool lop3 = ins->text[0] == 'l';
    int mode = lop3 ? -1 : ptx_take_any(ins, modes);
    if (lop3 && (ins->n_operands != 5 || ins->operands[4].kind != PTX_OPERAND_IMMEDIATE))
        return ptx_unsupported(p, ins, "form");
    struct gpusim_op *op = lop3        ? ptx_op(p, ins, lop3_key((int64_t)ins->operands[4].bits), NULL)
                           : mode >= 0 ? ptx_op(p, ins, "prmt.mode", NULL)
                                       : ptx_op(p, ins, "prmt", "b32");
    if (!bits_result(p, ins, op, type, &at)) return false;
    op->code = (uint8_t)mode;
    if (lop3) op->imm = (int64_t)ins->operands[4].bits;
    return sources(p, ins, op, 3, all32);
}

bool ptx_decode_bits(struct ptx_parser *p, struct ptx_instruction *ins) {
    uint8_t type = ptx_take_type(ins), second = ptx_take_type(ins);
    char key[224], types_key[32];
    uint32_t at;
    if (!type) return ptx_unsupported(p, ins, "no type");
    if (!strcmp(ins->text, "lop3") || !strcmp(ins->text, "prmt")) return prmt_or_lop3(p, ins, type);
    uint8_t types[3] = {type, GPUSIM_T_B32, GPUSIM_T_B32}, result = type;
    bool to32 = !strcmp(ins->text, "popc") || !strcmp(ins->text, "clz") || !strcmp(ins->text, "bfind") ||
                !strcmp(ins->text, "fns");
    if (to32) result = GPUSIM_T_B32;
    if (!strcmp(ins->text, "bfi")) types[1] = type;
    if (ins->text[0] == 'd') types[1] = second;
    snprintf(key, sizeof key, "%s", ins->text);
    if (!strcmp(ins->text, "shr") || !strcmp(ins->text, "shl")) types[0] = type;
    join_mods(ins, key, sizeof key);
    snprintf(types_key, sizeof types_key, "%s%s%s", ptx_type_name(type), second ? "." : "",
             second ? ptx_type_name(second) : "");
    struct gpusim_op *op = ptx_op(p, ins, key, types_key);
    if (!bits_result(p, ins, op, result, &at)) return false;
    uint32_t n = ins->n_operands - 1;
    if (!sources(p, ins, op, n > 3 ? 3 : n, types)) return false;
    if (n == 4) { /* bfi */
        uint32_t reg, *list = ptx_list(p, 1);
        if (!list || !ptx_source(p, ins, 4, GPUSIM_T_B32, &reg)) return false;
        list[0] = reg;
        p->ops[at].list = list;
        p->ops[at].n_list = 1;
    }
    return true;
}

bool ptx_decode_select(struct ptx_parser *p, struct ptx_instruction *ins) {
    bool slct = ins->text[1] == 'l';
    uint8_t type = ptx_take_type(ins), second = slct ? ptx_take_type(ins) : GPUSIM_T_NONE;
    char key[224];
    uint32_t at, reg;
    uint16_t flags = 0;
    snprintf(key, sizeof key, "%s%s%s%s", ins->text, ptx_take(ins, "ftz") ? ".ftz" : "", slct ? "." : "",
             slct ? ptx_type_name(second) : "");
    const char *bits = ptx_lane_words(type) == 2 ? "b64" : ptx_type_bytes(type) == 2 ? "b16" : "b32";
    struct gpusim_op *op = ptx_op(p, ins, key, bits);
    uint8_t types[3] = {type, type, second};
    if (!bits_result(p, ins, op, type, &at)) return false;
    if (!sources(p, ins, op, slct ? 3 : 2, types)) return false;
    if (slct) return true;
    if (!ptx_predicate(p, ins, 3, &reg, &flags, GPUSIM_NOT_C)) return false;
    p->ops[at].c = reg;
    p->ops[at].flags |= flags;
    return true;
}
