#include "models/common/kept.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"

/* The digest of the key so far and of what is added: both have 64 digits, so that nothing added can be taken for
 * something else cut otherwise. */
void lk_key_add(char key[65], const void *bytes, size_t n) {
    char both[2 * 64 + 1];
    memcpy(both, key, 64);
    lk_sha256(bytes, n, both + 64);
    lk_sha256(both, 2 * 64, key);
}

void lk_key_begin(char key[65], const char *kind) { lk_sha256(kind, strlen(kind), key); }

void lk_key_add_int(char key[65], int64_t value) {
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)((uint64_t)value >> (8 * i));
    lk_key_add(key, bytes, sizeof bytes);
}

void lk_key_add_image(char key[65], const struct lk_image *image) {
    lk_key_add_int(key, image->width);
    lk_key_add_int(key, image->height);
    lk_key_add_int(key, image->channels);
    lk_key_add(key, image->pixels, (size_t)image->width * (size_t)image->height * (size_t)image->channels);
    lk_key_add(key, image->unconverted, lk_image_unconverted_bytes(image));
}

struct lk_kept *lk_kept_find(struct lk_kept *list, const char *key) {
    for (; *key && list; list = list->next) {
        if (strcmp(list->key, key)) continue;
        list->used = true;
        return list;
    }
    return NULL;
}

enum lk_code lk_kept_add(struct lk_kept **list, const char *key, const struct lk_tensor *t, bool with_data,
                         struct lk_kept **out) {
    size_t bytes = with_data ? lk_tensor_bytes(t) : 0;
    struct lk_kept *k = lk_calloc(1, sizeof *k);
    void *data = k && with_data ? lk_malloc(bytes) : NULL;
    if (!k || (with_data && !data)) {
        lk_free(k);
        return lk_fail(LK_E_NOMEM, "out of memory for %zu bytes between two stages; make the queue shorter", bytes);
    }
    strcpy(k->key, key);
    k->used = true;
    k->tensor = lk_tensor_make(data, t->dtype, t->n_dims, t->shape);
    k->next = *list;
    *list = *out = k;
    return LK_OK;
}

static void free_first(struct lk_kept **list) {
    struct lk_kept *k = *list;
    *list = k->next;
    lk_free(k->tensor.data);
    lk_free(k);
}

void lk_kept_cut(struct lk_kept **list, struct lk_kept *from) {
    while (*list != from) free_first(list);
}

/* A prompt that every job has was made first, and is met in each queue. */
static void put_used_first(struct lk_kept **list) {
    struct lk_kept *used = NULL, **end = &used, **at = list;
    while (*at) {
        struct lk_kept *k = *at;
        if (!k->used) {
            at = &k->next;
            continue;
        }
        k->used = false;
        *at = k->next;
        *end = k;
        end = &k->next;
    }
    *end = *list;
    *list = used;
}

void lk_kept_trim(struct lk_kept **list, size_t bytes) {
    int n_kept = 0;
    put_used_first(list);
    while (*list) {
        size_t n = lk_tensor_bytes(&(*list)->tensor);
        bool stays = *(*list)->key && n <= bytes;
        if (!stays || n_kept == LK_KEPT_MOST) {
            free_first(list);
            continue;
        }
        bytes -= n;
        n_kept++;
        list = &(*list)->next;
    }
}

void lk_kept_free(struct lk_kept **list) { lk_kept_cut(list, NULL); }
