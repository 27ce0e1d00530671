/* Reading LoRA files: their keys sorted into modules, and each module's scale. */
#include <dirent.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/text.h"
#include "engine/bf16.h"
#include "engine/f16.h"
#include "weights/checkpoint.h"
#include "weights/lora/internal.h"
#include "weights/lora/keys.h"
#include "weights/mapped_file.h"

static enum lk_code out_of_memory(const char *path) { return lk_fail(LK_E_NOMEM, "%s: out of memory", path); }

/* A key with its module's name, to be sorted. */
struct entry {
    const char *flat;
    struct lk_lora_key key;
    const struct lk_st_tensor *tensor;
};

static int by_module(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    const int names = strcmp(x->flat, y->flat);
    return names ? names : (int)x->key.role - (int)y->key.role;
}

/* What is no plain LoRA, all kinds in one message. */
static enum lk_code refuse(const struct lk_lora *l, const struct entry *entries, size_t n) {
    struct {
        const char *what, *key;
        size_t n;
    } kinds[32] = {{0}};
    size_t n_kinds = 0, n_plain = 0;
    struct lk_text text = {0};
    for (size_t i = 0; i < n; i++) {
        const struct entry *e = &entries[i];
        n_plain += e->key.role == LK_LORA_A;
        if (e->key.role != LK_LORA_OTHER) continue;
        size_t k = 0;
        while (k < n_kinds && strcmp(kinds[k].what, e->key.what) != 0) k++;
        if (k == sizeof kinds / sizeof *kinds) continue;
        if (k == n_kinds) n_kinds++, kinds[k].what = e->key.what, kinds[k].key = e->tensor->name;
        kinds[k].n++;
    }
    for (size_t k = 0; k < n_kinds && !n_plain; k++)
        if (!strcmp(kinds[k].what, "whole weight"))
            return lk_fail(
                LK_E_BIND,
                "%s: no LoRA in it but %zu whole weights, the first \"%.200s\"; weights of a transformer are "
                "for --transformer",
                l->path, kinds[k].n, kinds[k].key);
    for (size_t k = 0; k < n_kinds; k++) {
        lk_text_add(&text, "%s\"%.200s\" (%s", k ? ", " : "", kinds[k].key, kinds[k].what);
        if (kinds[k].n > 1) lk_text_add(&text, ", and %zu more", kinds[k].n - 1);
        lk_text_add(&text, ")");
    }
    enum lk_code rc = LK_OK;
    if (text.rc) rc = out_of_memory(l->path);
    if (!rc && n_kinds) rc = lk_fail(LK_E_BIND, "%s: only plain LoRA is read; refused: %s", l->path, text.bytes);
    if (!rc && !n_plain)
        rc = lk_fail(LK_E_BIND, "%s: no LoRA in it: no key ends in lora_A.weight, lora_down.weight or the like",
                     l->path);
    lk_text_free(&text);
    return rc;
}

/* One name of an adapter at most: which of several is meant nobody can know. */
static enum lk_code check_adapters(const struct lk_lora *l, const struct entry *entries, size_t n) {
    const struct entry *first = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct entry *e = &entries[i];
        if (!e->key.adapter_length) continue;
        if (!first) first = e;
        if (e->key.adapter_length != first->key.adapter_length ||
            memcmp(e->tensor->name + e->key.adapter, first->tensor->name + first->key.adapter,
                   first->key.adapter_length))
            return lk_fail(LK_E_BIND, "%s: adapters of several names: \"%.200s\" and \"%.200s\"; save one in a file",
                           l->path, first->tensor->name, e->tensor->name);
    }
    return LK_OK;
}

static void note_layout(struct lk_lora *l, const struct entry *entries, size_t n) {
    for (size_t i = 0; i < n && !*l->layout; i++)
        if (entries[i].key.role == LK_LORA_A)
            snprintf(l->layout, sizeof l->layout, "%s, %s%s", entries[i].key.suffix,
                     *entries[i].key.prefix ? "prefix " : "no prefix", entries[i].key.prefix);
}

static enum lk_code group(struct lk_lora *l, const struct entry *entries, size_t n) {
    l->modules = lk_calloc(n + 1, sizeof *l->modules);
    if (!l->modules) return out_of_memory(l->path);
    for (size_t i = 0; i < n; i++) {
        const struct entry *e = &entries[i];
        struct lk_lora_module *m = l->n_modules ? &l->modules[l->n_modules - 1] : NULL;
        if (!m || strcmp(m->flat, e->flat) != 0) {
            m = &l->modules[l->n_modules++];
            *m = (struct lk_lora_module){.flat = e->flat,
                                         .name = e->tensor->name + e->key.module,
                                         .length = e->key.length,
                                         .component = e->key.component};
        }
        const struct lk_st_tensor **at[] = {[LK_LORA_A] = &m->a, [LK_LORA_B] = &m->b, [LK_LORA_ALPHA] = &m->alpha};
        if (*at[e->key.role])
            return lk_fail(LK_E_BIND, "%s: two keys say the same: \"%.200s\" and \"%.200s\"", l->path,
                           (*at[e->key.role])->name, e->tensor->name);
        *at[e->key.role] = e->tensor;
    }
    return LK_OK;
}

static enum lk_code sort_keys(struct lk_lora *l, bool whole) {
    const size_t n = l->st.n_tensors;
    size_t room = 0;
    struct entry *entries = lk_calloc(n + 1, sizeof *entries);
    for (size_t i = 0; i < n; i++) room += strlen(l->st.tensors[i].name) + LK_LORA_MORE;
    l->texts = lk_malloc(room + 1);
    enum lk_code rc = entries && l->texts ? LK_OK : out_of_memory(l->path);
    char *to = l->texts;
    for (size_t i = 0; i < n && !rc; i++) {
        struct entry *e = &entries[i];
        e->tensor = &l->st.tensors[i];
        if (whole) {
            lk_lora_key_split_whole(e->tensor->name, &e->key);
            lk_lora_key_flatten_whole(&e->key, e->tensor->name, to);
        } else {
            lk_lora_key_split(e->tensor->name, &e->key);
            lk_lora_key_flatten(e->tensor->name + e->key.module, e->key.length, to);
        }
        e->flat = to;
        to += strlen(to) + 1;
    }
    if (!rc) rc = refuse(l, entries, n);
    if (!rc) rc = check_adapters(l, entries, n);
    if (!rc) note_layout(l, entries, n);
    if (!rc) qsort(entries, n, sizeof *entries, by_module);
    if (!rc) rc = group(l, entries, n);
    lk_free(entries);
    return rc;
}

/* A and B as matrices: 4-D of a 1x1 convolution too, and filters where those are taken. */
static enum lk_code check_matrix(const struct lk_lora *l, const struct lk_st_tensor *t, bool filters) {
    const struct lk_tensor *m = &t->tensor;
    char have[96];
    const bool is_matrix =
        m->n_dims == 2 ||
        (m->n_dims == 4 && (filters ? m->shape[2] > 0 && m->shape[3] > 0 : m->shape[2] == 1 && m->shape[3] == 1));
    const bool is_float = m->dtype == LK_F32 || m->dtype == LK_BF16 || m->dtype == LK_F16;
    if (is_matrix && is_float && m->shape[0] > 0 && m->shape[1] > 0) return LK_OK;
    return lk_fail(LK_E_BIND, "%s: \"%.200s\": expected a matrix of f32, bf16 or f16, got %s", l->path, t->name,
                   lk_tensor_describe(m, have));
}

static enum lk_code read_alpha(const struct lk_lora *l, const struct lk_st_tensor *t, bool with_data, double *out) {
    char have[96];
    float f;
    uint16_t h;
    int64_t i;
    const struct lk_tensor *a = &t->tensor;
    const bool known = a->dtype == LK_F32 || a->dtype == LK_BF16 || a->dtype == LK_F16 || a->dtype == LK_I64;
    if (!known || lk_tensor_numel(a) != 1 || a->n_dims > 1)
        return lk_fail(LK_E_BIND, "%s: \"%.200s\": expected one number, f32, bf16, f16 or i64, got %s", l->path,
                       t->name, lk_tensor_describe(a, have));
    *out = 1;
    if (!with_data) return LK_OK;
    memcpy(&h, a->data, sizeof h);
    if (a->dtype == LK_F32) memcpy(&f, a->data, sizeof f), *out = (double)f;
    if (a->dtype == LK_BF16) *out = (double)lk_bf16_to_f32(h);
    if (a->dtype == LK_F16) *out = (double)lk_f16_to_f32(h);
    if (a->dtype == LK_I64) memcpy(&i, a->data, sizeof i), *out = (double)i;
    if (isfinite(*out) && *out > 0) return LK_OK;
    return lk_fail(LK_E_BIND, "%s: \"%.200s\": expected a number above 0, got %g", l->path, t->name, *out);
}

static enum lk_code finish_module(const struct lk_lora *l, struct lk_lora_module *m, const struct lk_lora_config *c,
                                  bool with_data, bool whole) {
    double rank = 0, said = 0, alpha = 0;
    const struct lk_st_tensor *any = m->a ? m->a : m->b ? m->b : m->alpha;
    if (!m->a || !m->b)
        return lk_fail(LK_E_BIND, "%s: \"%.200s\": its module has no %s", l->path, any->name,
                       m->a ? "B (lora_B, lora_up)" : "A (lora_A, lora_down)");
    LK_TRY(check_matrix(l, m->a, whole));
    LK_TRY(check_matrix(l, m->b, false));
    m->rank = m->a->tensor.shape[0];
    m->columns = lk_tensor_row_numel(&m->a->tensor);
    if (m->rank > LK_LORA_MAX_RANK)
        return lk_fail(LK_E_BIND, "%s: \"%.200s\": expected a rank up to %d, got %lld", l->path, m->a->name,
                       LK_LORA_MAX_RANK, (long long)m->rank);
    if (m->b->tensor.shape[1] != m->rank)
        return lk_fail(LK_E_BIND, "%s: \"%.200s\": expected %lld columns, as \"%.200s\" has rows, got %lld", l->path,
                       m->b->name, (long long)m->rank, m->a->name, (long long)m->b->tensor.shape[1]);
    lk_lora_config_of(c, m->name, m->length, &rank, &said);
    if (rank > 0 && rank != (double)m->rank)
        return lk_fail(LK_E_BIND, "%s: \"%.200s\": expected rank %g, which %s says, got %lld", l->path, m->a->name,
                       rank, c->source, (long long)m->rank);
    if (m->alpha) LK_TRY(read_alpha(l, m->alpha, with_data, &alpha));
    if (m->alpha && said > 0 && with_data && alpha != said)
        return lk_fail(LK_E_BIND, "%s: \"%.200s\" is %g, but %s says %g: which alpha holds?", l->path, m->alpha->name,
                       alpha, c->source, said);
    if (!m->alpha) alpha = said > 0 ? said : (double)m->rank;
    if (!(isfinite(alpha) && alpha > 0))
        return lk_fail(LK_E_BIND, "%s: \"%.200s\": %s: expected an alpha above 0, got %g", l->path, m->a->name,
                       c->source, alpha);
    m->s = (float)(l->scale * alpha / (c->stabilised ? sqrt((double)m->rank) : (double)m->rank));
    return LK_OK;
}

/* All modules of a component, by what the metadata say of it. */
static enum lk_code finish_component(struct lk_lora *l, int component, bool with_data, bool whole) {
    const char *const prefixes[] = {whole ? "unet." : "transformer.", lk_lora_component(1), lk_lora_component(2)};
    struct lk_lora_config config;
    enum lk_code rc = lk_lora_config_read(&config, l->path, l->st.metadata_json, prefixes[component]);
    for (size_t i = 0; i < l->n_modules && !rc; i++)
        if (l->modules[i].component == component) rc = finish_module(l, &l->modules[i], &config, with_data, whole);
    lk_lora_config_free(&config);
    return rc;
}

static enum lk_code read_file(struct lk_lora *l, bool with_data, bool whole) {
    LK_TRY(lk_safetensors_open(&l->st, l->path));
    LK_TRY(sort_keys(l, whole));
    enum lk_code rc = finish_component(l, 0, with_data, whole);
    for (int component = 1; component <= 2 && whole && !rc; component++)
        rc = finish_component(l, component, with_data, whole);
    if (!rc && with_data) lk_sha256(l->st.file->data, (size_t)l->st.file_bytes, l->sha256);
    return rc;
}

static bool is_safetensors(const char *name) {
    const size_t n = strlen(name);
    return n > 12 && !strcmp(name + n - 12, ".safetensors");
}

/* The one .safetensors file of a folder. */
static enum lk_code only_file(const char *folder, const char *asked, char **out) {
    char *found = NULL;
    int n = 0;
    DIR *dir = opendir(folder);
    if (!dir) return lk_fail(LK_E_NOT_FOUND, "--lora: %s: cannot be listed", asked);
    for (const struct dirent *e; (e = readdir(dir));) {
        if (!is_safetensors(e->d_name) || n++) continue;
        found = lk_strdup(e->d_name);
    }
    closedir(dir);
    enum lk_code rc = LK_OK;
    if (n != 1)
        rc = lk_fail(LK_E_NOT_FOUND,
                     "--lora: %s: expected one .safetensors file in it, found %d; name the file: %s:FILE", asked, n,
                     asked);
    else if (!found)
        rc = out_of_memory(asked);
    else
        rc = lk_model_path(folder, found, out);
    lk_free(found);
    return rc;
}

/* A path, or ORG/NAME[@REVISION][:FILE] in the HF cache; a folder is the file in it. */
static enum lk_code find_file(const char *asked, char **out) {
    struct stat st;
    const char *colon = strrchr(asked, ':'), *dot = strrchr(asked, '.');
    static const char *const pickled[] = {".pt", ".pth", ".ckpt", ".bin", ".pkl"};
    for (size_t i = 0; dot && i < sizeof pickled / sizeof *pickled; i++)
        if (!strcmp(dot, pickled[i]))
            return lk_fail(LK_E_USAGE,
                           "--lora: %s: expected a .safetensors file: a pickle can run code when it is read", asked);
    const bool there = stat(asked, &st) == 0;
    if (there && !S_ISDIR(st.st_mode)) return (*out = lk_strdup(asked)) ? LK_OK : out_of_memory(asked);
    if (!there && !colon && (is_safetensors(asked) || !strpbrk(asked, "/~$")))
        return lk_fail(LK_E_NOT_FOUND, "--lora: %s: no such file", asked);
    char *folder = NULL, *model = colon && !there ? lk_strndup(asked, (size_t)(colon - asked)) : lk_strdup(asked);
    enum lk_code rc = model ? LK_OK : out_of_memory(asked);
    if (!rc && !there && is_safetensors(model) && !stat(model, &st))
        rc = lk_fail(LK_E_USAGE, "%s: a file has no files in it; its scale stands behind \"=\", as %s=0.8", asked,
                     model);
    if (!rc) rc = lk_model_find(model, &folder);
    if (rc) lk_fail_prefix(rc, "--lora");
    if (!rc) rc = colon && !there ? lk_model_path(folder, colon + 1, out) : only_file(folder, asked, out);
    lk_free(folder);
    lk_free(model);
    return rc;
}

/* "rank=64" */
static bool is_planned(const char *asked) {
    return !strncmp(asked, "rank=", 5) && asked[5] && strspn(asked + 5, "0123456789") == strlen(asked + 5);
}

enum lk_code lk_lora_split(const char *asked, size_t *length, double *scale) {
    const char *equals = strrchr(asked, '=');
    char *end = NULL;
    *scale = 1;
    *length = equals ? (size_t)(equals - asked) : strlen(asked);
    if (!*length) return lk_fail(LK_E_USAGE, "--lora: expected FILE or FILE=SCALE, got \"%.200s\"", asked);
    if (!equals) return LK_OK;
    if (is_planned(asked)) {
        *scale = strtod(equals + 1, NULL);
        if (*scale >= 1 && *scale <= LK_LORA_MAX_RANK) return LK_OK;
        return lk_fail(LK_E_USAGE, "--lora: %.200s: expected a rank from 1 to %d", asked, LK_LORA_MAX_RANK);
    }
    const size_t n = strspn(equals + 1, "0123456789.eE+-"); /* no hex, nan, inf or blanks */
    if (n && !equals[1 + n]) *scale = strtod(equals + 1, &end);
    if (!end || *end || !(*scale >= LK_LORA_MIN && *scale <= LK_LORA_MAX) || *scale == 0)
        return lk_fail(LK_E_USAGE, "--lora: %.200s: expected a scale from %g to %g other than 0 after the last \"=\"",
                       asked, LK_LORA_MIN, LK_LORA_MAX);
    return LK_OK;
}

static enum lk_code open_one(struct lk_lora *l, const char *asked, bool with_data, bool whole) {
    size_t length;
    LK_TRY(lk_lora_split(asked, &length, &l->scale));
    if (is_planned(asked)) {
        if (with_data) return lk_fail(LK_E_USAGE, "--lora: %s is for plan, which supposes a file; give a file", asked);
        l->planned_rank = (int64_t)l->scale;
        return (l->path = lk_strdup(asked)) ? LK_OK : out_of_memory(asked);
    }
    char *file = lk_strndup(asked, length);
    enum lk_code rc = file ? find_file(file, &l->path) : out_of_memory(asked);
    lk_free(file);
    LK_TRY(rc);
    const char *slash = strrchr(l->path, '/');
    l->name = slash ? slash + 1 : l->path;
    return read_file(l, with_data, whole);
}

static enum lk_code open_all(struct lk_loras **out, const char *const *asked, int n, bool with_data, bool whole) {
    *out = NULL;
    if (n > LK_MAX_LORAS) return lk_fail(LK_E_USAGE, "--lora: expected at most %d files, got %d", LK_MAX_LORAS, n);
    struct lk_loras *loras = lk_calloc(1, sizeof *loras);
    if (!loras) return out_of_memory("--lora");
    enum lk_code rc = LK_OK;
    loras->whole = whole;
    for (int i = 0; i < n && !rc; i++) rc = open_one(&loras->list[loras->n++], asked[i], with_data, whole);
    if (rc)
        lk_loras_close(loras);
    else
        *out = loras;
    return rc;
}

enum lk_code lk_loras_open(struct lk_loras **out, const char *const *asked, int n, bool with_data) {
    return open_all(out, asked, n, with_data, false);
}

enum lk_code lk_loras_open_whole(struct lk_loras **out, const char *const *asked, int n, bool with_data) {
    return open_all(out, asked, n, with_data, true);
}

bool lk_lora_has_text(const struct lk_lora *file) {
    for (size_t i = 0; i < file->n_modules; i++)
        if (file->modules[i].component) return true;
    return false;
}

void lk_loras_close(struct lk_loras *loras) {
    if (!loras) return;
    for (int i = 0; i < loras->n; i++) {
        struct lk_lora *l = &loras->list[i];
        lk_free(l->modules);
        lk_free(l->texts);
        lk_free(l->path);
        lk_safetensors_close(&l->st);
    }
    lk_free(loras->layers);
    lk_free(loras->owned);
    lk_free(loras);
}

size_t lk_lora_count(const struct lk_safetensors *st) {
    size_t n = 0;
    for (size_t i = 0; i < st->n_tensors; i++) {
        struct lk_lora_key key;
        lk_lora_key_split(st->tensors[i].name, &key);
        n += key.role == LK_LORA_A;
    }
    return n;
}
