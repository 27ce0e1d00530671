#include "weights/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/content.h"
#include "engine/base/json.h"
#include "weights/mapped_file.h"
#include "weights/safetensors_dtype.h"

struct header {
    struct lk_json json;
    struct lk_safetensors *out;
    size_t capacity;   /* of out->tensors */
    size_t name_bytes; /* used of out->names, which has room for the whole header */
};

static bool read_dtype(struct header *h, const char *name, enum lk_dtype *out) {
    const char *text;
    if (lk_json_peek(&h->json) != '"')
        return lk_json_fail(&h->json, LK_E_ST_FIELD, "tensor \"%.200s\": field \"dtype\": expected a string", name);
    if (!lk_json_string(&h->json, &text)) return false;
    if (lk_st_dtype_parse(text, out)) return true;
    return lk_json_fail(
        &h->json, LK_E_ST_DTYPE,
        "tensor \"%.200s\": field \"dtype\": expected one of F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL F8_E4M3 "
        "F8_E5M2, "
        "got \"%.40s\"",
        name, text);
}

/* An array of unsigned integers below 2^63; what does not fit is `code`. */
static bool read_integers(struct header *h, const char *name, const char *field, enum lk_code code, int64_t *out,
                          int max_n, int *n) {
    if (lk_json_peek(&h->json) != '[')
        return lk_json_fail(&h->json, LK_E_ST_FIELD, "tensor \"%.200s\": field \"%s\": expected an array", name, field);
    lk_json_enter(&h->json, '[');
    *n = 0;
    while (lk_json_next(&h->json)) {
        uint64_t value;
        if (*n == max_n)
            return lk_json_fail(&h->json, code, "tensor \"%.200s\": field \"%s\": expected at most %d entries", name,
                                field, max_n);
        if (!lk_json_u64(&h->json, &value)) {
            /* something else than such a number: the field is wrong, not the JSON */
            if (h->json.rc == LK_E_JSON || h->json.rc == LK_E_JSON_LIMIT)
                h->json.rc = lk_fail_prefix(code, "tensor \"%.200s\": field \"%s\"", name, field);
            return false;
        }
        if (value > INT64_MAX)
            return lk_json_fail(&h->json, code, "tensor \"%.200s\": field \"%s\": %llu is too large", name, field,
                                (unsigned long long)value);
        out[(*n)++] = (int64_t)value;
    }
    return !h->json.rc;
}

/* Bytes of the elements, or -1 when any product of dimensions overflows. A dimension of 0 counts as 1 in that question,
 * so that strides are representable too. */
static int64_t shape_bytes(enum lk_dtype dtype, int n_dims, const int64_t *shape) {
    int64_t product = (int64_t)lk_dtype_size(dtype);
    bool empty = false;
    for (int i = 0; i < n_dims; i++) {
        if (shape[i] == 0) empty = true;
        if (__builtin_mul_overflow(product, shape[i] ? shape[i] : 1, &product)) return -1;
    }
    return empty ? 0 : product;
}

/* The object of one tensor, at h->json. */
static bool read_tensor(struct header *h, struct lk_st_tensor *t) {
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4 };
    struct lk_json *j = &h->json;
    enum lk_dtype dtype = LK_F32;
    int64_t shape[LK_MAX_DIMS], offsets[2];
    int n_dims = 0, n_offsets = 0, seen = 0;
    if (lk_json_peek(j) != '{') return lk_json_fail(j, LK_E_ST_FIELD, "tensor \"%.200s\": expected an object", t->name);
    lk_json_enter(j, '{');
    while (lk_json_next(j)) {
        const char *key;
        if (!lk_json_key(j, &key)) return false;
        if (!strcmp(key, "dtype")) {
            seen |= DTYPE;
            if (!read_dtype(h, t->name, &dtype)) return false;
        } else if (!strcmp(key, "shape")) {
            seen |= SHAPE;
            if (!read_integers(h, t->name, "shape", LK_E_ST_SHAPE, shape, LK_MAX_DIMS, &n_dims)) return false;
        } else if (!strcmp(key, "data_offsets")) {
            seen |= OFFSETS;
            if (!read_integers(h, t->name, "data_offsets", LK_E_ST_OFFSETS, offsets, 2, &n_offsets)) return false;
        } else {
            return lk_json_fail(j, LK_E_ST_FIELD, "tensor \"%.200s\": unknown field \"%.40s\"", t->name, key);
        }
    }
    if (j->rc) return false;
    if (seen != (DTYPE | SHAPE | OFFSETS))
        return lk_json_fail(j, LK_E_ST_FIELD, "tensor \"%.200s\": field \"%s\" is missing", t->name,
                            !(seen & DTYPE)   ? "dtype"
                            : !(seen & SHAPE) ? "shape"
                                              : "data_offsets");
    int64_t bytes = shape_bytes(dtype, n_dims, shape);
    if (bytes < 0) return lk_json_fail(j, LK_E_ST_SHAPE, "tensor \"%.200s\": the shape overflows", t->name);
    if (n_offsets != 2 || offsets[0] > offsets[1])
        return lk_json_fail(j, LK_E_ST_OFFSETS,
                            "tensor \"%.200s\": expected data_offsets [begin, end] with begin <= end", t->name);
    if (offsets[1] - offsets[0] != bytes)
        return lk_json_fail(j, LK_E_ST_OFFSETS, "tensor \"%.200s\": shape and dtype give %lld bytes, offsets %lld",
                            t->name, (long long)bytes, (long long)(offsets[1] - offsets[0]));
    t->begin = (uint64_t)offsets[0];
    t->end = (uint64_t)offsets[1];
    t->tensor = lk_tensor_make(NULL, dtype, n_dims, shape);
    return true;
}

/* "__metadata__": an object of strings; kept as text. */
static bool read_metadata(struct header *h) {
    struct lk_json *j = &h->json;
    if (lk_json_peek(j) != '{') return lk_json_fail(j, LK_E_ST_FIELD, "\"__metadata__\": expected an object");
    const char *from = (const char *)j->at, *ignored;
    lk_json_enter(j, '{');
    while (lk_json_next(j)) {
        if (!lk_json_key(j, &ignored)) return false;
        if (lk_json_peek(j) != '"')
            return lk_json_fail(j, LK_E_ST_FIELD, "\"__metadata__\": \"%.200s\": expected a string", ignored);
        if (!lk_json_string(j, &ignored)) return false;
    }
    if (j->rc) return false;
    if (h->out->metadata_json) return lk_json_fail(j, LK_E_ST_DUPLICATE, "\"__metadata__\" occurs twice");
    h->out->metadata_json = lk_strndup(from, (size_t)((const char *)j->at - from));
    return h->out->metadata_json ? true : lk_json_fail(j, LK_E_NOMEM, "out of memory");
}

static bool read_entry(struct header *h) {
    const char *key;
    struct lk_safetensors *out = h->out;
    if (!lk_json_key(&h->json, &key)) return false;
    if (!strcmp(key, "__metadata__")) return read_metadata(h);
    if (lk_grow(&out->tensors, &h->capacity, out->n_tensors + 1, sizeof *out->tensors))
        return lk_json_fail(&h->json, LK_E_NOMEM, "out of memory");
    size_t n = strlen(key) + 1;
    char *name = (char *)out->names + h->name_bytes;
    memcpy(name, key, n);
    h->name_bytes += n;
    struct lk_st_tensor *t = &out->tensors[out->n_tensors];
    memset(t, 0, sizeof *t);
    t->name = name;
    if (!read_tensor(h, t)) return false;
    out->n_tensors++;
    return true;
}

static int by_offset(const void *a, const void *b) {
    const struct lk_st_tensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct lk_st_tensor *)a)->name, ((const struct lk_st_tensor *)b)->name);
}

/* Tensors fill the data area without gap or overlap. Sorts them by offset. */
static enum lk_code check_layout(struct lk_safetensors *st, const char *file) {
    uint64_t at = 0, there = st->file_bytes - st->data_offset;
    if (st->n_tensors) qsort(st->tensors, st->n_tensors, sizeof *st->tensors, by_offset);
    for (size_t i = 0; i < st->n_tensors; i++) {
        const struct lk_st_tensor *t = &st->tensors[i];
        if (t->begin < at)
            return lk_fail(LK_E_ST_OVERLAP, "%s: tensor \"%.200s\" begins at byte %llu, inside \"%.200s\"", file,
                           t->name, (unsigned long long)t->begin, st->tensors[i - 1].name);
        if (t->begin > at)
            return lk_fail(LK_E_ST_HOLE,
                           "%s: tensor \"%.200s\" begins at byte %llu, expected %llu: bytes belong to no "
                           "tensor",
                           file, t->name, (unsigned long long)t->begin, (unsigned long long)at);
        at = t->end;
    }
    if (at > there)
        return lk_fail(LK_E_ST_TRUNCATED, "%s: expected %llu bytes of data, got %llu; download the file again", file,
                       (unsigned long long)at, (unsigned long long)there);
    if (at < there)
        return lk_fail(LK_E_ST_TRAILING, "%s: %llu bytes follow the last tensor; download the file again", file,
                       (unsigned long long)(there - at));
    return LK_OK;
}

static enum lk_code header_size(const unsigned char *bytes, size_t n_bytes, uint64_t file_bytes, const char *name,
                                uint64_t *out) {
    if (n_bytes < 8 || file_bytes < 8)
        return lk_fail(LK_E_ST_TRUNCATED,
                       "%s: expected at least 8 bytes, got %zu: not a safetensors file, or cut short; get it again",
                       name, n_bytes);
    uint64_t size = 0;
    for (int i = 0; i < 8; i++) size |= (uint64_t)bytes[i] << (8 * i);
    if (size < 2 || size > LK_ST_MAX_HEADER)
        return lk_fail(LK_E_ST_HEADER_SIZE,
                       "%s: header size: expected 2 to %llu bytes, got %llu; not a safetensors file", name,
                       (unsigned long long)LK_ST_MAX_HEADER, (unsigned long long)size);
    if (size > file_bytes - 8 || size > n_bytes - 8)
        return lk_fail(LK_E_ST_TRUNCATED, "%s: the header has %llu bytes, the file %llu; download the file again", name,
                       (unsigned long long)size, (unsigned long long)file_bytes);
    if (bytes[8] != '{')
        return lk_fail(LK_E_ST_HEADER_START, "%s: the header must begin with '{', got byte 0x%02x", name, bytes[8]);
    *out = size;
    return LK_OK;
}

static enum lk_code read_header(struct header *h) {
    struct lk_json *j = &h->json;
    lk_json_enter(j, '{');
    while (lk_json_next(j))
        if (!read_entry(h)) break;
    lk_json_end(j);
    enum lk_code rc = lk_json_finish(j);
    if (rc == LK_E_JSON || rc == LK_E_JSON_LIMIT) return LK_E_ST_JSON;
    return rc == LK_E_JSON_DUPLICATE ? LK_E_ST_DUPLICATE : rc;
}

enum lk_code lk_safetensors_parse(struct lk_safetensors *out, const void *bytes, size_t n_bytes, uint64_t file_bytes,
                                  const char *name) {
    memset(out, 0, sizeof *out);
    uint64_t size = 0;
    enum lk_code rc = header_size(bytes, n_bytes, file_bytes, name, &size);
    if (rc) return rc;
    out->data_offset = 8 + size;
    out->file_bytes = file_bytes;
    struct header h = {.out = out};
    if (!(out->names = lk_malloc((size_t)size))) return lk_fail(LK_E_NOMEM, "%s: out of memory", name);
    lk_json_init(&h.json, (const char *)bytes + 8, (size_t)size, name);
    rc = read_header(&h);
    if (!rc) rc = check_layout(out, name);
    if (rc) {
        lk_safetensors_close(out);
        return rc;
    }
    if (out->n_tensors) qsort(out->tensors, out->n_tensors, sizeof *out->tensors, by_name);
    return LK_OK;
}

/* Parses a copy of the header: what the file's writer does to the mapping meanwhile cannot get between two looks. */
static enum lk_code parse_copy(struct lk_safetensors *out, const struct lk_mapped_file *file) {
    uint64_t size = 0, n_bytes = file->bytes < 8 ? file->bytes : 8;
    if (n_bytes == 8)
        for (int i = 0; i < 8; i++) size |= (uint64_t)file->data[i] << (8 * i);
    if (size <= LK_ST_MAX_HEADER && size <= file->bytes - n_bytes) n_bytes += size;
    unsigned char *copy = lk_malloc((size_t)n_bytes);
    if (!copy) return lk_fail(LK_E_NOMEM, "%s: out of memory", file->path);
    if (n_bytes) memcpy(copy, file->data, (size_t)n_bytes);
    enum lk_code rc = lk_safetensors_parse(out, copy, (size_t)n_bytes, file->bytes, file->path);
    lk_free(copy);
    return rc;
}

enum lk_code lk_safetensors_open(struct lk_safetensors *out, const char *path) {
    memset(out, 0, sizeof *out);
    struct lk_mapped_file *file;
    enum lk_code rc = lk_mapped_open(&file, path);
    if (rc) return rc;
    rc = parse_copy(out, file);
    if (rc) {
        const char *other = lk_content_not_text(file->data, (size_t)file->bytes);
        if (other && strcmp(other, LK_CONTENT_SAFETENSORS) != 0)
            lk_fail(rc, "%s: expected a safetensors file, got %s", path, other);
        lk_mapped_close(file);
        return rc;
    }
    out->file = file;
    for (size_t i = 0; i < out->n_tensors; i++)
        out->tensors[i].tensor.data = (void *)(uintptr_t)(file->data + out->data_offset + out->tensors[i].begin);
    return LK_OK;
}

void lk_safetensors_close(struct lk_safetensors *st) {
    lk_free(st->tensors);
    lk_free(st->names);
    lk_free(st->metadata_json);
    lk_mapped_close(st->file);
    memset(st, 0, sizeof *st);
}

const struct lk_st_tensor *lk_safetensors_find(const struct lk_safetensors *st, const char *name) {
    struct lk_st_tensor key = {.name = name};
    return st->n_tensors ? bsearch(&key, st->tensors, st->n_tensors, sizeof key, by_name) : NULL;
}
