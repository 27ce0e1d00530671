/* Messages between the blocks of a launch: a block that fences and then does an atomic or volatile access has released
 * what it wrote; another that does an atomic or volatile access after that has acquired it. Conflicts between two such
 * blocks are not reported, whatever they touch: which bytes a message is about is not known. */
#include "check/state.h"

#include <stdlib.h>

enum { FENCED = 1 };
static struct {
    uint64_t n;
    uint64_t time;
    uint8_t *fenced, *acquiring;
    uint64_t *released, *acquired;
} blocks;

void check_fences_begin(struct gpusim_launch *launch) {
    blocks.n = launch->n_blocks < 1u << 22 ? launch->n_blocks : 0;
    blocks.time = 0;
    if (!blocks.n) return;
    blocks.fenced = calloc(blocks.n, 1);
    blocks.acquiring = calloc(blocks.n, 1);
    blocks.released = calloc(blocks.n, sizeof *blocks.released);
    blocks.acquired = calloc(blocks.n, sizeof *blocks.acquired);
    if (!blocks.fenced || !blocks.acquiring || !blocks.released || !blocks.acquired) {
        blocks.n = 0;
        check_fences_end();
    }
}
void check_fences_end(void) {
    free(blocks.fenced);
    free(blocks.acquiring);
    free(blocks.released);
    free(blocks.acquired);
    blocks.fenced = blocks.acquiring = NULL;
    blocks.released = blocks.acquired = NULL;
    blocks.n = 0;
}

void check_fence(void *context, struct gpusim_warp *warp, const struct gpusim_op *op, uint32_t mask) {
    (void)context, (void)op, (void)mask;
    check_signal_fence(warp);
    if (warp->block->number < blocks.n) __atomic_store_n(&blocks.fenced[warp->block->number], FENCED, __ATOMIC_RELEASE);
}

void check_signal(struct gpusim_warp *warp, const struct gpusim_op *op) {
    uint64_t b = warp->block->number;
    if (b >= blocks.n) return;
    bool releases = op->flags & GPUSIM_ORDERED || __atomic_load_n(&blocks.fenced[b], __ATOMIC_ACQUIRE);
    uint64_t now = __atomic_add_fetch(&blocks.time, 1, __ATOMIC_SEQ_CST);
    if (releases && !__atomic_load_n(&blocks.released[b], __ATOMIC_RELAXED))
        __atomic_store_n(&blocks.released[b], now, __ATOMIC_RELEASE);
    blocks.acquiring[b] = 1;
}

/* A signal is looked at before it is done, and what it sees may be sent in between: its time is that of the block's
 * next access. */
void check_acquired(const struct gpusim_warp *warp) {
    uint64_t b = warp->block->number;
    if (b >= blocks.n || !blocks.acquiring[b]) return;
    blocks.acquiring[b] = 0;
    __atomic_store_n(&blocks.acquired[b], __atomic_add_fetch(&blocks.time, 1, __ATOMIC_SEQ_CST), __ATOMIC_RELEASE);
}

bool check_fenced(const struct gpusim_launch *launch, uint64_t writer, uint64_t reader) {
    if (reader >= blocks.n) return false;
    uint64_t acquired = __atomic_load_n(&blocks.acquired[reader], __ATOMIC_ACQUIRE);
    if (writer == GLOBAL_MANY) { /* any of them */
        for (uint64_t b = 0; b < launch->n_blocks && b < blocks.n; b++)
            if (b != reader && blocks.released[b] && blocks.released[b] < acquired) return true;
        return false;
    }
    if (writer >= blocks.n) return false;
    uint64_t released = __atomic_load_n(&blocks.released[writer], __ATOMIC_ACQUIRE);
    return released && released < acquired;
}
