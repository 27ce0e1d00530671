#include "engine/base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A block carries its size in the 64 bytes before it: realloc needs it, and alignment costs that much anyway. */
#define HEADER 64

static atomic_int_least64_t n_made, n_live, fail_at;

void *lk_malloc(size_t size) {
    int64_t nth = atomic_fetch_add(&n_made, 1) + 1;
    if (nth == atomic_load(&fail_at)) return NULL;
    if (size > SIZE_MAX - 2 * HEADER) return NULL;
    size_t total = (size + HEADER + HEADER - 1) / HEADER * HEADER;
    unsigned char *block = aligned_alloc(HEADER, total);
    if (!block) return NULL;
    memcpy(block, &size, sizeof size);
    atomic_fetch_add(&n_live, 1);
    return block + HEADER;
}

void *lk_calloc(size_t count, size_t size) {
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) return NULL;
    void *block = lk_malloc(total);
    if (block) memset(block, 0, total);
    return block;
}

void *lk_realloc(void *block, size_t size) {
    void *grown = lk_malloc(size);
    if (!grown || !block) return grown;
    size_t old;
    memcpy(&old, (unsigned char *)block - HEADER, sizeof old);
    memcpy(grown, block, old < size ? old : size);
    lk_free(block);
    return grown;
}

enum lk_code lk_grow(void *items, size_t *capacity, size_t count, size_t item_bytes) {
    if (count <= *capacity) return LK_OK;
    size_t wanted = *capacity > SIZE_MAX / 2 ? count : *capacity * 2, least = 1 + 1023 / item_bytes, bytes;
    if (wanted < least) wanted = least;
    if (wanted < count) wanted = count;
    void *block; /* read and written by memcpy: the pointer is of another type than void * */
    memcpy(&block, items, sizeof block);
    if (__builtin_mul_overflow(wanted, item_bytes, &bytes) || !(block = lk_realloc(block, bytes)))
        return lk_fail(LK_E_NOMEM, "no memory for %zu items of %zu bytes; free memory and try again", wanted,
                       item_bytes);
    memcpy(items, &block, sizeof block);
    *capacity = wanted;
    return LK_OK;
}

char *lk_strndup(const char *text, size_t length) {
    char *copy = lk_malloc(length + 1);
    if (!copy) return NULL;
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

char *lk_strdup(const char *text) { return lk_strndup(text, strlen(text)); }

void lk_free(void *block) {
    if (!block) return;
    atomic_fetch_sub(&n_live, 1);
    free((unsigned char *)block - HEADER);
}

void lk_alloc_fail_at(int64_t n) { atomic_store(&fail_at, n > 0 ? atomic_load(&n_made) + n : 0); }
int64_t lk_alloc_count(void) { return atomic_load(&n_made); }
int64_t lk_alloc_live(void) { return atomic_load(&n_live); }
