#include "engine/tensor.h"

#include <stdio.h>

static const struct {
    const char *name;
    size_t size;
} dtypes[LK_DTYPE_COUNT] = {
    [LK_F32] = {"f32", 4}, [LK_BF16] = {"bf16", 2}, [LK_F16] = {"f16", 2}, [LK_F64] = {"f64", 8},
    [LK_U8] = {"u8", 1},   [LK_I8] = {"i8", 1},     [LK_I16] = {"i16", 2}, [LK_I32] = {"i32", 4},
    [LK_I64] = {"i64", 8}, [LK_BOOL] = {"bool", 1},
};

size_t lk_dtype_size(enum lk_dtype dtype) { return dtypes[dtype].size; }
const char *lk_dtype_name(enum lk_dtype dtype) { return dtypes[dtype].name; }

struct lk_tensor lk_tensor_make(void *data, enum lk_dtype dtype, int n_dims, const int64_t *shape) {
    struct lk_tensor t = {.data = data, .dtype = dtype, .n_dims = n_dims, .ld = 1};
    for (int i = 0; i < n_dims; i++) t.shape[i] = shape[i];
    for (int i = 1; i < n_dims; i++) t.ld *= shape[i];
    return t;
}

int64_t lk_tensor_numel(const struct lk_tensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->n_dims; i++) n *= t->shape[i];
    return n;
}

int64_t lk_tensor_row_numel(const struct lk_tensor *t) {
    int64_t n = 1;
    for (int i = 1; i < t->n_dims; i++) n *= t->shape[i];
    return n;
}

size_t lk_tensor_bytes(const struct lk_tensor *t) { return (size_t)lk_tensor_numel(t) * dtypes[t->dtype].size; }

bool lk_tensor_is_dense(const struct lk_tensor *t) {
    return t->n_dims == 0 || t->shape[0] <= 1 || t->ld == lk_tensor_row_numel(t);
}

bool lk_tensor_same_shape(const struct lk_tensor *a, const struct lk_tensor *b) {
    if (a->n_dims != b->n_dims) return false;
    for (int i = 0; i < a->n_dims; i++)
        if (a->shape[i] != b->shape[i]) return false;
    return true;
}

static void *offset(const struct lk_tensor *t, int64_t elements) {
    return (void *)((uintptr_t)t->data + (uintptr_t)elements * dtypes[t->dtype].size);
}

struct lk_tensor lk_tensor_rows(const struct lk_tensor *t, int64_t first, int64_t n) {
    struct lk_tensor rows = *t;
    rows.shape[0] = n;
    rows.data = offset(t, first * t->ld);
    return rows;
}

struct lk_tensor lk_tensor_cols(const struct lk_tensor *t, int64_t first, int64_t n) {
    struct lk_tensor cols = *t;
    cols.shape[1] = n;
    cols.data = offset(t, first);
    return cols;
}

struct lk_tensor lk_tensor_view(const struct lk_tensor *t, int n_dims, const int64_t *shape) {
    struct lk_tensor view = lk_tensor_make(t->data, t->dtype, n_dims, shape);
    if (!lk_tensor_is_dense(t)) view.ld = t->ld;
    return view;
}

char *lk_tensor_describe(const struct lk_tensor *t, char out[96]) {
    int n = snprintf(out, 96, "%s [", lk_dtype_name(t->dtype));
    for (int i = 0; i < t->n_dims && n < 90; i++)
        n += snprintf(out + n, 96 - (size_t)n, "%s%lld", i ? ", " : "", (long long)t->shape[i]);
    if (n < 95) snprintf(out + n, 96 - (size_t)n, "]");
    return out;
}
