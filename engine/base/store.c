#include "engine/base/store.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"

#define BLOCK_BYTES ((size_t)32 << 10)

struct lk_store_block {
    struct lk_store_block *next;
    size_t used, capacity;
    alignas(max_align_t) unsigned char bytes[];
};

/* n bytes that begin at a multiple of `unit`. */
static void *take(struct lk_store *store, size_t n, size_t unit) {
    if (n > SIZE_MAX / 4) return NULL;
    struct lk_store_block *block = store->blocks;
    size_t at = block ? (block->used + unit - 1) / unit * unit : 0;
    if (!block || at > block->capacity || block->capacity - at < n) {
        size_t capacity = n > BLOCK_BYTES ? n : BLOCK_BYTES;
        if (!(block = lk_malloc(sizeof *block + capacity))) return NULL;
        *block = (struct lk_store_block){.next = store->blocks, .capacity = capacity};
        store->blocks = block;
        at = 0;
    }
    block->used = at + n;
    return block->bytes + at;
}

void *lk_store_alloc(struct lk_store *store, size_t bytes) {
    void *out = take(store, bytes, alignof(max_align_t));
    return out ? memset(out, 0, bytes) : NULL;
}

const char *lk_store_copy(struct lk_store *store, const char *text, size_t n) {
    char *copy = n < SIZE_MAX ? take(store, n + 1, 1) : NULL;
    if (!copy) return NULL;
    if (n) memcpy(copy, text, n);
    copy[n] = 0;
    return copy;
}

const char *lk_store_text(struct lk_store *store, const char *text) {
    if (!text) return NULL;
    size_t n = strlen(text), bad = 0;
    for (size_t at = 0; at < n;) {
        at += lk_utf8_valid_prefix(text + at, n - at);
        if (at < n) bad++, at++;
    }
    char *copy = lk_store_alloc(store, n + 2 * bad + 1), *to = copy;
    if (!copy) return NULL;
    for (size_t at = 0; at < n;) {
        size_t good = lk_utf8_valid_prefix(text + at, n - at);
        memcpy(to, text + at, good);
        to += good;
        at += good;
        if (at < n) {
            to += lk_utf8_encode(0xfffd, to);
            at++;
        }
    }
    return copy;
}

const char *lk_store_format(struct lk_store *store, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *text = n < 0 ? NULL : lk_malloc((size_t)n + 1);
    const char *copy = NULL;
    if (text) {
        vsnprintf(text, (size_t)n + 1, format, again);
        copy = lk_store_text(store, text);
    }
    va_end(again);
    lk_free(text);
    return copy;
}

void lk_store_reset(struct lk_store *store) {
    if (!store->blocks) return;
    struct lk_store rest = {store->blocks->next};
    lk_store_free(&rest);
    store->blocks->next = NULL;
    store->blocks->used = 0;
}

void lk_store_free(struct lk_store *store) {
    for (struct lk_store_block *block = store->blocks; block;) {
        struct lk_store_block *next = block->next;
        lk_free(block);
        block = next;
    }
    store->blocks = NULL;
}
