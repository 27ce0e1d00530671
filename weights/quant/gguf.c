/* GGUF files: a header of keys and values, a table of tensors, then their data, aligned. Strict where a mistake could
 * give wrong weights; keys that say nothing about tensors are skipped. */
#include "weights/quant/gguf.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/content.h"
#include "weights/mapped_file.h"

#define MOST_TENSORS ((uint64_t)1 << 20)
#define MOST_KEYS    ((uint64_t)1 << 16)
#define MOST_NAME    1024

struct reader {
    const unsigned char *at, *end;
    const char *file;
    struct lk_safetensors *out;
    char *names;
    size_t n_names, names_capacity, tensors_capacity;
    uint64_t alignment;
};

static const struct {
    uint32_t type;
    enum lk_dtype dtype;
} types[] = {{0, LK_F32},  {1, LK_F16},   {30, LK_BF16}, {8, LK_Q8_0},
             {2, LK_Q4_0}, {12, LK_Q4_K}, {13, LK_Q5_K}, {14, LK_Q6_K}};

static enum lk_code truncated(const struct reader *r) {
    return lk_fail(LK_E_INPUT, "%s: the file ends inside its header; download it again", r->file);
}

static enum lk_code take(struct reader *r, void *out, size_t n) {
    if ((size_t)(r->end - r->at) < n) return truncated(r);
    memcpy(out, r->at, n); /* little-endian, as the machines that this runs on */
    r->at += n;
    return LK_OK;
}

static enum lk_code take_string(struct reader *r, const unsigned char **text, uint64_t *n) {
    LK_TRY(take(r, n, 8));
    if (*n > (uint64_t)(r->end - r->at)) return truncated(r);
    *text = r->at;
    r->at += *n;
    return LK_OK;
}

/* n values of a type in a row. */
static enum lk_code skip_values(struct reader *r, uint32_t type, uint64_t n, bool in_array) {
    static const uint8_t sizes[13] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    const unsigned char *text = NULL;
    uint64_t length = 0;
    if (type > 12 || (type == 9 && in_array))
        return lk_fail(LK_E_INPUT, "%s: a value of type %u, which the format does not have", r->file, type);
    if (sizes[type]) {
        if (n > (uint64_t)(r->end - r->at) / sizes[type]) return truncated(r);
        r->at += n * sizes[type];
        return LK_OK;
    }
    for (uint64_t i = 0; i < n; i++) {
        if (type == 8) {
            LK_TRY(take_string(r, &text, &length));
            continue;
        }
        uint32_t inner = 0;
        LK_TRY(take(r, &inner, 4));
        LK_TRY(take(r, &length, 8));
        LK_TRY(skip_values(r, inner, length, true));
    }
    return LK_OK;
}

static enum lk_code read_key(struct reader *r) {
    static const char alignment[] = "general.alignment";
    const unsigned char *key = NULL;
    uint64_t n = 0;
    uint32_t type = 0, value = 0;
    LK_TRY(take_string(r, &key, &n));
    LK_TRY(take(r, &type, 4));
    if (n != sizeof alignment - 1 || memcmp(key, alignment, sizeof alignment - 1) != 0 || type != 4)
        return skip_values(r, type, 1, false);
    LK_TRY(take(r, &value, 4));
    if (value < 8 || value > 1 << 20 || value & (value - 1))
        return lk_fail(LK_E_INPUT, "%s: general.alignment: expected a power of two from 8 on, got %u", r->file, value);
    r->alignment = value;
    return LK_OK;
}

static enum lk_code dtype_of(const struct reader *r, const char *name, uint32_t type, enum lk_dtype *out) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type) {
            *out = types[i].dtype;
            return LK_OK;
        }
    return lk_fail(
        LK_E_INPUT,
        "%s: tensor \"%.200s\" is of type %u; read are F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q5_K and Q6_K: take a "
        "file of one of these (Q4_K_M, Q5_K_S, Q6_K, Q8_0 ...)",
        r->file, name, type);
}

/* The name's place is kept as a number until all names are there. */
static enum lk_code keep_name(struct reader *r, struct lk_st_tensor *t, char name[MOST_NAME]) {
    const unsigned char *text = NULL;
    uint64_t n = 0;
    LK_TRY(take_string(r, &text, &n));
    if (!n || n >= MOST_NAME || memchr(text, 0, (size_t)n))
        return lk_fail(LK_E_INPUT, "%s: a tensor's name: expected 1 to %d bytes without NUL", r->file, MOST_NAME - 1);
    memcpy(name, text, (size_t)n);
    name[n] = 0;
    if (lk_grow(&r->names, &r->names_capacity, r->n_names + (size_t)n + 1, 1))
        return lk_fail(LK_E_NOMEM, "%s: out of memory", r->file);
    memcpy(r->names + r->n_names, name, (size_t)n + 1);
    t->name = (const char *)(uintptr_t)r->n_names;
    r->n_names += (size_t)n + 1;
    return LK_OK;
}

static enum lk_code read_tensor(struct reader *r) {
    struct lk_safetensors *out = r->out;
    char name[MOST_NAME];
    uint32_t n_dims = 0, type = 0;
    uint64_t dim = 0;
    int64_t shape[4], blocks = 1;
    enum lk_dtype dtype = LK_F32;
    if (lk_grow(&out->tensors, &r->tensors_capacity, out->n_tensors + 1, sizeof *out->tensors))
        return lk_fail(LK_E_NOMEM, "%s: out of memory", r->file);
    struct lk_st_tensor *t = &out->tensors[out->n_tensors];
    *t = (struct lk_st_tensor){0};
    LK_TRY(keep_name(r, t, name));
    LK_TRY(take(r, &n_dims, 4));
    if (n_dims < 1 || n_dims > 4)
        return lk_fail(LK_E_INPUT, "%s: tensor \"%.200s\": expected 1 to 4 dimensions, got %u", r->file, name, n_dims);
    for (uint32_t i = 0; i < n_dims; i++) {
        LK_TRY(take(r, &dim, 8));
        if (dim < 1 || dim > INT32_MAX)
            return lk_fail(LK_E_INPUT, "%s: tensor \"%.200s\": a dimension of %llu", r->file, name,
                           (unsigned long long)dim);
        shape[n_dims - 1 - i] = (int64_t)dim; /* the file has the row first */
    }
    LK_TRY(take(r, &type, 4));
    LK_TRY(take(r, &t->begin, 8));
    LK_TRY(dtype_of(r, name, type, &dtype));
    const int64_t block = lk_dtype_block(dtype);
    for (uint32_t i = 0; i < n_dims; i++)
        if (__builtin_mul_overflow(blocks, shape[i], &blocks) || blocks > INT64_MAX / 256)
            return lk_fail(LK_E_INPUT, "%s: tensor \"%.200s\": the shape overflows", r->file, name);
    if (shape[n_dims - 1] % block)
        return lk_fail(LK_E_INPUT, "%s: tensor \"%.200s\": rows of %lld elements are no whole blocks of %lld", r->file,
                       name, (long long)shape[n_dims - 1], (long long)block);
    t->tensor = lk_tensor_make(NULL, dtype, (int)n_dims, shape);
    if (__builtin_add_overflow(t->begin, (uint64_t)lk_tensor_bytes(&t->tensor), &t->end) || t->begin % r->alignment)
        return lk_fail(LK_E_INPUT, "%s: tensor \"%.200s\": its data cannot begin at byte %llu", r->file, name,
                       (unsigned long long)t->begin);
    out->n_tensors++;
    return LK_OK;
}

static int by_offset(const void *a, const void *b) {
    const struct lk_st_tensor *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}
static int by_name(const void *a, const void *b) {
    return strcmp(((const struct lk_st_tensor *)a)->name, ((const struct lk_st_tensor *)b)->name);
}

/* No tensor lies in another or beyond the end, no name occurs twice. */
static enum lk_code check(struct lk_safetensors *st, const char *file) {
    qsort(st->tensors, st->n_tensors, sizeof *st->tensors, by_offset);
    const uint64_t there = st->file_bytes - st->data_offset;
    for (size_t i = 0; i < st->n_tensors; i++) {
        const struct lk_st_tensor *t = &st->tensors[i];
        if (i && t->begin < t[-1].end)
            return lk_fail(LK_E_INPUT, "%s: tensor \"%.200s\" lies in \"%.200s\"", file, t->name, t[-1].name);
        if (t->end > there)
            return lk_fail(LK_E_INPUT, "%s: tensor \"%.200s\" ends beyond the file; download it again", file, t->name);
    }
    qsort(st->tensors, st->n_tensors, sizeof *st->tensors, by_name);
    for (size_t i = 1; i < st->n_tensors; i++)
        if (!by_name(&st->tensors[i - 1], &st->tensors[i]))
            return lk_fail(LK_E_INPUT, "%s: tensor \"%.200s\" occurs twice", file, st->tensors[i].name);
    return LK_OK;
}

static enum lk_code read_all(struct reader *r, const unsigned char *bytes, uint64_t file_bytes) {
    char magic[4] = "";
    uint32_t version = 0;
    uint64_t n_tensors = 0, n_keys = 0;
    LK_TRY(take(r, magic, 4));
    LK_TRY(take(r, &version, 4));
    if (!memcmp(magic, "GGUF", 4) && (version < 2 || version > 3))
        return lk_fail(LK_E_INPUT, "%s: expected a GGUF file of version 2 or 3, got version %u", r->file, version);
    if (memcmp(magic, "GGUF", 4) != 0)
        return lk_fail(LK_E_INPUT, "%s: expected a GGUF file of version 2 or 3, got %s", r->file,
                       lk_content_name(bytes, (size_t)(r->end - bytes)));
    LK_TRY(take(r, &n_tensors, 8));
    LK_TRY(take(r, &n_keys, 8));
    if (!n_tensors || n_tensors > MOST_TENSORS || n_keys > MOST_KEYS)
        return lk_fail(LK_E_INPUT, "%s: %llu tensors and %llu keys: not a model", r->file,
                       (unsigned long long)n_tensors, (unsigned long long)n_keys);
    for (uint64_t i = 0; i < n_keys; i++) LK_TRY(read_key(r));
    for (uint64_t i = 0; i < n_tensors; i++) LK_TRY(read_tensor(r));
    const uint64_t header = (uint64_t)(r->at - bytes);
    r->out->data_offset = (header + r->alignment - 1) / r->alignment * r->alignment;
    r->out->file_bytes = file_bytes;
    r->out->names = r->names;
    for (size_t i = 0; i < r->out->n_tensors; i++)
        r->out->tensors[i].name = r->names + (uintptr_t)r->out->tensors[i].name;
    if (r->out->data_offset > file_bytes) return truncated(r);
    return check(r->out, r->file);
}

enum lk_code lk_gguf_parse(struct lk_safetensors *out, const void *bytes, size_t n_bytes, uint64_t file_bytes,
                           const char *name) {
    *out = (struct lk_safetensors){0};
    struct reader r = {.at = bytes, .end = (const unsigned char *)bytes + n_bytes, .file = name, .out = out};
    r.alignment = 32;
    enum lk_code rc = read_all(&r, bytes, file_bytes);
    if (!rc) return LK_OK;
    out->names = r.names;
    lk_safetensors_close(out);
    return rc;
}

enum lk_code lk_gguf_open(struct lk_safetensors *out, const char *path) {
    struct lk_mapped_file *file;
    *out = (struct lk_safetensors){0};
    LK_TRY(lk_mapped_open(&file, path));
    enum lk_code rc = lk_gguf_parse(out, file->data, (size_t)file->bytes, file->bytes, path);
    if (rc) {
        lk_mapped_close(file);
        return rc;
    }
    out->file = file;
    for (size_t i = 0; i < out->n_tensors; i++)
        out->tensors[i].tensor.data = (void *)(uintptr_t)(file->data + out->data_offset + out->tensors[i].begin);
    return LK_OK;
}
