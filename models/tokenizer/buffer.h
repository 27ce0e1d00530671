/* Memory that grows, through lk_malloc. */
#pragma once

#include "engine/base/alloc.h"
#include "engine/base/status.h"

/* Room for n elements in *block (capacity in elements, grown by doubling; contents kept). */
static inline enum lk_code buffer_reserve(void **block, size_t *capacity, size_t n, size_t element_bytes) {
    if (n <= *capacity) return LK_OK;
    size_t grown = *capacity ? *capacity * 2 : 64;
    if (grown < n) grown = n;
    void *p = grown > SIZE_MAX / element_bytes ? NULL : lk_realloc(*block, grown * element_bytes);
    if (!p) return lk_fail(LK_E_NOMEM, "tokenizer: no memory for %zu elements of %zu bytes", grown, element_bytes);
    *block = p;
    *capacity = grown;
    return LK_OK;
}
