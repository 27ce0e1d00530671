/* From an instruction to its op: which decoder, and what decoders share. */
#include "ptx/parse.h"
#include "exec/registry.h"

#include <stdio.h>
#include <string.h>

bool ptx_take(struct ptx_instruction *ins, const char *mod) {
    for (uint32_t m = 0; m < ins->n_mods; m++)
        if (ins->mods[m] && !strcmp(ins->mods[m], mod)) {
            ins->mods[m] = NULL;
            return true;
        }
    return false;
}

int ptx_take_any(struct ptx_instruction *ins, const char *const *mods) {
    for (int i = 0; mods[i]; i++)
        if (ptx_take(ins, mods[i])) return i;
    return -1;
}

uint8_t ptx_take_type(struct ptx_instruction *ins) {
    for (uint32_t m = 0; m < ins->n_mods; m++) {
        uint8_t type = ins->mods[m] ? ptx_type(ins->mods[m]) : GPUSIM_T_NONE;
        if (type) {
            ins->mods[m] = NULL;
            return type;
        }
    }
    return GPUSIM_T_NONE;
}

int ptx_rounding(struct ptx_instruction *ins) {
    static const char *const names[] = {"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi", NULL};
    return ptx_take_any(ins, names);
}

bool ptx_unsupported(struct ptx_parser *p, const struct ptx_instruction *ins, const char *why) {
    p->token_line = ins->line;
    return ptx_fail(p, "instruction '%s' is not supported%s%s", ins->full, why ? ": " : "", why ? why : "");
}

/* What an op counts as, from its name. */
uint8_t ptx_class(const char *key, const char *type) {
    static const struct {
        const char *prefix;
        uint8_t cls;
    } classes[] = {{"ldmatrix", GPUSIM_CLASS_MATRIX_LOAD},
                   {"ld", GPUSIM_CLASS_LOAD},
                   {"st", GPUSIM_CLASS_STORE},
                   {"atom", GPUSIM_CLASS_ATOMIC},
                   {"mma", GPUSIM_CLASS_MMA},
                   {"cp.async", GPUSIM_CLASS_ASYNC_COPY},
                   {"cvt", GPUSIM_CLASS_CONVERT},
                   {"movmatrix", GPUSIM_CLASS_WARP},
                   {"mov", GPUSIM_CLASS_MOVE},
                   {"selp", GPUSIM_CLASS_MOVE},
                   {"bar", GPUSIM_CLASS_BARRIER},
                   {"mbarrier", GPUSIM_CLASS_BARRIER},
                   {"fence", GPUSIM_CLASS_BARRIER},
                   {"bra", GPUSIM_CLASS_CONTROL},
                   {"brx", GPUSIM_CLASS_CONTROL},
                   {"call", GPUSIM_CLASS_CONTROL},
                   {"ret", GPUSIM_CLASS_CONTROL},
                   {"exit", GPUSIM_CLASS_CONTROL},
                   {"shfl", GPUSIM_CLASS_WARP},
                   {"vote", GPUSIM_CLASS_WARP},
                   {"match", GPUSIM_CLASS_WARP},
                   {"redux", GPUSIM_CLASS_WARP},
                   {"ex2", GPUSIM_CLASS_SPECIAL},
                   {"lg2", GPUSIM_CLASS_SPECIAL},
                   {"sin", GPUSIM_CLASS_SPECIAL},
                   {"cos", GPUSIM_CLASS_SPECIAL},
                   {"rcp", GPUSIM_CLASS_SPECIAL},
                   {"rsqrt", GPUSIM_CLASS_SPECIAL},
                   {"sqrt", GPUSIM_CLASS_SPECIAL},
                   {"tanh", GPUSIM_CLASS_SPECIAL}};
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (!strncmp(key, classes[i].prefix, strlen(classes[i].prefix))) return classes[i].cls;
    if (type && strstr(type, "f16")) return GPUSIM_CLASS_F16;
    if (type && !strcmp(type, "f32")) return GPUSIM_CLASS_F32;
    if (type && !strcmp(type, "f64")) return GPUSIM_CLASS_F64;
    return GPUSIM_CLASS_INTEGER;
}

struct gpusim_op *ptx_op(struct ptx_parser *p, struct ptx_instruction *ins, const char *key, const char *type) {
    for (uint32_t m = 0; m < ins->n_mods; m++)
        if (ins->mods[m]) {
            char why[96];
            snprintf(why, sizeof why, "modifier '.%s'", ins->mods[m]);
            ptx_unsupported(p, ins, why);
            return NULL;
        }
    gpusim_handler *run = gpusim_find_handler(key, type);
    if (!run) {
        ptx_unsupported(p, ins, NULL);
        return NULL;
    }
    uint32_t kinds_reserved = p->ops_reserved;
    if (!ptx_grow(p, (void **)&p->ops, p->n_ops, &p->ops_reserved, sizeof *p->ops) ||
        !ptx_grow(p, (void **)&p->list_kinds, p->n_ops, &kinds_reserved, sizeof *p->list_kinds))
        return NULL;
    p->list_kinds[p->n_ops] = PTX_LIST_REGISTERS;
    struct gpusim_op *op = &p->ops[p->n_ops++];
    *op = (struct gpusim_op){
        .run = run, .guard = ins->guard, .guard_xor = ins->guard_xor, .line = ins->line, .source = p->source, .vec = 1};
    op->cls = ptx_class(strcmp(key, "number") ? key : ins->text, type);
    return op;
}

uint32_t *ptx_list(struct ptx_parser *p, uint32_t n) {
    uint32_t *list = gpusim_module_alloc(p->module, n * sizeof *list);
    if (!list) ptx_fail(p, "out of memory");
    return list;
}

static bool width_error(struct ptx_parser *p, const struct ptx_instruction *ins, const struct ptx_operand *o,
                        uint8_t type) {
    p->token_line = ins->line;
    return ptx_fail(p, "%s: expected a register of .%s, got .%s", ins->full, ptx_type_name(type),
                    ptx_type_name(o->type));
}

static uint64_t immediate(const struct ptx_operand *o, uint8_t type) {
    if (o->is_float && type == GPUSIM_T_F32 && o->type == GPUSIM_T_F64) {
        float value = (float)o->real;
        uint32_t bits;
        memcpy(&bits, &value, 4);
        return bits;
    }
    if (o->is_float && type == GPUSIM_T_F64) {
        uint64_t bits;
        memcpy(&bits, &o->real, 8);
        return bits;
    }
    uint32_t bytes = ptx_type_bytes(type);
    if (!bytes || bytes >= 8) return o->bits;
    return o->bits & ((1ull << (8 * bytes)) - 1);
}

bool ptx_source_of(struct ptx_parser *p, struct ptx_instruction *ins, const struct ptx_operand *o, uint8_t type,
                   uint32_t *reg) {
    uint8_t words = ptx_lane_words(type);
    switch (o->kind) {
    case PTX_OPERAND_REGISTER:
        if (ptx_lane_words(o->type) != words || o->type == GPUSIM_T_B128) return width_error(p, ins, o, type);
        *reg = o->reg;
        return true;
    case PTX_OPERAND_IMMEDIATE:
        *reg = ptx_constant(p, words, immediate(o, type));
        return *reg || ptx_fail(p, "out of memory");
    case PTX_OPERAND_NAME:
        return ptx_fail(p, "%s: unknown name '%s'", ins->full, o->name);
    default:
        return ptx_unsupported(p, ins, "this kind of operand");
    }
}

bool ptx_source(struct ptx_parser *p, struct ptx_instruction *ins, uint32_t operand, uint8_t type, uint32_t *reg) {
    if (operand >= ins->n_operands) return ptx_unsupported(p, ins, "too few operands");
    return ptx_source_of(p, ins, &ins->operands[operand], type, reg);
}

bool ptx_target_of(struct ptx_parser *p, struct ptx_instruction *ins, const struct ptx_operand *o, uint8_t type,
                   uint32_t *reg) {
    uint8_t words = ptx_lane_words(type);
    if (o->kind == PTX_OPERAND_SINK) {
        *reg = words == 2 ? p->sink64 : words ? p->sink32 : p->sink_pred;
        return true;
    }
    if (o->kind != PTX_OPERAND_REGISTER) return ptx_unsupported(p, ins, "the destination is no register");
    if (ptx_lane_words(o->type) != words) return width_error(p, ins, o, type);
    *reg = o->reg;
    return true;
}

bool ptx_target(struct ptx_parser *p, struct ptx_instruction *ins, uint32_t operand, uint8_t type, uint32_t *reg) {
    if (operand >= ins->n_operands) return ptx_unsupported(p, ins, "too few operands");
    return ptx_target_of(p, ins, &ins->operands[operand], type, reg);
}

bool ptx_predicate(struct ptx_parser *p, struct ptx_instruction *ins, uint32_t operand, uint32_t *reg, uint16_t *flags,
                   uint16_t not_flag) {
    if (!ptx_source(p, ins, operand, GPUSIM_T_PRED, reg)) return false;
    if (ins->operands[operand].negated) *flags |= not_flag;
    return true;
}

bool ptx_address(struct ptx_parser *p, struct ptx_instruction *ins, uint32_t operand, struct gpusim_op *op,
                 uint32_t *reg) {
    const struct ptx_operand *o = operand < ins->n_operands ? &ins->operands[operand] : NULL;
    if (!o || o->kind != PTX_OPERAND_ADDRESS) return ptx_unsupported(p, ins, "expected an address");
    op->imm = o->offset;
    op->base = GPUSIM_BASE_NONE;
    op->flags |= GPUSIM_ADDR64;
    if (o->reg) {
        if (!ptx_lane_words(o->type)) return ptx_unsupported(p, ins, "address in a predicate");
        if (ptx_lane_words(o->type) == 1) op->flags &= (uint16_t)~GPUSIM_ADDR64;
        *reg = o->reg;
        return true;
    }
    if (o->symbol) {
        op->imm += (int64_t)o->symbol->address;
        op->base = o->symbol->base;
        if (op->space == GPUSIM_GENERIC) {
            if (o->symbol->space == GPUSIM_SHARED) op->imm += (int64_t)GPUSIM_SHARED_WINDOW;
            if (o->symbol->space == GPUSIM_LOCAL) op->imm += (int64_t)GPUSIM_LOCAL_WINDOW;
        }
    }
    *reg = ptx_constant(p, 2, 0);
    return *reg || ptx_fail(p, "out of memory");
}

static const struct {
    const char *name;
    ptx_decoder *decode;
} decoders[] = {
    {"add", ptx_decode_arithmetic},
    {"sub", ptx_decode_arithmetic},
    {"mul", ptx_decode_arithmetic},
    {"mad", ptx_decode_arithmetic},
    {"mul24", ptx_decode_arithmetic},
    {"mad24", ptx_decode_arithmetic},
    {"sad", ptx_decode_arithmetic},
    {"div", ptx_decode_arithmetic},
    {"rem", ptx_decode_arithmetic},
    {"abs", ptx_decode_arithmetic},
    {"neg", ptx_decode_arithmetic},
    {"min", ptx_decode_arithmetic},
    {"max", ptx_decode_arithmetic},
    {"fma", ptx_decode_arithmetic},
    {"addc", ptx_decode_arithmetic},
    {"subc", ptx_decode_arithmetic},
    {"madc", ptx_decode_arithmetic},
    {"copysign", ptx_decode_arithmetic},
    {"not", ptx_decode_arithmetic},
    {"and", ptx_decode_arithmetic},
    {"or", ptx_decode_arithmetic},
    {"xor", ptx_decode_arithmetic},
    {"cnot", ptx_decode_arithmetic},
    {"shl", ptx_decode_bits},
    {"shr", ptx_decode_bits},
    {"popc", ptx_decode_bits},
    {"clz", ptx_decode_bits},
    {"brev", ptx_decode_bits},
    {"bfind", ptx_decode_bits},
    {"bfe", ptx_decode_bits},
    {"bfi", ptx_decode_bits},
    {"bmsk", ptx_decode_bits},
    {"szext", ptx_decode_bits},
    {"fns", ptx_decode_bits},
    {"lop3", ptx_decode_bits},
    {"prmt", ptx_decode_bits},
    {"shf", ptx_decode_bits},
    {"dp4a", ptx_decode_bits},
    {"dp2a", ptx_decode_bits},
    {"sqrt", ptx_decode_math},
    {"rcp", ptx_decode_math},
    {"rsqrt", ptx_decode_math},
    {"ex2", ptx_decode_math},
    {"lg2", ptx_decode_math},
    {"sin", ptx_decode_math},
    {"cos", ptx_decode_math},
    {"tanh", ptx_decode_math},
    {"testp", ptx_decode_testp},
    {"setp", ptx_decode_setp},
    {"set", ptx_decode_set},
    {"selp", ptx_decode_select},
    {"slct", ptx_decode_select},
    {"mov", ptx_decode_move},
    {"cvt", ptx_decode_convert},
    {"ld", ptx_decode_load},
    {"ldu", ptx_decode_load},
    {"st", ptx_decode_store},
    {"cvta", ptx_decode_cvta},
    {"isspacep", ptx_decode_isspacep},
    {"bra", ptx_decode_branch},
    {"brx", ptx_decode_brx},
    {"call", ptx_decode_call},
    {"ret", ptx_decode_return},
    {"alloca", ptx_decode_alloca},
    {"stacksave", ptx_decode_alloca},
    {"stackrestore", ptx_decode_alloca},
    {"exit", ptx_decode_return},
    {"trap", ptx_decode_return},
    {"bar", ptx_decode_barrier},
    {"barrier", ptx_decode_barrier},
    {"membar", ptx_decode_fence},
    {"fence", ptx_decode_fence},
    {"shfl", ptx_decode_shuffle},
    {"vote", ptx_decode_vote},
    {"match", ptx_decode_match},
    {"redux", ptx_decode_redux},
    {"activemask", ptx_decode_activemask},
    {"elect", ptx_decode_elect},
    {"atom", ptx_decode_atomic},
    {"red", ptx_decode_atomic},
    {"cp", ptx_decode_cp},
    {"mbarrier", ptx_decode_mbarrier},
    {"ldmatrix", ptx_decode_ldmatrix},
    {"movmatrix", ptx_decode_movmatrix},
    {"mma", ptx_decode_mma},
    {"wmma", ptx_decode_wmma},
    {"prefetch", ptx_decode_ignore},
    {"prefetchu", ptx_decode_ignore},
    {"nanosleep", ptx_decode_ignore},
    {"brkpt", ptx_decode_ignore},
    {"pmevent", ptx_decode_ignore},
    {"discard", ptx_decode_ignore},
    {"applypriority", ptx_decode_ignore},
};

/* An operand that is an address or a special register is first moved to a register of its own. */
static bool move_first(struct ptx_parser *p, struct ptx_instruction *ins) {
    static _Thread_local struct ptx_instruction mov;
    bool wide = false;
    for (uint32_t m = 0; m < ins->n_mods; m++) wide |= ins->mods[m] && strstr(ins->mods[m], "64");
    uint8_t type = wide ? GPUSIM_T_U64 : GPUSIM_T_U32;
    for (uint32_t k = 0; k < ins->n_operands; k++) {
        struct ptx_operand *o = &ins->operands[k];
        if (o->kind != PTX_OPERAND_VARIABLE && o->kind != PTX_OPERAND_SPECIAL && o->kind != PTX_OPERAND_FUNCTION)
            continue;
        mov = (struct ptx_instruction){.text = "mov", .line = ins->line, .n_operands = 2, .n_mods = 1};
        mov.mods[0] = ptx_type_name(type);
        uint32_t reg = ptx_new_register(p, type);
        mov.operands[0] = (struct ptx_operand){.kind = PTX_OPERAND_REGISTER, .type = type, .reg = reg};
        mov.operands[1] = *o;
        if (!reg || !ptx_decode_move(p, &mov)) return false;
        *o = mov.operands[0];
    }
    return true;
}

static ptx_decoder *decoder(const char *name) {
    for (size_t i = 0; i < sizeof decoders / sizeof decoders[0]; i++)
        if (!strcmp(name, decoders[i].name)) return decoders[i].decode;
    return NULL;
}

bool ptx_known(struct ptx_parser *p, const struct ptx_instruction *ins) {
    return decoder(ins->text) || ptx_unsupported(p, ins, NULL);
}

bool ptx_decode(struct ptx_parser *p, struct ptx_instruction *ins) {
    if (strcmp(ins->text, "mov") && strcmp(ins->text, "call") && !move_first(p, ins)) return false;
    return ptx_known(p, ins) && decoder(ins->text)(p, ins);
}
