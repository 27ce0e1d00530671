#include "kernels/cuda/runtime/weights.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/runtime/memory.h"

#define ALIGN 256 /* of a copy; as many bytes lie between two */

static struct lk_range *find(const struct lk_cuda_weights *w, const struct lk_tensor_part *part) {
    return lk_ranges_find(&w->ranges, (uintptr_t)part->data, part->bytes);
}

void lk_cuda_weights_drop(struct lk_cuda_weights *w) {
    for (size_t i = 0; i < w->n_blocks; i++) lk_cuda()->memory_free(w->blocks[i]);
    w->ranges.n = w->n_blocks = 0;
    w->held = 0;
}

void lk_cuda_weights_forget(struct lk_cuda_weights *w) {
    size_t n = 0;
    for (size_t i = 0; i < w->ranges.n; i++)
        if (w->ranges.entries[i].copy) w->ranges.entries[n++] = w->ranges.entries[i];
    w->ranges.n = n;
}

/* Forgets everything if memory that held weights was given back since the last look. */
static enum lk_code follow_epoch(const struct lk_cuda_device *cuda) {
    struct lk_cuda_weights *w = cuda->weights;
    uint64_t now = lk_weights_epoch();
    if (w->epoch == now) return LK_OK;
    LK_TRY(LK_CU(stream_synchronize, (cuda->stream), "before weights are dropped"));
    lk_cuda_weights_drop(w);
    w->epoch = now;
    return LK_OK;
}

enum lk_code lk_cuda_weights_note(struct lk_cuda_device *cuda, const struct lk_ranges *ranges) {
    LK_TRY(follow_epoch(cuda));
    for (size_t i = 0; i < ranges->n; i++)
        LK_TRY(lk_ranges_add(&cuda->weights->ranges, ranges->entries[i].start, ranges->entries[i].bytes));
    return LK_OK;
}

static size_t room(size_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN + ALIGN; }

size_t lk_cuda_weights_room(const struct lk_device *dev, const struct lk_ranges *ranges) {
    size_t total = 0;
    for (size_t i = 0; i < ranges->n; i++)
        if (!ranges->entries[i].copy) total += room(ranges->entries[i].bytes);
    return lk_cuda_grains(dev, total);
}

/* Uploads what has no copy yet to consecutive places from `block` on. */
static enum lk_code upload(struct lk_cuda_device *cuda, lk_cu_address block) {
    struct lk_ranges *all = &cuda->weights->ranges;
    for (size_t i = 0; i < all->n; i++) {
        struct lk_range *e = &all->entries[i];
        if (e->copy) continue;
        LK_TRY(lk_staging_upload(&cuda->staging, cuda->stream, block, (const void *)e->start, e->bytes));
        e->copy = block;
        block += room(e->bytes);
    }
    return LK_OK;
}

enum lk_code lk_cuda_weights_load(struct lk_cuda_device *cuda) {
    struct lk_cuda_weights *w = cuda->weights;
    lk_cu_address block;
    LK_TRY(follow_epoch(cuda));
    size_t total = lk_cuda_weights_room(&cuda->device, &w->ranges);
    if (!total) return LK_OK;
    LK_TRY(lk_grow(&w->blocks, &w->blocks_capacity, w->n_blocks + 1, sizeof *w->blocks));
    LK_TRY(lk_cuda_alloc(cuda, total, "weights", &block));
    w->blocks[w->n_blocks++] = block;
    w->held += total;
    enum lk_code rc = upload(cuda, block);
    if (rc) { /* some of the copies are there: none of them counts */
        lk_cuda()->stream_synchronize(cuda->stream);
        lk_cuda_weights_drop(w);
    }
    return rc;
}

enum lk_code lk_cuda_weights_find(struct lk_cuda_device *cuda, struct lk_tensor *t) {
    struct lk_cuda_weights *w = cuda->weights;
    struct lk_tensor_part parts[LK_TENSOR_PARTS];
    const int n = lk_tensor_parts(t, parts);
    bool missing = false;
    LK_TRY(follow_epoch(cuda));
    void *copies[LK_TENSOR_PARTS];
    for (int i = 0; i < n; i++) {
        LK_TRY(lk_cuda_placed_find(cuda, (uintptr_t)parts[i].data, parts[i].bytes, &copies[i]));
        const struct lk_range *e = copies[i] ? NULL : find(w, &parts[i]);
        if (copies[i] || (e && e->copy)) continue;
        missing = true;
        LK_TRY(lk_ranges_add(&w->ranges, (uintptr_t)parts[i].data, parts[i].bytes));
    }
    if (missing) LK_TRY(lk_cuda_weights_load(cuda));
    for (int i = 0; i < n; i++) {
        const struct lk_range *e = copies[i] ? NULL : find(w, &parts[i]);
        if (e) copies[i] = (void *)(uintptr_t)(e->copy + ((uintptr_t)parts[i].data - e->start));
        *(parts[i].data == t->scales.data ? &t->scales.data : &t->data) = copies[i];
    }
    return LK_OK;
}
