#include "engine/base/utf8.h"
#include "weights/safetensors.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/base/json.h"
#include "weights/safetensors_dtype.h"

struct text {
    char *bytes;
    size_t n, capacity;
    bool failed;
};

static void append(struct text *t, const char *bytes, size_t n) {
    if (t->failed) return;
    if (t->n + n > t->capacity) {
        size_t wanted = (t->n + n) * 2 + 256;
        char *grown = lk_realloc(t->bytes, wanted);
        if (!grown) {
            t->failed = true;
            return;
        }
        t->bytes = grown;
        t->capacity = wanted;
    }
    memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
}

static void append_text(struct text *t, const char *text) { append(t, text, strlen(text)); }

static void append_number(struct text *t, uint64_t value) {
    char digits[24];
    append(t, digits, (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)value));
}

static void append_string(struct text *t, const char *text) {
    append_text(t, "\"");
    for (; *text; text++) {
        char escape[8];
        if (*text == '"' || *text == '\\')
            append(t, (char[]){'\\', *text}, 2);
        else if ((unsigned char)*text < 0x20)
            append(t, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", (unsigned)(unsigned char)*text));
        else
            append(t, text, 1);
    }
    append_text(t, "\"");
}

static enum lk_code check_metadata(const char *path, const char *metadata_json) {
    struct lk_json j;
    const char *ignored;
    lk_json_init(&j, metadata_json, strlen(metadata_json), path);
    lk_json_enter(&j, '{');
    while (lk_json_next(&j))
        if (!lk_json_key(&j, &ignored) || !lk_json_string(&j, &ignored)) break;
    lk_json_end(&j);
    enum lk_code rc = lk_json_finish(&j);
    return rc ? lk_fail_prefix(rc, "metadata to write") : LK_OK;
}

static enum lk_code check_tensor(const char *path, const struct lk_st_named *t) {
    if (!strcmp(t->name, "__metadata__") || !lk_utf8_valid(t->name, strlen(t->name)))
        return lk_fail(LK_E_INTERNAL, "%s: \"%.200s\" cannot be a tensor's name", path, t->name);
    if (!lk_tensor_is_dense(&t->tensor))
        return lk_fail(LK_E_INTERNAL, "%s: tensor \"%.200s\" is not dense", path, t->name);
    return LK_OK;
}

/* The 8 bytes of size and the header, padded with spaces so that the data begins at a multiple of 8. Names that occur
 * twice are found by reading the header back. */
static enum lk_code make_header(struct text *h, const char *path, const struct lk_st_named *tensors, size_t n_tensors,
                                const char *metadata_json) {
    uint64_t at = 0;
    append(h, "\0\0\0\0\0\0\0", 8);
    append_text(h, "{");
    if (metadata_json) {
        append_text(h, "\"__metadata__\":");
        append_text(h, metadata_json);
    }
    for (size_t i = 0; i < n_tensors; i++) {
        const struct lk_tensor *t = &tensors[i].tensor;
        enum lk_code rc = check_tensor(path, &tensors[i]);
        if (rc) return rc;
        if (i || metadata_json) append_text(h, ",");
        append_string(h, tensors[i].name);
        append_text(h, ":{\"dtype\":\"");
        append_text(h, lk_st_dtype_names[t->dtype]);
        append_text(h, "\",\"shape\":[");
        for (int d = 0; d < t->n_dims; d++) {
            if (d) append_text(h, ",");
            append_number(h, (uint64_t)t->shape[d]);
        }
        append_text(h, "],\"data_offsets\":[");
        append_number(h, at);
        append_text(h, ",");
        append_number(h, at += lk_tensor_bytes(t));
        append_text(h, "]}");
    }
    append_text(h, "}");
    while (h->n % 8 && !h->failed) append_text(h, " ");
    if (h->failed) return lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    for (int i = 0; i < 8; i++) h->bytes[i] = (char)(((uint64_t)h->n - 8) >> (8 * i) & 0xff);
    struct lk_safetensors check;
    enum lk_code rc = lk_safetensors_parse(&check, h->bytes, h->n, h->n + at, path);
    if (!rc) lk_safetensors_close(&check);
    return rc;
}

static enum lk_code write_file(const char *path, const struct text *header, const struct lk_st_named *tensors,
                               size_t n_tensors) {
    struct lk_atomic_file *file;
    enum lk_code rc = lk_atomic_open(&file, path);
    if (rc) return rc;
    rc = lk_atomic_write(file, header->bytes, header->n);
    for (size_t i = 0; !rc && i < n_tensors; i++)
        rc = lk_atomic_write(file, tensors[i].tensor.data, lk_tensor_bytes(&tensors[i].tensor));
    if (!rc) return lk_atomic_commit(file);
    lk_atomic_discard(file);
    return rc;
}

enum lk_code lk_safetensors_write(const char *path, const struct lk_st_named *tensors, size_t n_tensors,
                                  const char *metadata_json) {
    struct text header = {0};
    enum lk_code rc = metadata_json ? check_metadata(path, metadata_json) : LK_OK;
    if (!rc) rc = make_header(&header, path, tensors, n_tensors, metadata_json);
    if (!rc) rc = write_file(path, &header, tensors, n_tensors);
    lk_free(header.bytes);
    return rc;
}
