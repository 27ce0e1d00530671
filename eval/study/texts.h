/* Strings that live as long as their owner: copies go into blocks that are freed together. */
#pragma once

#include <stddef.h>

struct lk_text_block;
struct lk_texts {
    struct lk_text_block *blocks; /* the newest first */
};

/* NUL-terminated; NULL for memory. */
const char *lk_texts_copy(struct lk_texts *texts, const char *text, size_t n);
void lk_texts_free(struct lk_texts *texts);
/* Forgets all copies but keeps a block for the next ones. */
void lk_texts_reset(struct lk_texts *texts);
