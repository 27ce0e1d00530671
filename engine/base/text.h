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
/* A JSON string with its quotes; what is no UTF-8 becomes U+FFFD. */
void lk_text_json(struct lk_text *text, const char *string);
/* Bytes as base64 (RFC 4648, with padding). */
void lk_text_base64(struct lk_text *text, const void *bytes, size_t n);
/* A double with 17 digits, from which it reads back bit by bit; -0 is 0. Finite. */
void lk_text_number(struct lk_text *text, double value);
/* Gives what rc was. */
enum lk_code lk_text_free(struct lk_text *text);

/* printf into memory of its own, for lk_free; NULL when memory is out. */
char *lk_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
