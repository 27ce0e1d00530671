#include "eval/scores/names.h"

#include <string.h>

#include "engine/base/alloc.h"

/* The name's number, or -1 and the key to put it under: two names may share a hash. */
static int32_t look_up(const struct lk_names *names, const char *text, size_t n, uint64_t *key) {
    *key = lk_key_of_text(text, n);
    for (int32_t at; (at = lk_key_index_find(&names->index, *key)) >= 0; ++*key)
        if (strlen(names->list[at]) == n && !memcmp(names->list[at], text, n)) return at;
    return -1;
}

int32_t lk_names_find(const struct lk_names *names, const char *text, size_t n) {
    uint64_t key;
    return look_up(names, text, n, &key);
}

enum lk_code lk_names_number(struct lk_names *names, const char *text, size_t n, int32_t *out) {
    uint64_t key;
    *out = look_up(names, text, n, &key);
    if (*out >= 0) return LK_OK;
    LK_TRY(lk_key_index_reserve(&names->index));
    LK_TRY(lk_grow(&names->list, &names->capacity, names->n + 1, sizeof *names->list));
    names->list[names->n] = lk_store_copy(&names->texts, text, n);
    if (!names->list[names->n]) return lk_fail(LK_E_NOMEM, "out of memory for names");
    *out = (int32_t)names->n++;
    lk_key_index_put(&names->index, key, *out);
    return LK_OK;
}

void lk_names_free(struct lk_names *names) {
    lk_free(names->list);
    lk_key_index_free(&names->index);
    lk_store_free(&names->texts);
    memset(names, 0, sizeof *names);
}
