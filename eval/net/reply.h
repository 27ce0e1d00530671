/* What a server replies as JSON, made safe to read and to write: bytes that are no UTF-8, NULs and lone surrogates
 * become escapes that a reader sees, and secrets are masked. */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

#include "engine/base/text.h"

/* What is written nowhere, whoever says it. Shorter than LK_HTTP_SECRET_LEAST bytes it is none: "EMPTY". */
enum { LK_HTTP_SECRET_LEAST = 6 };
struct lk_http_secrets {
    const char *list[2]; /* NULL: none */
};
/* Stars in their place. secrets: NULL for none. */
void lk_http_mask(char *text, const struct lk_http_secrets *secrets);

/* JSON whose strings hold UTF-8 without NUL: the n bytes with \xNN in place of others, \uXXXX where that stands for no
 * character. */
void lk_http_readable(struct lk_text *out, const char *bytes, size_t n);

/* "" without. */
const char *lk_http_string(const cJSON *object, const char *key);

/* text as far as it fits into n_out bytes: secrets masked, '?' in place of what is no printable ASCII. */
void lk_http_show(const char *text, const struct lk_http_secrets *secrets, char *out, size_t n_out);

enum { LK_HTTP_WORDS = 200 };
/* What the server says is wrong, in its words as far as they are printable, or else how its reply begins. root: the
 * reply as JSON, NULL when it is none. */
void lk_http_words(const cJSON *root, const struct lk_text *readable, const struct lk_http_secrets *secrets,
                   char out[LK_HTTP_WORDS]);
