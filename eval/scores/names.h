/* Names and their numbers, in the order in which they were first met. */
#pragma once

#include "eval/scores/key_index.h"
#include "engine/base/store.h"

struct lk_names {
    const char **list;
    size_t n, capacity;
    struct lk_key_index index;
    struct lk_store texts;
};

/* The number of the name, given to it when it is new. LK_E_NOMEM. */
enum lk_code lk_names_number(struct lk_names *names, const char *text, size_t n, int32_t *out);
int32_t lk_names_find(const struct lk_names *names, const char *text, size_t n); /* -1 when it is not there */
void lk_names_free(struct lk_names *names);
