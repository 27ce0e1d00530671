#include "engine/tensor.h"

#include <stdio.h>

static const struct {
    const char *name;
    size_t size;
    int64_t block;
} dtypes[LK_DTYPE_COUNT] = {
    [LK_F32] = {"f32", 4, 1},       [LK_BF16] = {"bf16", 2, 1},       [LK_F16] = {"f16", 2, 1},
    [LK_F64] = {"f64", 8, 1},       [LK_U8] = {"u8", 1, 1},           [LK_I8] = {"i8", 1, 1},
    [LK_I16] = {"i16", 2, 1},       [LK_I32] = {"i32", 4, 1},         [LK_I64] = {"i64", 8, 1},
    [LK_BOOL] = {"bool", 1, 1},     [LK_F8_E4M3] = {"f8_e4m3", 1, 1}, [LK_F8_E5M2] = {"f8_e5m2", 1, 1},
    [LK_NF4] = {"nf4", 1, 2},       [LK_Q8] = {"q8", 1, 1},           [LK_Q8_0] = {"q8_0", 34, 32},
    [LK_Q4_0] = {"q4_0", 18, 32},   [LK_Q4_K] = {"q4_k", 144, 256},   [LK_Q5_K] = {"q5_k", 176, 256},
    [LK_Q6_K] = {"q6_k", 210, 256},
};

size_t lk_dtype_size(enum lk_dtype dtype) { return dtypes[dtype].size; }
int64_t lk_dtype_block(enum lk_dtype dtype) { return dtypes[dtype].block; }
const char *lk_dtype_name(enum lk_dtype dtype) { return dtypes[dtype].name; }

static size_t packed_bytes(enum lk_dtype dtype, int64_t n) {
    const int64_t block = dtypes[dtype].block;
    return (size_t)((n + block - 1) / block) * dtypes[dtype].size;
}

static size_t scales_bytes(const struct lk_tensor *t, int64_t n) {
    const struct lk_scales *s = &t->scales;
    if (!s->data) return 0;
    return (size_t)(s->block ? (n + s->block - 1) / s->block : 1) * dtypes[s->dtype].size;
}

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

size_t lk_tensor_bytes(const struct lk_tensor *t) {
    const int64_t n = lk_tensor_numel(t);
    return packed_bytes(t->dtype, n) + scales_bytes(t, n);
}

int lk_tensor_parts(const struct lk_tensor *t, struct lk_tensor_part parts[LK_TENSOR_PARTS]) {
    for (int i = 0; i < t->n_dims; i++)
        if (!t->shape[i]) return 0;
    const int64_t rows = t->n_dims ? t->shape[0] : 1, n = (rows - 1) * t->ld + lk_tensor_row_numel(t);
    int n_parts = 0;
    if (t->data) parts[n_parts++] = (struct lk_tensor_part){t->data, packed_bytes(t->dtype, n)};
    if (t->scales.data) parts[n_parts++] = (struct lk_tensor_part){t->scales.data, scales_bytes(t, n)};
    return n_parts;
}

bool lk_tensor_is_dense(const struct lk_tensor *t) {
    return t->n_dims == 0 || t->shape[0] <= 1 || t->ld == lk_tensor_row_numel(t);
}

bool lk_tensor_same_shape(const struct lk_tensor *a, const struct lk_tensor *b) {
    if (a->n_dims != b->n_dims) return false;
    for (int i = 0; i < a->n_dims; i++)
        if (a->shape[i] != b->shape[i]) return false;
    return true;
}

static void *offset(const struct lk_tensor *t, int64_t blocks) {
    return (void *)((uintptr_t)t->data + (uintptr_t)blocks * dtypes[t->dtype].size);
}

struct lk_tensor lk_tensor_rows(const struct lk_tensor *t, int64_t first, int64_t n) {
    struct lk_tensor rows = *t;
    const int64_t elements = first * t->ld, block = dtypes[t->dtype].block;
    rows.shape[0] = n;
    if (elements % block || (t->scales.block && elements % t->scales.block)) return (struct lk_tensor){0};
    rows.data = offset(t, elements / block);
    if (t->scales.block)
        rows.scales.data = (void *)((uintptr_t)t->scales.data +
                                    (uintptr_t)(elements / t->scales.block) * dtypes[t->scales.dtype].size);
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
    view.scales = t->scales;
    return view;
}

char *lk_tensor_describe(const struct lk_tensor *t, char out[96]) {
    int n = snprintf(out, 96, "%s [", lk_dtype_name(t->dtype));
    for (int i = 0; i < t->n_dims && n < 90; i++)
        n += snprintf(out + n, 96 - (size_t)n, "%s%lld", i ? ", " : "", (long long)t->shape[i]);
    if (n < 95) snprintf(out + n, 96 - (size_t)n, "]");
    return out;
}
