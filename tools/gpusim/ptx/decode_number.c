/* Instructions on floats, whose functions are in numerics/, and all comparisons. */
#include "ptx/parse.h"

#include <stdio.h>
#include <string.h>

int ptx_number_type(uint8_t type) {
    static const int8_t types[GPUSIM_N_TYPES] = {
        [GPUSIM_T_F16] = GPUSIM_NUM_F16 + 1,   [GPUSIM_T_F16X2] = GPUSIM_NUM_F16X2 + 1,
        [GPUSIM_T_BF16] = GPUSIM_NUM_BF16 + 1, [GPUSIM_T_BF16X2] = GPUSIM_NUM_BF16X2 + 1,
        [GPUSIM_T_TF32] = GPUSIM_NUM_TF32 + 1, [GPUSIM_T_F32] = GPUSIM_NUM_F32 + 1,
        [GPUSIM_T_F64] = GPUSIM_NUM_F64 + 1,   [GPUSIM_T_S8] = GPUSIM_NUM_S8 + 1,
        [GPUSIM_T_U8] = GPUSIM_NUM_U8 + 1,     [GPUSIM_T_S16] = GPUSIM_NUM_S16 + 1,
        [GPUSIM_T_U16] = GPUSIM_NUM_U16 + 1,   [GPUSIM_T_S32] = GPUSIM_NUM_S32 + 1,
        [GPUSIM_T_U32] = GPUSIM_NUM_U32 + 1,   [GPUSIM_T_S64] = GPUSIM_NUM_S64 + 1,
        [GPUSIM_T_U64] = GPUSIM_NUM_U64 + 1};
    return types[type] - 1;
}

static const struct {
    const char *name;
    int8_t exact, approx, full; /* enum gpusim_num_op, -1: no such form */
} operations[] = {
    {"add", GPUSIM_NUM_ADD, -1, -1},
    {"sub", GPUSIM_NUM_SUB, -1, -1},
    {"mul", GPUSIM_NUM_MUL, -1, -1},
    {"fma", GPUSIM_NUM_FMA, -1, -1},
    {"mad", GPUSIM_NUM_FMA, -1, -1},
    {"div", GPUSIM_NUM_DIV, GPUSIM_NUM_DIV_APPROX, GPUSIM_NUM_DIV_FULL},
    {"rcp", GPUSIM_NUM_RCP, GPUSIM_NUM_RCP_APPROX, -1},
    {"sqrt", GPUSIM_NUM_SQRT, GPUSIM_NUM_SQRT_APPROX, -1},
    {"rsqrt", -1, GPUSIM_NUM_RSQRT_APPROX, -1},
    {"ex2", -1, GPUSIM_NUM_EX2_APPROX, -1},
    {"lg2", -1, GPUSIM_NUM_LG2_APPROX, -1},
    {"sin", -1, GPUSIM_NUM_SIN_APPROX, -1},
    {"cos", -1, GPUSIM_NUM_COS_APPROX, -1},
    {"tanh", -1, GPUSIM_NUM_TANH_APPROX, -1},
    {"abs", GPUSIM_NUM_ABS, -1, -1},
    {"neg", GPUSIM_NUM_NEG, -1, -1},
    {"min", GPUSIM_NUM_MIN, -1, -1},
    {"max", GPUSIM_NUM_MAX, -1, -1},
    {"copysign", GPUSIM_NUM_COPYSIGN, -1, -1},
};

static int operation(struct ptx_instruction *ins) {
    bool approx = ptx_take(ins, "approx"), full = ptx_take(ins, "full");
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (!strcmp(operations[i].name, ins->text))
            return approx ? operations[i].approx : full ? operations[i].full : operations[i].exact;
    return -1;
}

bool ptx_decode_number(struct ptx_parser *p, struct ptx_instruction *ins, uint8_t type) {
    int rounding = ptx_rounding(ins), what = operation(ins);
    unsigned flags = 0;
    if (ptx_take(ins, "ftz")) flags |= GPUSIM_NUM_FTZ;
    if (ptx_take(ins, "sat")) flags |= GPUSIM_NUM_SAT;
    if (ptx_take(ins, "relu")) flags |= GPUSIM_NUM_RELU;
    if (ptx_take(ins, "NaN")) flags |= GPUSIM_NUM_NAN;
    ptx_take(ins, "rnd");
    int n_type = ptx_number_type(type);
    gpusim_num_fn *number = what < 0 || n_type < 0
                                ? NULL
                                : gpusim_num_arith((enum gpusim_num_op)what, (enum gpusim_num_type)n_type,
                                                   (enum gpusim_num_rounding)(rounding < 0 ? 0 : rounding), flags);
    if (!number || ins->n_operands < 2 || ins->n_operands > 4)
        return ptx_unsupported(p, ins, "no such combination for sm_80");
    struct gpusim_op *op = ptx_op(p, ins, "number", NULL);
    if (!op) return false;
    op->call.number = number;
    op->type = type;
    op->cls = ptx_class(ins->text, ptx_type_name(type));
    uint32_t *fields[3] = {&op->a, &op->b, &op->c};
    for (uint32_t k = 1; k < ins->n_operands; k++)
        if (!ptx_source(p, ins, k, type, fields[k - 1])) return false;
    return ptx_target(p, ins, 0, type, &op->d);
}

bool ptx_decode_math(struct ptx_parser *p, struct ptx_instruction *ins) {
    return ptx_decode_number(p, ins, ptx_take_type(ins));
}

bool ptx_decode_testp(struct ptx_parser *p, struct ptx_instruction *ins) {
    static const char *const tests[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal", NULL};
    int test = ptx_take_any(ins, tests);
    uint8_t type = ptx_take_type(ins);
    int n_type = ptx_number_type(type);
    gpusim_num_compare_fn *compare =
        test < 0 || n_type < 0 ? NULL : gpusim_num_testp((enum gpusim_num_test)test, (enum gpusim_num_type)n_type);
    if (!compare) return ptx_unsupported(p, ins, NULL);
    struct gpusim_op *op = ptx_op(p, ins, "testp", NULL);
    if (!op) return false;
    op->call.compare = compare;
    return ptx_target(p, ins, 0, GPUSIM_T_PRED, &op->d) && ptx_source(p, ins, 1, type, &op->a);
}

static int comparison(struct ptx_instruction *ins) {
    static const char *const names[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ", "neu",
                                        "ltu", "leu", "gtu", "geu", "num", "nan", NULL};
    static const char *const unsigned_names[] = {"lo", "ls", "hi", "hs", NULL};
    int code = ptx_take_any(ins, names);
    if (code >= 0) return code;
    code = ptx_take_any(ins, unsigned_names);
    return code < 0 ? -1 : GPUSIM_LT + code;
}

/* The handler for operands of `type`; for floats also the functions. */
static struct gpusim_op *compare_op(struct ptx_parser *p, struct ptx_instruction *ins, const char *name, uint8_t type,
                                    int code) {
    unsigned flags = ptx_take(ins, "ftz") ? GPUSIM_NUM_FTZ : 0;
    bool packed = type == GPUSIM_T_F16X2 || type == GPUSIM_T_BF16X2;
    uint8_t low = type == GPUSIM_T_F16X2 ? GPUSIM_T_F16 : type == GPUSIM_T_BF16X2 ? GPUSIM_T_BF16 : type;
    if (low < GPUSIM_T_F16 || low > GPUSIM_T_F64) return ptx_op(p, ins, name, ptx_type_name(type));
    gpusim_num_compare_fn *first =
        gpusim_num_compare((enum gpusim_num_comparison)code, (enum gpusim_num_type)ptx_number_type(low), flags);
    gpusim_num_compare_fn *second = packed ? gpusim_num_compare((enum gpusim_num_comparison)code,
                                                                (enum gpusim_num_type)ptx_number_type(type), flags)
                                           : first;
    if (!first || !second) {
        ptx_unsupported(p, ins, NULL);
        return NULL;
    }
    struct gpusim_op *op = ptx_op(p, ins, name, packed ? "packed" : "float");
    if (op) op->call.compare = first, op->call2.compare = second;
    return op;
}

static bool compare(struct ptx_parser *p, struct ptx_instruction *ins, const char *name, uint8_t result, uint8_t type) {
    static const char *const combines[] = {"and", "or", "xor", NULL};
    int code = comparison(ins), combine = ptx_take_any(ins, combines);
    if (code < 0 || ins->n_operands < 3) return ptx_unsupported(p, ins, "no comparison");
    struct gpusim_op *op = compare_op(p, ins, name, type, code);
    if (!op) return false;
    op->code = (uint8_t)code;
    op->type = result;
    op->imm = combine + 1;
    if (ins->operands[0].has_pair) {
        uint32_t *list = ptx_list(p, 1);
        if (!list) return false;
        list[0] = ins->operands[0].pair;
        op->list = list;
        op->n_list = 1;
    }
    if (!ptx_target(p, ins, 0, result, &op->d) || !ptx_source(p, ins, 1, type, &op->a) ||
        !ptx_source(p, ins, 2, type, &op->b))
        return false;
    return combine < 0 || ptx_predicate(p, ins, 3, &op->c, &op->flags, GPUSIM_NOT_C);
}

bool ptx_decode_setp(struct ptx_parser *p, struct ptx_instruction *ins) {
    uint8_t type = ptx_take_type(ins);
    return compare(p, ins, "setp", GPUSIM_T_PRED, type);
}

bool ptx_decode_set(struct ptx_parser *p, struct ptx_instruction *ins) {
    uint8_t result = ptx_take_type(ins), type = ptx_take_type(ins);
    if (!type) return ptx_unsupported(p, ins, "expected two types");
    return compare(p, ins, "set", result, type);
}
