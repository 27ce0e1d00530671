/* A set of address ranges, sorted, none overlapping another: which host memory the weights of a run lie in. Ranges that
 * overlap become one, so that slices of a fused weight count once; ranges that only touch stay apart. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/tensor.h"

struct lk_range {
    uintptr_t start;
    size_t bytes;
    uint64_t copy; /* the owner's: where it keeps a copy; 0 in a range that is new or has grown */
};

struct lk_ranges {
    struct lk_range *entries; /* lk_free */
    size_t n, capacity;
};

/* LK_E_NOMEM. */
enum lk_code lk_ranges_add(struct lk_ranges *ranges, uintptr_t start, size_t bytes);
/* The range that has all of these bytes, NULL if there is none. */
struct lk_range *lk_ranges_find(const struct lk_ranges *ranges, uintptr_t start, size_t bytes);
