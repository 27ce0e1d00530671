/* Text that grows. It starts from zeros; the first failure stays in `rc`, and what is added after it is not. */
#pragma once

#include <stddef.h>

#include "engine/base/status.h"

struct lk_text {
    char *bytes; /* NUL-terminated, lk_malloc'ed; NULL before anything was added */
    size_t n, capacity;
    enum lk_code rc;
};

void lk_text_add(struct lk_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lk_text_bytes(struct lk_text *text, const char *bytes, size_t n);
void lk_text_free(struct lk_text *text);

/* printf into memory of its own, for lk_free; NULL when memory is out. */
char *lk_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
