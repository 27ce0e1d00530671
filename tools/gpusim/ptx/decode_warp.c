/* Exchange between lanes, and atomics. */
#include "ptx/parse.h"

#include <string.h>

/* list[0] the member mask, list[1] a predicate destination if there is one. */
static bool member_list(struct ptx_parser *p, struct ptx_instruction *ins, struct gpusim_op *op, uint32_t operand,
                        bool pair) {
    uint32_t *list = ptx_list(p, 2);
    if (!list || !ptx_source(p, ins, operand, GPUSIM_T_B32, &list[0])) return false;
    list[1] = ins->operands[0].pair;
    op->list = list;
    op->n_list = (uint16_t)(pair && ins->operands[0].has_pair ? 2 : 1);
    return true;
}

bool ptx_decode_shuffle(struct ptx_parser *p, struct ptx_instruction *ins) {
    static const char *const modes[] = {"up", "down", "bfly", "idx", NULL};
    bool sync = ptx_take(ins, "sync");
    int mode = ptx_take_any(ins, modes);
    ptx_take_type(ins);
    if (!sync || mode < 0) return ptx_unsupported(p, ins, "form");
    struct gpusim_op *op = ptx_op(p, ins, "shfl", NULL);
    if (!op) return false;
    op->code = (uint8_t)mode;
    return ptx_target(p, ins, 0, GPUSIM_T_B32, &op->d) && ptx_source(p, ins, 1, GPUSIM_T_B32, &op->a) &&
           ptx_source(p, ins, 2, GPUSIM_T_B32, &op->b) && ptx_source(p, ins, 3, GPUSIM_T_B32, &op->c) &&
           member_list(p, ins, op, 4, true);
}

bool ptx_decode_vote(struct ptx_parser *p, struct ptx_instruction *ins) {
    static const char *const modes[] = {"all", "any", "uni", "ballot", NULL};
    bool sync = ptx_take(ins, "sync");
    int mode = ptx_take_any(ins, modes);
    uint8_t type = ptx_take_type(ins);
    if (!sync || mode < 0) return ptx_unsupported(p, ins, "form");
    struct gpusim_op *op = ptx_op(p, ins, "vote", NULL);
    if (!op) return false;
    op->code = (uint8_t)mode;
    return ptx_target(p, ins, 0, type, &op->d) && ptx_predicate(p, ins, 1, &op->a, &op->flags, GPUSIM_NOT_A) &&
           member_list(p, ins, op, 2, false);
}

bool ptx_decode_match(struct ptx_parser *p, struct ptx_instruction *ins) {
    static const char *const modes[] = {"any", "all", NULL};
    bool sync = ptx_take(ins, "sync");
    int mode = ptx_take_any(ins, modes);
    uint8_t type = ptx_take_type(ins);
    if (!sync || mode < 0) return ptx_unsupported(p, ins, "form");
    struct gpusim_op *op = ptx_op(p, ins, "match", NULL);
    if (!op) return false;
    op->code = (uint8_t)mode;
    op->size = (uint8_t)ptx_type_bytes(type);
    return ptx_target(p, ins, 0, GPUSIM_T_B32, &op->d) && ptx_source(p, ins, 1, type, &op->a) &&
           member_list(p, ins, op, 2, true);
}

static const char *const operations[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas", NULL};

bool ptx_decode_redux(struct ptx_parser *p, struct ptx_instruction *ins) {
    bool sync = ptx_take(ins, "sync");
    int code = ptx_take_any(ins, operations);
    uint8_t type = ptx_take_type(ins);
    if (!sync || code < 0 || type == GPUSIM_T_F32) return ptx_unsupported(p, ins, "form");
    struct gpusim_op *op = ptx_op(p, ins, "redux", NULL);
    if (!op) return false;
    op->code = (uint8_t)code;
    op->type = type;
    return ptx_target(p, ins, 0, type, &op->d) && ptx_source(p, ins, 1, type, &op->a) &&
           member_list(p, ins, op, 2, false);
}

bool ptx_decode_activemask(struct ptx_parser *p, struct ptx_instruction *ins) {
    ptx_take_type(ins);
    struct gpusim_op *op = ptx_op(p, ins, "activemask", NULL);
    return op && ptx_target(p, ins, 0, GPUSIM_T_B32, &op->d);
}

bool ptx_decode_elect(struct ptx_parser *p, struct ptx_instruction *ins) {
    ptx_take(ins, "sync");
    struct gpusim_op *op = ptx_op(p, ins, "elect", NULL);
    return op && ptx_target(p, ins, 0, GPUSIM_T_B32, &op->d) && member_list(p, ins, op, 1, true);
}

bool ptx_decode_atomic(struct ptx_parser *p, struct ptx_instruction *ins) {
    static const char *const orders[] = {"relaxed", "acquire", "release", "acq_rel", "cta",
                                         "gpu",     "sys",     "noftz",   NULL};
    static const char *const spaces[] = {"generic", "global", "shared", "shared::cta", NULL};
    bool red = !strcmp(ins->text, "red");
    bool ordered = false;
    for (int order; (order = ptx_take_any(ins, orders)) >= 0;) ordered |= order >= 1 && order <= 3;
    for (uint32_t m = 0; m < ins->n_mods; m++)
        if (ins->mods[m] && !strncmp(ins->mods[m], "L2::", 4)) ins->mods[m] = NULL;
    int space = ptx_take_any(ins, spaces), code = ptx_take_any(ins, operations);
    uint8_t type = ptx_take_type(ins);
    uint32_t at = red ? 0 : 1;
    bool half = type >= GPUSIM_T_F16 && type <= GPUSIM_T_BF16X2;
    if (code < 0 || !type || type == GPUSIM_T_B128 || (half && code != GPUSIM_ATOM_ADD))
        return ptx_unsupported(p, ins, "form");
    struct gpusim_op *op = ptx_op(p, ins, "atom", NULL);
    if (!op) return false;
    op->space = (uint8_t)(space < 0 ? GPUSIM_GENERIC : space == 3 ? GPUSIM_SHARED : space);
    if (ordered) op->flags |= GPUSIM_ORDERED;
    op->code = (uint8_t)code;
    op->type = type;
    op->size = (uint8_t)ptx_type_bytes(type);
    if (code == GPUSIM_ATOM_ADD && type >= GPUSIM_T_F16 && type <= GPUSIM_T_F64) {
        /* f32 sums in global memory flush subnormals, those in shared memory do not (PTX ISA, atom). */
        unsigned flags = type == GPUSIM_T_F32 && op->space != GPUSIM_SHARED ? GPUSIM_NUM_FTZ : 0;
        op->call.number =
            gpusim_num_arith(GPUSIM_NUM_ADD, (enum gpusim_num_type)ptx_number_type(type), GPUSIM_NUM_RN, flags);
        if (!op->call.number) return ptx_unsupported(p, ins, NULL);
    }
    if (!red && !ptx_target(p, ins, 0, type, &op->d)) return false;
    return ptx_address(p, ins, at, op, &op->a) && ptx_source(p, ins, at + 1, type, &op->b) &&
           (code != GPUSIM_ATOM_CAS || ptx_source(p, ins, at + 2, type, &op->c));
}
