/* Reader of one safetensors file: 8-byte little-endian header size, JSON header, data. Strict: everything that the
 * format forbids is refused with a code of its own (LK_E_ST_*), and nothing is trusted before it is checked. The file
 * is mapped read-only; tensors point into the mapping. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/tensor.h"

#define LK_ST_MAX_HEADER ((uint64_t)100 * 1000 * 1000)

struct lk_st_tensor {
    const char *name;
    /* data points into the mapping (NULL when only a header was parsed). Older writers did not align it to the dtype:
     * lk_bind copies such tensors. */
    struct lk_tensor tensor;
    uint64_t begin, end; /* bytes in the data area */
};

struct lk_safetensors {
    struct lk_st_tensor *tensors; /* sorted by name */
    size_t n_tensors;
    uint64_t data_offset; /* of the data area in the file */
    uint64_t file_bytes;
    struct lk_mapped_file *file;
    void *names;         /* memory behind the names */
    char *metadata_json; /* text of "__metadata__", NULL if none */
};

/* Parses a header: `bytes` are the first bytes of a file of file_bytes (8 + header size of them at least, else
 * LK_E_ST_TRUNCATED). `name` is for messages. */
enum lk_code lk_safetensors_parse(struct lk_safetensors *out, const void *bytes, size_t n_bytes, uint64_t file_bytes,
                                  const char *name);
enum lk_code lk_safetensors_open(struct lk_safetensors *out, const char *path);
void lk_safetensors_close(struct lk_safetensors *st);
const struct lk_st_tensor *lk_safetensors_find(const struct lk_safetensors *st, const char *name);

/* Writes tensors (host memory, dense) to a new file, in the order given, data 8-byte aligned; whole or not at all.
 * metadata_json: an object of strings, or NULL. */
struct lk_st_named {
    const char *name;
    struct lk_tensor tensor;
};
enum lk_code lk_safetensors_write(const char *path, const struct lk_st_named *tensors, size_t n_tensors,
                                  const char *metadata_json);
