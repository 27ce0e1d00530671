#include "exec/heap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { GRAIN = 16 };
#define MOST_LIMIT (16ull << 30) /* its span is half of a device's addresses */

struct block {
    uint64_t offset, bytes;
    uint32_t freed; /* atomic */
};
struct gpusim_heap {
    struct gpusim_allocation *record;
    pthread_mutex_t mutex;
    uint64_t limit, used, next; /* next: offset, in grains with a grain between blocks */
    uint32_t n_blocks;
    /* Given by the host where they are used: [grains]. owner: number of its block from 1; 0: none. */
    uint32_t *owner;
    struct block *blocks;
    size_t owner_bytes, blocks_bytes;
};
static struct gpusim_heap *heaps[GPUSIM_MAX_DEVICES];

static void *reserve(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

struct gpusim_heap *gpusim_heap_of(int device, uint64_t limit) {
    if (heaps[device]) return heaps[device];
    if (limit < GRAIN || limit > MOST_LIMIT) return NULL;
    struct gpusim_heap *heap = calloc(1, sizeof *heap);
    if (!heap) return NULL;
    uint64_t span = limit * GPUSIM_HEAP_SPAN;
    heap->limit = limit;
    heap->next = GRAIN;
    heap->owner_bytes = span / GRAIN * sizeof *heap->owner;
    heap->blocks_bytes = span / GRAIN * sizeof *heap->blocks;
    heap->owner = reserve(heap->owner_bytes);
    heap->blocks = reserve(heap->blocks_bytes);
    if (heap->owner && heap->blocks) heap->record = gpusim_memory_new(GPUSIM_MEMORY_HEAP, device, span, NULL);
    if (heap->record) {
        heap->record->name = "the device heap";
        heap->record->heap = heap;
        pthread_mutex_init(&heap->mutex, NULL);
        return heaps[device] = heap;
    }
    if (heap->owner) munmap(heap->owner, heap->owner_bytes);
    if (heap->blocks) munmap(heap->blocks, heap->blocks_bytes);
    free(heap);
    return NULL;
}

void gpusim_heap_left(int device, uint64_t *blocks, uint64_t *bytes) {
    const struct gpusim_heap *heap = heaps[device];
    *blocks = *bytes = 0;
    for (uint32_t b = 0; heap && b < heap->n_blocks; b++)
        if (!heap->blocks[b].freed) *blocks += 1, *bytes += heap->blocks[b].bytes;
}

void gpusim_heap_end(int device) {
    struct gpusim_heap *heap = heaps[device];
    if (!heap) return;
    heaps[device] = NULL;
    gpusim_memory_free(heap->record);
    munmap(heap->owner, heap->owner_bytes);
    munmap(heap->blocks, heap->blocks_bytes);
    pthread_mutex_destroy(&heap->mutex);
    free(heap);
}

static uint64_t grains(uint64_t bytes) { return (bytes + GRAIN - 1) / GRAIN * GRAIN; }

uint64_t gpusim_heap_malloc(struct gpusim_heap *heap, uint64_t bytes) {
    uint64_t address = 0;
    if (!bytes || bytes > heap->limit) return 0;
    pthread_mutex_lock(&heap->mutex);
    uint64_t size = grains(bytes);
    if (heap->used + size <= heap->limit && heap->next + size + GRAIN <= heap->record->bytes) {
        struct block *block = &heap->blocks[heap->n_blocks];
        *block = (struct block){heap->next, bytes, 0};
        address = heap->record->base + heap->next;
        memset(heap->record->host + heap->next, 0xff, size);
        for (uint64_t g = heap->next / GRAIN; g < (heap->next + size) / GRAIN; g++) heap->owner[g] = heap->n_blocks + 1;
        heap->n_blocks++;
        heap->next += size + GRAIN;
        heap->used += size;
    }
    pthread_mutex_unlock(&heap->mutex);
    return address;
}

static struct block *block_at(const struct gpusim_heap *heap, uint64_t address) {
    uint32_t owner = heap->owner[(address - heap->record->base) / GRAIN];
    return owner ? &heap->blocks[owner - 1] : NULL;
}

enum gpusim_heap_state gpusim_heap_free(struct gpusim_heap *heap, uint64_t address) {
    if (address - heap->record->base >= heap->record->bytes) return GPUSIM_HEAP_OUTSIDE;
    pthread_mutex_lock(&heap->mutex);
    struct block *block = block_at(heap, address);
    enum gpusim_heap_state state = GPUSIM_HEAP_OUTSIDE;
    if (block && address == heap->record->base + block->offset) {
        state = block->freed ? GPUSIM_HEAP_FREED : GPUSIM_HEAP_LIVE;
        if (!block->freed) heap->used -= grains(block->bytes);
        __atomic_store_n(&block->freed, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&heap->mutex);
    return state;
}

enum gpusim_heap_state gpusim_heap_look(const struct gpusim_heap *heap, uint64_t address, uint64_t bytes) {
    const struct block *block = block_at(heap, address);
    if (!block || address + bytes > heap->record->base + block->offset + block->bytes) return GPUSIM_HEAP_OUTSIDE;
    return __atomic_load_n(&block->freed, __ATOMIC_ACQUIRE) ? GPUSIM_HEAP_FREED : GPUSIM_HEAP_LIVE;
}
