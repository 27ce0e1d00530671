/* Memory that only grows and is freed at once: strings and arrays which live as long as their table or page. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

struct lk_store_block;
struct lk_store {
    struct lk_store_block *blocks; /* the last one first */
};

/* Zeroed, aligned for any type; NULL when memory is out (no message). */
void *lk_store_alloc(struct lk_store *store, size_t bytes);
/* A copy in well-formed UTF-8: every byte that is none becomes U+FFFD. NULL when memory is out, or for NULL. */
const char *lk_store_text(struct lk_store *store, const char *text);
const char *lk_store_format(struct lk_store *store, const char *format, va_list args);
void lk_store_free(struct lk_store *store);
