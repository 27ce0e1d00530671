/* Finds the layers that the modules of LoRA files name, and makes their adapters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/store.h"
#include "engine/bf16.h"
#include "weights/bind.h"
#include "weights/lora/internal.h"
#include "weights/lora/keys.h"
#include "weights/mapped_file.h"

#define ALIGN 64

/* A name that a layer goes by. */
struct name {
    const char *flat;
    struct lk_lora_layer *layer;
    const struct lk_rename *rule; /* NULL: its own name */
};

struct names {
    struct name *list;
    size_t n, capacity;
    struct lk_store texts;
};

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "--lora: out of memory"); }

enum lk_code lk_loras_layer(struct lk_loras *loras, const char *module, int64_t rows, int64_t columns,
                            struct lk_tensor *down, struct lk_tensor *up) {
    if (lk_grow(&loras->layers, &loras->layers_capacity, loras->n_layers + 1, sizeof *loras->layers))
        return out_of_memory();
    struct lk_lora_layer *l = &loras->layers[loras->n_layers++];
    *l = (struct lk_lora_layer){.rows = rows, .columns = columns, .down = down, .up = up};
    snprintf(l->name, sizeof l->name, "%s", module);
    return LK_OK;
}

static enum lk_code add_name(struct names *names, const char *text, struct lk_lora_layer *layer,
                             const struct lk_rename *rule) {
    char flat[LK_LORA_MOST_NAME + 8];
    lk_lora_key_flatten(text, strlen(text), flat);
    if (lk_grow(&names->list, &names->capacity, names->n + 1, sizeof *names->list)) return out_of_memory();
    struct name *e = &names->list[names->n++];
    *e = (struct name){lk_store_copy(&names->texts, flat, strlen(flat)), layer, rule};
    return e->flat ? LK_OK : out_of_memory();
}

static int by_name(const void *a, const void *b) {
    const struct name *x = a, *y = b;
    return strcmp(x->flat, y->flat);
}

/* Every layer under its own name and under those that rules give it, sorted. */
static enum lk_code make_names(struct lk_loras *loras, size_t first, const struct lk_rename *rules, size_t n_rules,
                               struct names *names) {
    for (size_t i = first; i < loras->n_layers; i++) {
        struct lk_lora_layer *layer = &loras->layers[i];
        LK_TRY(add_name(names, layer->name, layer, NULL));
        for (size_t r = 0; r < n_rules; r++) {
            int number = 0;
            char other[LK_LORA_MOST_NAME];
            const char *rest = lk_rename_match(layer->name, rules[r].to, &number);
            if (!rest || (*rest && !loras->whole)) continue;
            lk_rename_fill(rules[r].from, number, other, sizeof other);
            if (strlen(other) + strlen(rest) >= sizeof other) continue;
            strcat(other, rest);
            LK_TRY(add_name(names, other, layer, &rules[r]));
        }
    }
    qsort(names->list, names->n, sizeof *names->list, by_name);
    /* a fused module is several layers; a name that means one layer whole and another too is a mistake of rules */
    for (size_t i = 1; i < names->n; i++) {
        const struct name *a = &names->list[i - 1], *b = &names->list[i];
        if (!strcmp(a->flat, b->flat) && (!a->rule || !b->rule || a->rule->n_parts == 1))
            return lk_fail(LK_E_INTERNAL, "--lora: \"%s\" names both %s and %s", a->flat, a->layer->name,
                           b->layer->name);
    }
    return LK_OK;
}

static struct name *find(const struct names *names, const char *flat) {
    const struct name wanted = {.flat = flat};
    struct name *at = bsearch(&wanted, names->list, names->n, sizeof *names->list, by_name);
    while (at && at > names->list && !strcmp(at[-1].flat, flat)) at--;
    return at;
}

/* Whether A's filters are of the weight's size; a matrix and a 1x1 convolution stand for each other. */
static bool same_filters(const struct lk_tensor *a, const struct lk_tensor *w) {
    for (int i = 2; i < 4; i++)
        if ((a->n_dims > i ? a->shape[i] : 1) != (w->n_dims > i ? w->shape[i] : 1)) return false;
    return true;
}

/* The layer's share of a module's rows. */
static enum lk_code give(const struct lk_lora *file, const struct lk_lora_module *m, const struct name *name,
                         int i_file) {
    struct lk_lora_layer *layer = name->layer;
    struct lk_lora_piece *piece = &layer->pieces[i_file];
    const int64_t parts = name->rule ? name->rule->n_parts : 1, rows = m->b->tensor.shape[0];
    const int64_t taken = name->rule ? name->rule->n_taken : 1;
    if (piece->module)
        return lk_fail(LK_E_BIND, "%s: \"%.200s\" and \"%.200s\" are both for %s", file->path, piece->module->a->name,
                       m->a->name, layer->name);
    if (layer->weight && !same_filters(&m->a->tensor, layer->weight))
        return lk_fail(LK_E_BIND, "%s: \"%.200s\": expected filters as %s of this model has, got others", file->path,
                       m->a->name, layer->name);
    if (m->columns != layer->columns)
        return lk_fail(LK_E_BIND,
                       "%s: \"%.200s\": expected %lld columns for %s of this model, got %lld: a LoRA of another model",
                       file->path, m->a->name, (long long)layer->columns, layer->name, (long long)m->columns);
    if (rows % parts || rows / parts * taken != layer->rows)
        return lk_fail(LK_E_BIND,
                       "%s: \"%.200s\": expected %lld rows for %s of this model, got %lld: a LoRA of another model",
                       file->path, m->b->name, (long long)(layer->rows / taken * parts), layer->name, (long long)rows);
    *piece =
        (struct lk_lora_piece){m, name->rule ? rows / parts * name->rule->part : 0, name->rule && name->rule->swapped};
    layer->rank += m->rank;
    return LK_OK;
}

/* Of a block, and no layer of its modulation. */
static bool is_of_a_block(const char *name) {
    return strstr(name, "transformer_blocks.") && !strstr(name, "_mod.") && !strstr(name, "norm");
}

static void suppose(struct lk_loras *loras, int64_t rank) {
    for (size_t i = 0; i < loras->n_layers; i++)
        if (is_of_a_block(loras->layers[i].name)) loras->layers[i].rank += rank;
}

int64_t lk_lora_layer_values(const struct lk_loras *loras, size_t i) {
    const struct lk_lora_layer *l = &loras->layers[i];
    return l->rank * (l->rows + l->columns);
}

static enum lk_code place_file(const struct lk_lora *file, const struct names *names, int i_file, int component) {
    const struct lk_lora_module *unknown = NULL;
    size_t n_unknown = 0;
    for (size_t i = 0; i < file->n_modules; i++) {
        const struct lk_lora_module *m = &file->modules[i];
        if (m->component != component) continue;
        const struct name *at = find(names, m->flat);
        for (const struct name *e = at; e && e < names->list + names->n && !strcmp(e->flat, m->flat); e++)
            LK_TRY(give(file, m, e, i_file));
        if (at) continue;
        if (!n_unknown++) unknown = m;
    }
    if (!n_unknown) return LK_OK;
    return lk_fail(LK_E_BIND,
                   "%s: %zu of %zu modules are not in this model, the first of \"%.200s\": a LoRA of another model, or "
                   "one for layers that take none",
                   file->path, n_unknown, file->n_modules, unknown->a->name);
}

/* False when the value is, or becomes, none that can be computed with. */
static bool put(const struct lk_tensor *t, int64_t at, float value) {
    if (t->dtype == LK_F32) {
        ((float *)t->data)[at] = value;
        return isfinite(value);
    }
    const uint16_t rounded = lk_f32_to_bf16(value);
    ((uint16_t *)t->data)[at] = rounded;
    return isfinite(lk_bf16_to_f32(rounded));
}

/* Whether layer i has the same A as the one before, as q, k and v have that are one module in a file. */
static bool shares_down(const struct lk_loras *loras, size_t i) {
    const struct lk_lora_layer *l = &loras->layers[i], *before = i ? l - 1 : NULL;
    bool same = before && l->columns == before->columns;
    int n = 0;
    for (int k = 0; k < loras->n; k++) {
        n += l->pieces[k].module != NULL;
        same = same && l->pieces[k].module == before->pieces[k].module && !loras->list[k].planned_rank;
    }
    return same && n;
}

int64_t lk_lora_row(const struct lk_lora_layer *l, const struct lk_lora_piece *piece, int64_t row) {
    const int64_t half = piece->swapped ? l->rows / 2 : 0;
    return piece->first + (row < half ? row + half : row - half); /* half 0: row */
}

static enum lk_code make(const struct lk_loras *loras, size_t i_layer) {
    const struct lk_lora_layer *l = &loras->layers[i_layer];
    const bool has_down = !shares_down(loras, i_layer);
    int64_t r0 = 0;
    for (int i = 0; i < loras->n; i++) {
        const struct lk_lora_module *m = l->pieces[i].module;
        if (!m) continue;
        const struct lk_tensor *a = &m->a->tensor, *b = &m->b->tensor;
        const struct lk_lora_piece *piece = &l->pieces[i];
        const char *bad = NULL;
        for (int64_t j = 0; has_down && j < m->rank * l->columns && !bad; j++)
            if (!put(l->down, r0 * l->columns + j, lk_lora_element(a, j))) bad = m->a->name;
        for (int64_t row = 0; row < l->rows && !bad; row++) {
            const int64_t from = lk_lora_row(l, piece, row);
            for (int64_t j = 0; j < m->rank && !bad; j++)
                if (!put(l->up, row * l->rank + r0 + j, m->s * lk_lora_element(b, from * m->rank + j)))
                    bad = m->b->name;
        }
        if (bad)
            return lk_fail(LK_E_BIND, "%s: \"%.200s\": a value is NaN or Inf, or becomes so times %g",
                           loras->list[i].path, bad, (double)m->s);
        r0 += m->rank;
    }
    return LK_OK;
}

static size_t room(const struct lk_tensor *t) { return (lk_tensor_bytes(t) + ALIGN - 1) / ALIGN * ALIGN; }

/* Shapes and addresses of every adapter; then their values. */
static enum lk_code make_all(struct lk_loras *loras, enum lk_dtype compute, bool with_data) {
    size_t bytes = 0;
    for (size_t i = 0; i < loras->n_layers; i++) {
        struct lk_lora_layer *l = &loras->layers[i];
        if (!l->rank) continue;
        l->rank = (l->rank + LK_LORA_GRAIN - 1) / LK_LORA_GRAIN * LK_LORA_GRAIN;
        *l->down = LK_TENSOR(NULL, compute, l->rank, l->columns);
        *l->up = LK_TENSOR(NULL, compute, l->rows, l->rank);
        if (!with_data) {
            l->down->data = lk_bind_nowhere(lk_tensor_bytes(l->down));
            l->up->data = lk_bind_nowhere(lk_tensor_bytes(l->up));
        }
        bytes += (shares_down(loras, i) ? 0 : room(l->down)) + room(l->up);
    }
    if (!with_data || !bytes) return LK_OK;
    unsigned char *at = loras->owned = lk_calloc(bytes, 1);
    if (!at) return lk_fail(LK_E_NOMEM, "--lora: out of memory: %zu bytes for adapters", bytes);
    for (size_t i = 0; i < loras->n_layers; i++) {
        const struct lk_lora_layer *l = &loras->layers[i];
        if (!l->rank) continue;
        l->up->data = at;
        at += room(l->up);
        l->down->data = shares_down(loras, i) ? l[-1].down->data : at;
        if (!shares_down(loras, i)) at += room(l->down);
    }
    struct lk_error first = {0}; /* of the first layer that has one, whichever thread was first */
    size_t at_layer = 0;
#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < loras->n_layers; i++) {
        const enum lk_code rc = loras->layers[i].rank ? make(loras, i) : LK_OK;
        if (!rc) continue;
#pragma omp critical
        if (!first.code || i < at_layer) lk_error_get(&first, rc), at_layer = i;
    }
    return first.code ? lk_error_set(&first) : LK_OK;
}

enum lk_code lk_lora_place_files(struct lk_loras *loras, int component, size_t first, const struct lk_rename *rules,
                                 size_t n_rules) {
    struct names names = {0};
    enum lk_code rc = make_names(loras, first, rules, n_rules, &names);
    for (int i = 0; i < loras->n && !rc; i++) {
        if (loras->list[i].planned_rank && !loras->whole)
            suppose(loras, loras->list[i].planned_rank);
        else
            rc = place_file(&loras->list[i], &names, i, component);
    }
    lk_free(names.list);
    lk_store_free(&names.texts);
    return rc;
}

enum lk_code lk_loras_bind(struct lk_loras *loras, const struct lk_rename *rules, size_t n_rules, enum lk_dtype compute,
                           bool with_data) {
    enum lk_code rc = lk_lora_place_files(loras, 0, 0, rules, n_rules);
    if (!rc) rc = make_all(loras, compute, with_data);
    for (int i = 0; i < loras->n && !rc && with_data; i++) rc = lk_mapped_check(loras->list[i].st.file);
    return rc;
}
