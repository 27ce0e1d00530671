/* How many machine instructions a launch issues, estimated: each is taken to run as often as the PTX line it comes
 * from. Where the assembler has unrolled a loop, the copies share those runs; how many copies there are is seen by
 * instructions that the assembler neither merges nor splits (memory, tensor cores, shuffles, barriers, special
 * functions), per basic block. Subroutines that the assembler adds are left out; instructions that it moved out of a
 * loop count as if they were still inside. */
#include "counters/collect.h"

#include <stdlib.h>

enum { NOP = 0x18 };

/* The low 8 bits of the machine operation of such an instruction; 0: the op is none. */
static uint8_t anchor(const struct gpusim_op *op) {
    switch (op->cls) {
    case GPUSIM_CLASS_MMA:
        return op->from == GPUSIM_T_S8 || op->from == GPUSIM_T_U8 ? 0x37 : op->from == GPUSIM_T_F64 ? 0x3f : 0x3c;
    case GPUSIM_CLASS_LOAD:
        return op->space == GPUSIM_GLOBAL ? 0x81 : op->space == GPUSIM_SHARED ? 0x84 : 0;
    case GPUSIM_CLASS_STORE:
        return op->space == GPUSIM_GLOBAL ? 0x86 : op->space == GPUSIM_SHARED ? 0x88 : 0;
    case GPUSIM_CLASS_MATRIX_LOAD:
        return 0x3b;
    case GPUSIM_CLASS_ASYNC_COPY:
        return 0xae;
    case GPUSIM_CLASS_WARP:
        return 0x89;
    case GPUSIM_CLASS_SPECIAL:
        return 0x08;
    case GPUSIM_CLASS_BARRIER:
        return 0x1d;
    default:
        return 0;
    }
}

/* By PTX line, from `first` on. The line before the first op's stands for all lines without an op. */
struct lines {
    uint32_t first, n;
    uint32_t *op;           /* index of the line's first op + 1 */
    uint32_t *instructions; /* of the machine */
    uint32_t *anchors;      /* of these, those of the first op's anchor operation */
};

static uint32_t line_of(const struct lines *l, uint32_t line) {
    return line >= l->first && line - l->first < l->n ? line - l->first : 0;
}

static void fill(const struct gpusim_function *f, struct lines *l) {
    for (uint32_t k = f->n_ops; k-- > 0;) l->op[line_of(l, f->ops[k].line)] = k + 1;
    l->op[0] = 0;
    for (uint32_t m = 0; m < f->n_machine_ops; m++) {
        uint8_t operation = f->machine_ops[m].operation & 0xff;
        uint32_t line = line_of(l, f->machine_ops[m].line);
        if (operation == NOP) continue;
        if (!l->op[line]) line = 0;
        l->instructions[line]++;
        if (line && anchor(&f->ops[l->op[line] - 1]) == operation) l->anchors[line]++;
    }
}

/* How often the assembler has written the ops [first, end). */
static double copies(const struct gpusim_function *f, const struct lines *l, uint32_t first, uint32_t end) {
    double sum = 0, n = 0;
    for (uint32_t k = first; k < end; k++) {
        uint32_t line = line_of(l, f->ops[k].line), ops = 1; /* PTX lines may hold several */
        if (l->op[line] != k + 1 || !l->anchors[line]) continue;
        while (k + ops < end && f->ops[k + ops].line == f->ops[k].line) ops++;
        sum += (double)l->anchors[line] / ops;
        n++;
    }
    return sum > n ? sum / n : 1;
}

/* Ops that follow each other and ran equally often. */
static uint32_t block_end(const struct gpusim_function *f, const struct gpusim_tally *tally, uint32_t first) {
    uint32_t end = first + 1;
    while (end < f->n_ops && f->ops[end - 1].cls != GPUSIM_CLASS_CONTROL && tally[end].issued == tally[first].issued)
        end++;
    return end;
}

double gpusim_machine_issued(const struct gpusim_function *f, const struct gpusim_tally *tally) {
    struct lines l = {.first = f->n_ops ? f->ops[0].line - 1 : 0, .n = 2};
    double issued = 0;
    if (!f->n_machine_ops || !f->n_ops) return 0;
    for (uint32_t k = 0; k < f->n_ops; k++)
        if (f->ops[k].line >= l.first + l.n) l.n = f->ops[k].line - l.first + 1;
    l.op = calloc(l.n, sizeof *l.op);
    l.instructions = calloc(l.n, sizeof *l.instructions);
    l.anchors = calloc(l.n, sizeof *l.anchors);
    if (l.op && l.instructions && l.anchors) {
        fill(f, &l);
        issued = (double)l.instructions[0] * (double)tally[0].issued;
        for (uint32_t k = 0, end; k < f->n_ops; k = end) {
            end = block_end(f, tally, k);
            double each = (double)tally[k].issued / copies(f, &l, k, end);
            for (uint32_t j = k; j < end; j++) {
                uint32_t line = line_of(&l, f->ops[j].line);
                if (l.op[line] == j + 1) issued += l.instructions[line] * each;
            }
        }
    }
    free(l.op);
    free(l.instructions);
    free(l.anchors);
    return issued;
}
