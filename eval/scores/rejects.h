/* What a reader refused, record by record: nothing is dropped without a line here. */
#pragma once

#include <stddef.h>

#include "engine/base/status.h"
#include "engine/base/store.h"

struct lk_reject {
    size_t line;        /* of the file, from 1 */
    const char *item;   /* "" when the record does not say */
    const char *reason; /* one sentence */
};

struct lk_rejects {
    struct lk_reject *list;
    size_t n, capacity;
    struct lk_store texts;
};

/* Copies both texts. LK_E_NOMEM. */
enum lk_code lk_rejects_add(struct lk_rejects *rejects, size_t line, const char *item, const char *reason);
void lk_rejects_free(struct lk_rejects *rejects);
