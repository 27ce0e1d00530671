/* Memory that only grows and is freed at once: strings and arrays that live as long as their owner. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

struct lk_store_block;
struct lk_store {
    struct lk_store_block *blocks; /* the last one first */
};

/* Zeroed, aligned for any type; NULL when memory is out (no message), as for all that follow. */
void *lk_store_alloc(struct lk_store *store, size_t bytes);
/* n bytes as they are, and a NUL. */
const char *lk_store_copy(struct lk_store *store, const char *text, size_t n);
/* A copy in well-formed UTF-8: every byte that is none becomes U+FFFD. NULL for NULL. */
const char *lk_store_text(struct lk_store *store, const char *text);
const char *lk_store_format(struct lk_store *store, const char *format, va_list args);
/* Forgets everything but keeps a block for what comes next. */
void lk_store_reset(struct lk_store *store);
void lk_store_free(struct lk_store *store);
