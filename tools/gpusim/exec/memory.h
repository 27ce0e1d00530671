/* Device memory: a map from device addresses to host bytes, one record per allocation. The map changes only while no
 * launch runs. */
#pragma once

#include "gpusim.h"

enum gpusim_memory_kind {
    GPUSIM_MEMORY_DEVICE,
    GPUSIM_MEMORY_PINNED,     /* cuMemHostAlloc */
    GPUSIM_MEMORY_REGISTERED, /* cuMemHostRegister: `host` is the user's */
    GPUSIM_MEMORY_VARIABLE,   /* .global of a module */
    GPUSIM_MEMORY_CONSTANT,   /* .const of a module */
    GPUSIM_MEMORY_HEAP,       /* of malloc in kernels (heap.h) */
};

struct gpusim_allocation {
    uint64_t base, bytes;           /* device address range */
    uint8_t *host;                  /* where its bytes are */
    uint64_t id;                    /* counts allocations from 1: how reports name it */
    uint8_t kind;                   /* enum gpusim_memory_kind */
    int8_t device;                  /* -1: host memory */
    bool freed;                     /* kept for reports; host is NULL */
    bool pins;                      /* REGISTERED: memory of the process that counts as pinned */
    const char *name;               /* variables, else NULL */
    const struct gpusim_heap *heap; /* HEAP: which of its bytes may be accessed */
    void *shadow;                   /* for check/: whatever it attaches; freed with shadow_free */
    void (*shadow_free)(void *shadow);
    void *touched; /* the same for counters/ */
    void (*touched_free)(void *touched);
};

/* New record with memory of its own (DEVICE, PINNED, VARIABLE, CONSTANT) or for the user's `host` (REGISTERED).
 * NULL: no host memory or the device's capacity is used up. Device bytes are not cleared (they hold a pattern that
 * depends on the seed). */
struct gpusim_allocation *gpusim_memory_new(enum gpusim_memory_kind kind, int device, uint64_t bytes, void *host);
/* Counts what was registered as pinned memory: it is the process's own, no file's. */
void gpusim_memory_pins(struct gpusim_allocation *registered);

/* The record that holds `address`, or NULL. */
struct gpusim_allocation *gpusim_memory_find(uint64_t address);

/* For reports: the live or freed record nearest to `address` within `reach` bytes, or NULL. */
struct gpusim_allocation *gpusim_memory_near(uint64_t address, uint64_t reach);

void gpusim_memory_free(struct gpusim_allocation *allocation);

/* Host pointer of [address, address + bytes) if it lies within one live allocation, else NULL. */
uint8_t *gpusim_memory_at(uint64_t address, uint64_t bytes);

uint64_t gpusim_memory_capacity(void); /* of a device */
uint64_t gpusim_memory_grain(void);    /* bytes of a page */
uint64_t gpusim_memory_free_bytes(int device);

/* Called with every live record, in address order. */
void gpusim_memory_each(void (*visit)(struct gpusim_allocation *allocation, void *context), void *context);

/* check/ sets these to learn of records that come and go. */
extern void (*gpusim_memory_on_new)(struct gpusim_allocation *allocation);
extern void (*gpusim_memory_on_free)(struct gpusim_allocation *allocation);
