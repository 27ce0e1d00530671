/* Replies of a rewriter, and the words of any text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"
#include "eval/scores/group_words.h"
#include "models/rewrite/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    const char *why;
    char *text, *copy = malloc(n + 1);
    if (!copy) return 0;
    memcpy(copy, data, n);
    copy[n] = 0;
    for (int json = 0; json < 2; json++) {
        const enum lk_code rc = json ? lk_rewrite_reply_json((const char *)data, n, "Rewritten", &text, &why)
                                     : lk_rewrite_reply_text((const char *)data, n, &text, &why);
        if (rc || (text && (!*text || !lk_utf8_valid(text, strlen(text))))) abort();
        lk_free(text);
    }
    if (lk_group_words(copy) >> lk_n_group_words) abort();
    lk_other_language(copy);
    free(copy);
    return 0;
}
