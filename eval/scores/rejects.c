#include "eval/scores/rejects.h"

#include <string.h>

#include "engine/base/alloc.h"

enum lk_code lk_rejects_add(struct lk_rejects *rejects, size_t line, const char *item, const char *reason) {
    struct lk_reject reject = {line, lk_texts_copy(&rejects->texts, item, strlen(item)), NULL};
    if (reject.item) reject.reason = lk_texts_copy(&rejects->texts, reason, strlen(reason));
    if (!reject.reason) return lk_fail(LK_E_NOMEM, "out of memory for the list of rejected records");
    if (rejects->n == rejects->capacity) {
        size_t wanted = rejects->capacity ? rejects->capacity * 2 : 16;
        struct lk_reject *grown = lk_realloc(rejects->list, wanted * sizeof *grown);
        if (!grown) return lk_fail(LK_E_NOMEM, "out of memory for the list of rejected records");
        rejects->list = grown;
        rejects->capacity = wanted;
    }
    rejects->list[rejects->n++] = reject;
    return LK_OK;
}

void lk_rejects_free(struct lk_rejects *rejects) {
    lk_free(rejects->list);
    lk_texts_free(&rejects->texts);
    memset(rejects, 0, sizeof *rejects);
}
