/* Host memory. Every allocation of the libraries goes through here, so that tests can make the n-th one fail and count
 * what is live. Blocks are 64-byte aligned (one cache line, one AVX-512 register). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

/* NULL when memory is out or the injected failure is due. size 0 gives a block that may be freed. */
void *lk_malloc(size_t size);
void *lk_calloc(size_t count, size_t size); /* zeroed; NULL on overflow of count * size */
void *lk_realloc(void *block, size_t size); /* contents kept up to the smaller size; block stays valid on failure */
/* Room for `count` items of item_bytes each in the array of *capacity items that the pointer at `items` points to; it
 * grows by doubling. LK_E_NOMEM: nothing has changed. */
enum lk_code lk_grow(void *items, size_t *capacity, size_t count, size_t item_bytes);
char *lk_strdup(const char *text);
char *lk_strndup(const char *text, size_t length);
void lk_free(void *block); /* NULL is allowed */

/* Test hook: the n-th allocation from now (1 = the next) fails, once. 0 turns it off. */
void lk_alloc_fail_at(int64_t n);
/* Allocations made since the program started, and blocks live now. */
int64_t lk_alloc_count(void);
int64_t lk_alloc_live(void);
