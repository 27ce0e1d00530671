#include "kernels/selftest/case.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"

#define SENTINEL 0xa5

static uint64_t next(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double uniform(struct selftest_case *c) { return (double)(next(&c->random) >> 11) * 0x1p-53; }

int64_t lk_selftest_int(struct selftest_case *c, int64_t least, int64_t most) {
    return least + (int64_t)(next(&c->random) % (uint64_t)(most - least + 1));
}

double lk_selftest_normal(struct selftest_case *c) {
    double u = 1.0 - uniform(c), v = uniform(c);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

enum lk_dtype lk_selftest_weight_dtype(struct selftest_case *c) {
    return c->dtype == LK_F32 && selftest_maybe(c) ? LK_F32 : LK_BF16;
}

static int64_t place_of(const struct lk_tensor *t, int64_t i) {
    int64_t row = lk_tensor_row_numel(t);
    return i / row * t->ld + i % row;
}

double lk_selftest_get(const struct lk_tensor *t, const void *data, int64_t i) {
    int64_t place = place_of(t, i);
    switch (t->dtype) {
    case LK_BF16:
        return (double)lk_bf16_to_f32(((const uint16_t *)data)[place]);
    case LK_U8:
        return ((const uint8_t *)data)[place];
    case LK_I32:
        return ((const int32_t *)data)[place];
    default:
        return (double)((const float *)data)[place];
    }
}

static void put(const struct lk_tensor *t, void *data, int64_t i, double value) {
    int64_t place = place_of(t, i);
    switch (t->dtype) {
    case LK_BF16:
        ((uint16_t *)data)[place] = lk_f32_to_bf16((float)value);
        break;
    case LK_U8:
        ((uint8_t *)data)[place] = (uint8_t)value;
        break;
    case LK_I32:
        ((int32_t *)data)[place] = (int32_t)value;
        break;
    default:
        ((float *)data)[place] = (float)value;
    }
}

static double draw(struct selftest_case *c, enum lk_dtype dtype, enum selftest_fill fill) {
    if (dtype == LK_U8) return (double)lk_selftest_int(c, 0, 255);
    double normal = lk_selftest_normal(c);
    if (fill == FILL_SMALL) return 0.05 * normal;
    return fill == FILL_WIDE ? 3.0 + 8.0 * normal : normal;
}

static bool allocate(struct lk_selftest_tensor *s) {
    s->initial = lk_malloc(s->bytes);
    s->computed = lk_malloc(s->bytes);
    s->got = lk_malloc(s->bytes);
    s->part = lk_malloc(s->bytes);
    return s->initial && s->computed && s->got && s->part;
}

const struct lk_tensor *lk_selftest_tensor(struct selftest_case *c, enum lk_dtype dtype, bool window,
                                           enum selftest_fill fill, int n_dims, const int64_t *shape) {
    struct lk_selftest_tensor *s = &c->tensors[c->n_tensors++];
    const size_t size = lk_dtype_size(dtype);
    struct lk_tensor t = lk_tensor_make(NULL, dtype, n_dims, shape);
    if (window && selftest_maybe(c))
        t.ld += selftest_maybe(c) ? 8 * lk_selftest_int(c, 1, 4) : lk_selftest_int(c, 1, 40);
    s->offset = SELFTEST_GUARD + (selftest_maybe(c) ? 0 : size * (size_t)lk_selftest_int(c, 1, 7));
    s->bytes = s->offset + (size_t)((t.shape[0] - 1) * t.ld + lk_tensor_row_numel(&t)) * size + SELFTEST_GUARD;
    if (!allocate(s)) {
        c->failed = LK_E_NOMEM;
        s->cpu = t;
        return &s->cpu;
    }
    memset(s->initial, SENTINEL, s->bytes);
    t.data = s->computed + s->offset;
    s->cpu = t;
    int64_t n = fill == FILL_NONE ? 0 : lk_tensor_numel(&t);
    for (int64_t i = 0; i < n; i++) put(&t, s->initial + s->offset, i, draw(c, dtype, fill));
    return &s->cpu;
}

struct lk_selftest_tensor *lk_selftest_find(struct selftest_case *c, const struct lk_tensor *t) {
    for (int i = 0; i < c->n_tensors; i++)
        if (&c->tensors[i].cpu == t) return &c->tensors[i];
    return NULL;
}

const struct lk_tensor *lk_selftest_output(struct selftest_case *c, const struct lk_tensor *t) {
    lk_selftest_find(c, t)->output = true;
    return t;
}

const struct lk_tensor *lk_selftest_own(struct selftest_case *c, const struct lk_tensor *t) {
    lk_selftest_find(c, t)->own = true;
    return t;
}

const struct lk_tensor *lk_selftest_rows(struct selftest_case *c, const struct lk_tensor *t) {
    lk_selftest_find(c, t)->rows = true;
    return t;
}

void lk_selftest_set(struct selftest_case *c, const struct lk_tensor *t, int64_t i, double value) {
    struct lk_selftest_tensor *s = lk_selftest_find(c, t);
    if (!c->failed) put(t, s->initial + s->offset, i, value);
}

void lk_selftest_case_free(struct selftest_case *c) {
    for (int i = 0; i < c->n_tensors; i++) {
        lk_free(c->tensors[i].initial);
        lk_free(c->tensors[i].computed);
        lk_free(c->tensors[i].got);
        lk_free(c->tensors[i].part);
    }
}
