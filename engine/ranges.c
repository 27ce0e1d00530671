#include "engine/ranges.h"

#include <string.h>

#include "engine/base/alloc.h"

/* First entry that ends after `address`. */
static size_t position(const struct lk_ranges *r, uintptr_t address) {
    size_t low = 0, high = r->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->entries[middle].start + r->entries[middle].bytes > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

struct lk_range *lk_ranges_find(const struct lk_ranges *r, uintptr_t start, size_t bytes) {
    size_t i = position(r, start);
    if (i == r->n || r->entries[i].start > start) return NULL;
    struct lk_range *e = &r->entries[i];
    return start - e->start + bytes <= e->bytes ? e : NULL;
}

enum lk_code lk_ranges_add(struct lk_ranges *r, uintptr_t start, size_t bytes) {
    if (lk_ranges_find(r, start, bytes)) return LK_OK;
    LK_TRY(lk_grow(&r->entries, &r->capacity, r->n + 1, sizeof *r->entries));
    size_t first = position(r, start), end = first;
    struct lk_range all = {.start = start, .bytes = bytes};
    for (; end < r->n && r->entries[end].start < start + bytes; end++) {
        const struct lk_range *e = &r->entries[end];
        uintptr_t last = all.start + all.bytes > e->start + e->bytes ? all.start + all.bytes : e->start + e->bytes;
        if (e->start < all.start) all.start = e->start;
        all.bytes = last - all.start;
    }
    memmove(r->entries + first + 1, r->entries + end, (r->n - end) * sizeof *r->entries);
    r->entries[first] = all;
    r->n = r->n + 1 - (end - first);
    return LK_OK;
}
