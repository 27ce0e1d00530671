/* State of blocks that are run, kept for the next ones; local memory. */
#include "check/state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct block_check *idle, *busy;

enum { BYTES = (GPUSIM_SHARED_PER_BLOCK_OPTIN + 1023) & ~1023, GRANULES = BYTES / 16 };

static struct block_check *block_new(void) {
    struct block_check *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    size_t cells = (size_t)GRANULES * 21 * sizeof(struct cell);
    b->memory_bytes =
        cells + GRANULES * 2 + BYTES * 2 + BYTES / 4 * sizeof *b->signals + CHECK_TILE_BARRIERS * sizeof *b->tiles;
    b->memory = mmap(NULL, b->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b->memory == MAP_FAILED) {
        free(b);
        return NULL;
    }
    b->cell16 = b->memory;
    b->cell4 = b->cell16 + GRANULES;
    b->cell1 = b->cell4 + GRANULES * 4;
    b->written = (uint16_t *)(b->cell1 + GRANULES * 16);
    b->write_lane = (uint8_t *)(b->written + GRANULES);
    b->read_lane = b->write_lane + BYTES;
    b->signals = (void *)(b->read_lane + BYTES);
    b->tiles = (void *)(b->signals + BYTES / 4);
    return b;
}

static struct block_check *take(void) {
    pthread_mutex_lock(&mutex);
    struct block_check *b = idle;
    if (b) idle = b->next;
    pthread_mutex_unlock(&mutex);
    if (!b && !(b = block_new())) return NULL;
    pthread_mutex_lock(&mutex);
    b->next = busy;
    busy = b;
    pthread_mutex_unlock(&mutex);
    return b;
}

void check_blocks_done(void) {
    while (busy) {
        struct block_check *b = busy;
        busy = b->next;
        b->next = idle;
        idle = b;
    }
}

/* Copies that the last block left: their cells are as if never written. */
static void drop_pending(struct block_check *b) {
    bool any = false;
    for (int w = 0; w < GPUSIM_MAX_WARPS; w++) {
        any |= b->warps[w].n_pending != 0;
        b->warps[w].n_pending = 0;
    }
    if (any) memset(b->memory, 0, (size_t)GRANULES * 21 * sizeof(struct cell));
}

static bool local_new(struct gpusim_warp *warp, struct warp_check *w) {
    uint32_t granules = (warp->local_bytes + 15) / 16;
    if (granules > w->local_granules) {
        free(w->local);
        w->local = calloc(granules, GPUSIM_WARP * sizeof *w->local);
        w->local_granules = w->local ? granules : 0;
    } else if (w->local_used) {
        memset(w->local, 0, (size_t)w->local_used * GPUSIM_WARP * sizeof *w->local);
    }
    w->local_used = 0;
    return w->local || !granules;
}

void check_block_begin(void *context, struct gpusim_block *block) {
    (void)context;
    if (!block->check) block->check = take();
    struct block_check *b = block->check;
    bool ok = b != NULL;
    if (ok) {
        drop_pending(b);
        b->block_time = ++b->time;
        memset(b->written, 0, ((size_t)block->shared_bytes + 15) / 16 * 2);
        const uint32_t reserved = block->launch->reserved_base;
        memset(&b->written[reserved / 16], 0xff, (size_t)(block->shared_bytes - reserved) / 16 * 2);
        b->any_signal = false;
        for (int k = 0; block->launch->reserved_base < block->shared_bytes && k < CHECK_TILE_BARRIERS; k++)
            b->tiles[k].waiting = 0;
        memset(b->barrier_known, 0, sizeof b->barrier_known);
        memset(b->barrier_lanes, 0, sizeof b->barrier_lanes);
    }
    for (uint32_t w = 0; ok && w < block->n_warps; w++) {
        struct warp_check *warp = &b->warps[w];
        for (int u = 0; u < GPUSIM_MAX_WARPS; u++) warp->known[u] = b->time;
        warp->known_most = b->time;
        warp->lanes_time = b->time;
        if (warp->pair_time) memset(warp->pair_time, 0, sizeof(uint32_t[GPUSIM_WARP][GPUSIM_WARP]));
        ok = local_new(&block->warps[w], warp);
    }
    if (!ok)
        gpusim_fault(&block->warps[0], block->launch->function->ops, GPUSIM_FAULT_MEMORY, -1,
                     "no memory for the checks of a block (GPUSIM_CHECKS=none needs none)");
}

static struct warp_check *local_of(const struct gpusim_warp *warp) {
    struct block_check *b = warp->block->check;
    return b && b->warps[warp->index].local ? &b->warps[warp->index] : NULL;
}

void check_local(struct gpusim_warp *warp, const struct gpusim_op *op, const struct gpusim_memory_event *event) {
    struct warp_check *w = local_of(warp);
    if (!w) return;
    bool writes = event->access == GPUSIM_ACCESS_STORE || event->access == GPUSIM_ACCESS_ATOMIC;
    for (uint32_t rest = event->mask; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        uint64_t at = event->address[lane];
        uint16_t *granule = &w->local[(at >> 4) * GPUSIM_WARP + (uint32_t)lane];
        uint16_t mask = (uint16_t)(((1u << event->bytes) - 1) << (at & 15));
        if (writes) {
            *granule |= mask;
            if (at / 16 >= w->local_used) w->local_used = (uint32_t)(at / 16) + 1;
        } else if (mask & ~*granule) {
            struct gpusim_place place = {GPUSIM_REPORT_UNINITIALISED, GPUSIM_LOCAL, at, NULL};
            gpusim_fault_at(warp, op, GPUSIM_FAULT_CHECK, lane, &place,
                            "read of %u bytes that this thread has not written", event->bytes);
            return;
        }
    }
}

static void frame(struct gpusim_warp *warp, uint32_t lanes, uint32_t offset, uint32_t bytes, bool written) {
    struct warp_check *w = local_of(warp);
    if (!w || !bytes) return;
    uint32_t first = offset / 16, last = (offset + bytes - 1) / 16;
    if (last >= w->local_granules) return;
    for (uint32_t g = first; g <= last; g++) {
        uint32_t mask = 0xffff;
        if (g == first) mask &= 0xffffu << (offset & 15);
        if (g == last) mask &= 0xffffu >> (15 - ((offset + bytes - 1) & 15));
        for (uint32_t rest = lanes; rest; rest &= rest - 1) {
            uint16_t *granule = &w->local[(size_t)g * GPUSIM_WARP + (uint32_t)__builtin_ctz(rest)];
            *granule = (uint16_t)(written ? *granule | mask : *granule & ~mask);
        }
    }
    if (last >= w->local_used) w->local_used = last + 1;
}
void check_frame_enter(void *context, struct gpusim_warp *warp, uint32_t mask, uint32_t offset, uint32_t bytes) {
    (void)context;
    frame(warp, mask, offset, bytes, false);
}
void check_frame_write(void *context, struct gpusim_warp *warp, uint32_t mask, uint32_t offset, uint32_t bytes) {
    (void)context;
    frame(warp, mask, offset, bytes, true);
}
