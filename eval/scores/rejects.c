#include "eval/scores/rejects.h"

#include <string.h>

#include "engine/base/alloc.h"

enum lk_code lk_rejects_add(struct lk_rejects *rejects, size_t line, const char *item, const char *reason) {
    struct lk_reject reject = {line, lk_store_copy(&rejects->texts, item, strlen(item)), NULL};
    if (reject.item) reject.reason = lk_store_copy(&rejects->texts, reason, strlen(reason));
    if (!reject.reason) return lk_fail(LK_E_NOMEM, "out of memory for the list of rejected records");
    LK_TRY(lk_grow(&rejects->list, &rejects->capacity, rejects->n + 1, sizeof *rejects->list));
    rejects->list[rejects->n++] = reject;
    return LK_OK;
}

void lk_rejects_free(struct lk_rejects *rejects) {
    lk_free(rejects->list);
    lk_store_free(&rejects->texts);
    memset(rejects, 0, sizeof *rejects);
}
