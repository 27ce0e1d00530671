/* The input is the text of a shard index. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "weights/index.h"
#include "engine/base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lk_index index;
    int64_t live = lk_alloc_live();
    if (!lk_index_parse(&index, (const char *)data, size, "fuzz")) {
        if (!index.n_entries || !index.n_shards) abort();
        for (size_t i = 0; i < index.n_entries; i++) {
            if (index.entries[i].shard >= index.n_shards) abort();
            if (i && strcmp(index.entries[i - 1].name, index.entries[i].name) >= 0) abort();
        }
        for (size_t i = 1; i < index.n_shards; i++)
            if (strcmp(index.shards[i - 1], index.shards[i]) >= 0) abort();
        lk_index_free(&index);
    }
    if (lk_alloc_live() != live) abort();
    return 0;
}
