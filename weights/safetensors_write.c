#include "engine/base/text.h"
#include "engine/base/utf8.h"
#include "weights/safetensors.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/base/json.h"
#include "weights/safetensors_dtype.h"

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
static enum lk_code make_header(struct lk_text *h, const char *path, const struct lk_st_named *tensors,
                                size_t n_tensors, const char *metadata_json) {
    uint64_t at = 0;
    lk_text_bytes(h, "\0\0\0\0\0\0\0", 8);
    lk_text_add(h, "{");
    if (metadata_json) lk_text_add(h, "\"__metadata__\":%s", metadata_json);
    for (size_t i = 0; i < n_tensors; i++) {
        const struct lk_tensor *t = &tensors[i].tensor;
        enum lk_code rc = check_tensor(path, &tensors[i]);
        if (rc) return rc;
        if (i || metadata_json) lk_text_add(h, ",");
        lk_text_json(h, tensors[i].name);
        lk_text_add(h, ":{\"dtype\":\"%s\",\"shape\":[", lk_st_dtype_names[t->dtype]);
        for (int d = 0; d < t->n_dims; d++) lk_text_add(h, "%s%lld", d ? "," : "", (long long)t->shape[d]);
        unsigned long long end = at + lk_tensor_bytes(t);
        lk_text_add(h, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at, end);
        at = end;
    }
    lk_text_add(h, "}");
    while (h->n % 8 && !h->rc) lk_text_add(h, " ");
    if (h->rc) return h->rc;
    for (int i = 0; i < 8; i++) h->bytes[i] = (char)(((uint64_t)h->n - 8) >> (8 * i) & 0xff);
    struct lk_safetensors check;
    enum lk_code rc = lk_safetensors_parse(&check, h->bytes, h->n, h->n + at, path);
    if (!rc) lk_safetensors_close(&check);
    return rc;
}

static enum lk_code write_file(const char *path, const struct lk_text *header, const struct lk_st_named *tensors,
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
    struct lk_text header = {0};
    enum lk_code rc = metadata_json ? check_metadata(path, metadata_json) : LK_OK;
    if (!rc) rc = make_header(&header, path, tensors, n_tensors, metadata_json);
    if (!rc) rc = write_file(path, &header, tensors, n_tensors);
    lk_text_free(&header);
    return rc;
}
