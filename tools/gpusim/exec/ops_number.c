/* Instructions whose arithmetic is in numerics/: one function for all lanes, chosen by the decoder. */
#include "exec/lanes.h"

HANDLER(number) {
    uint32_t *regs = warp->regs;
    op->call.number(regs + op->d, regs + op->a, regs + op->b, regs + op->c, mask);
    return GPUSIM_NEXT;
}

const struct gpusim_entry TABLE(ops_number)[] = {
    {"number", number},
    {NULL, NULL},
};
