/* The device heap: malloc and free in kernels. One allocation per device, whose addresses are not used again: it spans
 * GPUSIM_HEAP_SPAN times what may be in use at once. */
#pragma once

#include "exec/memory.h"

struct gpusim_heap;

enum { GPUSIM_HEAP_SPAN = 64 };

/* The device's heap, made at the first call for `limit` bytes; NULL: no memory. Called between launches. */
struct gpusim_heap *gpusim_heap_of(int device, uint64_t limit);
/* Blocks that were not freed and their bytes; then the heap's end. */
void gpusim_heap_left(int device, uint64_t *blocks, uint64_t *bytes);
void gpusim_heap_end(int device);

/* 0: the heap has no such room. 16-byte aligned. Threads of a launch call these at the same time. */
uint64_t gpusim_heap_malloc(struct gpusim_heap *heap, uint64_t bytes);
enum gpusim_heap_state { GPUSIM_HEAP_LIVE, GPUSIM_HEAP_FREED, GPUSIM_HEAP_OUTSIDE };
/* What it was: LIVE (and is freed now), FREED before, or not the start of a block. */
enum gpusim_heap_state gpusim_heap_free(struct gpusim_heap *heap, uint64_t address);
/* [address, address + bytes) of the heap's allocation: in a block, in a freed one, or over the bounds of one. */
enum gpusim_heap_state gpusim_heap_look(const struct gpusim_heap *heap, uint64_t address, uint64_t bytes);
