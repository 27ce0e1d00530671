#include "weights/index.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/json.h"

/* A pair as read: names lie in index->text, shard names too until they are made unique. */
struct pair {
    const char *name, *shard;
};

struct pairs {
    struct pair *at;
    size_t n, capacity;
    size_t n_text; /* used of index->text, which is as long as the JSON and has room for every string in it */
};

static const char *keep(struct lk_index *index, struct pairs *p, const char *text) {
    size_t n = strlen(text) + 1;
    char *copy = index->text + p->n_text;
    memcpy(copy, text, n);
    p->n_text += n;
    return copy;
}

static bool read_weight_map(struct lk_json *j, struct lk_index *index, struct pairs *p) {
    if (lk_json_peek(j) != '{') return lk_json_fail(j, LK_E_INDEX, "field \"weight_map\": expected an object");
    lk_json_enter(j, '{');
    while (lk_json_next(j)) {
        const char *text;
        if (lk_grow(&p->at, &p->capacity, p->n + 1, sizeof *p->at)) return lk_json_fail(j, LK_E_NOMEM, "out of memory");
        if (!lk_json_key(j, &text)) return false;
        p->at[p->n].name = keep(index, p, text);
        if (lk_json_peek(j) != '"')
            return lk_json_fail(j, LK_E_INDEX, "field \"weight_map\": \"%.200s\": expected the name of a file", text);
        if (!lk_json_string(j, &text)) return false;
        if (!*text) return lk_json_fail(j, LK_E_INDEX, "field \"weight_map\": an empty file name");
        p->at[p->n].shard = keep(index, p, text);
        p->n++;
    }
    return !j->rc;
}

static void read_top(struct lk_json *j, struct lk_index *index, struct pairs *p) {
    const char *key;
    lk_json_enter(j, '{');
    while (lk_json_next(j)) {
        if (!lk_json_key(j, &key)) break;
        if (!strcmp(key, "weight_map"))
            read_weight_map(j, index, p);
        else if (!strcmp(key, "metadata"))
            lk_json_skip(j);
        else
            lk_json_fail(j, LK_E_INDEX, "unknown field \"%.200s\"; expected \"metadata\" and \"weight_map\"", key);
    }
    lk_json_end(j);
    if (!p->n) lk_json_fail(j, LK_E_INDEX, "field \"weight_map\" is missing or empty");
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct pair *)a)->name, ((const struct pair *)b)->name);
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Sorted entries and shards from the pairs. */
static enum lk_code build(struct lk_index *index, const struct pairs *p, const char *name) {
    index->entries = lk_calloc(p->n, sizeof *index->entries);
    index->shards = lk_calloc(p->n, sizeof *index->shards);
    if (!index->entries || !index->shards) return lk_fail(LK_E_NOMEM, "%s: out of memory", name);
    qsort(p->at, p->n, sizeof *p->at, by_name);
    for (size_t i = 0; i < p->n; i++) index->shards[i] = (char *)(uintptr_t)p->at[i].shard;
    qsort(index->shards, p->n, sizeof *index->shards, by_text);
    size_t n = 1;
    for (size_t i = 1; i < p->n; i++)
        if (strcmp(index->shards[i], index->shards[n - 1])) index->shards[n++] = index->shards[i];
    index->n_shards = n;
    for (size_t i = 0; i < p->n; i++) {
        char **shard = bsearch(&p->at[i].shard, index->shards, n, sizeof *index->shards, by_text);
        index->entries[i] = (struct lk_index_entry){p->at[i].name, (size_t)(shard - index->shards)};
    }
    index->n_entries = p->n;
    return LK_OK;
}

enum lk_code lk_index_parse(struct lk_index *out, const char *text, size_t n_bytes, const char *name) {
    struct pairs pairs = {0};
    struct lk_json j;
    memset(out, 0, sizeof *out);
    if (!(out->text = lk_malloc(n_bytes + 1))) return lk_fail(LK_E_NOMEM, "%s: out of memory", name);
    lk_json_init(&j, text, n_bytes, name);
    read_top(&j, out, &pairs);
    enum lk_code rc = lk_json_finish(&j);
    if (!rc) rc = build(out, &pairs, name);
    lk_free(pairs.at);
    if (rc) lk_index_free(out);
    return rc;
}

void lk_index_free(struct lk_index *index) {
    lk_free(index->entries);
    lk_free(index->shards);
    lk_free(index->text);
    memset(index, 0, sizeof *index);
}
