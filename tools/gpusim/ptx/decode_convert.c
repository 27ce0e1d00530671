/* cvt. */
#include "ptx/parse.h"

#include <stdio.h>

static bool is_integer(uint8_t type) { return type >= GPUSIM_T_B8 && type <= GPUSIM_T_S64; }

/* From or to a float: numerics/ has it. */
static struct gpusim_op *number(struct ptx_parser *p, struct ptx_instruction *ins, uint8_t to, uint8_t from,
                                int rounding, unsigned flags) {
    int n_to = ptx_number_type(to), n_from = ptx_number_type(from);
    gpusim_num_fn *call = n_to < 0 || n_from < 0
                              ? NULL
                              : gpusim_num_convert((enum gpusim_num_type)n_to, (enum gpusim_num_type)n_from,
                                                   (enum gpusim_num_rounding)(rounding < 0 ? 0 : rounding), flags);
    if (!call) {
        ptx_unsupported(p, ins, "no such conversion for sm_80");
        return NULL;
    }
    struct gpusim_op *op = ptx_op(p, ins, "number", NULL);
    if (op) op->call.number = call;
    return op;
}

static bool pack(struct ptx_parser *p, struct ptx_instruction *ins) {
    ptx_take(ins, "sat");
    uint8_t to = ptx_take_type(ins), from = ptx_take_type(ins);
    ptx_take_type(ins);
    uint32_t d, a, b, c = 0;
    if (from != GPUSIM_T_S32 || ptx_type_bytes(to) > 2) return ptx_unsupported(p, ins, "types");
    if (!ptx_target(p, ins, 0, GPUSIM_T_B32, &d) || !ptx_source(p, ins, 1, GPUSIM_T_B32, &a) ||
        !ptx_source(p, ins, 2, GPUSIM_T_B32, &b))
        return false;
    if (ins->n_operands > 3 ? !ptx_source(p, ins, 3, GPUSIM_T_B32, &c) : !(c = ptx_constant(p, 1, 0))) return false;
    struct gpusim_op *op = ptx_op(p, ins, "cvt.pack", NULL);
    if (!op) return false;
    op->d = d, op->a = a, op->b = b, op->c = c;
    op->type = to;
    return true;
}

bool ptx_decode_convert(struct ptx_parser *p, struct ptx_instruction *ins) {
    if (ptx_take(ins, "pack")) return pack(p, ins);
    int rounding = ptx_rounding(ins);
    bool ftz = ptx_take(ins, "ftz"), saturate = ptx_take(ins, "sat"), relu = ptx_take(ins, "relu");
    uint8_t to = ptx_take_type(ins), from = ptx_take_type(ins);
    uint32_t d, a, b = 0;
    char key[64];
    if (!to || !from || ins->n_operands < 2) return ptx_unsupported(p, ins, "types");
    if (to == GPUSIM_T_E4M3X2 || to == GPUSIM_T_E5M2X2 || from == GPUSIM_T_E4M3X2 || from == GPUSIM_T_E5M2X2)
        return ptx_unsupported(p, ins, "needs sm_89");
    bool pair = to == GPUSIM_T_F16X2 || to == GPUSIM_T_BF16X2;
    const struct ptx_operand *target = &ins->operands[0], *source = &ins->operands[1];
    uint8_t as_to = to, as_from = from; /* registers may be wider than the types */
    if (target->kind == PTX_OPERAND_REGISTER && is_integer(to) && ptx_lane_words(target->type) > ptx_lane_words(to))
        as_to = GPUSIM_T_B64;
    if (source->kind == PTX_OPERAND_REGISTER && is_integer(from) && ptx_lane_words(source->type) > ptx_lane_words(from))
        as_from = GPUSIM_T_B64;
    if (!ptx_target(p, ins, 0, as_to, &d) || !ptx_source(p, ins, 1, as_from, &a) ||
        (pair && !ptx_source(p, ins, 2, from, &b)))
        return false;
    uint8_t reg_bytes =
        target->kind == PTX_OPERAND_REGISTER ? (uint8_t)ptx_type_bytes(target->type) : (uint8_t)ptx_type_bytes(to);
    if (reg_bytes < ptx_type_bytes(to)) reg_bytes = (uint8_t)ptx_type_bytes(to);
    bool widths = as_from == from && as_to == to, integers = is_integer(to) && is_integer(from);
    unsigned flags = (ftz ? GPUSIM_NUM_FTZ : 0u) | (saturate ? GPUSIM_NUM_SAT : 0u) | (relu ? GPUSIM_NUM_RELU : 0u);
    struct gpusim_op *op;
    if (!integers && !widths) return ptx_unsupported(p, ins, "a register wider than its type");
    if (!integers) {
        op = number(p, ins, to, from, rounding, flags);
    } else if (widths && !saturate && ptx_type_bytes(to) >= reg_bytes) {
        snprintf(key, sizeof key, "cvt.b%u.%s", 8 * ptx_type_bytes(to), ptx_type_name(from));
        op = ptx_op(p, ins, key, NULL);
    } else
        op = ptx_op(p, ins, "cvt", NULL);
    if (!op) return false;
    op->d = d, op->a = a, op->b = b;
    op->type = to, op->from = from;
    op->size = reg_bytes;
    op->cls = GPUSIM_CLASS_CONVERT;
    op->flags = (uint16_t)((saturate ? GPUSIM_SAT : 0) | (ptx_lane_words(as_to) == 2 ? GPUSIM_REG64 : 0) |
                           (ptx_lane_words(as_from) == 2 ? GPUSIM_ADDR64 : 0));
    return true;
}
