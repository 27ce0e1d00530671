#include "exec/heap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void (*gpusim_memory_on_new)(struct gpusim_allocation *allocation);
void (*gpusim_memory_on_free)(struct gpusim_allocation *allocation);

enum { N_FREED = 1024, GUARD = 4096, ALIGN = 512, FILL_LIMIT = 64 << 20 };

static struct {
    struct gpusim_allocation **records; /* by base */
    size_t n, reserved;
    struct gpusim_allocation *freed[N_FREED]; /* the last ones, for reports */
    size_t n_freed;
    uint64_t next[GPUSIM_MAX_DEVICES]; /* addresses are not used again, so that a stale pointer is always found out */
    uint64_t used[GPUSIM_MAX_DEVICES + 1], peak[GPUSIM_MAX_DEVICES + 1]; /* of device i at i + 1; pinned memory at 0 */
    uint64_t limit;                                                      /* 0: as the settings say */
    uint64_t piece; /* the most that can be had at once; 0: all that is free */
    uint64_t grain; /* of the device's memory; 0: as set */
    uint64_t count;
} map;

/* Index of the first record whose base is above `address`. */
static size_t above(uint64_t address) {
    size_t low = 0, high = map.n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (map.records[middle]->base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct gpusim_allocation *gpusim_memory_find(uint64_t address) {
    size_t at = above(address);
    if (!at) return NULL;
    struct gpusim_allocation *r = map.records[at - 1];
    return address - r->base < r->bytes ? r : NULL;
}

uint8_t *gpusim_memory_at(uint64_t address, uint64_t bytes) {
    struct gpusim_allocation *r = gpusim_memory_find(address);
    if (!r || bytes > r->bytes - (address - r->base)) return NULL;
    return r->host + (address - r->base);
}

static uint64_t distance(const struct gpusim_allocation *r, uint64_t address) {
    if (address < r->base) return r->base - address;
    return address - r->base < r->bytes ? 0 : address - (r->base + r->bytes) + 1;
}

struct gpusim_allocation *gpusim_memory_near(uint64_t address, uint64_t reach) {
    struct gpusim_allocation *best = NULL;
    uint64_t least = reach;
    for (size_t i = 0; i < map.n; i++)
        if (distance(map.records[i], address) < least) best = map.records[i], least = distance(best, address);
    for (size_t i = 0; i < N_FREED && map.freed[i]; i++)
        if (distance(map.freed[i], address) < least) best = map.freed[i], least = distance(best, address);
    return best;
}

static bool insert(struct gpusim_allocation *r) {
    if (map.n == map.reserved) {
        size_t reserved = map.reserved ? map.reserved * 2 : 256;
        struct gpusim_allocation **records = realloc(map.records, reserved * sizeof *records);
        if (!records) return false;
        map.records = records;
        map.reserved = reserved;
    }
    size_t at = above(r->base);
    memmove(map.records + at + 1, map.records + at, (map.n - at) * sizeof *map.records);
    map.records[at] = r;
    map.n++;
    return true;
}

static uint8_t *map_host(uint64_t bytes) {
    size_t size = (bytes + 4095) & ~(size_t)4095;
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

uint64_t gpusim_memory_capacity(void) { return map.limit ? map.limit : gpusim_settings()->memory_bytes; }
void gpusim_memory_limit(uint64_t bytes) { map.limit = bytes; }
void gpusim_memory_piece(uint64_t bytes) { map.piece = bytes; }
void gpusim_memory_pages(uint64_t bytes) { map.grain = bytes; }
uint64_t gpusim_memory_grain(void) { return map.grain ? map.grain : gpusim_settings()->pages; }

uint64_t gpusim_memory_free_bytes(int device) {
    uint64_t capacity = gpusim_memory_capacity();
    return map.used[device + 1] < capacity ? capacity - map.used[device + 1] : 0;
}

uint64_t gpusim_memory_peak(int device) {
    uint64_t peak = map.peak[device + 1];
    map.peak[device + 1] = map.used[device + 1];
    return peak;
}

/* Bytes of the device's memory. */
static uint64_t taken(enum gpusim_memory_kind kind, uint64_t bytes) {
    if (kind == GPUSIM_MEMORY_HEAP) bytes /= GPUSIM_HEAP_SPAN;
    return (bytes + gpusim_memory_grain() - 1) & ~(gpusim_memory_grain() - 1);
}

/* Device memory in grains, pinned memory to the byte; of what is registered what gpusim_memory_pins has told. */
static void count_bytes(const struct gpusim_allocation *r, bool more) {
    uint64_t bytes = r->device < 0 ? r->bytes : taken((enum gpusim_memory_kind)r->kind, r->bytes);
    if (r->kind == GPUSIM_MEMORY_REGISTERED && !r->pins) return;
    uint64_t *used = &map.used[r->device + 1], *peak = &map.peak[r->device + 1];
    *used += more ? bytes : 0 - bytes;
    if (*used > *peak) *peak = *used;
}

void gpusim_memory_pins(struct gpusim_allocation *r) {
    r->pins = true;
    count_bytes(r, true);
}

struct gpusim_allocation *gpusim_memory_new(enum gpusim_memory_kind kind, int device, uint64_t bytes, void *host) {
    bool on_device = kind != GPUSIM_MEMORY_PINNED && kind != GPUSIM_MEMORY_REGISTERED;
    uint64_t size = taken(kind, bytes);
    if (on_device && ((!size && bytes) || size > gpusim_memory_free_bytes(device))) return NULL;
    if (kind == GPUSIM_MEMORY_DEVICE && map.piece && size > map.piece) return NULL;
    struct gpusim_allocation *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->kind = (uint8_t)kind;
    r->bytes = bytes;
    r->device = (int8_t)(on_device ? device : -1);
    r->host = host ? host : map_host(bytes ? bytes : 1);
    r->base = (uint64_t)(uintptr_t)r->host;
    if (on_device) {
        if (!map.next[device]) map.next[device] = GPUSIM_DEVICE_BASE + (uint64_t)device * GPUSIM_DEVICE_SPAN;
        r->base = map.next[device];
    }
    if (!r->host || !insert(r)) {
        if (r->host && !host) munmap(r->host, (bytes + 4095) & ~(size_t)4095);
        free(r);
        return NULL;
    }
    r->id = ++map.count;
    if (on_device) map.next[device] += ((bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1)) + GUARD;
    count_bytes(r, true);
    if (kind == GPUSIM_MEMORY_DEVICE && bytes <= FILL_LIMIT && !gpusim_settings()->sample)
        memset(r->host, 0xff, bytes); /* NaN in every float type */
    if (gpusim_memory_on_new) gpusim_memory_on_new(r);
    return r;
}

void gpusim_memory_free(struct gpusim_allocation *r) {
    if (gpusim_memory_on_free) gpusim_memory_on_free(r);
    size_t at = above(r->base) - 1;
    memmove(map.records + at, map.records + at + 1, (map.n - at - 1) * sizeof *map.records);
    map.n--;
    if (r->kind != GPUSIM_MEMORY_REGISTERED) munmap(r->host, ((r->bytes ? r->bytes : 1) + 4095) & ~(size_t)4095);
    count_bytes(r, false);
    if (r->shadow && r->shadow_free) r->shadow_free(r->shadow);
    if (r->touched && r->touched_free) r->touched_free(r->touched);
    r->shadow = r->touched = NULL;
    r->host = NULL;
    r->name = NULL;
    r->heap = NULL;
    r->freed = true;
    struct gpusim_allocation **slot = &map.freed[map.n_freed++ % N_FREED];
    free(*slot);
    *slot = r;
}

void gpusim_memory_each(void (*visit)(struct gpusim_allocation *allocation, void *context), void *context) {
    for (size_t i = 0; i < map.n; i++) visit(map.records[i], context);
}
