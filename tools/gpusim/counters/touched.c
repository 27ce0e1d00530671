#include "counters/touched.h"
#include "counters/counts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SECTOR = 32, PAGE_WORDS = 512 }; /* a page of bits stands for 1 MiB */
#define PAGE_SECTORS ((uint64_t)PAGE_WORDS * 64)

struct touched {
    uint64_t first, n_sectors, n_pages;
    size_t mapped;
    uint64_t *bits[2]; /* read, written */
    uint8_t *dirty[2]; /* [n_pages] */
};

static void touched_free(void *p) {
    struct touched *t = p;
    munmap(t->bits[0], t->mapped);
    free(t);
}

static struct touched *touched_new(const struct gpusim_allocation *record) {
    struct touched *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->first = record->base / SECTOR;
    t->n_sectors = (record->base + record->bytes - 1) / SECTOR - t->first + 1;
    t->n_pages = (t->n_sectors + PAGE_SECTORS - 1) / PAGE_SECTORS;
    t->mapped = 2 * t->n_pages * (PAGE_WORDS * 8 + 1);
    void *map = mmap(NULL, t->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        free(t);
        return NULL;
    }
    t->bits[0] = map;
    t->bits[1] = t->bits[0] + t->n_pages * PAGE_WORDS;
    t->dirty[0] = (uint8_t *)(t->bits[1] + t->n_pages * PAGE_WORDS);
    t->dirty[1] = t->dirty[0] + t->n_pages;
    return t;
}

static struct touched *touched_of(struct gpusim_allocation *record) {
    struct touched *t = __atomic_load_n((struct touched **)&record->touched, __ATOMIC_ACQUIRE), *none = NULL;
    if (t || !(t = touched_new(record))) return t;
    record->touched_free = touched_free;
    if (__atomic_compare_exchange_n((struct touched **)&record->touched, &none, t, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return t;
    touched_free(t); /* another thread was first */
    return none;
}

static void set_bits(struct touched *t, uint64_t at, uint64_t bits, bool write) {
    uint64_t *word = &t->bits[write][at / 64];
    if ((__atomic_load_n(word, __ATOMIC_RELAXED) & bits) == bits) return;
    __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
    __atomic_store_n(&t->dirty[write][at / PAGE_SECTORS], 1, __ATOMIC_RELAXED);
}

void gpusim_touch(struct gpusim_allocation *record, const struct gpusim_sectors *sectors, bool write) {
    if (record && sectors->run) {
        struct touched *t = touched_of(record);
        uint64_t at = sectors->sector[0] - (t ? t->first : 0), n = sectors->n, low = 64 - at % 64;
        if (!t) return;
        uint64_t bits = (1ull << n) - 1; /* at most 17 sectors */
        set_bits(t, at, bits << at % 64, write);
        if (n > low) set_bits(t, at + low, bits >> low, write);
        return;
    }
    for (uint32_t s = 0; s < sectors->n; s++) {
        uint64_t address = sectors->sector[s] * SECTOR;
        struct gpusim_allocation *r = record ? record : gpusim_memory_find(address);
        if (!r) r = gpusim_memory_find(address + SECTOR - 1); /* registered memory may start within a sector */
        struct touched *t = r ? touched_of(r) : NULL;
        if (!t || sectors->sector[s] < t->first || sectors->sector[s] - t->first >= t->n_sectors) continue;
        set_bits(t, sectors->sector[s] - t->first, 1ull << (sectors->sector[s] - t->first) % 64, write);
    }
}

/* Arrays inside allocations, by address. */
static struct region { uint64_t first, end; /* sectors */ } regions[256];
static int n_regions;

void gpusim_region(uint64_t address, uint64_t bytes) {
    if (!bytes || n_regions == (int)(sizeof regions / sizeof regions[0])) return;
    struct region new = {address / SECTOR, (address + bytes - 1) / SECTOR + 1};
    int at = n_regions;
    while (at && regions[at - 1].first > new.first) at--;
    memmove(regions + at + 1, regions + at, (size_t)(n_regions - at) * sizeof *regions);
    regions[at] = new;
    n_regions++;
}
void gpusim_regions_forget(void) { n_regions = 0; }

/* Bits set in [first, end). */
static uint64_t count_bits(const struct touched *t, int w, uint64_t first, uint64_t end) {
    uint64_t n = 0;
    while (first < end) {
        uint64_t page_end = (first / PAGE_SECTORS + 1) * PAGE_SECTORS, stop = page_end < end ? page_end : end;
        if (!t->dirty[w][first / PAGE_SECTORS]) {
            first = stop;
            continue;
        }
        while (first < stop) {
            uint64_t word_end = (first / 64 + 1) * 64, upto = word_end < stop ? word_end : stop;
            uint64_t bits = t->bits[w][first / 64] >> first % 64;
            if (upto - first < 64) bits &= (1ull << (upto - first)) - 1;
            n += (uint64_t)__builtin_popcountll(bits);
            first = upto;
        }
    }
    return n;
}

struct sums {
    double scale, bytes[2];
};

static void add(struct sums *sums, const struct touched *t, int w, uint64_t first, uint64_t end) {
    if (first >= end) return;
    double scaled = (double)count_bits(t, w, first, end) * sums->scale, most = (double)(end - first);
    sums->bytes[w] += SECTOR * (scaled < most ? scaled : most);
}

static void forget(struct touched *t, int w) {
    for (uint64_t p = 0; p < t->n_pages; p++) {
        if (!t->dirty[w][p]) continue;
        memset(t->bits[w] + p * PAGE_WORDS, 0, PAGE_WORDS * sizeof *t->bits[w]);
        t->dirty[w][p] = 0;
    }
}

static void take(struct gpusim_allocation *record, void *context) {
    struct touched *t = record->touched;
    for (int w = 0; t && w < 2; w++) {
        uint64_t at = 0;
        for (int r = 0; r < n_regions; r++) {
            uint64_t first = regions[r].first < t->first ? 0 : regions[r].first - t->first;
            uint64_t end = regions[r].end < t->first ? 0 : regions[r].end - t->first;
            if (first > t->n_sectors) first = t->n_sectors;
            if (end > t->n_sectors) end = t->n_sectors;
            if (first < at) first = at;
            add(context, t, w, at, first);
            add(context, t, w, first, end);
            if (end > at) at = end > first ? end : first;
        }
        add(context, t, w, at, t->n_sectors);
        forget(t, w);
    }
}

void gpusim_take_touched(double scale, double *read, double *written) {
    struct sums sums = {.scale = scale};
    gpusim_memory_each(take, &sums);
    *read = sums.bytes[0];
    *written = sums.bytes[1];
}
