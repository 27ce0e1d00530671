#include "eval/study/texts.h"

#include <string.h>

#include "engine/base/alloc.h"

enum { BLOCK_BYTES = 32 << 10 };

struct lk_text_block {
    struct lk_text_block *next;
    size_t used, capacity;
    char bytes[];
};

const char *lk_texts_copy(struct lk_texts *texts, const char *text, size_t n) {
    struct lk_text_block *block = texts->blocks;
    if (!block || block->capacity - block->used <= n) {
        size_t capacity = n >= BLOCK_BYTES ? n + 1 : BLOCK_BYTES;
        block = lk_malloc(sizeof *block + capacity);
        if (!block) return NULL;
        *block = (struct lk_text_block){.next = texts->blocks, .capacity = capacity};
        texts->blocks = block;
    }
    char *copy = block->bytes + block->used;
    if (n) memcpy(copy, text, n);
    copy[n] = 0;
    block->used += n + 1;
    return copy;
}

void lk_texts_free(struct lk_texts *texts) {
    while (texts->blocks) {
        struct lk_text_block *next = texts->blocks->next;
        lk_free(texts->blocks);
        texts->blocks = next;
    }
}

void lk_texts_reset(struct lk_texts *texts) {
    if (!texts->blocks) return;
    struct lk_texts rest = {texts->blocks->next};
    lk_texts_free(&rest);
    texts->blocks->next = NULL;
    texts->blocks->used = 0;
}
