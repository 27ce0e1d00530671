/* A tensor: where data lies, its dtype and shape. It does not own the memory (an arena, a mapped file or the caller
 * does).
 *
 * Everything inside one index of the first dimension is contiguous; consecutive indices of the first dimension lie `ld`
 * elements apart. A dense tensor has ld = shape[1] * shape[2] * ...; a column window of a wider matrix has a larger ld.
 * That one freedom lets q, k, v and the MLP input share one projection's output, and attention and MLP share one input
 * of the next, without copies. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

enum lk_dtype {
    LK_F32,
    LK_BF16,
    LK_F16,
    LK_F64,
    LK_U8,
    LK_I8,
    LK_I16,
    LK_I32,
    LK_I64,
    LK_BOOL,
    /* Of weights of linear layers only; engine/quantized.h says what they mean. */
    LK_F8_E4M3,
    LK_F8_E5M2,
    LK_NF4,
    LK_Q8,
    LK_Q8_0,
    LK_Q4_0,
    LK_Q4_K,
    LK_Q5_K,
    LK_Q6_K,
    LK_DTYPE_COUNT,
    LK_FIRST_QUANTIZED = LK_F8_E4M3
};

#define LK_MAX_DIMS 8

/* What the elements of a quantised matrix are multiplied with. One scale serves `block` consecutive elements of the
 * whole matrix, counted row by row, so that blocks cross rows where the row is no multiple of them. */
struct lk_scales {
    void *data;          /* as the tensor's data; NULL: none */
    enum lk_dtype dtype; /* bf16 or f32 */
    int32_t block;       /* 0: one scale for all elements */
};

struct lk_tensor {
    void *data; /* device address; NULL for a tensor that is absent (n_dims is 0 then) */
    enum lk_dtype dtype;
    int n_dims;
    int64_t shape[LK_MAX_DIMS];
    int64_t ld; /* elements from one index of dimension 0 to the next */
    struct lk_scales scales;
};

size_t lk_dtype_size(enum lk_dtype dtype);      /* bytes per element; of quantised ones: per block of elements */
int64_t lk_dtype_block(enum lk_dtype dtype);    /* elements that are packed together: 1 but for quantised ones */
const char *lk_dtype_name(enum lk_dtype dtype); /* "f32", "bf16", ... */

/* A dense tensor over data. */
struct lk_tensor lk_tensor_make(void *data, enum lk_dtype dtype, int n_dims, const int64_t *shape);
#define LK_TENSOR(data, dtype, ...)                                                                                    \
    lk_tensor_make((data), (dtype), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

int64_t lk_tensor_numel(const struct lk_tensor *t);
int64_t lk_tensor_row_numel(const struct lk_tensor *t); /* elements of one index of dimension 0 */
size_t lk_tensor_bytes(const struct lk_tensor *t);      /* of the elements and their scales, gaps not counted */
bool lk_tensor_is_dense(const struct lk_tensor *t);
static inline bool lk_tensor_is_quantized(const struct lk_tensor *t) { return t->dtype >= LK_FIRST_QUANTIZED; }
bool lk_tensor_same_shape(const struct lk_tensor *a, const struct lk_tensor *b);

/* All memory that a tensor lies in: its elements from the first to the last, gaps counted, and its scales. These are
 * apart from each other, and one is of no use without the other. Gives how many; those without bytes are left out. */
#define LK_TENSOR_PARTS 2
struct lk_tensor_part {
    void *data;
    size_t bytes;
};
int lk_tensor_parts(const struct lk_tensor *t, struct lk_tensor_part parts[LK_TENSOR_PARTS]);

/* Rows [first, first + n) of dimension 0. Of a quantised matrix they must begin with a block of elements and of scales:
 * otherwise the result is absent. */
struct lk_tensor lk_tensor_rows(const struct lk_tensor *t, int64_t first, int64_t n);
/* Columns [first, first + n) of a 2-D tensor: shape [rows, n], same ld. */
struct lk_tensor lk_tensor_cols(const struct lk_tensor *t, int64_t first, int64_t n);
/* Another shape over the same elements. A window (ld > row) keeps dimension 0; a dense tensor may take any shape. */
struct lk_tensor lk_tensor_view(const struct lk_tensor *t, int n_dims, const int64_t *shape);
#define LK_VIEW(t, ...)                                                                                                \
    lk_tensor_view((t), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

/* "bf16 [4096, 6144]" into out (at least 96 bytes). Returns out. */
char *lk_tensor_describe(const struct lk_tensor *t, char out[96]);
