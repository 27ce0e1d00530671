/* STEM.safetensors.index.json: which tensor lies in which shard. */
#pragma once

#include <stddef.h>

#include "engine/base/status.h"

#define LK_INDEX_MAX_BYTES ((size_t)64 << 20)

struct lk_index_entry {
    const char *name;
    size_t shard; /* in shards */
};

struct lk_index {
    struct lk_index_entry *entries; /* sorted by name */
    size_t n_entries;
    char **shards; /* sorted, each once */
    size_t n_shards;
    char *text; /* memory behind the names */
};

/* LK_E_INDEX when it is JSON but no index, LK_E_JSON* when it is none. */
enum lk_code lk_index_parse(struct lk_index *out, const char *text, size_t n_bytes, const char *name);
void lk_index_free(struct lk_index *index);
