#include "weights/quant/rename.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"

#define MOST_NAME 512

/* The tensors in the making. */
struct renamed {
    struct lk_checkpoint *cp;
    struct lk_st_tensor *tensors;
    size_t *shards, n, capacity, shards_capacity;
};

const char *lk_rename_match(const char *name, const char *pattern, int *number) {
    for (; *pattern; pattern++) {
        if (pattern[0] == '%' && pattern[1] == 'd') {
            char *end;
            if (!isdigit((unsigned char)*name)) return NULL;
            const long value = strtol(name, &end, 10);
            if (value > 9999) return NULL;
            *number = (int)value;
            name = end;
            pattern++;
        } else if (*name++ != *pattern) {
            return NULL;
        }
    }
    return *name == 0 || *name == '.' || *name == '_' ? name : NULL;
}

void lk_rename_fill(const char *pattern, int number, char *out, size_t size) {
    const char *hole = strstr(pattern, "%d");
    if (hole)
        snprintf(out, size, "%.*s%d%s", (int)(hole - pattern), pattern, number, hole + 2);
    else
        snprintf(out, size, "%s", pattern);
}

static enum lk_code no_memory(const struct lk_checkpoint *cp) {
    return lk_fail(LK_E_NOMEM, "%s: out of memory", lk_checkpoint_place(cp));
}

static enum lk_code add(struct renamed *r, const char *name, const struct lk_tensor *tensor, size_t shard) {
    char *copy = lk_strdup(name);
    if (!copy || lk_grow(&r->tensors, &r->capacity, r->n + 1, sizeof *r->tensors) ||
        lk_grow(&r->shards, &r->shards_capacity, r->n + 1, sizeof *r->shards)) {
        lk_free(copy);
        return no_memory(r->cp);
    }
    r->tensors[r->n] = (struct lk_st_tensor){.name = copy, .tensor = *tensor};
    r->shards[r->n++] = shard;
    return LK_OK;
}

/* The rows of a rule's share. What has no rows of weights belongs whole to every share: a scale for all of them, and
 * .comfy_quant, a JSON text about them. */
static enum lk_code share(struct renamed *r, const struct lk_st_tensor *t, const char *rest,
                          const struct lk_rename *rule, struct lk_tensor *out) {
    *out = t->tensor;
    if (!strcmp(rest, ".comfy_quant")) return LK_OK;
    if (rule->n_parts > 1 && out->n_dims && out->shape[0] > 1) {
        const int64_t rows = out->shape[0] / rule->n_parts;
        if (out->shape[0] % rule->n_parts == 0)
            *out = lk_tensor_rows(&t->tensor, rule->part * rows, rule->n_taken * rows);
        if (!out->n_dims || t->tensor.shape[0] % rule->n_parts)
            return lk_fail(LK_E_BIND, "%s: %s: its rows cannot be shared out to %d layers", lk_checkpoint_place(r->cp),
                           t->name, rule->n_parts);
    }
    if (!rule->swapped || !out->n_dims || out->shape[0] < 2) return LK_OK;
    const size_t bytes = lk_tensor_bytes(out), half = bytes / 2;
    unsigned char *copy = lk_malloc(bytes);
    if (!copy || lk_grow(&r->cp->owned, &r->cp->owned_capacity, r->cp->n_owned + 1, sizeof *r->cp->owned)) {
        lk_free(copy);
        return no_memory(r->cp);
    }
    r->cp->owned[r->cp->n_owned++] = copy;
    memcpy(copy, (const unsigned char *)out->data + half, half);
    memcpy(copy + half, out->data, half);
    out->data = copy;
    return LK_OK;
}

static enum lk_code rename_one(struct renamed *r, const struct lk_st_tensor *t, const char *name, size_t shard,
                               const struct lk_rename *rules, size_t n_rules) {
    bool found = false;
    for (size_t i = 0; i < n_rules; i++) {
        int number = 0;
        char module[MOST_NAME], full[2 * MOST_NAME];
        struct lk_tensor tensor;
        const char *rest = lk_rename_match(name, rules[i].from, &number);
        if (!rest || strlen(rest) >= MOST_NAME) continue;
        lk_rename_fill(rules[i].to, number, module, sizeof module);
        snprintf(full, sizeof full, "%s%s", module, rest);
        LK_TRY(share(r, t, rest, &rules[i], &tensor));
        LK_TRY(add(r, full, &tensor, shard));
        found = true;
    }
    return found ? LK_OK : add(r, name, &t->tensor, shard);
}

static int by_name(const void *a, const void *b) {
    const struct lk_checkpoint *types = NULL;
    const __typeof__(*types->tensors) *x = a, *y = b;
    return strcmp(x->tensor->name, y->tensor->name);
}

enum lk_code lk_checkpoint_rename(struct lk_checkpoint *cp, const char *prefix, const struct lk_rename *rules,
                                  size_t n_rules) {
    struct renamed r = {.cp = cp};
    enum lk_code rc = LK_OK;
    for (size_t i = 0; !rc && i < cp->n_tensors; i++) {
        const struct lk_st_tensor *t = cp->tensors[i].tensor;
        const char *name = t->name + (strncmp(t->name, prefix, strlen(prefix)) ? 0 : strlen(prefix));
        rc = rename_one(&r, t, name, cp->tensors[i].shard, rules, n_rules);
    }
    void *table = rc ? NULL : lk_calloc(r.n, sizeof *cp->tensors);
    if (!rc && !table) rc = no_memory(cp);
    cp->renamed = r.tensors; /* the checkpoint's, also after a failure */
    cp->n_renamed = r.n;
    if (!rc) {
        lk_free(cp->tensors);
        cp->tensors = table;
        cp->n_tensors = r.n;
        for (size_t i = 0; i < r.n; i++) {
            cp->tensors[i].tensor = &r.tensors[i];
            cp->tensors[i].shard = r.shards[i];
        }
        qsort(cp->tensors, cp->n_tensors, sizeof *cp->tensors, by_name);
        for (size_t i = 1; !rc && i < cp->n_tensors; i++)
            if (!by_name(&cp->tensors[i - 1], &cp->tensors[i]))
                rc = lk_fail(LK_E_BIND, "%s: two tensors are \"%.200s\"", lk_checkpoint_place(cp),
                             cp->tensors[i].tensor->name);
    }
    lk_free(r.shards);
    return rc;
}

void lk_checkpoint_keep(struct lk_checkpoint *cp, const char *prefix, const char *const *without) {
    size_t n = 0;
    for (size_t i = 0; i < cp->n_tensors; i++) {
        const char *name = cp->tensors[i].tensor->name;
        bool kept = !strncmp(name, prefix, strlen(prefix));
        for (const char *const *w = without; *w; w++) kept = kept && strncmp(name, *w, strlen(*w)) != 0;
        if (kept) cp->tensors[n++] = cp->tensors[i];
    }
    cp->n_tensors = n;
}

enum lk_code lk_checkpoint_transpose(struct lk_checkpoint *cp, const char *name) {
    for (size_t i = 0; i < cp->n_renamed; i++) {
        struct lk_tensor *t = &cp->renamed[i].tensor;
        if (strcmp(cp->renamed[i].name, name) || t->n_dims != 2 || lk_tensor_is_quantized(t)) continue;
        const size_t size = lk_dtype_size(t->dtype), rows = (size_t)t->shape[0], columns = (size_t)t->shape[1];
        unsigned char *copy = lk_malloc(lk_tensor_bytes(t));
        if (!copy || lk_grow(&cp->owned, &cp->owned_capacity, cp->n_owned + 1, sizeof *cp->owned)) {
            lk_free(copy);
            return no_memory(cp);
        }
        cp->owned[cp->n_owned++] = copy;
        for (size_t r = 0; r < rows; r++)
            for (size_t c = 0; c < columns; c++)
                memcpy(copy + (c * rows + r) * size, (unsigned char *)t->data + (r * columns + c) * size, size);
        *t = LK_TENSOR(copy, t->dtype, (int64_t)columns, (int64_t)rows);
    }
    return LK_OK;
}
