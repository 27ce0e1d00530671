/* The JSON that bitsandbytes keeps beside a weight of four bits. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

struct lk_bnb_state {
    uint64_t block, nested_block;
    int64_t shape[2];
    int n_dims;
    bool nested; /* the scales are quantised too */
    float nested_offset;
};

/* LK_E_BIND, LK_E_JSON*, LK_E_NOMEM; `name` is for messages. Its members are a closed set. */
enum lk_code lk_bnb_state_parse(struct lk_bnb_state *out, const void *text, size_t n_bytes, const char *name);
