/* Text that arrives in bytes of tokens: whole characters come out, the first bytes of an unfinished one are held back.
 * What is not UTF-8 becomes U+FFFD, one for each longest beginning of a character, as Python and Rust replace it. */
#pragma once

#include "engine/base/text.h"

struct lk_text_stream {
    struct lk_text text; /* what is complete */
    char held[4];
    size_t n_held;
};

/* Starts from zeros. LK_E_NOMEM. */
enum lk_code lk_text_stream_add(struct lk_text_stream *s, const char *bytes, size_t n);
/* The end: bytes that were held become U+FFFD. */
enum lk_code lk_text_stream_end(struct lk_text_stream *s);
