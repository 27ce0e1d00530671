/* Who has met whom through shared memory: mbarriers; fences and then atomic or volatile accesses, as the barriers of
 * tiles of several warps (cooperative_groups) are made of. A word of shared memory carries what those knew who arrived
 * or released there, to those who test or acquire it. */
#include "check/state.h"
#include "exec/codes.h"

#include <string.h>

static void join(uint32_t *to, const uint32_t *from) {
    for (int u = 0; u < GPUSIM_MAX_WARPS; u++) to[u] = to[u] > from[u] ? to[u] : from[u];
}

/* An arrival leaves what the warp knows with the object; a test takes it. A test that fails takes it as well: such a
 * thread tries again, or is not looked at. */
void check_mbarrier(struct gpusim_warp *warp, const struct gpusim_op *op, const struct gpusim_memory_event *event) {
    struct block_check *b = warp->block->check;
    if (!b) return;
    struct warp_check *mine = &b->warps[warp->index];
    bool tests = op->code == GPUSIM_MBARRIER_TEST_WAIT || op->code == GPUSIM_MBARRIER_TEST_PARITY;
    for (uint32_t rest = event->mask, same; rest; rest &= ~same) {
        uint32_t offset = (uint32_t)event->address[__builtin_ctz(rest)], *known = b->signals[offset / 4];
        same = 0;
        for (int i = 0; i < GPUSIM_WARP; i++) same |= (uint32_t)(event->address[i] == offset) << i;
        same &= rest;
        b->written[offset / 16] |= (uint16_t)(0xff << (offset & 15));
        if (op->code >= GPUSIM_MBARRIER_ASYNC_ARRIVE) check_shared_bind(warp, same, offset / 4);
        mine->known[warp->index] = ++b->time;
        if (tests) {
            check_shared_landed(warp->block, offset / 4);
            check_take(mine, known);
            mine->lanes_time = b->time;
        } else
            join(known, mine->known);
    }
}

/* What a release gives away from now on. */
static const uint32_t *released(struct gpusim_warp *warp) {
    struct block_check *b = warp->block->check;
    b->any_signal = true;
    b->warps[warp->index].known[warp->index] = ++b->time;
    return b->warps[warp->index].known;
}

void check_signal_fence(struct gpusim_warp *warp) {
    struct block_check *b = warp->block->check;
    if (!b) return;
    struct warp_check *mine = &b->warps[warp->index];
    if (b->any_signal) check_take(mine, mine->seen);
    memcpy(mine->fenced, released(warp), sizeof mine->fenced);
}

/* A word of reserved shared memory as a barrier of tiles. What is taken is what its tile knew when it was complete, not
 * what faster warps have released there since: whether those are ahead is up to the seed. */
static void tile_signal(struct gpusim_warp *warp, const struct gpusim_op *op, const struct gpusim_memory_event *event,
                        struct tile_barrier *barrier) {
    struct block_check *b = warp->block->check;
    struct warp_check *mine = &b->warps[warp->index];
    uint32_t me = warp->index, bit = 1u << me, lane = (uint32_t)__builtin_ctz(event->mask), value;
    memcpy(&value, (const void *)event->host[lane], sizeof value);
    if (event->access == GPUSIM_ACCESS_ATOMIC && op->code == GPUSIM_ATOM_OR) { /* arrives */
        const uint32_t *given = released(warp);
        for (uint32_t bits = REGS32(op->b)[lane]; bits; bits &= bits - 1)
            memcpy(barrier->arrived[__builtin_ctz(bits)], given, sizeof mine->known);
        for (uint32_t bits = value; bits; bits &= bits - 1) check_take(mine, barrier->arrived[__builtin_ctz(bits)]);
        barrier->waiting |= bit;
    } else if (event->access == GPUSIM_ACCESS_ATOMIC && op->code == GPUSIM_ATOM_AND) { /* lets its tile go */
        uint32_t tile = ~REGS32(op->b)[lane], known[GPUSIM_MAX_WARPS] = {0};
        for (uint32_t bits = tile; bits; bits &= bits - 1) join(known, barrier->arrived[__builtin_ctz(bits)]);
        if (op->flags & GPUSIM_ORDERED) join(known, released(warp));
        for (uint32_t bits = tile; bits; bits &= bits - 1)
            memcpy(barrier->completed[__builtin_ctz(bits)], known, sizeof known);
        barrier->waiting &= ~bit;
    } else if (!(barrier->waiting & bit)) { /* looks whether others have come */
        for (uint32_t bits = value; bits; bits &= bits - 1) check_take(mine, barrier->arrived[__builtin_ctz(bits)]);
    } else if (!(value & bit)) {
        check_take(mine, barrier->completed[me]);
        barrier->waiting &= ~bit;
    }
}

/* An atomic access adds to what the word carries, a store replaces it: so the memory model has it. */
void check_signal_shared(struct gpusim_warp *warp, const struct gpusim_op *op,
                         const struct gpusim_memory_event *event) {
    struct block_check *b = warp->block->check;
    struct warp_check *mine = &b->warps[warp->index];
    uint64_t reserved = event->address[__builtin_ctz(event->mask)] - warp->launch->reserved_base;
    if (reserved < 4 * CHECK_TILE_BARRIERS && event->bytes == 4) {
        tile_signal(warp, op, event, &b->tiles[reserved / 4]);
        return;
    }
    bool ordered = op->flags & GPUSIM_ORDERED;
    bool reads = event->access != GPUSIM_ACCESS_STORE, writes = event->access != GPUSIM_ACCESS_LOAD;
    const uint32_t *given = ordered && writes ? released(warp) : mine->fenced;
    if (!b->any_signal) return;
    uint32_t last = UINT32_MAX;
    for (uint32_t rest = event->mask; rest; rest &= rest - 1) {
        uint32_t word = (uint32_t)event->address[__builtin_ctz(rest)] / 4;
        if (word == last) continue;
        last = word;
        if (reads && ordered) check_take(mine, b->signals[word]);
        if (reads) join(mine->seen, b->signals[word]);
        if (writes && reads)
            join(b->signals[word], given);
        else if (writes)
            memcpy(b->signals[word], given, sizeof mine->fenced);
    }
}
